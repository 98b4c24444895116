"""The proof for VMSets: every state that a small set can reach while it is updated keeps the promises.

The controller's own decision is taken in every state; around it machines become ready, crash, and take their time to
go, in every order.  The engine's proof is about numbers (tests/kernel/test_proof.py); this one about names: ordinals,
the surge beyond them, the partition below them, and changes in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import pytest
from tests.operators.virtualmachine.test_set_decisions import LARGE, NEW, NOW, OLD, Wire, machine, template_of, vm_set

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VMSet
from holdfast.operators.virtualmachine.resources import MACHINES, SETS
from holdfast.operators.virtualmachine.sets import update
from holdfast.operators.virtualmachine.sets.observe import Machine, Record, World

Life = Literal["starting", "ready", "going"]
State = tuple[tuple[int, bool, Life], ...]
"""The machines of the set: the ordinal, whether it has the new template, and how it is."""


@dataclass(frozen=True)
class Case:
    """An update: of how many machines, with which limits, to which template."""

    replicas: int
    floor: int
    surge: int
    partition: int
    ordered: bool
    target: str

    @property
    def feasible(self) -> bool:
        return self.floor < self.replicas or self.surge > 0

    @property
    def template(self) -> Wire:
        return LARGE if self.target == "in place" else NEW

    def held(self, ordinal: int) -> bool:
        return ordinal < min(self.partition, self.replicas)

    def is_done(self, state: State) -> bool:
        return state == tuple((n, not self.held(n), "ready") for n in range(self.replicas))


def cases(replicas: int, *, ordered: bool, target: str) -> Iterator[Case]:
    for floor in range(replicas + 1):
        for surge in (0, 1, 2) if replicas == 1 else (0, 1):
            for partition in (0, 1):
                yield Case(replicas, floor, surge, partition, ordered, target)


@cache
def machine_object(ordinal: int, new: bool, life: Life, target: str) -> Machine:
    template = OLD if not new else LARGE if target == "in place" else NEW
    wire = machine(ordinal, template, ready=life == "ready", deleting=life == "going")
    return Machine(Object.of(MACHINES, wire))


@cache
def records(target: str) -> dict[str, Record]:
    known = (OLD, LARGE if target == "in place" else NEW)
    templates = [template_of(each) for each in known]
    return {each.revision: Record(f"web-{n}", f"uid-r{n}", n, each) for n, each in enumerate(templates, 1)}


@cache
def world(case: Case) -> World:
    policy = "OrderedReady" if case.ordered else "Parallel"
    rolling = {"maxSurge": case.surge, "maxUnavailable": case.replicas, "partition": case.partition}
    owner = vm_set(
        case.template,
        replicas=case.replicas,
        complete=OLD,
        minAvailable=case.floor,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {**rolling, "podManagementPolicy": policy}},
    )
    obj = Object.of(SETS, owner)
    return World(object=obj, set=obj.decode(VMSet), records=records(case.target))


def decided(case: Case, state: State) -> tuple[list[int], list[int], list[tuple[int, bool]]]:
    """What the controller does: ordinals that it deletes, that it changes in place, and what it creates."""
    machines = tuple(machine_object(*each, case.target) for each in state)
    facts = update.assess(replace(world(case), machines=machines), NOW)
    assert not facts.blocked
    new = template_of(case.template)
    ordinals = [int(each.name.rpartition("-")[2]) for each in facts.deletes]
    changes = [int(each.name.rpartition("-")[2]) for each in facts.changes]
    return ordinals, changes, [(index, template == new) for index, template in facts.creates]


def checked(case: Case, state: State, *, of: Case | None = None) -> State:
    """The state after the controller's step, which keeps the promises; `of`: the case that it decides instead."""
    deletes, changes, creates = decided(case if of is None else of, state)
    there = {ordinal: (new, life) for ordinal, new, life in state}
    ready = {ordinal for ordinal, (_, life) in there.items() if life == "ready"}
    stopped = ready & {*deletes, *changes}
    assert not stopped or len(ready - stopped) >= case.floor, "it stops a ready machine that the floor needs"
    assert len(state) + len(creates) <= case.replicas + case.surge or not creates, "it creates more than the surge"
    assert not {index for index, _ in creates} & there.keys(), "it creates a machine whose name is in use"
    assert not any(case.held(n) for n in {*deletes, *changes}), "it stops a machine below the partition"
    if case.feasible:
        # Where the floor leaves no way the update is blocked, and a machine that is lost gets its old template.
        assert all(new != case.held(n) for n, new in creates), "it creates a machine with the wrong template"
    assert all(not there[n][0] or n >= case.replicas for n in stopped), "it stops an updated machine that stays"
    if case.ordered:
        lost = len(set(range(max(there, default=-1) + 1)) - there.keys())
        starting = any(new and life == "starting" for new, life in there.values())
        assert len(stopped) <= 1 >= len(creates) - lost, "it does not go one after the other"
        replaced = {n for n in stopped if n < case.replicas}
        assert not (starting and (replaced or len(creates) > lost)), "it does not wait for the one before"
    if case.target == "in place" and case.floor < case.replicas:
        assert all(index < case.replicas for index, _ in creates), "it creates a machine that no change needs"
    for n in deletes:
        there[n] = there[n][0], "going"
    for n in changes:
        there[n] = True, "starting"
    there.update({n: (new, "starting") for n, new in creates})
    return tuple(sorted((n, *each) for n, each in there.items()))


