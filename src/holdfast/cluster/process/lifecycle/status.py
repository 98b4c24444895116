"""The status of a pod, derived from the facts alone.

Pure, and the only place that says phases, conditions and container states of
pods that run here.  It is computed again on every look and written when it differs;
nothing is steered by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.client.pods import FINISHED
from holdfast.cluster.process.lifecycle.facts import (
    Container,
    Ended,
    Facts,
    Idle,
    Live,
    Refused,
    Run,
    Starting,
    container_id,
)
from holdfast.cluster.process.lifecycle.pods import Container as Spec
from holdfast.cluster.process.lifecycle.pods import Pod, is_sidecar
from holdfast.cluster.process.lifecycle.state import (
    has_passed,
    is_ending,
    is_expired,
    is_final,
    is_finished,
    restart_at,
)
from holdfast.cluster.process.running.env import Surroundings
from holdfast.kernel.phases import Ladder, always
from holdfast.meta import times

_EXPIRED: Final = {
    "reason": "DeadlineExceeded",
    "message": "The pod was active on the node for longer than its activeDeadlineSeconds.",
}


def status(
    pod: Pod, facts: Facts, now: datetime, *, around: Surroundings, last: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What is to be reported of a pod.

    `last` is what was reported last, of which the pod may not show everything yet: a condition that has not changed
    since keeps its time.
    """
    phase = PHASES.phase((pod, facts))
    before = {each.type: (each.status, each.last_transition_time) for each in pod.status.conditions}
    before |= {
        each["type"]: (each["status"], each["lastTransitionTime"]) for each in (last or {}).get("conditions", ())
    }
    conditions = [
        {"type": type, "lastTransitionTime": _since(before.get(type), verdict, now), **verdict}
        for type, verdict in _conditions(pod, facts, phase).items()
    ]
    reported: dict[str, Any] = {
        "phase": phase,
        "conditions": conditions,
        "hostIP": around.host_ip,
        "hostIPs": [{"ip": around.host_ip}],
        "podIP": around.ip,
        "podIPs": [{"ip": around.ip}],
        "startTime": times.format(facts.began),
        "containerStatuses": [_reported(pod, spec, facts, now=now) for spec in pod.spec.containers],
    }
    if pod.spec.init_containers:
        reported["initContainerStatuses"] = [_reported(pod, spec, facts, now=now) for spec in pod.spec.init_containers]
    if phase == "Failed" and not pod.deleting and is_expired(pod, facts, facts.ended_at or facts.began):
        reported |= _EXPIRED
    return reported


def patch(reported: Mapping[str, Any], *, uid: str) -> dict[str, Any]:
    """The status as a strategic merge patch of one pod.

    What a condition or the pod no longer says has to be taken back by name; conditions of others stay.
    """
    silent = {"reason": None, "message": None}
    conditions = [{**silent, **condition} for condition in reported["conditions"]]
    return {"metadata": {"uid": uid}, "status": {**silent, **reported, "conditions": conditions}}


# --- the phase

_World = tuple[Pod, Facts]


def _over(world: _World) -> bool:
    """Nothing runs, and nothing will."""
    pod, facts = world
    if any(container.alive for container in facts.containers.values()):
        return False
    return is_ending(facts) or is_finished(pod, facts)


def _succeeded(world: _World) -> bool:
    """Every container ended well, and none of its own accord too late."""
    pod, facts = world
    ended = [facts.containers[spec.name].run for spec in pod.spec.containers]
    well = all(isinstance(run, Ended) and run.exit_code == 0 for run in ended)
    return _over(world) and well and (pod.deleting or not is_ending(facts))


def _running(world: _World) -> bool:
    """Every container has been started at least once."""
    pod, facts = world
    return facts.initialized and all(_has_run(facts.containers[spec.name]) for spec in pod.spec.containers)


def _has_run(container: Container) -> bool:
    return isinstance(container.run, Live | Ended) or container.last is not None


PHASES: Final[Ladder[_World, str]] = Ladder(
    (
        ("Succeeded", _succeeded),
        ("Failed", _over),
        ("Running", _running),
        ("Pending", always),
    )
)


# --- conditions


