"""The components of OpenAPI documents: the schema of each kind, with shared types as components of their own.

Built-in schemas share the values of the types that they are made of, so a type is recognized by the identity of its
properties and becomes a reference.  The schema of a custom kind is published as its definition wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.apiserver.openapi.discovery import ACTIONS
from holdfast.apiserver.resources import ResourceType
from holdfast.meta.objects import GVK

Schema = dict[str, Any]

PREFIX: Final = "#/components/schemas/"
GVK_EXTENSION: Final = "x-kubernetes-group-version-kind"

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PACKAGES: Final = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
TIME: Final = f"{_META}.Time"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
PATCH: Final = f"{_META}.Patch"

_PLAIN: Final[Mapping[str, Schema]] = {
    TIME: {"type": "string", "format": "date-time", "description": "A time as RFC 3339 writes it."},
    INT_OR_STRING: {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
        "description": "A number, or a string such as a percentage.",
    },
    QUANTITY: {
        "oneOf": [{"type": "string"}, {"type": "number"}],
        "description": "An amount, with a suffix such as m, k, M, Ki or Mi where it is very small or large.",
    },
    PATCH: {"type": "object", "description": "What is to change; its form is that of the content type."},
}
"""Components that are not structs."""

_MACHINERY: Final = frozenset(
    {
        "Condition",
        "DeleteOptions",
        "LabelSelector",
        "LabelSelectorRequirement",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "Preconditions",
        "Status",
        "StatusCause",
        "StatusDetails",
    }
)
"""Types that belong to no group."""

_OF_THE_TYPE: Final = frozenset(
    {"type", "properties", "required", "format", "oneOf", "nullable", "x-kubernetes-int-or-string"}
)
"""Keys that belong to the referenced type; a reference may have other keys beside it."""


def gvk_extension(kind: GVK) -> list[dict[str, str]]:
    return [{"group": kind.group, "kind": kind.kind, "version": kind.version}]


def refer(component: str, **extras: Any) -> Schema:
    """A reference; in OpenAPI v3 no key may stand beside ``$ref``, so it is wrapped in ``allOf``."""
    ref = {"$ref": PREFIX + component}
    return {"allOf": [ref], **extras} if extras else ref


def component_name(kind: GVK, *, custom: bool) -> str:
    """``io.k8s.api.core.v1.Pod``; ``com.example.v1.Widget`` for a kind of the group ``example.com``."""
    if custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    package = _PACKAGES.get(kind.group) or f"io.k8s.api.{kind.group.split('.')[0] or 'core'}"
    return f"{package}.{kind.version}.{kind.kind}"


class Names:
    """The component names of the built-in types.

    A type belongs to the group that uses it, or to the core if several do.
    """

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self.kinds: dict[str, GVK] = {}
        """Components that are whole objects."""
        roots: dict[str, str] = {}
        users: dict[str, dict[str, GVK]] = {}
        for kind, struct in _rooted(types):
            component = component_name(kind, custom=False)
            self.kinds[component] = kind
            roots[struct] = component
            for used in _reachable(struct):
                users.setdefault(used, {}).setdefault(kind.group, kind)
        self._of = {struct: _home(struct, list(groups.values())) for struct, groups in users.items()} | roots

    def of(self, struct: str) -> str:
        return self._of.get(struct) or f"{_META}.{struct}"


def _rooted(types: Iterable[ResourceType]) -> Iterator[tuple[GVK, str]]:
    """Every built-in kind with the name of its type; those of subresources first."""
    for action, _ in ACTIONS.values():
        if action is not None:
            yield action, action.kind
    for each in types:
        struct = None if each.custom else _struct(each.schema)
        if struct is not None:
            yield each.gvk, struct


def _home(struct: str, users: list[GVK]) -> str:
    if struct in _MACHINERY:
        return f"{_META}.{struct}"
    owner = users[0] if len(users) == 1 else GVK("", "v1", "")
    return component_name(GVK(owner.group, owner.version, struct), custom=False)


@cache
def _structs() -> dict[int, str]:
    """The names of the types, by the identity of their properties, which every use of a type shares."""
    return {id(TYPES.schema(name)["properties"]): name for name in TYPES}


def _struct(schema: Mapping[str, Any]) -> str | None:
    return _structs().get(id(schema["properties"])) if "properties" in schema else None


@cache
def _reachable(struct: str) -> frozenset[str]:
    """A type and all types of its fields, and theirs."""
    found: set[str] = set()
    pending = [struct]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _used(TYPES.schema(name))
    return frozenset(found)


def _used(schema: Mapping[str, Any]) -> Iterator[str]:
    for inner in _inner(schema):
        struct = _struct(inner)
        if struct is None:
            yield from _used(inner)
        else:
            yield struct


def _inner(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from schema.get("properties", {}).values()
    yield from (schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), Mapping))


class Components:
    """The components of one document; each is added, with all it refers to, on its first reference."""

    def __init__(self, names: Names) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names = names

    def kind(self, each: ResourceType) -> str:
        """The component of a resource's objects."""
        name = component_name(each.gvk, custom=each.custom)
        if name not in self.schemas:
            schema = self._custom(each.schema) if each.custom else self._inline(each.schema)
            self.schemas[name] = schema | {GVK_EXTENSION: gvk_extension(each.gvk)}
        return name

    def list_of(self, each: ResourceType) -> str:
        """The component of a list of a resource's objects."""
        kind = GVK(each.group, each.version, each.list_kind or f"{each.kind}List")
        name = component_name(kind, custom=each.custom)
        if name not in self.schemas:
            self.schemas[name] = {
                "type": "object",
                "description": f"A list of objects of kind {each.kind}.",
                "required": ["items"],
                "properties": {
                    **_type_meta(),
                    "items": {"type": "array", "items": refer(self.kind(each))},
                    "metadata": refer(self.common("ListMeta")),
                },
                GVK_EXTENSION: gvk_extension(kind),
            }
        return name

    def common(self, struct: str) -> str:
        """The component of a type that belongs to no resource."""
        return self._define(struct)

    def plain(self, component: str) -> str:
        """The component of a type without fields."""
        self.schemas[component] = _PLAIN[component]
        return component

    def _define(self, struct: str) -> str:
        name = self._names.of(struct)
        if name not in self.schemas:
            self.schemas[name] = {}  # reserved, for types that refer to themselves
            kind = self._names.kinds.get(name)
            extension = {GVK_EXTENSION: gvk_extension(kind)} if kind else {}
            self.schemas[name] = self._inline(TYPES.schema(struct)) | extension
        return name

    def _render(self, schema: Mapping[str, Any]) -> Schema:
        struct = _struct(schema)
        if struct is not None:
            return refer(self._define(struct), **_said_here(schema, TYPES.schema(struct)))
        plain = _plain(schema)
        return self._inline(schema) if plain is None else refer(self.plain(plain), **_said_here(schema, {}))

    def _inline(self, schema: Mapping[str, Any]) -> Schema:
        out = dict(schema)
        if "properties" in schema:
            out["properties"] = {name: self._render(each) for name, each in schema["properties"].items()}
        if "items" in schema:
            out["items"] = self._render(schema["items"])
        if isinstance(schema.get("additionalProperties"), Mapping):
            out["additionalProperties"] = self._render(schema["additionalProperties"])
        return out

    def _custom(self, schema: Mapping[str, Any]) -> Schema:
        described = "Name, labels and what else all objects have."
        metadata = refer(self.common("ObjectMeta"), description=described)
        properties = {**schema.get("properties", {}), **_type_meta(), "metadata": metadata}
        return {"type": "object", **schema, "properties": properties}


def _said_here(schema: Mapping[str, Any], own: Mapping[str, Any]) -> Schema:
    return {key: value for key, value in schema.items() if key not in _OF_THE_TYPE and own.get(key) != value}


def _plain(schema: Mapping[str, Any]) -> str | None:
    """The component of a scalar type that Kubernetes names: time, int-or-string, quantity."""
    match schema:
        case {"type": "string", "format": "date-time"}:
            return TIME
        case {"format": "int-or-string"}:
            return INT_OR_STRING
        case {"oneOf": _}:
            return QUANTITY
        case _:
            return None


def _type_meta() -> dict[str, Schema]:
    status = TYPES.schema("Status")["properties"]
    return {"apiVersion": status["apiVersion"], "kind": status["kind"]}
