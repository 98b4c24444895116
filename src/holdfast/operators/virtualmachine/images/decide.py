"""What is done for a VMImage next: it is prepared on each provider that needs it, and the status says how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Again, Done, Outcome, soonest, until
from holdfast.kinds.virtrigaud.images import ImageMissingAction, ImagePhase, ProviderImageStatus, VMImageStatus
from holdfast.meta import durations, hashing, times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.estimates import eta, rate
from holdfast.operators.virtualmachine.images.observe import Place, World
from holdfast.operators.virtualmachine.machines import render
from holdfast.operators.virtualmachine.reasons import ImageReason, advised
from holdfast.providers.contract import Image, Prepared, ProviderError, Task, TaskState
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision
from holdfast.runtime.status import wire

BACKOFF: Final = Backoff(base=timedelta(seconds=5), cap=timedelta(minutes=5), jitter=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The image on one provider after this pass.

    on       what the status says
    reason   why it is not available
    call     the source, where the provider is asked to prepare it
    cancel   the task to cancel, because it took too long
    task     how far the task is
    """

    on: ProviderImageStatus
    reason: ImageReason | None = None
    call: Image | None = None
    cancel: str = ""
    task: TaskState | None = None
    outcome: Outcome = field(default_factory=Done)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDecision(Decision):
    """What one pass writes, and what the providers are asked before."""

    preparations: Mapping[str, Preparation] = field(default_factory=dict)
    now: datetime


def decide(world: World, now: datetime) -> ImageDecision:
    return _decision(world, {label: _prepared(world, label, place, now) for label, place in world.places.items()}, now)


def _decision(world: World, preparations: Mapping[str, Preparation], now: datetime) -> ImageDecision:
    verdicts = _verdicts(preparations)
    said, turned = status.report(
        world.object,
        verdicts,
        now=now,
        fields=_fields(world, preparations, verdicts["Ready"], now),
        announced={("Ready", "True"): "Normal", ("Validated", "False"): "Warning"},
    )
    return ImageDecision(
        status=said,
        notices=turned,
        outcome=soonest(each.outcome for each in preparations.values()),
        preparations=preparations,
        now=now,
    )


def _prepared(world: World, label: str, place: Place, now: datetime) -> Preparation:
    """What comes next for one provider."""
    spec, before = world.image.spec, world.before.provider_status.get(label) or ProviderImageStatus(available=False)
    source = render.source_of(spec, place.provider.spec.type)
    if source is None:
        type = place.provider.spec.type.value
        return _not(before, ImageReason.NO_SOURCE, f"spec.source has nothing for providers of type {type}", now)
    if before.available:
        return Preparation(on=before)
    reported = place.provider.status.reported_capabilities if place.provider.status else None
    if not render.needs_import(source):
        there = source.template or source.path
        return Preparation(on=_available(before, f"{there} is expected to be on the provider", now))
    if reported is not None and reported.supports_image_import is False:
        return Preparation(on=_available(before, "the provider fetches images when it creates machines", now))
    if place.target is None:
        return _not(before, ImageReason.WAITING, "the provider is not ready", now)
    missing = spec.prepare.on_missing if spec.prepare else None
    if missing not in (None, ImageMissingAction.IMPORT):
        return _not(
            before, ImageReason.NOT_IMPORTING, f"spec.prepare.onMissing is {missing}, so it is not imported", now
        )
    if before.task_ref:
        return _followed(world, before, place, now)
    if before.failures:
        due = (times.read(before.last_failure_time) or now) + BACKOFF.delay(before.failures)
        retries = spec.prepare.retries if spec.prepare and spec.prepare.retries is not None else 3
        if before.failures > retries:
            due = (times.read(before.last_failure_time) or now) + BACKOFF.cap
        if now < due:
            again = until(due, now=now, because="preparing the image is tried again")
            reason = next((each for each in ImageReason if each == before.reason), ImageReason.FAILED)
            return Preparation(on=before, reason=reason, outcome=again)
    return Preparation(on=before, reason=ImageReason.IMPORTING, call=source)


