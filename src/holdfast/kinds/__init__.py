"""The typed API of the systems that are operated, one module per API group.

`ALL` is every kind there is; `find` and `by_name` look one up; `decode` turns a
document into the typed object, or says what to write instead.

A group's module is imported when one of its kinds is first asked for, and its
schemas are computed when they are (`crds`): hundreds of types are declared here,
and a command that needs three of them should not wait for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from holdfast.kinds import checks
from holdfast.kinds.checks import DocumentError, InvalidDocument, UnknownKind
from holdfast.kinds.model import Kind, Resource
from holdfast.kinds.translations import Translation
from holdfast.meta.schemas.hints import Problem
from holdfast.meta.suggestions import nearest

__all__ = [
    "ALL",
    "DocumentError",
    "InvalidDocument",
    "Kind",
    "Problem",
    "Translation",
    "UnknownKind",
    "by_name",
    "conversion",
    "decode",
    "find",
    "translate",
]

_MODULES: Final = {
    "grove.io": ".grove",
    "scheduler.grove.io": ".grove_scheduler",
    "rustfs.com": ".rustfs",
    "infra.virtrigaud.io": ".virtrigaud",
    "cloudless.io": ".cloudless",
    "nvidia.com": ".nvidia",
}
"""The module that declares each API group, in the order in which groups are listed."""

_TRANSLATORS: Final = {"cloudless": ".cloudless.upstream", "cloudless.io": ".cloudless.upstream"}
"""The module that translates the documents of another API, by their API group."""

Convert = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""An object in another version."""

ALL: tuple[Kind, ...]
"""Every kind; served by ``__getattr__``, so that importing this package imports none of them."""


def __getattr__(name: str) -> Any:
    if name == "ALL":
        return _all()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find(api_version: str, kind: str) -> Kind | None:
    """The kind that an object's ``apiVersion`` and ``kind`` name."""
    group = api_version.partition("/")[0]
    versions = (version for known in _kinds_of(group) if known.name == kind for version in known.versions)
    return next((version for version in versions if version.api_version == api_version), None)


def by_name(name: str) -> Kind | None:
    """The kind that a person means by its name, plural, short name or CRD name, in any case."""
    wanted = name.lower()
    return next((known for known in _all() if wanted in _names(known)), None)


def decode(doc: Mapping[str, Any]) -> Resource:
    """``doc`` as the typed object of whichever kind it is; raises `DocumentError` if it cannot be."""
    if not isinstance(doc, Mapping):
        problem = f"a document must be a mapping, not {type(doc).__name__}"
        raise UnknownKind(Problem("$", problem, "begin with apiVersion:"))
    api_version, name = doc.get("apiVersion"), doc.get("kind")
    kind = find(str(api_version), str(name))
    if kind is None:
        raise UnknownKind(_not_found(api_version, name))
    return checks.decode(kind, doc)


def conversion(crd_name: str) -> Convert | None:
    """What converts the objects of a definition between its versions; None where they have one version alone."""
    plural, _, group = crd_name.partition(".")
    kind = next((known for known in _kinds_of(group) if known.plural == plural), None)
    return None if kind is None or kind.older is None else kind.older.conversion.convert


def translate(doc: Any) -> Translation | None:
    """A document of another API as one of a kind; None if it needs no translation, `DocumentError` if there is none."""
    group = str(doc.get("apiVersion")).partition("/")[0] if isinstance(doc, Mapping) else ""
    if group not in _TRANSLATORS:
        return None
    translated: Translation | None = import_module(_TRANSLATORS[group], __name__).translate(doc)
    return translated


@cache
def _all() -> tuple[Kind, ...]:
    return tuple(kind for group in _MODULES for kind in _kinds_of(group))


def _kinds_of(group: str) -> tuple[Kind, ...]:
    if group not in _MODULES:
        return ()
    kinds: tuple[Kind, ...] = import_module(_MODULES[group], __name__).KINDS
    return kinds


def _names(kind: Kind) -> set[str]:
    return {kind.name.lower(), kind.plural, kind.crd_name, *kind.short_names}


def _not_found(api_version: object, name: object) -> Problem:
    """Why there is no such kind: the version is wrong if the name is right, else the name is."""
    known = [kind.name for kind in _all()]
    if not isinstance(name, str):
        return Problem("kind", "is required", f"write one of {', '.join(known)}")
    versions = " or ".join(kind.api_version for kind in _all() if kind.name == name)
    if not versions:
        meant = by_name(name)
        suggestion = meant.name if meant is not None else nearest(name, known)
        hint = f"known kinds: {', '.join(known)}" if suggestion is None else f"write {suggestion}"
        return Problem("kind", f"{name!r} is not a known kind", hint)
    if not isinstance(api_version, str):
        return Problem("apiVersion", "is required", f"write {versions}")
    if "." not in api_version.partition("/")[0]:
        return Problem("apiVersion", f"{api_version!r}: a Kubernetes API group needs a dot", f"write {versions}")
    return Problem("apiVersion", f"{name} is not in {api_version}", f"write {versions}")
