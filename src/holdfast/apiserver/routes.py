"""Request paths: parses method, path and query of a request into a `RequestInfo`.

Authorization, fairness, metrics and the verbs all use this one parser, so that they cannot read a path in different
ways.  It does not know which resources exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.meta.errors import MalformedError
from holdfast.meta.selectors import FieldSelector

Query = Mapping[str, tuple[str, ...]]

_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_FALSE: Final = frozenset({"0", "false"})


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a request, in the terms of RBAC rules.

    For a resource, `verb` is one of Kubernetes' verbs, empty for a method that has none; for any other path it is
    the method in lower case.  `name` may come from a field selector on ``metadata.name``.
    """

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        """The resource as rules write it: ``pods`` or ``pods/log``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse(method: str, path: str, query: Query) -> RequestInfo:
    """Parse a request; every path is valid."""
    prefix, *parts = path.strip("/").split("/")
    match prefix:
        case "api" if len(parts) >= 2:
            group = ""
        case "apis" if len(parts) >= 3:
            group = parts.pop(0)
        case _:
            return RequestInfo(verb=method.lower(), path=path)
    version = parts.pop(0)
    verb = _VERBS.get(method, "")
    if parts[0] == "watch":
        if len(parts) == 1:
            return RequestInfo(verb=method.lower(), path=path)
        verb = "watch"
        parts = parts[1:]
    namespace, parts = _namespace(parts)
    resource, name, subresource = (*parts[:3], "", "")[:3]
    if not name:
        match verb:
            case "get":
                verb = "watch" if _flag(query, "watch") else "list"
                name = _selected_name(query)
            case "watch":
                name = _selected_name(query)
            case "delete":
                verb = "deletecollection"
    return RequestInfo(
        verb=verb,
        path=path,
        is_resource=True,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _namespace(parts: list[str]) -> tuple[str, list[str]]:
    """The namespace, and the parts from the resource on; a namespace itself is in its own namespace."""
    if parts[0] != "namespaces" or len(parts) == 1:
        return "", parts
    inside = len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES
    return parts[1], parts[2:] if inside else parts


def _flag(query: Query, name: str) -> bool:
    return query.get(name, ("false",))[0].lower() not in _FALSE


def _selected_name(query: Query) -> str:
    """The name that a field selector selects, so that rules with resource names can allow the request."""
    text = query.get("fieldSelector", ("",))[0]
    if not text:
        return ""
    try:
        terms = FieldSelector.parse(text).terms
    except MalformedError:
        return ""
    names = [term.value for term in terms if term.field == "metadata.name" and not term.negated]
    return names[0] if len(names) == 1 and _is_segment(names[0]) else ""


def _is_segment(name: str) -> bool:
    return name not in (".", "..") and "/" not in name and "%" not in name