def _followed(world: World, before: ProviderImageStatus, place: Place, now: datetime) -> Preparation:
    """A task that prepares the image."""
    state = place.task
    if state is None:
        return Preparation(
            on=before, reason=ImageReason.IMPORTING, outcome=Again(pacing.LOOK, "the provider is asked again")
        )
    if not state.done:
        prepare = world.image.spec.prepare
        limit = durations.parse((prepare.timeout if prepare else None) or "30m")
        began = times.read(before.start_time) or now
        if now >= began + limit:
            text = f"it was not done within {durations.format(limit)}"
            failed = _failed(before, ImageReason.TIMED_OUT, text, now)
            return replace(failed, cancel=before.task_ref or "")
        after = pacing.as_said(state.again_after)
        after = min(after, max(began + limit - now, pacing.SOON))
        last, stage = times.read(before.last_updated), _stage(state)
        waits = Again(min(after, pacing.LOOK), f"task {before.task_ref} is due")
        if last is not None and now < last + pacing.LOOK and stage == before.stage:
            # Its progress is recorded only so often.
            return Preparation(on=before, reason=ImageReason.IMPORTING, outcome=waits)
        on = msgspec.structs.replace(before, last_updated=times.format(now), stage=stage)
        return Preparation(on=on, reason=ImageReason.IMPORTING, task=state, outcome=waits)
    if state.lost:
        # The provider does not know the task any more: it is asked again, and has the image or not.
        source = render.source_of(world.image.spec, place.provider.spec.type)
        on = msgspec.structs.replace(before, task_ref=None)
        return Preparation(on=on, reason=ImageReason.IMPORTING, call=source)
    if state.error:
        mismatch = "checksum" in state.error.lower()
        reason = ImageReason.CHECKSUM_MISMATCH if mismatch else ImageReason.FAILED
        return _failed(before, reason, state.error, now)
    on = _available(before, "the image is imported", now)
    given = state.result.get("size_bytes")
    size = str(Quantity.of_bytes(int(given))) if given else None
    on = msgspec.structs.replace(on, path=state.result.get("path") or on.path, size=size or on.size)
    return Preparation(on=on, task=state)


def _stage(state: TaskState | None) -> str | None:
    return state.stage.name if state is not None and state.stage is not None else None


def _not(before: ProviderImageStatus, reason: ImageReason, message: str, now: datetime) -> Preparation:
    return Preparation(on=_updated(before, now, available=False, message=advised(reason, message)), reason=reason)


def _available(before: ProviderImageStatus, message: str, now: datetime) -> ProviderImageStatus:
    done = msgspec.structs.replace(
        before, task_ref=None, stage=None, failures=None, last_failure_time=None, start_time=None, reason=None
    )
    return _updated(done, now, available=True, message=message)


def _failed(before: ProviderImageStatus, reason: ImageReason, message: str, now: datetime) -> Preparation:
    failures = (before.failures or 0) + 1
    on = msgspec.structs.replace(
        before,
        task_ref=None,
        stage=None,
        start_time=None,
        failures=failures,
        last_failure_time=times.format(now),
        reason=reason.value,
    )
    on = _updated(on, now, available=False, message=advised(reason, message))
    again = until(now + BACKOFF.delay(failures), now=now, because="preparing the image is tried again")
    return Preparation(on=on, reason=reason, outcome=again)


def _updated(before: ProviderImageStatus, now: datetime, *, available: bool, message: str) -> ProviderImageStatus:
    if (before.available, before.message) == (available, message) and before.last_updated:
        return before
    return msgspec.structs.replace(before, available=available, message=message, last_updated=times.format(now))


# --- the providers


