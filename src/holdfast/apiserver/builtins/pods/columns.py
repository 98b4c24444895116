"""The columns of the pod table: ready containers, status, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.apiserver.builtins.common.columns import AGE, NAME, NONE, column, get
from holdfast.apiserver.resources import Column, Object
from holdfast.meta.ages import age


def _statuses(pod: Object, which: str) -> Sequence[Object]:
    found: Sequence[Object] = get(pod, "status", which, default=())
    return found


def _sidecars(pod: Object) -> set[str]:
    """Sidecars: init containers that keep running."""
    containers = get(pod, "spec", "initContainers", default=())
    return {each["name"] for each in containers if each.get("restartPolicy") == "Always"}


def _condition(pod: Object, name: str) -> str:
    conditions = get(pod, "status", "conditions", default=())
    return next((each.get("status", "") for each in conditions if each.get("type") == name), "")


def _started(status: Object) -> bool:
    return bool(status.get("started"))


def ready(pod: Object) -> str:
    sidecars = _sidecars(pod)
    counted = [each for each in _statuses(pod, "initContainerStatuses") if each.get("name") in sidecars]
    counted += _statuses(pod, "containerStatuses")
    up = sum(bool(each.get("ready") and get(each, "state", "running") is not None) for each in counted)
    return f"{up}/{len(get(pod, 'spec', 'containers', default=())) + len(sidecars)}"


def status(pod: Object) -> str:
    """The status of a pod, with the precedence of Kubernetes."""
    reason: str = get(pod, "status", "reason") or get(pod, "status", "phase", default="Unknown")
    if _gated(pod):
        reason = "SchedulingGated"
    starting = _initializing(pod)
    if starting is not None:
        reason = starting
    if starting is None or _condition(pod, "Initialized") == "True":
        reason = _running(pod, reason)
    if get(pod, "metadata", "deletionTimestamp"):
        if get(pod, "status", "reason") == "NodeLost":
            return "Unknown"
        if get(pod, "status", "phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _gated(pod: Object) -> bool:
    conditions = get(pod, "status", "conditions", default=())
    return any(each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions)


def _initializing(pod: Object) -> str | None:
    """The status of the first init container that is not done; None if all are."""
    sidecars, total = _sidecars(pod), len(get(pod, "spec", "initContainers", default=()))
    for index, each in enumerate(_statuses(pod, "initContainerStatuses")):
        terminated, waiting = get(each, "state", "terminated"), get(each, "state", "waiting")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if each.get("name") in sidecars and _started(each):
            continue
        if terminated is not None:
            return f"Init:{_ending(terminated)}"
        if waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return None


def _running(pod: Object, reason: str) -> str:
    running = False
    for each in reversed(_statuses(pod, "containerStatuses")):
        terminated, waiting = get(each, "state", "terminated"), get(each, "state", "waiting")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _ending(terminated)
        elif each.get("ready") and get(each, "state", "running") is not None:
            running = True
    if reason == "Completed" and running:
        return "Running" if _condition(pod, "Ready") == "True" else "NotReady"
    return reason


def _ending(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def restarts(pod: Object, now: float) -> str:
    """The number of restarts of its containers, and the time since the last one."""
    sidecars = _sidecars(pod)
    inits = _statuses(pod, "initContainerStatuses")
    if _initializing(pod) is not None and _condition(pod, "Initialized") != "True":
        counted = list(inits)
    else:
        counted = [each for each in inits if each.get("name") in sidecars]
        counted += _statuses(pod, "containerStatuses")
    total = sum(each.get("restartCount", 0) for each in counted)
    ends = [end for each in counted if (end := get(each, "lastState", "terminated", "finishedAt"))]
    return f"{total} ({age(max(ends), now)} ago)" if total and ends else str(total)


def _gates(pod: Object) -> str:
    gates = [gate.get("conditionType", "") for gate in get(pod, "spec", "readinessGates", default=())]
    if not gates:
        return NONE
    return f"{sum(_condition(pod, gate) == 'True' for gate in gates)}/{len(gates)}"


def _address(pod: Object) -> str:
    addresses = get(pod, "status", "podIPs", default=())
    first = addresses[0].get("ip") if addresses else get(pod, "status", "podIP")
    return first or NONE


COLUMNS: Final = (
    NAME,
    column("Ready", ready, description="Ready containers and all containers."),
    column("Status", status, description="Status of the pod."),
    Column(name="Restarts", value=restarts, description="Number of restarts of its containers."),
    AGE,
    column("IP", _address, wide=True),
    column("Node", lambda pod: get(pod, "spec", "nodeName") or NONE, wide=True),
    column("Nominated Node", lambda pod: get(pod, "status", "nominatedNodeName") or NONE, wide=True),
    column("Readiness Gates", _gates, wide=True),
)
