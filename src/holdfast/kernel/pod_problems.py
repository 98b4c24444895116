"""Why a pod is not ready: one classifier for every operator, view and message.

From a pod as it was reported to a `Problem`: a reason for machines, the message of the
component that reported it (scheduler, kubelet, registry), and what to do about it.  Pure.
The module must not know the owner of the pod.

    >>> pod = read({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
    ...     "reason": "Unschedulable", "message": "0/3 nodes are available"}]}})
    >>> str(problem(pod))
    'cannot be scheduled: 0/3 nodes are available'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kernel.reasons import Reason, count


class PodReason(Reason):
    """Why a pod is not ready, the gravest first."""

    IMAGE_PULL_FAILED = "ImagePullFailed", "The image of a container cannot be pulled."
    CONFIGURATION_MISSING = "PodConfigurationMissing", "A ConfigMap, Secret or key that a container uses is missing."
    CRASH_LOOP = "CrashLoop", "A container ends again and again soon after it starts."
    CONTAINER_FAILED = "ContainerFailed", "A container ended with an error, or cannot be created or started."
    POD_FAILED = "PodFailed", "The pod ended and is not restarted, or was rejected by its node."
    UNSCHEDULABLE = "Unschedulable", "The scheduler finds no node for the pod."
    NODE_LOST = "NodeLost", "The node of the pod does not report, so nothing is known of the pod."
    PROBE_FAILING = "ProbeFailing", "The containers run, and a readiness or startup probe does not succeed."
    GATED = "SchedulingGated", "The pod has scheduling gates, so the scheduler does not look at it yet."
    TERMINATING = "Terminating", "The pod is being deleted, and its node has not stopped it yet."
    STARTING = "Starting", "The pod is being scheduled or started, and nothing is wrong with it."


_GRAVITY: Final = {reason: rank for rank, reason in enumerate(PodReason)}

_REASONS: Final = {reason.value: reason for reason in PodReason}


def gravity(reason: str) -> int:
    """The place of a reason in the order of `PodReason`; any other reason, such as an error of the API, is graver."""
    found = _REASONS.get(reason)
    return -1 if found is None else _GRAVITY[found]


REMEDIES: Final[Mapping[PodReason, str]] = {
    PodReason.IMAGE_PULL_FAILED: "correct the image or its pull secret",
    PodReason.CONFIGURATION_MISSING: "create what is missing",
    PodReason.CRASH_LOOP: "read the logs of its last run (kubectl logs --previous)",
    PodReason.CONTAINER_FAILED: "read the logs of its last run (kubectl logs --previous)",
    PodReason.POD_FAILED: "see its Events",
    PodReason.UNSCHEDULABLE: "add capacity, or ask for less",
    PodReason.NODE_LOST: "bring the node back, or delete it once it is known to be off",
    PodReason.PROBE_FAILING: "see its logs and its probes",
}
"""What a user can do about it; nothing, where it passes by itself."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one pod is not ready, with the message of the component that reported it."""

    reason: PodReason
    message: str

    @property
    def remedy(self) -> str:
        return REMEDIES.get(self.reason, "")

    @property
    def passes(self) -> bool:
        """Whether it usually ends by itself."""
        return self.reason in (PodReason.STARTING, PodReason.GATED, PodReason.TERMINATING)

    def __str__(self) -> str:
        return self.message


# --- what is read of a pod


class _Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class _Condition(_Wire, frozen=True):
    type: str = ""
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Waiting(_Wire, frozen=True):
    reason: str = ""
    message: str = ""


class _Terminated(_Wire, frozen=True):
    reason: str = ""
    message: str = ""
    exit_code: int = 0
    finished_at: str | None = None


class _State(_Wire, frozen=True):
    waiting: _Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: _Terminated | None = None


