"""Floors and ceilings of every operator, while its templates change midway and everything around it fails.

    python -m tests.torture rollouts --seed 1

The story of each operator is ``MIDWAY`` of its contract tests, ``test_contract.py`` in ``tests/operators/<name>``:
templates take turns while each rolls out.  Replies are lost after the server has committed the write, changes come
late, writes are slow or refused, and the operator is killed while they are under way, in shares that are drawn from the
seed; `holdfast.testing.contract` checks the bounds at every committed change of a pod.
"""

from __future__ import annotations

import importlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

from tests.places import ROOT
from tests.torture.figures import Figure, counted, none_of

from holdfast.client.resources import PODS
from holdfast.operators.operator import load
from holdfast.testing.contract import Scenario, breaches
from holdfast.testing.faults import Silence

ROUNDS = 150
"""How often the story of each operator is played; each has eight changes of a template."""

CHANGES = 8
OPERATORS = ROOT / "tests" / "operators"


def scenarios() -> Mapping[str, Scenario]:
    """The story of each operator whose objects roll out pods, by the name of the operator."""
    found = {}
    for name in rolling():
        modules = [*(OPERATORS / name).glob("test_contract.py"), *(OPERATORS / name).glob("*/test_contract.py")]
        dotted = (".".join(each.relative_to(ROOT).with_suffix("").parts) for each in modules)
        stories = (getattr(importlib.import_module(each), "MIDWAY", None) for each in dotted)
        story = next((story for story in stories if story is not None), None)
        assert story is not None, f"write a Scenario MIDWAY with Bounds in a test_contract.py of {OPERATORS / name}"
        found[name] = story
    return found


def rolling() -> list[str]:
    """The operators whose objects roll out pods."""
    return [each.name for each in load() if any(PODS in kind.parts for kind in each.rollouts)]


def figures(scale: float, seed: int) -> Iterator[Figure]:
    logging.disable(logging.CRITICAL)
    rounds = max(int(ROUNDS * scale), 2)
    for name, scenario in scenarios().items():
        found = played(name, scenario, rounds=rounds, seed=seed)
        yield counted(f"{name}: rollouts under mixed faults", rounds * CHANGES)
        for what in ("floor", "ceiling", "story without an end"):
            yield none_of(f"{name}: {what}" + ("" if " " in what else " breaches"), found[what])
    logging.disable(logging.NOTSET)


def fault(seed: int, name: str, number: int) -> Silence:
    """The faults of one round: each share and delay is drawn, and any may be none."""
    random = Random(f"{seed}/{name}/{number}")
    return Silence(
        random.randrange(2**32),
        share=random.choice((0.0, 0.1, 0.3, 0.5)),
        late=random.choice((0.0, 0.5, 2.0, 4.0, 8.0)),
        refused=random.choice((0.0, 0.0, 0.1, 0.3)),
        slow=random.choice((0.0, 0.3, 0.8)),
        killed=random.choice((0.0, 0.05, 0.2)),
    )


def played(name: str, scenario: Scenario, *, rounds: int, seed: int) -> Counter[str]:
    """How often each bound was broken."""
    found: Counter[str] = Counter()
    for number in range(rounds):
        try:
            said = breaches(scenario, fault(seed, name, number))
        except AssertionError as error:
            found["story without an end"] += 1
            said = [str(error)]
        for each in said:
            found.update(what for what in ("floor", "ceiling") if f", {what} " in each)
            print(f"seed {seed}: {name}, round {number}: {each}", flush=True)
    return found