def happenings(state: State, *, deletions: bool) -> Iterator[State]:
    """What may happen to any one machine: it becomes ready, crashes, is gone, or is deleted by a user."""
    for k, (ordinal, new, life) in enumerate(state):
        before, after = state[:k], state[k + 1 :]
        if life == "going":
            yield (*before, *after)
        else:
            other: Life = "ready" if life == "starting" else "starting"
            yield (*before, (ordinal, new, other), *after)
            if deletions:
                yield (*before, (ordinal, new, "going"), *after)


def explored(case: Case, *, of: Case | None = None) -> int:
    """Visit every state that can be reached; returns how many there are."""
    start: State = tuple((n, False, "ready") for n in range(case.replicas))
    steps: dict[State, State] = {}
    open_states = [start]
    while open_states:
        state = open_states.pop()
        if state in steps:
            continue
        steps[state] = checked(case, state, of=of)
        open_states += [steps[state], *happenings(state, deletions=case.replicas < 3)]
    if case.feasible:
        for state in steps:
            assert case.is_done(_favoured(case, state, steps)), f"from {state} the update does not complete"
    return len(steps)


def _favoured(case: Case, state: State, steps: dict[State, State]) -> State:
    """Where the update ends if every machine starts and ends as it should."""
    for _ in range(12 * (case.replicas + case.surge)):
        after = steps[state]
        if after == state:
            after = tuple((n, new, "ready") for n, new, life in state if life != "going")
        if after == state:
            return state
        state = after
    return state


@pytest.mark.parametrize("target", ["replaced", "in place"])
@pytest.mark.parametrize("ordered", [True, False], ids=["OrderedReady", "Parallel"])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_reachable_state_of_an_update_keeps_the_promises(replicas: int, ordered: bool, target: str) -> None:
    states = sum(explored(case) for case in cases(replicas, ordered=ordered, target=target))
    assert states > 2 * replicas


@pytest.mark.parametrize(
    ("case", "other", "said"),
    [
        ({"ordered": False}, {"floor": 0}, "the floor needs"),
        ({}, {"surge": 2}, "more than the surge"),
        ({}, {"ordered": False}, "one before|one after"),
        ({"partition": 1}, {"partition": 0}, "below the partition|wrong template"),
    ],
)
def test_the_proof_finds_a_controller_that_keeps_other_promises(case: Wire, other: Wire, said: str) -> None:
    promised = Case(replicas=3, floor=1, surge=1, partition=0, ordered=True, target="replaced")
    promised = replace(promised, **case)
    with pytest.raises(AssertionError, match=said):
        explored(promised, of=replace(promised, **other))
