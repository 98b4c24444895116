"""The status of a simulated pod, derived from the life of its containers.

Pure, and the only place that says phases and conditions of such pods.  What others
wrote into a status is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.client.pods import Condition
from holdfast.cluster.simulation.lifetimes import Life, restart_at, restarts
from holdfast.cluster.simulation.pods import Container, ContainerSpec, Idle, Live, Over, Pod, report
from holdfast.meta import durations, times

_EXPIRED: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


@dataclass(frozen=True, slots=True)
class Host:
    """The node that a pod is on."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class ConditionState:
    """What a condition says."""

    status: str
    reason: str = ""
    message: str = ""

    def is_said(self, condition: Condition | None) -> bool:
        said = None if condition is None else (condition.status, condition.reason, condition.message)
        return said == (self.status, self.reason, self.message)


_TRUE: Final = ConditionState("True")


def phase(life: Life) -> str:
    runs = [container.run for container in life.containers.values()]
    if life.over:
        well = not life.expired and all(isinstance(run, Over) and run.code == 0 for run in runs)
        return "Succeeded" if well else "Failed"
    begun = all(not isinstance(each.run, Idle) or each.last is not None for each in life.containers.values())
    return "Running" if life.initialized and begun else "Pending"


def conditions(pod: Pod, life: Life) -> dict[str, ConditionState]:
    """The conditions that a node sets, in the order in which a kubelet writes them."""
    containers = _containers_ready(pod, life)
    return {
        "PodReadyToStartContainers": ConditionState("False") if life.over else _TRUE,
        "Initialized": _initialized(pod, life),
        "Ready": _gated(pod) or _TRUE if containers == _TRUE else containers,
        "ContainersReady": containers,
        "PodScheduled": _TRUE,
    }


def says(pod: Pod, life: Life) -> bool:
    """Whether the pod's conditions say already what they should; others may have changed them, or their gates."""
    said = {condition.type: condition for condition in pod.status.conditions}
    return all(state.is_said(said.get(type)) for type, state in conditions(pod, life).items())


def status(pod: Pod, life: Life, before: Mapping[str, Any], now: datetime, *, host: Host) -> dict[str, Any]:
    """The whole status; `before` is the last one, as it came."""
    spec = pod.spec
    address = host.address if spec.host_network else pod.status.pod_ip or pod_address(pod.metadata.resource_version)
    made: dict[str, Any] = {
        **before,
        "phase": phase(life),
        "conditions": list(_conditions(pod, life, before.get("conditions") or (), now)),
        "hostIP": host.address,
        "hostIPs": [{"ip": host.address}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod.status.start_time or times.format(now),
        "containerStatuses": [_reported(pod, each, life.containers[each.name], now) for each in spec.containers],
    }
    if spec.init_containers:
        made["initContainerStatuses"] = [
            report(each, life.inits[each.name], pod, init=True) for each in spec.init_containers
        ]
    return made | _EXPIRED if life.expired else made


def pod_address(version: str) -> str:
    """An address that no other pod has: it follows from the resource version at which it was given.

    Sixteen million versions later it may be given again.
    """
    number, last = divmod(int(version), 254)
    return f"10.{number // 256 % 256}.{number % 256}.{last + 1}"


def backing_off(pod: Pod, spec: ContainerSpec, container: Container, now: datetime) -> dict[str, str] | None:
    """Why a container that is over waits; None if it does not wait for another run."""
    run, at = container.run, restart_at(container)
    if not isinstance(run, Over) or at is None or at <= now or not restarts(run, pod.spec.restart_policy):
        return None
    wait = durations.format(at - run.at)
    message = f"back-off {wait} restarting failed container={spec.name} pod={pod.name}"
    return {"reason": "CrashLoopBackOff", "message": message}


def _reported(pod: Pod, spec: ContainerSpec, container: Container, now: datetime) -> dict[str, Any]:
    return report(spec, container, pod, waiting=backing_off(pod, spec, container, now))


# --- conditions


def _conditions(
    pod: Pod, life: Life, before: Iterable[Mapping[str, Any]], now: datetime
) -> Iterator[Mapping[str, Any]]:
    """Ours first, and then those of others; the time of one moves when its status does."""
    ours = conditions(pod, life)
    said = {each["type"]: each for each in before}
    for type, state in ours.items():
        old = said.get(type) or {}
        stays = old.get("status") == state.status
        made = {"type": type, "status": state.status, "lastProbeTime": None}
        made["lastTransitionTime"] = old.get("lastTransitionTime") if stays else times.format(now)
        if state.reason:
            made |= {"reason": state.reason}
        if state.message:
            made |= {"message": state.message}
        yield made
    yield from (condition for type, condition in said.items() if type not in ours)


def _initialized(pod: Pod, life: Life) -> ConditionState:
    if life.initialized:
        return ConditionState("True", "PodCompleted") if life.over and phase(life) == "Succeeded" else _TRUE
    waiting = [each.name for each in pod.spec.init_containers if not _passed(each, life.inits[each.name])]
    message = f"containers with incomplete status: [{' '.join(waiting)}]"
    return ConditionState("False", "ContainersNotInitialized", message)


def _passed(spec: ContainerSpec, container: Container) -> bool:
    return isinstance(container.run, Live) if spec.sidecar else isinstance(container.run, Over)


def _containers_ready(pod: Pod, life: Life) -> ConditionState:
    if life.over:
        return ConditionState("False", "PodCompleted" if phase(life) == "Succeeded" else "PodFailed")
    runs = {name: container.run for name, container in life.containers.items()}
    unready = [name for name, run in runs.items() if not (isinstance(run, Live) and run.ready)]
    if not unready:
        return _TRUE
    return ConditionState("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")


def _gated(pod: Pod) -> ConditionState | None:
    """What the first readiness gate that is not open says."""
    said = {condition.type: condition.status for condition in pod.status.conditions}
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in said:
            message = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            return ConditionState("False", "ReadinessGatesNotReady", message)
        if said[name] != "True":
            message = f'the status of pod readiness gate "{name}" is not "True", but {said[name]}'
            return ConditionState("False", "ReadinessGatesNotReady", message)
    return None
