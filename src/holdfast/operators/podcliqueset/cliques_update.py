"""How the pods of one PodClique are replaced when its template has changed.

Delete first, one ready pod at a time, the oldest first; the next when the replacement
is ready and the minimum is.  Pods without a node cost nothing and go at once; pods
that run and are not ready go a few at a time, so that a fault that all of them share
does not take all of them down.  Whether a pod crashed in the past is no matter: what
is ready is ready.

Where somebody bounded the update, the kernel's engine decides instead (`stepping`).

Pure.  This module must not know how pods are made or deleted.
"""

from __future__ import annotations

from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from holdfast.kernel.fleet import Replica
from holdfast.kernel.reasons import Because, count
from holdfast.kinds.grove.cliques import PodCliqueUpdateProgress, PodsSelectedToUpdate
from holdfast.meta import times
from holdfast.operators.podcliqueset import moves
from holdfast.operators.podcliqueset.cliques_observe import World
from holdfast.operators.podcliqueset.pods import Pod
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.stepping import Bounds, next_step

UNREADY_AT_A_TIME: Final = 4
"""One part in so many of the pods, those that run and are not ready, may be replaced together."""


Move = moves.Move[PodCliqueUpdateProgress, Pod]


def bounded(world: World) -> bool:
    """Whether the engine sees to the number of pods as well."""
    return world.bounds is not None and _is_on(world)


def update(world: World, now: datetime) -> Move:
    """The next move of an update; one that has nothing to do where there is none."""
    if not _is_on(world):
        return _resting(world, now)
    progress = _progress(world, now)
    return _bounded(world, progress, now) if world.bounds is not None else _recreated(world, progress, now)


def _is_on(world: World) -> bool:
    """It is the turn of its replica, and pods are outdated, or what replaces them is not ready yet."""
    if not (world.standalone and world.mandate.selected):
        return False
    return bool(world.outdated) or _open(world)


def _open(world: World) -> bool:
    known = world.before.update_progress
    return known is not None and known.update_ended_at is None and known.pod_template_hash == world.wanted


def _resting(world: World, now: datetime) -> Move:
    """No update: an earlier one is kept as it was, and one that was cut off, or is left to people, has ended."""
    known = world.before.update_progress
    if world.outdated:
        because = Because(Why.OUTDATED, f"{count(len(world.outdated), 'pod')} of an earlier template left")
    else:
        because = Because(Why.NOT_UPDATING, "all pods are of the wanted template")
    if world.mandate.on_delete and world.outdated and (known is None or known.pod_template_hash != world.wanted):
        begun = _begun(world, now)
        return Move(progress=msgspec.structs.replace(begun, update_ended_at=begun.update_started_at), because=because)
    if known is not None and known.update_ended_at is None:
        known = msgspec.structs.replace(known, update_ended_at=times.format(now), ready_pods_selected_to_update=None)
    return Move(progress=known, because=because)


def _progress(world: World, now: datetime) -> PodCliqueUpdateProgress:
    """What is known of the running update; one that begins, or has another aim, begins anew."""
    known = world.before.update_progress
    generation = world.mandate.generation
    if known is None or not _open(world):
        return _begun(world, now)
    return msgspec.structs.replace(known, pod_clique_set_generation_hash=generation)


def _begun(world: World, now: datetime) -> PodCliqueUpdateProgress:
    already = sum(pod.ready for pod in world.active if pod.template_hash == world.wanted)
    return PodCliqueUpdateProgress(
        update_started_at=times.format(now),
        last_progress_at=times.format(now),
        pod_clique_set_generation_hash=world.mandate.generation,
        pod_template_hash=world.wanted,
        ready_pods_updated_before=already,
    )


# --- delete first


def _recreated(world: World, progress: PodCliqueUpdateProgress, now: datetime) -> Move:
    outdated = world.outdated
    unplaced = tuple(pod for pod in outdated if not pod.scheduled)
    if unplaced:
        because = Because(Why.REPLACING_UNPLACED, f"{count(len(unplaced), 'outdated pod')} without a node")
        return Move(progress=progress, because=because, delete=unplaced)
    unready = tuple(pod for pod in outdated if not pod.ready)
    if unready:
        return _unready(world, progress, unready)
    ready = sum(pod.ready for pod in world.active)
    current = _selected(progress, outdated)
    if current is not None and ready >= world.minimum:
        because = Because(Why.REPLACING_READY, f"pod {current.name} is replaced, {len(outdated) - 1} outdated after it")
        return Move(progress=progress, because=because, delete=(current,))
    waits = "" if current is not None else _replacement_is_missing(world, progress)
    if waits:
        return Move(progress=progress, because=Because(Why.WAITING_FOR_REPLACEMENT, waits))
    if outdated and ready < world.minimum:
        message = f"{ready} of {world.minimum} pods that must be are ready; none is taken down"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_MINIMUM, message))
    if outdated:
        oldest = min(outdated, key=lambda pod: (pod.created_at, pod.name))
        because = Because(Why.REPLACING_READY, f"pod {oldest.name} is next, {len(outdated) - 1} outdated after it")
        return Move(progress=_selecting(progress, oldest.name, now), because=because)
    return _ending(world, progress, now)


