"""Paths to fields: as definitions write them (``.spec.size``, ``.spec['a.b']``), and as messages do (``spec.size``).

They name one field.  kubectl's JSONPath, which reads values out of objects, is another language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holdfast.meta.errors import MalformedError

_STEP: Final = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PathError(MalformedError):
    """A path that cannot be read, or that leads nowhere."""


def steps(path: str, *, brackets: bool = True) -> tuple[str, ...]:
    """The names that a path goes through; `brackets` allows ``['name']``."""
    found: list[str] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise PathError(f"expected [ or . but got: {path[at:]}")
        dotted, quoted = match.groups()
        if quoted is not None and not brackets:
            raise PathError("array notation is not allowed")
        found.append(dotted if dotted is not None else _unescaped(quoted))
        at = match.end()
    return tuple(found)


def find(schema: Mapping[str, Any], path: str, *, brackets: bool = True) -> tuple[str, Mapping[str, Any]]:
    """The field that a path leads to, as errors name it (``spec.map[key]``), and its schema."""
    name = ""
    for step in steps(path, brackets=brackets):
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if properties and step in properties:
            name, schema = f"{name}.{step}", properties[step]
        elif not properties and isinstance(additional, Mapping):
            name, schema = f"{name}[{step}]", additional
        else:
            raise PathError("does not refer to a valid field")
    return name.removeprefix("."), schema


def child(path: str, step: str | int) -> str:
    """The path of a field, map entry or list item, as messages write it; keys with dots or slashes are bracketed."""
    if isinstance(step, int) or not _PLAIN_KEY.fullmatch(step):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _CONTROLS.get(match[1], match[1]), text)
