"""Discovery: which resources a server has, and which of them a name means.

`discover` asks: for everything in two answers where the server can, else group by
group as all servers can.  What it finds is a value, and names are read in it as
kubectl reads them.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec

from holdfast.client.protocols import Unreachable
from holdfast.client.resources import Resource
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.exchange import JSON, Request, Response
from holdfast.meta.objects import GVK

_AGGREGATED: Final = "APIGroupDiscoveryList"
_ACCEPT: Final = ",".join(
    [*(f"{JSON};g=apidiscovery.k8s.io;v={version};as={_AGGREGATED}" for version in ("v2", "v2beta1")), JSON]
)


class UnknownResource(LookupError):
    """A name that no resource of the server has; the message may know a better one."""


@dataclass(frozen=True, slots=True)
class Served:
    """A resource as a server has it."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """By what it can be called, short names apart."""
        return self.resource.plural, self.singular or self.resource.kind.lower(), self.resource.kind.lower()


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything a server has: groups in its order, Kubernetes' own before others, preferred versions first."""

    served: tuple[Served, ...]
    missing: tuple[str, ...] = ()
    """Groups and versions that could not be asked about, because their server does not answer."""

    def preferred(self) -> tuple[Served, ...]:
        """Each resource once, in the version that the server prefers."""
        first: dict[str, Served] = {}
        for each in self.served:
            first.setdefault(each.resource.group_resource, each)
        return tuple(first.values())

    def in_category(self, category: str) -> tuple[Served, ...]:
        """What a category such as ``all`` stands for."""
        return tuple(each for each in self.preferred() if category in each.categories)

    def kind(self, gvk: GVK) -> Served:
        """The resource of the kind that a manifest names."""
        for each in self.served:
            if each.resource.gvk == gvk:
                return each
        raise UnknownResource(f"the server has no {gvk}{self._hint(gvk.kind.lower(), dots=False)}")

    def find(self, name: str) -> Served:
        """The resource that a name means: ``pods``, ``po``, ``Pod``, ``deployments.apps``, ``deployments.v1.apps``.

        Where several have the name, the first one counts: full names before short ones, and groups in the
        server's order.  Part of a group is enough.
        """
        wanted = name.lower()
        bare, _, rest = wanted.partition(".")
        version, dot, group = rest.partition(".")
        found = _first(each for each in self._called(bare) if dot and _is_in(each, group, version))
        found = found or _first(each for each in self._called(bare) if not rest or _is_in(each, rest))
        found = found or _first(each for each in self._called(bare) if rest and each.resource.group.startswith(rest))
        if found is None:
            raise UnknownResource(f"the server has no resource {name!r}{self._hint(wanted)}")
        return found

    def _called(self, name: str) -> Iterator[Served]:
        yield from (each for each in self.served if each.resource.plural == name)
        yield from (each for each in self.served if name in each.short_names)
        yield from (each for each in self.served if name in each.names)

    def _hint(self, name: str, *, dots: bool = True) -> str:
        known: dict[str, str] = {}
        for each in self.served:
            for called in (*each.names, *each.short_names, *((each.resource.group_resource,) if dots else ())):
                known.setdefault(called, each.resource.group_resource)
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        if close:
            return f"; did you mean {known[close[0]]}?"
        away = f" ({', '.join(self.missing)} could not be asked about)" if self.missing else ""
        return f"; if it is of a kind of your own, create its CustomResourceDefinition first{away}"


T = TypeVar("T")


def _first(found: Iterable[T]) -> T | None:
    return next(iter(found), None)


def _is_in(each: Served, group: str, version: str = "") -> bool:
    return each.resource.group == group and (not version or each.resource.version == version)


# Asking.


class Asking(Protocol):
    """Sends a request as it is: any `protocols.Client`."""

    async def raw(self, request: Request) -> Response: ...


async def discover(client: Asking) -> Discovery:
    """Everything the server has."""
    answers = [await _ask(client, path, accept=_ACCEPT) for path in ("/api", "/apis")]
    if all(answer.get("kind") == _AGGREGATED for answer in answers if answer):
        groups = [group for answer in answers for group in _read(answer, _GroupDiscoveryList).items]
        return Discovery(
            tuple(served for group in groups for served in group.served()),
            tuple(missing for group in groups for missing in group.missing()),
        )
    return await _legacy(client, *answers)