async def act(world: World, decision: Decision, *, connections: Connections) -> Decision:
    """Ask the providers to prepare the image, and to cancel what took too long."""
    if not isinstance(decision, ImageDecision):
        return decision
    preparations = dict(decision.preparations)
    for label, each in decision.preparations.items():
        target = world.places[label].target
        if target is None:
            continue
        hypervisor = connections.to(target)
        if each.cancel:
            await _cancelled(hypervisor.cancel, each.cancel)
        if each.call is None:
            continue
        try:
            made = await hypervisor.prepare_image(each.call, prepared_name(world, each.call), _storage(world))
            state = None if made.task is None else await hypervisor.task(made.task)
        except ProviderError as error:
            preparations[label] = _failed(each.on, ImageReason.FAILED, error.message, decision.now)
            continue
        preparations[label] = _begun(each.on, made, state, decision.now)
    return decision if preparations == decision.preparations else _decision(world, preparations, decision.now)


async def _cancelled(cancel: Any, task: str) -> None:
    try:
        await cancel(Task(id=task))
    except ProviderError:
        return  # it ends by itself


def _begun(before: ProviderImageStatus, made: Prepared, state: TaskState | None, now: datetime) -> Preparation:
    on = msgspec.structs.replace(before, id=made.id or None, path=made.path or None)
    if made.task is None:
        return Preparation(on=_available(on, "the image is imported", now))
    message = "the provider imports the image"
    on = msgspec.structs.replace(
        on, task_ref=made.task.id, stage=_stage(state), start_time=before.start_time or times.format(now)
    )
    on = _updated(on, now, available=False, message=message)
    again = Again(pacing.SOON, "the task has begun")
    return Preparation(on=on, reason=ImageReason.IMPORTING, task=state, outcome=again)


def prepared_name(world: World, source: Image) -> str:
    """The name of the image on providers: another source is another image."""
    marked = hashing.short_hash([world.object.uid, msgspec.to_builtins(source)])
    return f"{world.object.key.name[:50]}-{marked}"


def _storage(world: World) -> str:
    prepare = world.image.spec.prepare
    storage = prepare.storage if prepare else None
    libvirt, vsphere = (storage.libvirt, storage.vsphere) if storage else (None, None)
    return (libvirt and libvirt.storage_pool) or (vsphere and vsphere.datastore) or ""


# --- the status


def _verdicts(preparations: Mapping[str, Preparation]) -> dict[str, Verdict]:
    waiting = {label: each for label, each in preparations.items() if each.reason is not None}
    importing = [label for label, each in waiting.items() if each.reason is ImageReason.IMPORTING]
    failed = [label for label, each in waiting.items() if each.reason in _FAILURES]
    is_importing = (
        Verdict.true(ImageReason.IMPORTING, f"{', '.join(sorted(importing))} import the image")
        if importing
        else Verdict.false(ImageReason.NOT_IMPORTING, "no provider imports the image")
    )
    downloading = [label for label in importing if waiting[label].on.stage == _DOWNLOADING]
    is_downloading = (
        Verdict.true(ImageReason.DOWNLOADING, f"{', '.join(sorted(downloading))} download the image")
        if downloading
        else Verdict.false(ImageReason.NOT_DOWNLOADING, "no provider says that it downloads the image")
    )
    if not preparations:
        ready = Verdict.false(ImageReason.NOT_USED, "no machine uses the image, so it is on no provider")
    elif waiting:
        first = min(waiting, key=lambda label: (label not in failed, label))
        reason = waiting[first].reason or ImageReason.WAITING
        text = "; ".join(
            f"{label}: {each.on.message or 'it is being prepared'}" for label, each in sorted(waiting.items())
        )
        ready = Verdict.false(reason, text)
    else:
        ready = Verdict.true(ImageReason.READY, f"the image is on {', '.join(sorted(preparations))}")
    invalid = [label for label in failed if waiting[label].reason in _INVALID]
    validated = (
        Verdict.false(waiting[invalid[0]].reason or ImageReason.NO_SOURCE, waiting[invalid[0]].on.message or "")
        if invalid
        else Verdict.true(ImageReason.VALID, "the source is complete")
    )
    return {"Ready": ready, "Downloading": is_downloading, "Importing": is_importing, "Validated": validated}


