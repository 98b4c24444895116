"""A VMMigration as it is shown: its phase, how far it is, and both machines.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VirtualMachine, VMMigration
from holdfast.kinds.virtrigaud.migrations import MigrationPhase, MigrationProgress, VMMigrationStatus
from holdfast.meta import durations, sizes
from holdfast.meta.objects import Key
from holdfast.meta.quantities import Quantity
from holdfast.operators.rollouts import (
    Headline,
    Observed,
    Wire,
    generation_seen,
    is_current,
    is_true,
    left_alone,
    message_of,
    status_of,
)
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.migrations import render
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.operators.virtualmachine.view import leaf, of_one_machine
from holdfast.views.descriptions import Age
from holdfast.views.rollouts import Because, RolloutState, Standing, condition, holds, moment, said
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Tree


def fresh(obj: Object) -> bool:
    status = obj.decode(VMMigration).status
    return generation_seen(obj, None if status is None else status.observed_generation)


def standing(observed: Observed) -> Standing:
    migration = observed.object.decode(VMMigration)
    status = migration.status or VMMigrationStatus()
    progress = status.progress or MigrationProgress()
    done = holds(status, "Ready") is not None
    started, ended = moment(status.start_time), moment(status.completion_time)
    options = migration.spec.options
    limit = durations.parse((options.timeout if options else None) or "4h")
    updated = moment(progress.update_time)
    eta = durations.parse(progress.eta) if progress.eta else None
    made = of_one_machine(
        observed.object,
        "Migration",
        state=_state(status) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=(status.phase or MigrationPhase.PENDING).value,
        because=_because(status),
        ready=done,
    )
    return left_alone(
        observed.object,
        replace(
            made,
            result=f"the migration is complete: {render.result(migration.spec)}",
            started=started,
            ended=ended,
            progressed=None if done else updated,
            due=None if done or started is None else started + limit,
            expected=None if eta is None or updated is None else updated + eta,
            facts=tuple(_facts(status)),
            more={
                "percentage": progress.percentage,
                "source": migration.spec.source.vm_ref.name,
                "target": migration.spec.target.name,
                "task": status.task_ref,
                "retries": status.retry_count or 0,
            },
            figures=_figures(progress, status),
        ),
    )


def _because(status: VMMigrationStatus) -> Because:
    """Why the migration is not further, with how far it is."""
    found, progress = said(condition(status, "Ready")), status.progress
    if progress is None or progress.percentage is None or status.completion_time is not None:
        return found
    left = "" if progress.eta is None else f", {progress.eta} left"
    return Because(found.code, f"{found.message} ({progress.percentage} %{left})")


def _figures(progress: MigrationProgress, status: VMMigrationStatus) -> dict[str, float]:
    found = {
        "percentage": progress.percentage,
        "transferredBytes": progress.transferred_bytes,
        "totalBytes": progress.total_bytes,
        "bytesPerSecond": progress.transfer_rate,
        "retries": status.retry_count or 0,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _state(status: VMMigrationStatus) -> RolloutState:
    if holds(status, "Ready") is not None:
        return RolloutState.COMPLETED
    return RolloutState.FAILED if status.phase is MigrationPhase.FAILED else RolloutState.UNDER_WAY


def _facts(status: VMMigrationStatus) -> Iterator[str]:
    progress = status.progress
    if progress is not None and progress.percentage is not None and status.completion_time is None:
        rate = "" if progress.transfer_rate is None else f", {_size(progress.transfer_rate)}/s"
        eta = "" if progress.eta is None else f", {progress.eta} left"
        yield f"{progress.percentage} %{rate}{eta}"
    if status.failed is not None:
        yield f"failed {status.failed.count} times"


def _size(count: int | str) -> str:
    """A number of bytes for people."""
    return sizes.readable(Quantity.parse(count).to_int())


def tree(observed: Observed, now: datetime) -> Tree:
    migration, state = observed.object.decode(VMMigration), standing(observed)
    namespace = observed.object.key.namespace
    branches = (
        _branch(observed, "source", Key(namespace, migration.spec.source.vm_ref.name), OLD, now),
        _branch(observed, "target", Key(namespace, migration.spec.target.name), NEW, now),
    )
    return Tree(standing=state, branches=branches, now=now, size=1)


def _branch(observed: Observed, role: str, key: Key, index: int, now: datetime) -> Branch:
    obj = observed.view.get(MACHINES, key)
    leaves = () if obj is None else (_leaf(obj, index, now),)
    return Branch(name=f"{role} {key.name}", index=index, children=leaves)


def _leaf(obj: Object, index: int, now: datetime) -> Leaf:
    status = obj.decode(VirtualMachine).status
    kept_off = names.MIGRATION_HOLD in obj.meta.annotations
    ready = status is not None and not kept_off and holds(status, "Ready") is not None
    return leaf(obj, index, ready=ready, why=(status.message if status else None) or "", now=now)


def headline(wire: Wire) -> Headline:
    phase = str(status_of(wire).get("phase", "New"))
    progress = (status_of(wire).get("progress") or {}).get("percentage")
    said = message_of(wire, "Ready")
    at_rest = is_current(wire) and is_true(wire, "Ready")
    return Headline(phase, said if at_rest or progress is None else f"{progress} %: {said}", at_rest)


def progress(wire: Wire, age: Age) -> list[list[str]]:
    """How far a migration is, as a table."""
    found = status_of(wire).get("progress") or {}
    done, total = (found.get(name) for name in ("transferredBytes", "totalBytes"))
    rate = found.get("transferRate")
    return [
        ["PHASE", "PERCENT", "BYTES", "RATE", "LEFT", "SINCE"],
        [
            str(found.get("currentPhase", "-")),
            str(found.get("percentage", "-")),
            "-" if done is None or total is None else f"{_size(done)} of {_size(total)}",
            "-" if rate is None else f"{_size(rate)}/s",
            str(found.get("eta", "-")),
            age(found.get("phaseStartTime")),
        ],
    ]


def disk(wire: Wire, age: Age) -> list[list[str]]:
    """The disk at both ends and on its way, as a table."""
    info, stored = status_of(wire).get("diskInfo") or {}, status_of(wire).get("storageInfo") or {}

    def row(where: str, id: object, format: object, size: object, checksum: object) -> list[str]:
        shown = _size(str(size)) if size else "-"
        return [where, str(id or "-"), str(format or "-"), shown, str(checksum or "-")[:12]]

    def end(where: str) -> list[str]:
        return row(where, *(info.get(f"{where}{name}") for name in ("DiskID", "Format", "Size", "Checksum")))

    way = row("storage", stored.get("url"), None, stored.get("size"), info.get("checksum"))
    return [["WHERE", "DISK", "FORMAT", "SIZE", "SHA-256"], end("source"), way, end("target")]
