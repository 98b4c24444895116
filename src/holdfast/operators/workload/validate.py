"""The spec of a Workload as the engine takes it, or why it is invalid.

`rollout_spec` turns the decoded manifest into a `kernel.planning.WorkloadSpec`, and refuses fields that exclude each
other.  An API server refuses most of them by CEL rules; `holdfast plan` runs without one, and errors here name the
JSON path.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.strategies import CanaryStep
from holdfast.kinds import InvalidDocument, Problem
from holdfast.kinds.cloudless import Workload
from holdfast.kinds.cloudless import WorkloadSpec as PodFields
from holdfast.kinds.cloudless.containers import InitContainer, ServerSpec, Sidecar
from holdfast.kinds.cloudless.rollouts import BlueGreen, Rollout, Strategy
from holdfast.kinds.cloudless.security import ContainerSecurityContext
from holdfast.meta import amounts, durations, names
from holdfast.operators.workload.containers import CONTAINER

REPLICAS: Final = 1
SCALE_DOWN_DELAY: Final = "30s"
PROGRESS_DEADLINE: Final = "10m"
"""The defaults that an API server sets; a manifest may not have passed one yet."""

_AT: Final = "spec.rollout"
_SET_BY_CONTROLLER: Final = ("cloudless.io/workload", "cloudless.io/revision")
"""The labels of the pods that `render` sets."""


def problems(workload: Workload) -> tuple[Problem, ...]:
    """All problems of a spec."""
    rollout = workload.spec.rollout or Rollout()
    return (
        *_problems(rollout),
        *_name_problems(rollout, workload.metadata.name or ""),
        *_pod_problems(workload.spec),
    )


def rollout_spec(workload: Workload) -> WorkloadSpec:
    """What the engine is asked for; raises `InvalidDocument` if the spec is invalid."""
    rollout = workload.spec.rollout or Rollout()
    if found := problems(workload):
        raise InvalidDocument(*found)
    replicas = REPLICAS if workload.spec.replicas is None else workload.spec.replicas
    blue_green = rollout.blue_green or BlueGreen()
    switches = _strategy(rollout) is Strategy.BLUE_GREEN
    delay = duration(blue_green.scale_down_delay or SCALE_DOWN_DELAY)
    return WorkloadSpec(
        name=workload.metadata.name or "",
        replicas=replicas,
        rollout=RolloutStrategy(
            strategy=str(_strategy(rollout)),
            max_surge=rollout.max_surge,
            max_unavailable=rollout.max_unavailable,
            # 0 is how Cloudless writes "not set": it means a derived minimum.  "0%" means that none must be available.
            min_available=None if rollout.min_available == 0 else rollout.min_available,
            pause_duration=duration(rollout.pause_duration),
            partition=0 if rollout.partition is None else amounts.resolve(rollout.partition, replicas, round="up"),
            canary_steps=tuple(_canary_steps(rollout)),
            approval=switches and blue_green.auto_promote is False,
            scale_down_delay=delay if switches else timedelta(),
        ),
    )


def _strategy(rollout: Rollout) -> Strategy:
    return rollout.strategy or Strategy.ROLLING_UPDATE


def _canary_steps(rollout: Rollout) -> Iterator[CanaryStep]:
    for step in rollout.canary.steps if rollout.canary is not None else ():
        yield CanaryStep(
            weight=step.weight,
            replicas=step.replicas,
            pause=None if step.pause_duration is None else duration(step.pause_duration),
            approval=bool(step.manual),
        )


def duration(text: str | None) -> timedelta:
    return timedelta() if text is None else durations.parse(text)


# --- invalid combinations


def _problems(rollout: Rollout) -> Iterator[Problem]:
    strategy = _strategy(rollout)
    for field, value, owner in (
        ("canary", rollout.canary, Strategy.CANARY),
        ("blueGreen", rollout.blue_green, Strategy.BLUE_GREEN),
        ("partition", rollout.partition, Strategy.ROLLING_UPDATE),
    ):
        if value is not None and strategy is not owner:
            hint = f"remove it, or write strategy: {owner}"
            yield Problem(f"{_AT}.{field}", f"is only for the strategy {owner}, and the strategy is {strategy}", hint)
    for field, share in (("minAvailable", rollout.min_available), ("maxUnavailable", rollout.max_unavailable)):
        if isinstance(share, str) and amounts.IntOrPercent.parse(share).number > 100:
            yield Problem(f"{_AT}.{field}", f"{share} is more than all replicas", "write 100% or less")
    if strategy is Strategy.ROLLING_UPDATE and _is_zero(rollout.max_surge) and _is_zero(rollout.max_unavailable):
        message = "maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced"
        yield Problem(f"{_AT}.maxSurge", message, "write 1 or more for one of them")
    yield from _canary_problems(rollout)
    yield from _duration_problems(rollout)


def _name_problems(rollout: Rollout, name: str) -> Iterator[Problem]:
    """The name of a BlueGreen Workload that is not valid for its Service."""
    named = rollout.blue_green is not None and rollout.blue_green.service is not None
    if name and _strategy(rollout) is Strategy.BLUE_GREEN and not named and names.dns_1035_label(name):
        message = f"{name}, the name of the Workload, is not a valid name for the Service that is switched"
        yield Problem(f"{_AT}.blueGreen.service", message, "name a Service, such as blueGreen: {service: web}")


def _is_zero(share: int | str | None) -> bool:
    return share is not None and amounts.IntOrPercent.parse(share).number == 0


def _canary_problems(rollout: Rollout) -> Iterator[Problem]:
    if rollout.canary is None:
        if _strategy(rollout) is Strategy.CANARY:
            yield Problem(f"{_AT}.canary", "the strategy Canary needs steps", "write canary: {steps: [{weight: 25}]}")
        return
    for index, step in enumerate(rollout.canary.steps):
        path = f"{_AT}.canary.steps[{index}]"
        if (step.weight is None) == (step.replicas is None):
            yield Problem(path, "give either the weight or the replicas of a step", "write weight: 25 or replicas: 1")
        if step.pause_duration is not None and step.manual:
            hint = "write pauseDuration or manual, not both"
            yield Problem(path, "a step ends after a time or by approval", hint)


def _duration_problems(rollout: Rollout) -> Iterator[Problem]:
    """Durations that are well-formed and too long."""
    steps = rollout.canary.steps if rollout.canary is not None else ()
    for path, text in (
        ("pauseDuration", rollout.pause_duration),
        ("progressDeadline", rollout.progress_deadline),
        ("blueGreen.scaleDownDelay", None if rollout.blue_green is None else rollout.blue_green.scale_down_delay),
        *((f"canary.steps[{index}].pauseDuration", step.pause_duration) for index, step in enumerate(steps)),
    ):
        try:
            duration(text)
        except durations.DurationError as error:
            yield Problem(f"{_AT}.{path}", str(error))


# --- pods that the API server would refuse, or that could never start


def _pod_problems(spec: PodFields) -> Iterator[Problem]:
    yield from _label_problems(spec)
    yield from _security_problems("spec.securityContext", spec.security_context)
    yield from _hook_problems("spec", spec)
    yield from _too_long("spec.terminationGracePeriod", spec.termination_grace_period)
    volumes, seen = {volume.name for volume in spec.volumes}, {CONTAINER: "the main container"}
    others: list[tuple[str, InitContainer | Sidecar]] = [
        *((f"spec.initContainers[{index}]", each) for index, each in enumerate(spec.init_containers)),
        *((f"spec.sidecars[{index}]", each) for index, each in enumerate(spec.sidecars)),
    ]
    for path, other in others:
        if other.name in seen:
            yield Problem(f"{path}.name", f"{other.name} is the name of {seen[other.name]}", "give it another name")
        seen[other.name] = path
        for index, mount in enumerate(other.mounts):
            if mount.name not in volumes:
                known = f"; the volumes are {', '.join(sorted(volumes))}" if volumes else ""
                message = f"there is no volume {mount.name!r} in spec.volumes{known}"
                yield Problem(f"{path}.mounts[{index}].name", message, "add the volume, or name one that is there")
        yield from _security_problems(f"{path}.securityContext", other.security_context)
        if isinstance(other, Sidecar):
            yield from _hook_problems(path, other)


def _label_problems(spec: PodFields) -> Iterator[Problem]:
    for key, value in spec.pod_labels.items():
        if key in _SET_BY_CONTROLLER:
            hint = "leave it out; podLabels are for labels of your own"
            yield Problem("spec.podLabels", f"the controller sets the label {key} of the pods", hint)
        for wrong in (*names.label_key(key), *names.label_value(value)):
            yield Problem("spec.podLabels", f"{key}: {value!r} is not a label: {wrong}")
    for key in spec.pod_annotations:
        for wrong in names.annotation_key(key):
            yield Problem("spec.podAnnotations", f"{key!r} is not the name of an annotation: {wrong}")


def _security_problems(path: str, given: ContainerSecurityContext | None) -> Iterator[Problem]:
    if given is None:
        return
    for field, profile in (("seccompProfile", given.seccomp_profile), ("appArmorProfile", given.app_armor_profile)):
        if profile is not None and (profile.type == "Localhost") != (profile.localhost_profile is not None):
            message = "localhostProfile is needed for the type Localhost, and only there"
            yield Problem(f"{path}.{field}", message, "write type: Localhost and localhostProfile, or neither")
    if given.privileged and given.allow_privilege_escalation is False:
        message = "a privileged container can always escalate, so this cannot be false"
        yield Problem(f"{path}.allowPrivilegeEscalation", message, "remove it, or privileged")
    if given.run_as_non_root and given.run_as_user == 0:
        message = "0 is root, and runAsNonRoot refuses root: no container could start"
        yield Problem(f"{path}.runAsUser", message, "write another user, or remove runAsNonRoot")


def _hook_problems(path: str, spec: ServerSpec) -> Iterator[Problem]:
    if spec.lifecycle is None:
        return
    for field, hook in (("postStart", spec.lifecycle.post_start), ("preStop", spec.lifecycle.pre_stop)):
        if hook is None:
            continue
        at = f"{path}.lifecycle.{field}"
        if sum(action is not None for action in (hook.exec, hook.http, hook.sleep)) != 1:
            yield Problem(at, "give exactly one of exec, http and sleep", "write sleep: 5s, for example")
        yield from _too_long(f"{at}.sleep", hook.sleep)


def _too_long(path: str, text: str | None) -> Iterator[Problem]:
    try:
        duration(text)
    except durations.DurationError as error:
        yield Problem(path, str(error))
