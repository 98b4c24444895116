"""The policies of a job: a failed pod may be ignored or fail the job, and some successes may be enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.cluster.controllers.jobs import indexes
from holdfast.cluster.controllers.jobs.types import ExitCodes, FailurePolicy, FailureRule, JobPod, SuccessPolicy

IGNORE: Final = "Ignore"
FAIL_JOB: Final = "FailJob"
FAIL_INDEX: Final = "FailIndex"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureAction:
    """The action of the rule that a failed pod matches, and why the job fails, if it does."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        return self.action != IGNORE


_COUNTS: Final = FailureAction()


def action_of(policy: FailurePolicy | None, pod: JobPod) -> FailureAction:
    """By the first rule that matches; a failure that no rule speaks of counts."""
    for place, rule in enumerate(policy.rules if policy else ()):
        matched = _matched(rule, pod)
        if matched:
            message = f"{matched} matching {rule.action} rule at index {place}" if rule.action == FAIL_JOB else ""
            return FailureAction(action=rule.action, message=message)
    return _COUNTS


def _matched(rule: FailureRule, pod: JobPod) -> str:
    """What of the pod matches a rule, in words; empty if nothing does."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for container in pod.containers:
            end = container.state.terminated
            if end is not None and _concerns(rule.on_exit_codes, container.name, end.exit_code):
                return f"Container {container.name} for pod {name} failed with exit code {end.exit_code}"
        return ""
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    found = (each.type for each in pod.status.conditions if (each.type, each.status) in patterns)
    return next((f"Pod {name} has condition {type}" for type in found), "")


def _concerns(codes: ExitCodes, container: str, exit_code: int) -> bool:
    if exit_code == 0 or codes.container_name not in (None, container):
        return False
    return (exit_code in codes.values) == (codes.operator == "In")


def satisfied(policy: SuccessPolicy | None, succeeded: Iterable[int], *, completions: int) -> str:
    """Which rule says that these successes are enough, in words; empty if none does."""
    done = frozenset(succeeded)
    for place, rule in enumerate(policy.rules if policy and done else ()):
        if rule.succeeded_indexes is None:
            enough = rule.succeeded_count is not None and len(done) >= rule.succeeded_count
        else:
            required = indexes.parse(rule.succeeded_indexes, completions)
            count = len(required) if rule.succeeded_count is None else rule.succeeded_count
            enough = bool(required) and len(required & done) >= min(count, len(required))
        if enough:
            return f"Matched rules at index {place}"
    return ""