class _Container(_Wire, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()


class _Gate(_Wire, frozen=True):
    name: str = ""


class PodSpec(_Wire, frozen=True):
    node_name: str = ""
    scheduling_gates: tuple[_Gate, ...] = ()


class _Status(_Wire, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class PodMetadata(_Wire, frozen=True):
    name: str = ""
    deletion_timestamp: str | None = None


class ReportedPod(_Wire, frozen=True):
    """A pod, as far as its problems are read from it."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()
    status: _Status = _Status()

    def condition(self, type: str) -> _Condition | None:
        return next((each for each in self.status.conditions if each.type == type), None)


_decoder = msgspec.json.Decoder(ReportedPod)


def decode(raw: bytes) -> ReportedPod:
    """A pod from its bytes; one that is stored in an odd form has nothing to say."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        return ReportedPod()


def read(wire: Mapping[str, Any]) -> ReportedPod:
    """A pod from a decoded object."""
    try:
        return msgspec.convert(wire, ReportedPod)
    except msgspec.ValidationError:
        return ReportedPod()


# --- why it is not ready

_PULLS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_SETUP: Final = frozenset({"CreateContainerError", "RunContainerError", "StartError", "PostStartHookError"})
_LOST: Final = frozenset({"NodeLost", "NodeStatusUnknown", "NodeNotReady"})


def problem(pod: ReportedPod, *, lost: Collection[str] = ()) -> Problem | None:
    """Why a pod is not ready, the gravest of its problems; None where it is ready, or ended well.

    lost  nodes that are known not to report; not every cluster writes that into the pods
    """
    ready = pod.condition("Ready")
    if (ready is not None and ready.status == "True") or pod.status.phase == "Succeeded":
        return None
    return min(_problems(pod, ready, lost), key=lambda each: _GRAVITY[each.reason])


def _problems(pod: ReportedPod, ready: _Condition | None, lost: Collection[str]) -> Iterator[Problem]:
    status, node, deleted = pod.status, pod.spec.node_name, pod.metadata.deletion_timestamp
    silent = node in lost or status.reason in _LOST or (ready is not None and ready.reason in _LOST)
    if deleted is not None:
        # What its containers report belongs to its end, and is no problem.
        since = f"is being deleted since {deleted}"
        if silent:
            yield Problem(PodReason.NODE_LOST, f"{since}, and its node {node} does not report")
        else:
            yield Problem(PodReason.TERMINATING, since)
        return
    if status.phase == "Failed":
        reported = _joined(status.reason, status.message) or _endings(status.container_statuses)
        yield Problem(PodReason.POD_FAILED, f"failed: {reported}" if reported else "failed")
        return
    if silent:
        yield Problem(PodReason.NODE_LOST, f"its node {node} does not report")
    if not node:
        yield _unscheduled(pod)
        return
    inits = status.init_container_statuses
    for number, each in enumerate(inits):
        ended = each.state.terminated
        if not each.ready and not each.started and (ended is None or ended.exit_code):
            called, last = f"init container {each.name} ({number + 1} of {len(inits)})", each.last_state.terminated
            if each.state.running is None:
                yield _container(each, called)
            elif last is not None and last.exit_code:
                yield Problem(PodReason.CONTAINER_FAILED, f"{called} was restarted: {_ended(last)}")
            else:
                yield Problem(PodReason.STARTING, f"{called} runs")
            return
    for each in status.container_statuses:
        if not each.ready:
            yield _container(each, f"container {each.name}")
    yield Problem(
        PodReason.STARTING, "its containers have not started yet" if not status.container_statuses else "starting"
    )


def _unscheduled(pod: ReportedPod) -> Problem:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        return Problem(PodReason.GATED, f"has the scheduling gates {', '.join(gates)}")
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.reason != "SchedulingGated":
        return Problem(PodReason.UNSCHEDULABLE, f"cannot be scheduled: {scheduled.message or scheduled.reason}")
    return Problem(PodReason.STARTING, "is not scheduled yet")


def _container(container: _Container, called: str) -> Problem:
    state, last = container.state, container.last_state.terminated
    waiting, ended = state.waiting, state.terminated
    if waiting is not None and waiting.reason in _PULLS:
        return Problem(PodReason.IMAGE_PULL_FAILED, f"{called}: {_joined(waiting.reason, waiting.message)}")
    if waiting is not None and waiting.reason == "CreateContainerConfigError":
        return Problem(PodReason.CONFIGURATION_MISSING, f"{called}: {_joined(waiting.reason, waiting.message)}")
    if waiting is not None and waiting.reason == "CrashLoopBackOff":
        restarts = count(container.restart_count, "restart")
        return Problem(PodReason.CRASH_LOOP, f"{called} crashes: {_ended(last)}, {restarts}")
    if waiting is not None and waiting.reason in _SETUP:
        return Problem(PodReason.CONTAINER_FAILED, f"{called}: {_joined(waiting.reason, waiting.message)}")
    if ended is not None and ended.exit_code:
        return Problem(PodReason.CONTAINER_FAILED, f"{called}: {_ended(ended)}")
    if state.running is not None and container.started is not False:
        return Problem(PodReason.PROBE_FAILING, f"{called} runs, and its readiness probe has not succeeded")
    if state.running is not None and last is not None and last.exit_code:
        return Problem(PodReason.CONTAINER_FAILED, f"{called} was restarted: {_ended(last)}")
    if state.running is not None:
        return Problem(PodReason.STARTING, f"{called} runs, and its startup probe has not succeeded yet")
    reported = "" if waiting is None else _joined(waiting.reason, waiting.message)
    return Problem(PodReason.STARTING, f"{called} is starting" + (f": {reported}" if reported else ""))


def _ended(terminated: _Terminated | None) -> str:
    if terminated is None:
        return "it ended"
    reason = terminated.reason if terminated.reason not in ("", "Error", "Completed") else ""
    said = _joined(f"exit code {terminated.exit_code}", terminated.message.strip())
    return f"{reason}, {said}" if reason else said


def _endings(containers: Iterable[_Container]) -> str:
    bad = (each for each in containers if each.state.terminated is not None and each.state.terminated.exit_code)
    return ", ".join(f"container {each.name}: {_ended(each.state.terminated)}" for each in bad)


def _joined(*parts: str) -> str:
    return ": ".join(filter(None, parts))


# --- of many pods


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The gravest problem among several pods, with one pod that has it and how many do."""

    problem: Problem
    pod: str
    count: int
    total: int

    @property
    def reason(self) -> PodReason:
        return self.problem.reason

    def __str__(self) -> str:
        others = f" (and {self.count - 1:,} more)" if self.count > 1 else ""
        remedy = f"; {self.problem.remedy}" if self.problem.remedy else ""
        return f"pod {self.pod}{others}: {self.problem.message}{remedy}"


def diagnose(pods: Iterable[ReportedPod], *, lost: Collection[str] = ()) -> Diagnosis | None:
    """The gravest problem of pods that are not ready, if any is not; `lost` as in `problem`."""
    found = [(found, pod.metadata.name) for pod in pods if (found := problem(pod, lost=lost)) is not None]
    if not found:
        return None
    counts = Counter(each.reason for each, _ in found)
    worst, name = min(found, key=lambda each: (_GRAVITY[each[0].reason], each[1]))
    return Diagnosis(worst, name, counts[worst.reason], len(found))
