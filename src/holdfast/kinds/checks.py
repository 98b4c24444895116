"""Whether an API server would accept a document, without asking one.

A document is what a YAML or JSON reader returns: plain dicts, lists and
scalars.  It is checked against the schema of its kind's CRD, so that what is
accepted here is accepted by a cluster; only CEL rules are left to the server.
Problems are reported to the author of the document, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import Duration, IntOrPercent, Kind, ObjectMeta, Quantity, Resource
from holdfast.meta.schemas import hints, walk
from holdfast.meta.schemas.hints import Problem


def _pattern_of(annotated: Any) -> str:
    """The pattern of an annotated string, also where it is one member of a union."""
    for candidate in (annotated, *getattr(annotated, "__args__", ())):
        for note in getattr(candidate, "__metadata__", ()):
            if note.pattern is not None:
                return str(note.pattern)
    raise LookupError(annotated)


_EXAMPLES: Final = {
    _pattern_of(Duration): "write a duration such as 30s, 5m or 1h30m",
    _pattern_of(IntOrPercent): "write a count such as 2 or a percentage such as 25%",
    _pattern_of(Quantity): "write an amount such as 2, 500m or 1Gi",
}


class DocumentError(ValueError):
    """A document that cannot be read as an object; its text lists the problems and what to write instead."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class UnknownKind(DocumentError):
    """The document is of an unknown kind."""


class InvalidDocument(DocumentError):
    """The document is of a known kind, and breaks the schema of that kind."""


def problems(kind: Kind, doc: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Everything that is wrong with ``doc`` as an object of ``kind``, in document order."""
    return (*_type_meta(kind, doc), *hints.problems(_schema(kind), doc, examples=_EXAMPLES))


def decode(kind: Kind, doc: Mapping[str, Any]) -> Resource:
    """``doc`` as a typed object; raises `InvalidDocument` with all of its problems."""
    found = problems(kind, doc)
    if not found:
        plain = walk.copied(doc)
        _schema(kind).drop_nulls(plain)
        try:
            return msgspec.convert(plain, kind.model)
        except msgspec.ValidationError as error:
            # The schema comes from the type, so this means that the two disagree on this document.
            found = (Problem("$", str(error)),)
    raise InvalidDocument(*found)


def defaulted(kind: Kind, doc: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``doc`` as an API server would store it: nulls dropped, defaults written."""
    filled: dict[str, Any] = walk.copied(doc)
    _schema(kind).default(filled)
    return filled


def _type_meta(kind: Kind, doc: Mapping[str, Any]) -> Iterator[Problem]:
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
        if doc.get(field) != expected:
            yield Problem(field, f"must be {expected}, not {doc.get(field)!r}")
    metadata = doc.get("metadata")
    if isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName")):
        yield Problem("metadata.name", "is required", "give the object a name, or a generateName")


@cache
def _schema(kind: Kind) -> walk.Schema:
    """The CRD's schema with metadata spelled out: a CRD must leave that to the server, and authors misspell it too."""
    schema = schema_of(kind.model)
    whole = {
        **schema,
        "properties": {**schema["properties"], "metadata": schema_of(ObjectMeta)},
        "required": ["metadata", *schema.get("required", ())],
    }
    return walk.compile(whole, resource=False)
