"""Job and CronJob."""

from __future__ import annotations

from typing import Any, Final

from holdfast.apiserver.builtins.common import checks, schedules
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import (
    AGE,
    NAME,
    NONE,
    column,
    field,
    get,
    template_columns,
)
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.pods.checks import template_problems
from holdfast.apiserver.builtins.pods.defaults import default_template
from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta import times
from holdfast.meta.ages import age, human_duration
from holdfast.meta.errors import FieldError

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
LEGACY_LABELS: Final = {CONTROLLER_UID: "controller-uid", JOB_NAME: "job-name"}
"""The older labels without a prefix, which users may still select by."""

CRON_NAME_MAX: Final = 52
"""The name of a Job is that of its CronJob and eleven more characters."""

_NOT_NEGATIVE: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def _default_job(obj: Object) -> None:
    _default_job_spec(obj["spec"])
    labels = get(obj, "spec", "template", "metadata", "labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def _default_job_spec(spec: Object) -> None:
    default_template(spec["template"])
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    replacing = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replacing)


def own_pods(obj: Object) -> None:
    """Make a new Job select its own pods only, by its uid."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    own = {CONTROLLER_UID: meta["uid"], JOB_NAME: meta.get("name", "")}
    legacy = {LEGACY_LABELS[name]: value for name, value in own.items()}
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for name, value in (own | legacy).items():
        labels.setdefault(name, value)
    # What reading the job again would find.
    meta.setdefault("labels", dict(labels))
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, meta["uid"])


def _job_spec_problems(spec: Object, path: str) -> Problems:
    for name in _NOT_NEGATIVE:
        yield from checks.not_negative(spec.get(name), f"{path}.{name}")
    yield from checks.maybe_chosen(
        spec.get("completionMode"), f"{path}.completionMode", among=("NonIndexed", "Indexed")
    )
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield FieldError.required(f"{path}.completions", "when completion mode is Indexed")
    yield from template_problems(spec["template"], f"{path}.template")
    policy = get(spec, "template", "spec", "restartPolicy")
    at = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        yield FieldError.required(at, 'valid values: "OnFailure", "Never"')
    elif policy == "OnFailure" and "podFailurePolicy" in spec:
        yield FieldError.invalid(at, policy, detail='only "Never" is supported when podFailurePolicy is specified')


def _validate_job(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    problems = [*_job_spec_problems(spec, "spec"), *_job_selector(spec)]
    return problems if old is None else [*problems, *_job_changes(spec, old["spec"])]


def _job_selector(spec: Object) -> Problems:
    selector, labels = spec.get("selector"), get(spec, "template", "metadata", "labels", default={})
    broken = list(checks.label_selector(selector, "spec.selector"))
    if selector is None:
        yield FieldError.required("spec.selector")
    yield from broken
    if selector and not broken and not checks.selects(selector, labels):
        detail = "`selector` does not match template `labels`"
        yield FieldError.invalid("spec.template.metadata.labels", labels, detail=detail)


def _job_changes(spec: Object, old: Object) -> Problems:
    """Only parallelism, deadlines, and the scheduling of a suspended Job may change."""
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    fixed = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    for name in fixed if elastic else ("completions", *fixed):
        yield from checks.unchanged(spec.get(name), old.get(name), path=f"spec.{name}")
    suspended = old.get("suspend") or False
    yield from checks.unchanged(
        _fixed_template(spec, suspended=suspended), _fixed_template(old, suspended=suspended), path="spec.template"
    )


def _fixed_template(spec: Object, *, suspended: bool) -> Any:
    """The immutable part of a Job's template; a suspended Job may change its scheduling."""
    template = spec["template"]
    if not suspended:
        return template
    placed = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
    return {"spec": {name: value for name, value in template["spec"].items() if name not in placed}}


def _default_cron_job(obj: Object) -> None:
    _default_job_spec(obj["spec"]["jobTemplate"]["spec"])


def _validate_cron_job(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_cron_job_problems(obj)]


def _cron_job_problems(obj: Object) -> Problems:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    schedule = spec.get("schedule")
    if not schedule:
        yield FieldError.required("spec.schedule")
    else:
        problem = schedules.problem(schedule)
        yield from [FieldError.invalid("spec.schedule", schedule, detail=problem)] if problem else []
    yield from checks.not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    among = ("Allow", "Forbid", "Replace")
    yield from checks.chosen(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", among=among)
    yield from checks.not_negative(spec.get("successfulJobsHistoryLimit"), "spec.successfulJobsHistoryLimit")
    yield from checks.not_negative(spec.get("failedJobsHistoryLimit"), "spec.failedJobsHistoryLimit")
    zone = spec.get("timeZone")
    if zone is not None and not schedules.is_zone(zone):
        yield FieldError.invalid("spec.timeZone", zone, detail="unknown time zone " + zone)
    yield from _job_spec_problems(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    if len(name) > CRON_NAME_MAX:
        yield FieldError.invalid("metadata.name", name, detail=f"must be no more than {CRON_NAME_MAX} characters")


def _job_status(obj: Object) -> str:
    for name in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if any(
            each.get("type") == name and each.get("status") == "True"
            for each in get(obj, "status", "conditions", default=())
        ):
            return name
    return "Terminating" if get(obj, "metadata", "deletionTimestamp") else "Running"


def _completions(obj: Object) -> str:
    done, wanted = get(obj, "status", "succeeded", default=0), get(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = get(obj, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(obj: Object, now: float) -> str:
    start, end = get(obj, "status", "startTime"), get(obj, "status", "completionTime")
    if not start:
        return ""
    return human_duration((times.parse(end) - times.parse(start)).total_seconds()) if end else age(start, now)


def _last_schedule(obj: Object, now: float) -> str:
    last = get(obj, "status", "lastScheduleTime")
    return age(last, now) if last else NONE


JOB: Final = builtin(
    "Job",
    group="batch",
    categories=("all",),
    status=True,
    columns=(
        NAME,
        column("Status", _job_status),
        column("Completions", _completions),
        Column(name="Duration", value=_duration, description="Time that the job has taken."),
        AGE,
        *template_columns("spec", "template", selector=("spec", "selector")),
    ),
    fields=("status.successful",),
    default=_default_job,
    on_create=own_pods,
    validate=_validate_job,
    dependents="orphan",
)
CRON_JOB: Final = builtin(
    "CronJob",
    group="batch",
    short_names=("cj",),
    categories=("all",),
    status=True,
    columns=(
        NAME,
        field("Schedule", "spec", "schedule"),
        field("Timezone", "spec", "timeZone", default=NONE),
        column("Suspend", lambda obj: str(bool(get(obj, "spec", "suspend")))),
        column("Active", lambda obj: len(get(obj, "status", "active", default=())), type="integer"),
        Column(name="Last Schedule", value=_last_schedule),
        AGE,
        *template_columns(
            "spec", "jobTemplate", "spec", "template", selector=("spec", "jobTemplate", "spec", "selector")
        ),
    ),
    default=_default_cron_job,
    validate=_validate_cron_job,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (JOB, CRON_JOB)