async def _legacy(client: Asking, core: dict[str, Any], groups: dict[str, Any]) -> Discovery:
    """The same, a document for each group and version."""
    named = [("", version) for version in _read(core, _Versions).versions]
    named += [(group.name, version) for group in _read(groups, _GroupList).groups for version in group.ordered()]
    answers = await asyncio.gather(*(_resources(client, *each) for each in named))
    served = tuple(each for found in answers for each in found or ())
    missing = tuple(_joined(*each) for each, found in zip(named, answers, strict=True) if found is None)
    return Discovery(served, missing)


async def _resources(client: Asking, group: str, version: str) -> list[Served] | None:
    """The resources of one version; None if its server does not answer, which must not hide all others."""
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        listed = _read(await _ask(client, path, accept=JSON), _ResourceList)
    except StatusError:
        return None
    parts: dict[str, set[str]] = {}
    for each in listed.resources:
        whole, slash, part = each.name.partition("/")
        if slash:
            parts.setdefault(whole, set()).add(part)
    return [
        each.served(group, version, parts.get(each.name, set())) for each in listed.resources if "/" not in each.name
    ]


async def _ask(client: Asking, path: str, *, accept: str) -> dict[str, Any]:
    try:
        response = await client.raw(Request("GET", path, headers={"accept": accept}))
    except NotFound:
        return {}  # a server without a core, or without groups
    try:
        return msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.DecodeError:
        raise Unreachable(f"what is at {path} is not JSON; is this a Kubernetes API?") from None


def _read(answer: dict[str, Any], type: type[T]) -> T:
    try:
        return msgspec.convert(_dense(answer), type)
    except msgspec.ValidationError as error:
        raise Unreachable(f"the server's discovery cannot be read: {error}") from None


def _dense(value: Any) -> Any:
    """A value without nulls: Go writes them where a list is empty."""
    if isinstance(value, dict):
        return {name: _dense(each) for name, each in value.items() if each is not None}
    return [_dense(each) for each in value] if isinstance(value, list) else value


def _joined(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


# The wire types.


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Part(msgspec.Struct):
    subresource: str


class _ResourceDiscovery(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: list[str] = []
    short_names: list[str] = []
    categories: list[str] = []
    subresources: list[_Part] = []

    def served(self, group: str, version: str) -> Served:
        kind = self.response_kind or _Kind()
        return Served(
            Resource(group, version, self.resource, kind.kind, self.scope == "Namespaced"),
            self.singular_resource,
            tuple(self.short_names),
            tuple(self.categories),
            frozenset(self.verbs),
            frozenset(part.subresource for part in self.subresources),
        )


class _VersionDiscovery(msgspec.Struct):
    version: str
    resources: list[_ResourceDiscovery] = []
    freshness: str = "Current"


class _Name(msgspec.Struct):
    name: str = ""


class _GroupDiscovery(msgspec.Struct):
    metadata: _Name
    versions: list[_VersionDiscovery] = []

    def served(self) -> Iterator[Served]:
        for version in self.versions:
            yield from (each.served(self.metadata.name, version.version) for each in version.resources)

    def missing(self) -> Iterator[str]:
        for version in self.versions:
            if version.freshness == "Stale" and not version.resources:
                yield _joined(self.metadata.name, version.version)


class _GroupDiscoveryList(msgspec.Struct):
    items: list[_GroupDiscovery] = []


class _Versions(msgspec.Struct):
    versions: list[str] = []


class _GroupVersion(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_GroupVersion] = []
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)

    def ordered(self) -> list[str]:
        """Its versions, the preferred one first."""
        versions = [each.version for each in self.versions]
        return sorted(versions, key=lambda version: version != self.preferred_version.version)


class _GroupList(msgspec.Struct):
    groups: list[_Group] = []


class _ListedResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular_name: str = ""
    verbs: list[str] = []
    short_names: list[str] = []
    categories: list[str] = []

    def served(self, group: str, version: str, parts: Iterable[str]) -> Served:
        return Served(
            Resource(group, version, self.name, self.kind, self.namespaced),
            self.singular_name,
            tuple(self.short_names),
            tuple(self.categories),
            frozenset(self.verbs),
            frozenset(parts),
        )


class _ResourceList(msgspec.Struct):
    resources: list[_ListedResource] = []
