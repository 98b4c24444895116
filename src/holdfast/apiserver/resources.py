"""Resource types: what the server knows about a kind, built in or defined by a CustomResourceDefinition.

A built-in kind and a custom one are the same value: an OpenAPI schema, a few pure functions, and table columns.  The
verbs work on these values alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from holdfast.meta.errors import FieldError
from holdfast.meta.objects import GVK

Object = dict[str, Any]
"""A decoded object; a function that changes it owns it."""

Verb = Literal["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
ALL_METADATA: Final = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
"""The metadata fields that clients own."""

ALL_VERBS: tuple[Verb, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the kind's table.  `value` is a JSONPath, or a function of the object and the time."""

    name: str
    value: str | Callable[[Object, float], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The paths of the scale subresource, such as ``.spec.replicas``."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str | None = None
    selector_form: Literal["text", "object", "labels"] = "text"
    """What is at the path of the selector: its text, a LabelSelector, or the labels alone."""


def nothing(obj: Object) -> None:
    """The `default` of a kind without one."""


def no_problems(obj: Object, old: Object | None) -> list[FieldError]:
    """The `validate` of a kind without one."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """One resource in one version.

    schema        OpenAPI v3 schema of the whole object, with Kubernetes' extensions
                  (list types and map keys, patch merge keys, int-or-string, ...)
    prune         unknown fields are dropped (custom kinds); else they are kept as they are
    settle        brings the fields into the form in which they are stored, each by itself; owns its argument
    default       fills in what the schema cannot say; owns its argument
    validate      problems beyond the schema; `old` is None on create
    on_create / on_update   server-owned changes before validation (clear status, allocate,
                  keep immutables); own their first argument
    on_delete     changes of a deletion before finalizers are considered; owns its argument
    fields        extra field selectors: dotted paths beside metadata.name and metadata.namespace
    field_values  those of them that are computed
    stored_key    the key of another type, if objects are stored as that type
    to_stored, from_stored   conversion between this version and the stored one, where they differ
    convert       conversion of objects to the version that an apiVersion names, where it takes time
    created_by_update   an update creates a missing object
    unconditional       an update may leave out the resourceVersion
    keeps_status  the status of a new object is kept
    dependents    the default propagation of a deletion; "none": the kind has no dependents
    terminating   its definition is being deleted: objects cannot be created
    status_leaves metadata fields that a write of the status does not change
    status        has a status subresource (so spec writes ignore status and the other way round)
    generation    metadata.generation counts changes of everything but metadata and status
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool = True
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[Verb, ...] = ALL_VERBS
    status: bool = False
    scale: Scale | None = None
    subresources: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    prune: bool = False
    custom: bool = False
    generation: bool = True
    columns: tuple[Column, ...] = ()
    fields: tuple[str, ...] = ()
    settle: Callable[[Object], None] = nothing
    default: Callable[[Object], None] = nothing
    validate: Callable[[Object, Object | None], list[FieldError]] = no_problems
    on_create: Callable[[Object], None] = nothing
    on_update: Callable[[Object, Object], None] = lambda obj, old: None
    on_delete: Callable[[Object, datetime], None] | None = None
    storage_version: str = ""
    stored_key: str = ""
    to_stored: Callable[[Object], Object] | None = None
    from_stored: Callable[[Object], Object] | None = None
    convert: Callable[[Sequence[Object], str], Awaitable[list[Object]]] | None = None
    field_values: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    created_by_update: bool = False
    unconditional: bool = True
    keeps_status: bool = False
    status_leaves: tuple[str, ...] = ()
    dependents: Literal["delete", "orphan", "none"] = "delete"
    terminating: bool = False
    deprecation: str = ""
    # What follows from the others, and is asked for in every request.
    key: str = field(init=False)
    """The key of its objects in the store, the same for all versions."""
    gvk: GVK = field(init=False)
    api_version: str = field(init=False)
    head: bytes = field(init=False)
    """How the bytes of each of its objects begin."""

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        for name, value in (
            ("key", self.stored_key or f"{self.group}/{self.plural}"),
            ("gvk", GVK(self.group, self.version, self.kind)),
            ("api_version", api_version),
            ("head", f'{{"kind":"{self.kind}","apiVersion":"{api_version}",'.encode()),
        ):
            object.__setattr__(self, name, value)

    @property
    def group_resource(self) -> str:
        """The name in errors: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def parts(self) -> frozenset[str]:
        """All its subresources."""
        parts = (*self.subresources, *(("status",) if self.status else ()), *(("scale",) if self.scale else ()))
        return frozenset(parts)


class Registry:
    """The resource types that are served now."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._by_path: dict[tuple[str, str, str], ResourceType] = {}
        self._versions: frozenset[tuple[str, str]] = frozenset()
        self.revision = 0
        """Grows with every change; discovery and OpenAPI are cached until then."""
        for each in types:
            self.add(each)

    def add(self, each: ResourceType) -> None:
        self._by_path[each.group, each.version, each.plural] = each
        self._changed()

    def remove(self, group: str, plural: str) -> None:
        for path in [path for path in self._by_path if path[0] == group and path[2] == plural]:
            del self._by_path[path]
        self._changed()

    def _changed(self) -> None:
        # Kept as a set, because every request looks up whether its version is served.
        self._versions = frozenset((group, version) for group, version, _ in self._by_path)
        self.revision += 1

    def get(self, group: str, version: str, plural: str) -> ResourceType | None:
        return self._by_path.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Whether anything of a group is served in a version."""
        return (group, version) in self._versions

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._by_path.values())
