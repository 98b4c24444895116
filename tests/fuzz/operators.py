"""Fuzz the objects of every operator: ``python -m tests.torture objects``."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tests.fuzz.places import FUZZED, place
from tests.torture.figures import Figure, counted, none_of

ROUNDS = 20_000


def figures(scale: float, seed: int) -> Iterator[Figure]:
    logging.disable(logging.CRITICAL)
    rounds = max(int(ROUNDS * scale), 50)
    for name, fuzzed in FUZZED.items():
        found = place(name).fuzzed(fuzzed.mutated, seed=seed, rounds=rounds)
        for each in found[:5]:
            print(f"seed {seed}: {name}: {each}", flush=True)
        yield counted(f"{name}: mutated objects", rounds)
        yield none_of(f"{name}: passes that raised, or said nothing", len(found))
    logging.disable(logging.NOTSET)
