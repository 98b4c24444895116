"""Definitions of kinds on a server: ours, absent, or another project's, and what the latter would drop.

Pure.  A definition is Holdfast's if it has the annotation `HASH`; every other one belongs to the project that
installed it and is not written, unless the user says so.  Another project's definition serves us as well, if it
keeps every field that our controllers persist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from holdfast.kinds import crds
from holdfast.kinds.model import Kind
from holdfast.meta import hashing

HASH: Final = "holdfast.dev/definition-hash"
"""The annotation that says which definition was installed, so that the same one is not written again."""

_OPEN: Final = "x-kubernetes-preserve-unknown-fields"

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A kind whose definition on the server is another project's, and the fields that it would drop."""

    kind: Kind
    manager: str
    dropped: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.dropped) - _SHOWN} more" if len(self.dropped) > _SHOWN else ""
        return (
            f"the definition {self.kind.crd_name} on this server is not Holdfast's (it was written by {self.manager}) "
            f"and would drop {', '.join(self.dropped[:_SHOWN])}{more}, which Holdfast persists; "
            "replace it with --adopt-crds, or operate other kinds only with --controllers"
        )


def marked(
    kind: Kind,
    *,
    conversion: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Our definition of a kind, with the annotation that says so; `conversion` says how versions are converted.

    The hash does not have how a webhook is reached: that depends on the installation, and is compared by itself.
    """
    definition = crds.crd_of(kind, conversion=conversion)
    spec = definition["spec"]
    if "webhook" in spec.get("conversion", {}):
        spec = {**spec, "conversion": {"strategy": spec["conversion"]["strategy"]}}
    added = annotations if "conversion" in spec else {}
    marks = {HASH: hashing.canonical_hash({**definition, "spec": spec}), **added}
    return {**definition, "metadata": {**definition["metadata"], "annotations": marks}}


def is_ours(installed: Mapping[str, Any]) -> bool:
    return HASH in _annotations(installed)


def is_current(installed: Mapping[str, Any], definition: Mapping[str, Any]) -> bool:
    """Whether an installed definition is the same as ours; of what another client added, nothing is compared."""
    wanted = definition["spec"].get("conversion", {})
    there = (installed.get("spec") or {}).get("conversion") or {}
    return _has(_annotations(installed), _annotations(definition)) and _has(there, wanted)


def no_longer_served(installed: Mapping[str, Any], definition: Mapping[str, Any]) -> list[str]:
    """The versions that a definition on the server serves, and the one that replaces it does not."""
    kept = _served(definition)
    return [version for version in _served(installed) if version not in kept]


def _served(definition: Mapping[str, Any]) -> list[str]:
    return [each["name"] for each in (definition.get("spec") or {}).get("versions") or () if each.get("served")]


def _has(there: Any, wanted: Any) -> bool:
    """Whether a value has at least the fields of another one."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_has(there.get(name), value) for name, value in wanted.items())
    return bool(there == wanted)


def _annotations(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    return (definition.get("metadata") or {}).get("annotations") or {}


def foreign(kind: Kind, installed: Mapping[str, Any], *, created: bool) -> Foreign:
    """What another project's definition of a kind would drop.

    Of every kind our controllers persist the status; where they create its objects, the spec as well.
    """
    managers = (installed.get("metadata") or {}).get("managedFields") or ()
    manager = next((each["manager"] for each in managers if each.get("manager")), "another client")
    parts = ("spec", "status") if created else ("status",)
    return Foreign(kind=kind, manager=manager, dropped=tuple(_dropped(kind, installed, parts)))


def _dropped(kind: Kind, installed: Mapping[str, Any], parts: Collection[str]) -> Iterator[str]:
    versions = (installed.get("spec") or {}).get("versions") or ()
    version = next((each for each in versions if each.get("name") == kind.version and each.get("served")), None)
    if version is None:
        yield f"the version {kind.version}"
        return
    theirs = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    ours = crds.schema_of(kind.model)
    if "status" in ours["properties"] and "status" not in (version.get("subresources") or {}):
        yield "the subresource status"
    for part in parts:
        if part in ours["properties"]:
            yield from _missing(ours["properties"][part], (theirs.get("properties") or {}).get(part), part)


def _missing(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    """The paths that one schema has and another one would drop."""
    if theirs is None:
        yield path
        return
    if theirs.get(_OPEN):
        return
    wanted = ours.get("properties") or {}
    known = theirs.get("properties") or {}
    values = theirs.get("additionalProperties")
    for name, schema in wanted.items():
        if name in known or not values:
            yield from _missing(schema, known.get(name), f"{path}.{name}")
    if isinstance(ours.get("items"), Mapping):
        yield from _missing(ours["items"], theirs.get("items"), f"{path}[]")
    if isinstance(ours.get("additionalProperties"), Mapping) and not isinstance(values, bool):
        yield from _missing(ours["additionalProperties"], values, f"{path}.*")
