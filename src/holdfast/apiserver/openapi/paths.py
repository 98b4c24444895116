"""The paths of OpenAPI documents: the operations of each resource, with their parameters.

Clients read here whether the server supports dry runs, field validation and strategic merge patches.  Written for
OpenAPI v3; this module knows schemas by name only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from holdfast.apiserver.openapi.discovery import CONNECTIONS, Subresource, subresources
from holdfast.apiserver.openapi.schemas import GVK_EXTENSION, PATCH, Components, gvk_extension, refer
from holdfast.apiserver.resources import ResourceType
from holdfast.meta.objects import GVK

Operation = dict[str, Any]
PathItem = dict[str, Any]

_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_PATCH_TYPES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC: Final = "application/strategic-merge-patch+json"


def _query(name: str, type_: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": {"type": type_, "uniqueItems": True}}


def _in_path(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}


_NAME: Final = _in_path("name", "Name of the object.")
_NAMESPACE: Final = _in_path("namespace", "Namespace of the objects.")
_DRY_RUN: Final = _query("dryRun", "string", "All: process the request without storing the result.")
_WRITE: Final = (
    _DRY_RUN,
    _query("fieldManager", "string", "Name of the field manager of the change."),
    _query("fieldValidation", "string", "Strict, Warn or Ignore: how unknown and duplicate fields are handled."),
)
_FORCE: Final = _query("force", "boolean", "Take over fields of other managers; for apply patches.")
_DELETE: Final = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "integer", "Grace period in seconds; 0 deletes immediately."),
    _query("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    _query("propagationPolicy", "string", "Orphan, Background or Foreground: how dependents are handled."),
)
_LIST: Final = (
    _query("allowWatchBookmarks", "boolean", "Send bookmarks in a watch."),
    _query("continue", "string", "Token of the previous page of a list."),
    _query("fieldSelector", "string", "Only objects with these fields."),
    _query("labelSelector", "string", "Only objects with these labels."),
    _query("limit", "integer", "Maximum number of objects."),
    _query("resourceVersion", "string", "Version to list, or to watch from."),
    _query("resourceVersionMatch", "string", "NotOlderThan or Exact: how resourceVersion applies."),
    _query("sendInitialEvents", "boolean", "Start a watch with the existing objects."),
    _query("timeoutSeconds", "integer", "Seconds after which a watch ends."),
    _query("watch", "boolean", "Watch for changes, instead of a list."),
)
_PRETTY: Final = _query("pretty", "string", "Whether JSON is to be indented.")

_ACTIONS: Final = {
    "list": ("list", "List or watch {}"),
    "post": ("create", "Create {}"),
    "deletecollection": ("delete", "Delete all selected {}"),
    "get": ("read", "Read {}"),
    "put": ("replace", "Replace {}"),
    "patch": ("patch", "Patch {}"),
    "delete": ("delete", "Delete {}"),
}
"""Kubernetes' actions, with the prefix of their operation ids and a description."""

_METHODS: Final = {"create": "post", "get": "get", "update": "put", "patch": "patch", "delete": "delete"}


def paths_of(types: Iterable[ResourceType], components: Components) -> dict[str, PathItem]:
    """All paths of some resources; adds the components that they refer to."""
    return {path: item for each in types for path, item in _Resource(each, components).paths()}


