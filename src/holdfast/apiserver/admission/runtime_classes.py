"""Admission of pods that run as processes of the host: they need a permission of their own.

A pod whose runtime class is in `HOST_CLASSES` runs commands as the user of this machine.  So a user who writes such a
pod, or an object from which a controller makes such pods, needs the verb ``use`` on that RuntimeClass at the cluster
scope.  Of the default roles only cluster-admin has it.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final, TypeAlias

from holdfast.apiserver.auth.rbac import Authorizer
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.verbs.writes import Admit, Writing
from holdfast.apiserver.workers import compute
from holdfast.meta.errors import Forbidden
from holdfast.meta.fieldpaths import child

HOST_CLASSES: Final = frozenset({"process"})
FIELD: Final = "runtimeClassName"

_NOT_READ: Final = frozenset({"metadata", "status"})
"""The parts of an object from which no controller makes pods."""

_TEXT_ONLY: Final = frozenset({"/configmaps", "/secrets"})
"""Kinds without pods, in which a field may have any name."""

_UNCHANGED_PODS: Final = frozenset({"status", "scale"})
"""Subresources whose writes do not change what the pods of an object are."""

_Path: TypeAlias = tuple["_Path", str | int] | None
"""A path from its end: the steps before, and the last one."""


def host_pods(authorizer: Authorizer) -> Admit:
    """Refuse objects with pods that run as processes of the host, unless the user may use that runtime class."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        kind = writing.kind
        if kind.key in _TEXT_ONLY or writing.subresource in _UNCHANGED_PODS:
            return obj, ()
        needed = [name for name in sorted(HOST_CLASSES) if not authorizer.allowed(writing.user, _use(name)).allowed]
        if needed and (old is None or _read(obj) != _read(old)):
            found = await compute(writing.size, lambda: _found(obj, needed))
            if found is not None:
                name = obj["metadata"].get("name") or obj["metadata"].get("generateName", "")
                raise Forbidden.of(kind.plural, name, group=kind.group, why=_why(writing, *found))
        return obj, ()

    return admit


def _use(name: str) -> RequestInfo:
    return RequestInfo(
        verb="use",
        path=f"/apis/node.k8s.io/v1/runtimeclasses/{name}",
        is_resource=True,
        group="node.k8s.io",
        version="v1",
        resource="runtimeclasses",
        name=name,
    )


def _read(obj: Object) -> Object:
    return {field: value for field, value in obj.items() if field not in _NOT_READ}


def _found(obj: Object, names: list[str]) -> tuple[str, str] | None:
    """Where an object names one of these runtime classes, at any depth, and which."""
    waiting: list[tuple[_Path, Any]] = [(None, _read(obj))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            found = value.get(FIELD)
            if isinstance(found, str) and found in names:
                return _written((path, FIELD)), found
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [((path, step), each) for step, each in inner if isinstance(each, dict | list)]
    return None


def _written(path: _Path) -> str:
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return reduce(child, reversed(steps), "")


def _why(writing: Writing, path: str, name: str) -> str:
    return (
        f'{path}: pods of the runtime class "{name}" run as processes of the host, '
        f'and user "{writing.user.name}" cannot use the RuntimeClass "{name}"; '
        f'ask for a ClusterRole with the verb "use" on runtimeclasses.node.k8s.io "{name}"'
    )
