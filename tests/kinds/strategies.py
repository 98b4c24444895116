"""Documents that a definition's schema accepts, drawn by hypothesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import Kind

Schema = Mapping[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

WORDS = (
    "a", "ab-c", "A", "25%", "30s", "1.2.3", "/mnt/data", "10Gi", "10", "a.example.com", "a1b2", "10.0.0.1",
    "10.0.0.0/24", "52:54:00:12:34:56", "https://a.example.com/x", "https://a.example.com/x.ova", "s3://a/b", "tcp:80",
    "@daily", "vmbr0", "02:00",
)  # fmt: skip
"""One of these has the form that any pattern asks for."""

TIMES = ("2026-01-31T12:00:00Z", "1999-12-31T23:59:59+01:00")
ODD = "µ \n\"'"
FREE = {"free": [None, {"form": 1}], "a.b/c": ""}
"""What stands where a schema leaves the fields to someone else."""
EMBEDDED = {"apiVersion": "v1", "kind": "Any"}

_schema_of = cache(schema_of)


@st.composite
def documents(draw: Draw, kind: Kind, *, most: int | None = None) -> dict[str, Any]:
    """Objects of ``kind`` that its schema accepts, with all optional fields or at most so many in each object."""
    body = _Drawing(draw, most).object(_schema_of(kind.model))
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}


@dataclass(frozen=True)
class _Drawing:
    draw: Draw
    most: int | None

    def value(self, schema: Schema) -> Any:
        if "enum" in schema:
            return self.one_of(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self.word(schema) if self.one_of([True, False]) else self.integer(schema)
        match schema.get("type"):
            case "object":
                return self.object(schema)
            case "array":
                return self.array(schema)
            case "string":
                return self.word(schema)
            case "boolean":
                return self.one_of([True, False])
            case "integer":
                return self.integer(schema)
            case "number":
                return self.one_of([0.5, 1.0, 2.25]) + schema.get("minimum", 0)
        return self.one_of([1, "a", FREE])

    def object(self, schema: Schema) -> dict[str, Any]:
        if "additionalProperties" in schema:
            keys = self.some_of(["a", "b.c/d", "e f"], least=schema.get("minProperties", 0), most=2)
            return {key: self.value(schema["additionalProperties"]) for key in keys}
        free = FREE if schema.get("x-kubernetes-preserve-unknown-fields") else {}
        embedded = EMBEDDED if schema.get("x-kubernetes-embedded-resource") else {}
        properties, required = schema.get("properties", {}), schema.get("required", ())
        optional = [name for name in properties if name not in required]
        chosen = optional if self.most is None else self.some_of(optional, most=self.most)
        named = {name: self.value(properties[name]) for name in properties if name in required or name in chosen}
        return {**free, **embedded, **named}

    def array(self, schema: Schema) -> list[Any]:
        least = schema.get("minItems", 0 if self.most is not None else 1)
        items = [self.value(schema["items"]) for _ in range(self.one_of([least, least + 1]))]
        match schema.get("x-kubernetes-list-type"):
            case "set":
                return list(dict.fromkeys(items))
            case "map":
                return list({_identity(schema, item): item for item in items}.values())
        return items

    def integer(self, schema: Schema) -> int:
        least = schema.get("minimum", -1)
        return int(self.one_of([least, least + 1, schema.get("maximum", 2**31 - 1)]))

    def word(self, schema: Schema) -> str:
        if schema.get("format") == "date-time":
            return str(self.one_of(TIMES))
        return str(self.one_of(_fitting(schema.get("pattern"), schema.get("minLength"), schema.get("maxLength"))))

    def one_of(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def some_of(self, choices: Sequence[str], *, least: int = 0, most: int) -> list[str]:
        return (
            list(self.draw(st.lists(st.sampled_from(choices), min_size=least, max_size=most, unique=True)))
            if choices
            else []
        )


def _identity(schema: Schema, item: Mapping[str, Any]) -> tuple[Any, ...]:
    fields = schema["items"]["properties"]
    return tuple(item.get(key, fields[key].get("default")) for key in schema["x-kubernetes-list-map-keys"])


@cache
def _fitting(pattern: str | None, least: int | None, most: int | None) -> list[str]:
    words = ("", *WORDS, ODD) if pattern is None else ("", *WORDS)
    found = [
        word
        for word in words
        if (pattern is None or re.search(pattern, word)) and (least or 0) <= len(word) <= (most or len(word))
    ]
    assert found, f"no word has the form {pattern}; add one"
    return found