def _conditions(pod: Pod, facts: Facts, phase: str) -> dict[str, dict[str, str]]:
    """The conditions that a node sets; those of others are not touched."""
    true = {each.type for each in pod.status.conditions if each.status == "True"}
    closed = [gate.condition_type for gate in pod.spec.readiness_gates if gate.condition_type not in true]
    ready = _ready_by_containers(pod, facts, phase)
    return {
        "PodReadyToStartContainers": {"status": "False" if phase in FINISHED else "True"},
        "Initialized": _initialized(pod, facts, phase),
        "Ready": _gated(closed) if ready["status"] == "True" and closed else ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }


def _since(before: tuple[str, str | None] | None, verdict: Mapping[str, str], now: datetime) -> str:
    if before is not None and before[0] == verdict["status"] and before[1]:
        return before[1]
    return times.format(now)


def _initialized(pod: Pod, facts: Facts, phase: str) -> dict[str, str]:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    if facts.initialized:
        return {"status": "True"}
    late = [spec.name for spec in pod.spec.init_containers if not has_passed(spec, facts.containers[spec.name])]
    return {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(late)}]",
    }


def _ready_by_containers(pod: Pod, facts: Facts, phase: str) -> dict[str, str]:
    if phase == "Succeeded":
        return {"status": "False", "reason": "PodCompleted"}
    if phase == "Failed":
        return {"status": "False", "reason": "PodFailed"}
    unready = [spec.name for spec in _lasting(pod) if not _is_ready(facts.containers[spec.name])]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def _lasting(pod: Pod) -> Iterable[Spec]:
    """The containers that run for as long as the pod does."""
    return (*pod.sidecars, *pod.spec.containers)


def _gated(closed: Iterable[str]) -> dict[str, str]:
    message = f"conditions of readiness gates are not True: [{' '.join(closed)}]"
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}


def _is_ready(container: Container) -> bool:
    return isinstance(container.run, Live) and container.run.ready


# --- containers


def _reported(pod: Pod, spec: Spec, facts: Facts, *, now: datetime) -> dict[str, Any]:
    container = facts.containers[spec.name]
    run = container.run
    initial = spec in pod.spec.init_containers
    waits = waiting(pod, spec, facts, now=now)
    last = run if isinstance(run, Ended) and waits is not None else container.last
    pid = run.pid if isinstance(run, Live | Ended) else container.last.pid if container.last is not None else 0
    return {
        "name": spec.name,
        "image": spec.image,
        "imageID": "",
        **({"containerID": container_id(pid)} if pid else {}),
        "state": {"waiting": waits} if waits is not None else _state(run),
        "lastState": {} if last is None else {"terminated": _terminated(last)},
        # An init container is ready when it is done; a sidecar, as any other.
        "ready": has_passed(spec, container) if initial and not is_sidecar(spec) else _is_ready(container),
        "started": isinstance(run, Live) and run.started,
        "restartCount": container.restarts,
    }


def waiting(pod: Pod, spec: Spec, facts: Facts, *, now: datetime) -> dict[str, str] | None:
    """What a container that does not run is waiting for; None where it runs or has ended for good."""
    container = facts.containers[spec.name]
    match container.run:
        case Refused(reason, message):
            return {"reason": reason, "message": message}
        case Idle() if not facts.initialized:
            return {"reason": "PodInitializing"}
        case Idle() | Starting():
            return {"reason": "ContainerCreating"}
        case Ended() as ended if not is_ending(facts) and not is_final(pod, spec, container):
            at = restart_at(container, ended)
            if at <= now or is_finished(pod, facts):
                return None
            seconds = round((at - ended.finished_at).total_seconds())
            name = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.uid})"
            message = f"back-off {_written(seconds)} restarting failed container={spec.name} pod={name}"
            return {"reason": "CrashLoopBackOff", "message": message}
    return None


def _written(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _state(run: Run) -> dict[str, Any]:
    if isinstance(run, Live):
        return {"running": {"startedAt": times.format(run.started_at)}}
    assert isinstance(run, Ended), "whatever neither runs nor has ended is waiting"
    return {"terminated": _terminated(run)}


def _terminated(ended: Ended) -> dict[str, Any]:
    reported: dict[str, Any] = {"exitCode": ended.exit_code, "reason": ended.reason}
    if ended.signal:
        reported["signal"] = ended.signal
    if ended.message:
        reported["message"] = ended.message
    if ended.started_at is not None:
        reported["startedAt"] = times.format(ended.started_at)
    reported["finishedAt"] = times.format(ended.finished_at)
    if ended.pid:
        reported["containerID"] = container_id(ended.pid)
    return reported
