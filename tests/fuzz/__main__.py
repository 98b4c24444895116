"""Fuzz every operator for longer: ``python -m tests.fuzz --rounds 20000``; prints what was tried and what was found."""

from __future__ import annotations

import argparse
import logging
import sys
from random import SystemRandom

from tests.fuzz.places import FUZZED, place


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000, help="mutations of each operator")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(2**31), help="repeats a run")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = 0
    for name, fuzzed in FUZZED.items():
        found = place(name).fuzzed(fuzzed.mutated, seed=options.seed, rounds=options.rounds)
        print(f"{name}: {options.rounds:,} mutated objects, seed {options.seed}: {len(found)} raised or said nothing")
        for each in found[:5]:
            print(each)
        failed += len(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
