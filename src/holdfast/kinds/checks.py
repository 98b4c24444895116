"""Whether a document would be accepted, told without an API server.

A document is what a YAML or JSON reader returns: plain dicts, lists and
scalars.  It is judged by the schema of its kind's CRD, so that what is accepted
here is accepted by a cluster; CEL rules alone are left to the server.  Errors
are for the person who wrote the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from holdfast.kinds import values
from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import Kind, ObjectMeta, Resource
from holdfast.kinds.values import Problem


class DocumentError(ValueError):
    """A document that cannot be taken, and why; its text says what to write instead."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class UnknownKind(DocumentError):
    """The document is of no kind that is known here."""


class InvalidDocument(DocumentError):
    """The document is of a known kind, and not as the kind must be."""


def problems(kind: Kind, doc: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Everything that is wrong with ``doc`` as an object of ``kind``, in document order."""
    return (*_type_meta(kind, doc), *values.problems(_schema(kind), doc))


def decode(kind: Kind, doc: Mapping[str, Any]) -> Resource:
    """``doc`` as a typed object; raises `InvalidDocument` with all of its problems."""
    found = problems(kind, doc)
    if not found:
        try:
            return msgspec.convert(values.without_nulls(_schema(kind), doc), kind.model)
        except msgspec.ValidationError as error:
            # The schema comes from the type, so this means that the two disagree on this document.
            found = (Problem("$", str(error)),)
    raise InvalidDocument(*found)


def defaulted(kind: Kind, doc: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``doc`` as an API server would store it: nulls dropped, defaults written."""
    schema = _schema(kind)
    filled: dict[str, Any] = values.defaulted(schema, values.without_nulls(schema, doc))
    return filled


def _type_meta(kind: Kind, doc: Mapping[str, Any]) -> Iterator[Problem]:
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.name)):
        if doc.get(field) != expected:
            yield Problem(field, f"must be {expected}, not {doc.get(field)!r}")
    metadata = doc.get("metadata")
    if isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName")):
        yield Problem("metadata.name", "is required", "give the object a name, or a generateName")


@cache
def _schema(kind: Kind) -> dict[str, Any]:
    """The CRD's schema with metadata spelled out, which a CRD must not do and a person still gets wrong."""
    schema = schema_of(kind.model)
    return {
        **schema,
        "properties": {**schema["properties"], "metadata": schema_of(ObjectMeta)},
        "required": ["metadata", *schema.get("required", ())],
    }