def _unready(world: World, progress: PodCliqueUpdateProgress, unready: tuple[Pod, ...]) -> Move:
    """Outdated pods that run and are not ready: some of them, and no more before those are replaced."""
    most = max(1, ceil(world.replicas / UNREADY_AT_A_TIME))
    fresh = sum(pod.scheduled and not pod.ready for pod in world.active if pod.template_hash == world.wanted)
    going = sum(pod.deleting for pod in world.pods)
    room = most - fresh - going
    if room <= 0:
        message = f"{count(len(unready), 'outdated pod')} not ready; {fresh + going} being replaced, at most {most} are"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_REPLACEMENT, message))
    chosen = tuple(sorted(unready, key=lambda pod: (not pod.failing, pod.created_at, pod.name)))[:room]
    because = Because(Why.REPLACING_UNREADY, f"{len(chosen)} of {count(len(unready), 'outdated pod')} not ready")
    return Move(progress=progress, because=because, delete=chosen)


def _selected(progress: PodCliqueUpdateProgress, outdated: tuple[Pod, ...]) -> Pod | None:
    """The pod that was chosen and not taken down yet.  The choice is written first, so that it survives us."""
    chosen = progress.ready_pods_selected_to_update
    return None if chosen is None else next((pod for pod in outdated if pod.name == chosen.current), None)


def _replacement_is_missing(world: World, progress: PodCliqueUpdateProgress) -> str:
    """Why the pod that was taken down last is not replaced yet; empty when it is."""
    selected = progress.ready_pods_selected_to_update
    if selected is None:
        return ""
    replaced = (progress.ready_pods_updated_before or 0) + len(selected.completed) + 1
    # A clique that has become smaller meanwhile has no place for a replacement.
    needed = min(replaced, world.replicas - len(world.outdated))
    ready = sum(pod.ready for pod in world.active if pod.template_hash == world.wanted)
    if ready >= needed:
        return ""
    return f"pod {selected.current} was taken down and what replaces it is not ready: {ready} of {needed} are"


def _selecting(progress: PodCliqueUpdateProgress, name: str, now: datetime) -> PodCliqueUpdateProgress:
    before = progress.ready_pods_selected_to_update
    completed = () if before is None else (*before.completed, before.current)
    return msgspec.structs.replace(
        progress,
        last_progress_at=times.format(now),
        ready_pods_selected_to_update=PodsSelectedToUpdate(current=name, completed=completed),
    )


def _ending(world: World, progress: PodCliqueUpdateProgress, now: datetime) -> Move:
    """Nothing is outdated: it is over once what is new is ready; what has no place had none before either."""
    ready = sum(pod.ready for pod in world.active)
    late = sum(not pod.ready and not (pod.unplaceable and ready >= world.minimum) for pod in world.active)
    missing = world.replicas - len(world.active)
    if late or missing > 0:
        message = f"{ready} of {count(world.replicas, 'pod')} ready, all of the wanted template"
        return Move(progress=progress, because=Because(Why.WAITING_FOR_ALL, message))
    return _ended(progress, now)


def _ended(progress: PodCliqueUpdateProgress, now: datetime) -> Move:
    ended = msgspec.structs.replace(progress, update_ended_at=times.format(now), ready_pods_selected_to_update=None)
    return Move(progress=ended, because=Because(Why.UPDATED, "all pods are of the wanted template, and ready"))


# --- within bounds


def _bounded(world: World, progress: PodCliqueUpdateProgress, now: datetime) -> Move:
    assert world.bounds is not None, "only what is bounded is asked"
    before = world.before
    step = next_step(
        (_replica(pod) for pod in world.pods if not pod.finished),
        world.wanted,
        bounds=Bounds(replicas=world.replicas, minimum=world.minimum, wish=world.bounds),
        outdated_before=(before.replicas or 0) - (before.updated_replicas or 0),
        progressed=times.parse(progress.last_progress_at or progress.update_started_at),
        now=now,
    )
    if step.done:
        return _ended(progress, now)
    by_name = {pod.name: pod for pod in world.pods}
    return Move(
        progress=msgspec.structs.replace(progress, last_progress_at=times.format(step.progressed_at)),
        because=step.because,
        create=step.start,
        delete=tuple(by_name[name] for name in step.stop),
        blocked=step.blocked,
        until=step.until,
    )


def _replica(pod: Pod) -> Replica:
    return Replica(
        id=pod.name,
        revision=pod.template_hash,
        created_at=pod.created_at,
        ready_since=pod.ready_since(),
        terminating=pod.deleting,
        ordinal=pod.index,
    )