class _Resource:
    """The paths of one resource."""

    def __init__(self, each: ResourceType, components: Components) -> None:
        self._type = each
        self._components = components
        self._root = f"/apis/{each.group}/{each.version}" if each.group else f"/api/{each.version}"

    def paths(self) -> Iterator[tuple[str, PathItem]]:
        each = self._type
        scope = [_NAMESPACE] if each.namespaced else []
        collection = f"{self._root}/namespaces/{{namespace}}/{each.plural}" if each.namespaced else self._everywhere
        if each.namespaced and "list" in each.verbs:
            yield self._everywhere, {"get": self._list(everywhere=True), "parameters": [_PRETTY]}
        yield from _path(collection, self._collection(), [*scope, _PRETTY])
        item = f"{collection}/{{name}}"
        yield from _path(item, self._item(), [_NAME, *scope, _PRETTY])
        for sub in subresources(each):
            yield from _path(f"{item}/{sub.name}", self._part(sub), [_NAME, *scope, _PRETTY])

    @property
    def _everywhere(self) -> str:
        return f"{self._root}/{self._type.plural}"

    def _collection(self) -> PathItem:
        item: PathItem = {}
        if "list" in self._type.verbs:
            item["get"] = self._list()
        if "create" in self._type.verbs:
            item["post"] = self._operation("post", self._type.gvk)
        if "deletecollection" in self._type.verbs:
            item["delete"] = self._operation("deletecollection", self._type.gvk)
        return item

    def _item(self) -> PathItem:
        verbs = ("get", "update", "patch", "delete")
        return {
            _METHODS[verb]: self._operation(_METHODS[verb], self._type.gvk)
            for verb in verbs
            if verb in self._type.verbs
        }

    def _part(self, sub: Subresource) -> PathItem:
        return {_METHODS[verb]: self._operation(_METHODS[verb], sub.kind, subresource=sub.name) for verb in sub.verbs}

    def _list(self, *, everywhere: bool = False) -> Operation:
        return self._operation("list", self._type.gvk, everywhere=everywhere)

    def _operation(self, action: str, kind: GVK, *, subresource: str = "", everywhere: bool = False) -> Operation:
        each = self._type
        what = f"{each.kind} {subresource}".strip()
        operation: Operation = {
            "description": _ACTIONS[action][1].format(what) + ".",
            "operationId": self._id(action, subresource, everywhere=everywhere),
            "tags": [_tag(each)],
            "x-kubernetes-action": action,
            GVK_EXTENSION: gvk_extension(kind)[0],
        }
        body = self._body(kind, subresource)
        match action:
            case "list":
                listed = refer(self._components.list_of(each))
                return operation | {"parameters": [*_LIST], "responses": _responses(listed)}
            case "delete" | "deletecollection" if not subresource:
                options, status = map(self._components.common, ("DeleteOptions", "Status"))
                return operation | {
                    "parameters": [*_DELETE, *(_LIST if action == "deletecollection" else ())],
                    "requestBody": _content(refer(options), _MEDIA_TYPES),
                    "responses": _responses(refer(status)),
                }
            case "patch" if body is not None:
                types = _PATCH_TYPES if each.custom else (*_PATCH_TYPES, _STRATEGIC)
                return operation | {
                    "parameters": [*_WRITE, _FORCE],
                    "requestBody": {**_content(refer(self._components.plain(PATCH)), types), "required": True},
                    "responses": _responses(body, created=True),
                }
            case "post" | "put" if body is not None:
                return operation | {
                    "parameters": [*_WRITE],
                    "requestBody": {**_content(body, _MEDIA_TYPES), "required": True},
                    "responses": _responses(body, created=True),
                }
            case _:
                return operation | {"responses": _responses(body)}

    def _body(self, kind: GVK, subresource: str) -> dict[str, Any] | None:
        """The schema of the bodies; None for a stream of bytes."""
        if subresource == "log" or subresource in CONNECTIONS:
            return None
        own = kind == self._type.gvk
        return refer(self._components.kind(self._type) if own else self._components.common(kind.kind))

    def _id(self, action: str, subresource: str, *, everywhere: bool) -> str:
        """The operation id: unique in the document, in the form that client generators expect."""
        each = self._type
        scope = "Namespaced" if each.namespaced and not everywhere else ""
        end = "ForAllNamespaces" if everywhere else ""
        many = "Collection" if action == "deletecollection" else ""
        subject = f"{many}{scope}{each.kind}{_camel(subresource)}{end}"
        return f"{_ACTIONS[action][0]}{_camel(_group_id(each))}{_camel(each.version)}{subject}"


def _path(path: str, item: PathItem, parameters: list[dict[str, Any]]) -> Iterator[tuple[str, PathItem]]:
    if item:
        yield path, item | {"parameters": parameters}


def _content(schema: dict[str, Any], types: Iterable[str]) -> dict[str, Any]:
    return {"content": {each: {"schema": schema} for each in types}}


def _responses(schema: dict[str, Any] | None, *, created: bool = False) -> dict[str, Any]:
    content = _content({"type": "string"}, ["text/plain"]) if schema is None else _content(schema, _MEDIA_TYPES)
    answers = {"200": "OK"} | ({"201": "Created"} if created else {})
    return {code: {"description": text, **content} for code, text in answers.items()} | {
        "401": {"description": "Unauthorized"}
    }


def _group_id(each: ResourceType) -> str:
    """The group as identifiers write it: ``core``, ``apps``, ``rbacAuthorization``, ``exampleCom``."""
    first, *rest = re.split(r"[.-]", each.group.removesuffix(".k8s.io") or "core")
    return first + "".join(map(_camel, rest))


def _tag(each: ResourceType) -> str:
    return f"{_group_id(each)}_{each.version}"


def _camel(word: str) -> str:
    return word[:1].upper() + word[1:]