_FAILURES: Final = frozenset(
    {ImageReason.FAILED, ImageReason.TIMED_OUT, ImageReason.NO_SOURCE, ImageReason.CHECKSUM_MISMATCH}
)
_DOWNLOADING: Final = "downloading"
_PHASES: Final[Mapping[ImagePhase, frozenset[str | None]]] = {
    ImagePhase.DOWNLOADING: frozenset({_DOWNLOADING}),
    ImagePhase.IMPORTING: frozenset({None, "importing"}),
    ImagePhase.CONVERTING: frozenset({"converting"}),
    ImagePhase.OPTIMIZING: frozenset({"optimizing"}),
}
"""The phases of an import, in their order, with the stages that tasks name."""
_INVALID: Final = frozenset({ImageReason.NO_SOURCE, ImageReason.CHECKSUM_MISMATCH})


def _fields(world: World, preparations: Mapping[str, Preparation], ready: Verdict, now: datetime) -> dict[str, Any]:
    before = world.before
    # Providers that no machine needs it on any more keep it.
    kept = {label: each for label, each in before.provider_status.items() if label not in preparations}
    on = kept | {label: each.on for label, each in preparations.items()}
    available = sorted(label for label, each in on.items() if each.available)
    running = [each for each in preparations.values() if each.on.task_ref]
    finished = [each for label, each in preparations.items() if each.on.available and each.task is not None]
    sizes = [each.on.size for each in finished if each.on.size is not None]
    sums = [each.task.result["checksum"] for each in finished if each.task and "checksum" in each.task.result]
    return {
        "ready": bool(available) and ready.status.value == "True",
        "phase": _phase(preparations, available).value,
        "message": ready.message,
        "availableOn": available or None,
        "lastPrepareTime": times.format(now) if finished else before.last_prepare_time,
        "prepareTaskRef": running[0].on.task_ref if running else None,
        "importProgress": _progress(before, running, now),
        "size": sizes[0] if sizes else before.size,
        "checksum": sums[0] if sums else before.checksum,
        "format": _format(world) or before.format,
        "providerStatus": {label: wire(on[label]) for label in sorted(on)} or None,
    }


def _phase(preparations: Mapping[str, Preparation], available: list[str]) -> ImagePhase:
    reasons = {each.reason for each in preparations.values()}
    if reasons & _FAILURES:
        return ImagePhase.FAILED
    if ImageReason.IMPORTING in reasons:
        # The earliest stage of all providers; one that names none imports.
        stages = {each.on.stage for each in preparations.values() if each.reason is ImageReason.IMPORTING}
        return next((phase for phase, names in _PHASES.items() if stages & names), ImagePhase.IMPORTING)
    return ImagePhase.READY if available and reasons <= {None} else ImagePhase.PENDING


def _progress(before: VMImageStatus, running: list[Preparation], now: datetime) -> dict[str, Any] | None:
    if not running:
        return None
    each = running[0]
    state = each.task
    if state is None and before.import_progress is not None:
        return wire(before.import_progress)
    began = times.read(each.on.start_time) or now
    found = {
        "startTime": each.on.start_time,
        "eta": eta(began, now, state.percentage if state else None),
        "transferRate": rate(began, now, state.done_bytes if state else None),
        "percentage": state.percentage if state else None,
        "transferredBytes": state.done_bytes if state else None,
        "totalBytes": state.total_bytes if state else None,
        "message": each.on.message,
    }
    return {name: value for name, value in found.items() if value is not None}


def _format(world: World) -> str | None:
    source = world.image.spec.source
    given = (source.libvirt and source.libvirt.format) or (source.registry and source.registry.format)
    return given.value if given else None
