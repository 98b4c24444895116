"""Role, RoleBinding, ClusterRole and ClusterRoleBinding."""

from __future__ import annotations

from typing import Any, Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, CREATED_AT, NAME, column, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta import names
from holdfast.meta.errors import FieldError

GROUP: Final = "rbac.authorization.k8s.io"


def _default_binding(obj: Object) -> None:
    """Users and groups are in the RBAC API group, service accounts in the core group."""
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", GROUP)


def _rules(obj: Object, *, cluster: bool) -> Problems:
    for place, rule in each(obj.get("rules"), "rules"):
        if not rule.get("verbs"):
            yield FieldError.required(f"{place}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if not cluster:
                detail = "namespaced rules cannot apply to non-resource URLs"
                yield FieldError.invalid(f"{place}.nonResourceURLs", rule["nonResourceURLs"], detail=detail)
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield FieldError.invalid(f"{place}.nonResourceURLs", rule["nonResourceURLs"], detail=detail)
            continue
        for name in ("apiGroups", "resources"):
            if not rule.get(name):
                detail = "resource rules must supply at least one " + (
                    "api group" if name == "apiGroups" else "resource"
                )
                yield FieldError.required(f"{place}.{name}", detail)


def _validate_role(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_rules(obj, cluster=False))


def _validate_cluster_role(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_rules(obj, cluster=True))
    if obj.get("aggregationRule") is not None and not obj["aggregationRule"].get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        problems.append(FieldError.required("aggregationRule.clusterRoleSelectors", detail))
    for place, selector in each(
        get(obj, "aggregationRule", "clusterRoleSelectors"), "aggregationRule.clusterRoleSelectors"
    ):
        problems += checks.label_selector(selector, place)
    return problems


def _validate_binding(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_binding_problems(obj, ("Role", "ClusterRole")), *_same_role(obj, old)]


def _validate_cluster_binding(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_binding_problems(obj, ("ClusterRole",)), *_same_role(obj, old)]


def _binding_problems(obj: Object, roles: tuple[str, ...]) -> Problems:
    role = obj.get("roleRef") or {}
    if role.get("apiGroup") != GROUP:
        yield FieldError.not_supported("roleRef.apiGroup", role.get("apiGroup", ""), supported=(GROUP,))
    if role.get("kind") not in roles:
        yield FieldError.not_supported("roleRef.kind", role.get("kind", ""), supported=roles)
    yield from checks.named(role.get("name"), "roleRef.name", rule=names.path_segment)
    namespaced = "namespace" in obj["metadata"]
    for place, subject in each(obj.get("subjects"), "subjects"):
        yield from _subject(subject, place, namespaced=namespaced)


def _subject(subject: Object, path: str, *, namespaced: bool) -> Problems:
    kind = subject.get("kind", "")
    yield from checks.required(subject.get("name"), f"{path}.name")
    wanted = {"ServiceAccount": "", "User": GROUP, "Group": GROUP}
    if kind not in wanted:
        yield FieldError.not_supported(f"{path}.kind", kind, supported=("ServiceAccount", "User", "Group"))
        return
    if subject.get("apiGroup", "") != wanted[kind]:
        yield FieldError.not_supported(f"{path}.apiGroup", subject.get("apiGroup", ""), supported=(wanted[kind],))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        yield FieldError.required(f"{path}.namespace")


def _same_role(obj: Object, old: Object | None) -> Problems:
    if old is not None and obj.get("roleRef") != old.get("roleRef"):
        yield FieldError.invalid("roleRef", obj.get("roleRef"), detail="cannot change roleRef")


def _subjects(obj: Object, kind: str) -> str:
    found = [subject for subject in obj.get("subjects") or () if subject.get("kind") == kind]
    if kind != "ServiceAccount":
        return ", ".join(subject.get("name", "") for subject in found)
    return ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in found)


_BINDING_COLUMNS: Final[tuple[Column, ...]] = (
    NAME,
    column("Role", lambda obj: f"{get(obj, 'roleRef', 'kind')}/{get(obj, 'roleRef', 'name')}"),
    AGE,
    column("Users", lambda obj: _subjects(obj, "User"), wide=True),
    column("Groups", lambda obj: _subjects(obj, "Group"), wide=True),
    column("ServiceAccounts", lambda obj: _subjects(obj, "ServiceAccount"), wide=True),
)
_COMMON: Final[dict[str, Any]] = {"group": GROUP, "generation": False, "created_by_update": True}

ROLE: Final = builtin("Role", columns=(NAME, CREATED_AT), validate=_validate_role, **_COMMON)
CLUSTER_ROLE: Final = builtin(
    "ClusterRole", namespaced=False, columns=(NAME, CREATED_AT), validate=_validate_cluster_role, **_COMMON
)
ROLE_BINDING: Final = builtin(
    "RoleBinding", columns=_BINDING_COLUMNS, default=_default_binding, validate=_validate_binding, **_COMMON
)
CLUSTER_ROLE_BINDING: Final = builtin(
    "ClusterRoleBinding",
    namespaced=False,
    columns=_BINDING_COLUMNS,
    default=_default_binding,
    validate=_validate_cluster_binding,
    **_COMMON,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
