"""Pod and PodTemplate.

checks     validation of a pod spec
volumes    validation of its volumes
defaults   defaults that depend on other fields
updates    which fields of an existing pod may change
columns    the columns of the table
"""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.common.columns import NAME, column, joined, template_columns
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.pods.checks import spec_problems, template_problems
from holdfast.apiserver.builtins.pods.columns import COLUMNS
from holdfast.apiserver.builtins.pods.defaults import admit_pod, default_pod, default_template
from holdfast.apiserver.builtins.pods.updates import update_problems
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.errors import FieldError


def validate_pod(pod: Object, old: Object | None) -> list[FieldError]:
    if old is None:
        return list(spec_problems(pod["spec"], "spec"))
    problems = spec_problems(pod["spec"], "spec") if pod["spec"] != old["spec"] else ()
    return [*problems, *update_problems(pod, old)]


def _validate_template(obj: Object, old: Object | None) -> list[FieldError]:
    return list(template_problems(obj["template"], "template"))


POD: Final = builtin(
    "Pod",
    plural="pods",
    short_names=("po",),
    categories=("all",),
    status=True,
    subresources=("binding", "eviction", "log"),
    columns=COLUMNS,
    fields=(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    default=default_pod,
    on_create=admit_pod,
    validate=validate_pod,
    status_leaves=("ownerReferences",),
)

POD_TEMPLATE: Final = builtin(
    "PodTemplate",
    columns=(
        NAME,
        *template_columns("template"),
        column("Pod Labels", lambda obj: joined(f"{k}={v}" for k, v in sorted(_labels(obj).items()))),
    ),
    default=lambda obj: default_template(obj["template"]),
    validate=_validate_template,
)


def _labels(obj: Object) -> dict[str, str]:
    labels: dict[str, str] = (obj["template"].get("metadata") or {}).get("labels") or {}
    return labels


RESOURCES: Final[tuple[ResourceType, ...]] = (POD, POD_TEMPLATE)
