"""Secrets, whose content is not shown when it is printed."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping

import msgspec

from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import View


class Sealed:
    """The content of a Secret."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, bytes] | None = None) -> None:
        self._data = dict(data or {})

    def get(self, key: str) -> bytes | None:
        return self._data.get(key)

    def first(self, keys: Iterable[str]) -> bytes | None:
        """The value of the first of these keys that it has."""
        return next((self._data[key] for key in keys if key in self._data), None)

    def items(self) -> Mapping[str, bytes]:
        return dict(self._data)

    def __bool__(self) -> bool:
        return bool(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and self._data == other._data

    def __hash__(self) -> int:
        return hash(frozenset(self._data))

    def __repr__(self) -> str:
        return f"<{len(self._data)} keys>"


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def read(view: View, resource: Resource, key: Key) -> Sealed | None:
    """The content of a Secret; None where it does not exist."""
    found = view.get(resource, key)
    if found is None:
        return None
    return Sealed({name: _decoded(text) for name, text in found.decode(_Secret).data.items()})


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
