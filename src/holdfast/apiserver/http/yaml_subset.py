"""YAML bodies: the part of YAML that has a meaning in JSON, read in one pass over the events of the parser.

Plain scalars are read as Kubernetes reads them: ``yes`` and ``on`` are booleans, ``0644`` is octal, times are text.
Keys are text: a key that is a number or a boolean is written as one.  Not read are merge keys (``<<``), tags other than
those of JSON values, ``%TAG`` directives, and numbers that JSON cannot write (``.inf``, ``.nan``).  The time is linear
in the size of the body, and what aliases stand for is bounded.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

MAX_BYTES: Final = 1024 * 1024
"""The largest YAML body.  JSON takes a thirtieth of the time, so larger objects are sent as JSON."""

MAX_NODES: Final = 200_000
"""The most values that the aliases of a body may stand for."""

MAX_DEPTH: Final = 200
"""How deep a body may nest."""

_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_NAMED: Final[dict[str, bool | None]] = (
    dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False) | dict.fromkeys(_NULL, None)
)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0([0-7_]+)|(0|[1-9][0-9_]*))")
_BASES: Final = (2, 16, 8, 10)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_IN_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_INTEGER: Final = 64 + 2
"""The characters of the longest integer that can fit into 64 bits, in base 2."""

_TAG_DIRECTIVE: Final = re.compile(r"(?:^|[\r\n\x85\u2028\u2029])\ufeff?%TAG")
_STANDARD: Final = "tag:yaml.org,2002:"
_COLLECTIONS: Final = (None, "!", f"{_STANDARD}map", f"{_STANDARD}seq")


class _Missing:
    """Stands for a key that is not read yet."""


_MISSING: Final = _Missing()


def read(body: bytes) -> Any:
    """The value of a YAML document; raises ValueError with a reason."""
    if len(body) > MAX_BYTES:
        raise ValueError(f"a YAML body may have {MAX_BYTES} bytes, this one has {len(body)}; send it as JSON")
    try:
        text = body.decode()
        if _TAG_DIRECTIVE.search(text):
            raise ValueError("%TAG directives are not supported; remove them")
        return _Reader(text).document()
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


class _Reader:
    """Builds the value of one document from the events of the parser."""

    def __init__(self, text: str) -> None:
        self._parser = yaml.CSafeLoader(text)
        self._anchors: dict[str, Any] = {}
        self._aliased = 0

    def document(self) -> Any:
        event = self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        value = self._value()
        event = self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise ValueError("expected a single document in the stream")
        return value

    def _next(self) -> Any:
        return self._parser.get_event()

    def _value(self) -> Any:
        """The next node with everything in it, without recursion: nesting is bounded by `MAX_DEPTH` alone."""
        containers: list[Any] = []
        keys: list[str | _Missing] = []
        anchors: list[str | None] = []
        while True:
            event = self._next()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value = _scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = value
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if event.tag not in _COLLECTIONS:
                    raise _unsupported(event.tag)
                if len(containers) >= MAX_DEPTH:
                    raise ValueError("exceeded max depth")
                containers.append({} if kind is yaml.MappingStartEvent else [])
                keys.append(_MISSING)
                anchors.append(event.anchor)
                if event.anchor is not None:
                    self._anchors.pop(event.anchor, None)
                continue
            elif kind is yaml.AliasEvent:
                if event.anchor not in self._anchors:
                    raise ValueError(f"aliases must follow their anchor: *{event.anchor} does not")
                value = self._copied(self._anchors[event.anchor], MAX_DEPTH - len(containers))
            else:  # the end of a collection
                value = containers.pop()
                keys.pop()
                anchor = anchors.pop()
                if anchor is not None:
                    self._anchors[anchor] = value
            if not containers:
                return value
            inside = containers[-1]
            if type(inside) is list:
                inside.append(value)
            elif keys[-1] is _MISSING:
                keys[-1] = _key(value, plain=kind is yaml.ScalarEvent and event.implicit[0])
            else:
                inside[keys[-1]] = value
                keys[-1] = _MISSING

    def _copied(self, value: Any, depth: int) -> Any:
        """A copy for an alias, because values are changed in place later."""
        self._aliased += 1
        if self._aliased > MAX_NODES:
            raise ValueError(f"aliases expand to more than {MAX_NODES:,} values")
        if depth < 0:
            raise ValueError("exceeded max depth")
        if type(value) is dict:
            return {key: self._copied(item, depth - 1) for key, item in value.items()}
        return [self._copied(item, depth - 1) for item in value] if type(value) is list else value


def _key(value: Any, *, plain: bool) -> str:
    if plain and value == "<<":
        raise ValueError("merge keys (<<) are not supported; write the fields out")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    shown = "null" if value is None else "a list" if isinstance(value, list) else "an object"
    raise ValueError(f"unsupported map key: {shown}; write a string")


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag is not None:
        if event.tag in ("!", f"{_STANDARD}str"):
            return text
        if event.tag not in (f"{_STANDARD}{name}" for name in ("null", "bool", "int", "float")):
            raise _unsupported(event.tag)
        value = _plain(text)
        if isinstance(value, str):
            raise ValueError(f"cannot read {text[:40]!r} as {event.tag.rpartition(':')[2]}")
        return value
    return _plain(text) if event.implicit[0] else text


def _plain(text: str) -> Any:
    """A plain scalar as Kubernetes reads it."""
    if text in _NAMED:
        return _NAMED[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if len(text) <= _LONGEST_INTEGER and (found := _INTEGER.fullmatch(text)):
        sign, *digits = found.groups()
        base, written = next((base, each) for base, each in zip(_BASES, digits, strict=True) if each is not None)
        written = written.replace("_", "")
        if not written:
            return text
        number = int(f"{sign}{written}", base)
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(text):
        approximate = float(text)
        return approximate if math.isfinite(approximate) else text
    if _NOT_IN_JSON.fullmatch(text):
        raise ValueError(f"unsupported value {text}: JSON has no such number")
    return text


def _unsupported(tag: str) -> ValueError:
    return ValueError(f"the tag {tag[:80]!r} is not supported; remove it")
