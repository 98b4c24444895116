"""Jobs and their pods as values: the fields that the controller reads.

The template stays the mapping that it is on the wire.  This module must not know
when a job has ended, nor what is counted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import ContainerStatus, Pod, PodStatus
from holdfast.meta import times
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.status import wire

TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until the job's status has counted it."""

INDEX: Final = "batch.kubernetes.io/job-completion-index"
NAME: Final = "batch.kubernetes.io/job-name"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
BUILT_IN: Final = "kubernetes.io/job-controller"

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"


# --- pods


class Terminated(msgspec.Struct, frozen=True, rename="camel", gc=False):
    exit_code: int = 0
    finished_at: str | None = None


class State(msgspec.Struct, frozen=True, rename="camel", gc=False):
    terminated: Terminated | None = None


class Container(ContainerStatus, frozen=True, rename="camel", gc=False):
    state: State = State()


class JobPodStatus(PodStatus, frozen=True, rename="camel", gc=False):
    container_statuses: tuple[Container, ...] = ()
    init_container_statuses: tuple[Container, ...] = ()


class JobPod(Pod, frozen=True, rename="camel"):
    """What a job reads of a pod."""

    status: JobPodStatus = JobPodStatus()

    @classmethod
    def of(cls, obj: Object) -> JobPod:
        return obj.decode(cls)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def succeeded(self) -> bool:
        return self.status.phase == "Succeeded"

    @property
    def tracked(self) -> bool:
        """It has not been counted for good."""
        return TRACKING in self.metadata.finalizers

    @property
    def terminating(self) -> bool:
        return self.deleting and not self.finished

    @property
    def index(self) -> int | None:
        return _number(self.metadata, INDEX)

    @property
    def failures(self) -> int:
        """How often its index had failed before it, as far as that counts."""
        return _number(self.metadata, FAILURES) or 0

    @property
    def ignored_failures(self) -> int:
        return _number(self.metadata, IGNORED_FAILURES) or 0

    @property
    def containers(self) -> tuple[Container, ...]:
        return (*self.status.container_statuses, *self.status.init_container_statuses)

    def finished_at(self) -> datetime:
        """When it ended: by its containers, or else by the best that is known."""
        ends = [
            each.state.terminated.finished_at if each.state.terminated else None
            for each in self.status.container_statuses
        ]
        known = [end for end in ends if end]
        if known and len(known) == len(ends):
            return max(map(times.parse, known))
        ready = self.condition("Ready")
        if ready is not None and ready.status == "False" and ready.last_transition_time:
            return times.parse(ready.last_transition_time)
        meta = self.metadata
        if meta.deletion_timestamp:
            grace = timedelta(seconds=meta.deletion_grace_period_seconds or 0)
            return times.parse(meta.deletion_timestamp) - grace
        return times.parse(meta.creation_timestamp or "1970-01-01T00:00:00Z")


def _number(meta: Meta, annotation: str) -> int | None:
    text = meta.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() else None


# --- jobs


class ExitCodes(msgspec.Struct, frozen=True, rename="camel"):
    operator: str = "In"
    values: tuple[int, ...] = ()
    container_name: str | None = None


class ConditionPattern(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = "True"


class FailureRule(msgspec.Struct, frozen=True, rename="camel"):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[ConditionPattern, ...] = ()


class FailurePolicy(msgspec.Struct, frozen=True, rename="camel"):
    rules: tuple[FailureRule, ...] = ()


class SuccessRule(msgspec.Struct, frozen=True, rename="camel"):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(msgspec.Struct, frozen=True, rename="camel"):
    rules: tuple[SuccessRule, ...] = ()


class JobSpec(msgspec.Struct, frozen=True, rename="camel"):
    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    managed_by: str = BUILT_IN
    pod_failure_policy: FailurePolicy | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    success_policy: SuccessPolicy | None = None
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = {}


class JobCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    type: str
    status: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class Uncounted(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that have ended and whose finalizer is still to go, before they are added to the counts."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)


class JobStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Written as Kubernetes does: what is zero is left out, what was looked at and found to be zero is not."""

    conditions: tuple[JobCondition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    ready: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None

    @property
    def uncounted(self) -> Uncounted:
        return self.uncounted_terminated_pods or Uncounted()

    def condition(self, type: str) -> JobCondition | None:
        """The condition of that type, if it holds."""
        return next((each for each in self.conditions if each.type == type and each.status == "True"), None)

    def wire(self) -> dict[str, Any]:
        return wire(self)


class Job(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @classmethod
    def of(cls, obj: Object) -> Job:
        return obj.decode(cls)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def indexed(self) -> bool:
        return self.spec.completion_mode == "Indexed"

    @property
    def per_index(self) -> bool:
        """Each index has failures of its own."""
        return self.spec.backoff_limit_per_index is not None

    @property
    def replaces_only_failed(self) -> bool:
        """A pod that is on its way out is waited for before it has a successor."""
        return self.spec.pod_replacement_policy == "Failed" or self.spec.pod_failure_policy is not None

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector.from_object(self.spec.selector, "spec.selector")

    @property
    def end(self) -> JobCondition | None:
        """The condition with which it ended, if it has."""
        return self.status.condition(COMPLETE) or self.status.condition(FAILED)

    def has_failed(self, pod: JobPod) -> bool:
        """Whether a pod counts as failed; one that is deleted does, where it may never get to say so itself."""
        return pod.status.phase == "Failed" or (pod.terminating and not self.replaces_only_failed)

    def has_place_for(self, pod: JobPod) -> bool:
        """Whether it is one of the pods that the job is made of: of an indexed one, by its index."""
        return not self.indexed or (pod.index is not None and pod.index < (self.spec.completions or 0))
