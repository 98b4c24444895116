"""Kill, flood, fuzz and mislead everything for about half an hour, and print what was kept and what was not.

    python -m tests.torture                         all parts
    python -m tests.torture requests latency        some of them
    python -m tests.torture --scale 0.05 --seed 7   less of each, with the random choices of seed 7

Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from random import SystemRandom
from time import perf_counter

from tests.fuzz import operators
from tests.torture import bodies, growth, latency, requests, rollouts, server, store
from tests.torture.figures import Figure, table

PARTS: dict[str, Callable[[float, int], Iterator[Figure]]] = {
    "store": store.figures,
    "server": server.figures,
    "requests": requests.figures,
    "latency": latency.figures,
    "bodies": bodies.figures,
    "growth": growth.figures,
    "objects": operators.figures,
    "rollouts": rollouts.figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of each part, 1 for all")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(2**31), help="repeats the random choices")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    print(f"seed {options.seed}", flush=True)
    rows: list[tuple[str, Figure]] = []
    for part in options.parts or PARTS:
        began = perf_counter()
        try:
            found = list(PARTS[part](options.scale, options.seed))
        except Exception as broken:
            traceback.print_exc()
            found = [Figure(f"ended with {type(broken).__name__}: {str(broken)[:60]}", "", "none", kept=False)]
        print(f"{part}: {perf_counter() - began:.0f} s", flush=True)
        rows += [(part, figure) for figure in found]
    print(f"\n{table(rows)}\n\nseed {options.seed}")
    return 0 if all(figure.kept for _, figure in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
