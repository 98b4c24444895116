"""Served paths: which paths a kind has, and which methods each of them accepts.

A path that does not exist is 404, a method that a path does not accept is 405, and subresources that connect to
running containers are 501.  Authorization reads requests by the same `RequestInfo`, so what it allowed in a namespace
must not be answered from the whole cluster: a cluster-scoped kind has no path inside a namespace.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from holdfast.apiserver.resources import ResourceType
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import MethodNotAllowed, NotFound, StatusError

NAMESPACES: Final = "/namespaces"
ACROSS: Final = frozenset({"list", "watch"})
"""Verbs that work across all namespaces."""

NAMED: Final = frozenset({"get", "update", "patch", "delete"})
STATUS_VERBS: Final = frozenset({"get", "update", "patch"})
CONNECTIONS: Final = frozenset({"attach", "exec", "portforward", "proxy"})


def check(method: str, info: RequestInfo, kind: ResourceType, *, handled: Container[tuple[str, str]]) -> None:
    """Refuse a request whose path the kind does not have, or whose method the path does not accept.

    `handled` has the verbs of subresources with behaviour of their own.
    """
    _check_path(info, kind)
    if info.subresource:
        taken = _takes(info, kind, handled)
    elif info.verb in NAMED:
        taken = bool(info.name) and info.verb in kind.verbs
    elif info.verb == "create":
        taken = not info.name and "create" in kind.verbs
    else:
        taken = info.verb in kind.verbs and (info.verb != "watch" or method in ("GET", "HEAD"))
    if not taken:
        raise MethodNotAllowed.of_path()


def _check_path(info: RequestInfo, kind: ResourceType) -> None:
    if not kind.namespaced:
        # For authorization, a Namespace is in itself.
        inside = info.namespace and not (kind.key == NAMESPACES and info.namespace == info.name)
        if inside:
            raise NotFound.of_path()
    elif not info.namespace and info.verb not in ACROSS:
        if info.name or kind.custom:
            raise NotFound.of_path()
        raise MethodNotAllowed.of_path()


def _takes(info: RequestInfo, kind: ResourceType, handled: Container[tuple[str, str]]) -> bool:
    """Whether a subresource accepts a verb; raises if the kind has no such subresource."""
    name = info.subresource
    exists = info.path.endswith(f"/{name}")
    if name == "status" and kind.status and exists:
        return info.verb in STATUS_VERBS
    if exists and name in CONNECTIONS and not kind.custom and (info.verb, name) in handled:
        return True
    if exists and (name in kind.subresources or (name == "scale" and kind.scale is not None)):
        return (info.verb, name) in handled
    if name in CONNECTIONS and not kind.custom:
        raise StatusError(f"this server does not serve {info.full_resource}", code=501, reason="NotImplemented")
    raise NotFound.of_path()
