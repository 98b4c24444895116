"""What the controller does next for a VMSet: which machines it creates, changes and deletes, and why.  Pure.

The engine decides how many, and which (`update`); this module turns its step into writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.kernel.outcomes import Failure
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.operators.virtualmachine.sets import render
from holdfast.operators.virtualmachine.sets.observe import Record, World
from holdfast.operators.virtualmachine.sets.status import report
from holdfast.operators.virtualmachine.sets.update import Facts, assess
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Rehearsal, Write

HISTORY: Final = 10


def decide(world: World, now: datetime) -> Decision:
    """What to write, and what to report."""
    facts = assess(world, now)
    status, notices = report(facts, now)
    return Decision(
        rehearse=tuple(_rehearsals(facts)),
        writes=(*_records(facts), *_step(facts)),
        status=status,
        notices=notices,
        outcome=facts.step.outcome(),
    )


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a reconciliation that failed: what it would have been, and what failed."""
    return report(assess(world, now), now, failure)[0]


def _rehearsals(facts: Facts) -> Iterator[Rehearsal]:
    """A machine of a revision of which none exists, before the first ready machine is deleted for it."""
    if facts.step.replaces_first and facts.deletes:
        yield Rehearsal(
            about=f"the template of revision {facts.target.revision}",
            resource=MACHINES,
            manifest=render.machine(facts.world.object.wire(), facts.target, None),
        )


def _step(facts: Facts) -> Iterator[Write]:
    """The writes of the step; they come in a second wave, when the revision is recorded."""
    because, owner = facts.step.decision.because.message, facts.world.object.wire()
    for index, template in facts.creates:
        manifest = render.machine(owner, template, facts.world.start + index)
        yield Create(because=because, resource=MACHINES, manifest=manifest, wave=1)
    for machine in facts.changes:
        yield Patch(
            because=f"{because}; it is changed in place",
            resource=MACHINES,
            key=machine.object.key,
            patch=render.change(facts.world.records[machine.revision].template, facts.target),
            uid=machine.object.uid,
            wave=1,
        )
    for machine in facts.deletes:
        yield Delete(because=because, resource=MACHINES, key=machine.object.key, uid=machine.object.uid, wave=1)


# --- the history


def _records(facts: Facts) -> Iterator[Write]:
    """Record the target, give it the highest number, and delete records beyond the history limit."""
    world, target = facts.world, facts.target
    namespace = world.object.key.namespace
    newest = max((record.number for record in world.records.values()), default=0)
    known = world.records.get(target.revision)
    if known is None:
        manifest = render.controller_revision(world.object.wire(), target, number=newest + 1)
        yield Create(because="the revision is new", resource=CONTROLLER_REVISIONS, manifest=manifest)
    elif known.number < newest:
        yield Patch(
            because="an earlier revision is wanted again",
            resource=CONTROLLER_REVISIONS,
            key=Key(namespace, known.name),
            patch={"revision": newest + 1},
            uid=known.uid,
        )
    for record in _beyond_history(facts):
        yield Delete(
            because="the history is longer than its limit",
            resource=CONTROLLER_REVISIONS,
            key=Key(namespace, record.name),
            uid=record.uid,
        )


def _beyond_history(facts: Facts) -> tuple[Record, ...]:
    limit = facts.world.spec.revision_history_limit
    needed = {each.revision for each in facts.world.machines} | {facts.target.revision}
    if facts.current is not None:
        needed.add(facts.current.revision)
    past = sorted(
        (record for name, record in facts.world.records.items() if name not in needed), key=lambda each: each.number
    )
    return tuple(past[: max(len(past) - (HISTORY if limit is None else limit), 0)])
