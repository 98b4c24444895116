"""Decoding: brings an object into the form in which a typed server of Kubernetes stores it.

A real API server decodes a body into typed values and encodes those again.  On the way a value of the wrong type
is refused, what is null or zero is left out unless that means something, quantities are written in one way, and a
time that is not set is null where its type has no way to be absent.  Clients compare what they read with what they
wrote, so all this is part of the protocol; it is done here in one pass over what is there.

Defaults are applied elsewhere, except for a null or zero that stands for an unset field.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from holdfast.apiserver.builtins.types.notation import SCALARS, TIMES, ZEROS, Field, Type, Types
from holdfast.meta import times
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.meta.schemas.walk import copied

Settle = Callable[[Any], Any]
"""Returns a value in its stored form, or `ABSENT`; raises `Mistyped`."""

ABSENT: Final = object()
"""Stands for a field that is left out."""

QUANTITY_RULE: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_GO_NAMES: Final = {
    "number": "float64",
    "bytes": "[]uint8",
    "time": "string",
    "microtime": "string",
    "intstr": "string",
    "quantity": "resource.Quantity",
    "any": "map[string]interface {}",
}
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "bool": (bool,),
    "number": (int, float),
    "intstr": (int, str),
    "any": (dict,),
}


class Mistyped(Exception):
    """A value of a type that its field cannot hold."""

    def __init__(self, problem: str, wanted: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.wanted = wanted
        self.struct = ""
        self.path: list[str] = []

    def within(self, struct: str, field: str) -> Mistyped:
        """The same error with a field before its path; the message names the innermost struct."""
        self.struct = self.struct or struct
        self.path.insert(0, field)
        return self

    def __str__(self) -> str:
        """The message of Kubernetes: the path of the value, without list indices and map keys."""
        if not self.wanted:
            return self.problem
        where = f"Go struct field {self.struct}.{'.'.join(self.path)}"
        return f"json: cannot unmarshal {self.problem} into {where} of type {self.wanted}"


class Decoder:
    """Brings objects of the given types into their stored form."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._structs: dict[str, tuple[dict[str, Settle], tuple[str, ...]]] = {}

    def settle(self, name: str, value: dict[str, Any]) -> None:
        """Bring an object of type `name` into its stored form, in place."""
        known = self._structs.get(name)
        if known is None:
            known = self._structs[name] = self._learn(name)
        fields, unset_times = known
        for field in list(value):
            settle = fields.get(field)
            if settle is None:
                continue
            try:
                settled = settle(value[field])
            except Mistyped as mistyped:
                raise mistyped.within(name, field) from None
            if settled is ABSENT:
                del value[field]
            else:
                value[field] = settled
        for field in unset_times:
            value.setdefault(field, None)

    def _learn(self, name: str) -> tuple[dict[str, Settle], tuple[str, ...]]:
        fields = self._types.struct(name).fields
        plain = (field for field in fields if not field.type.pointer and not field.type.container)
        unset_times = tuple(field.name for field in plain if field.type.of in TIMES)
        return {field.name: self._field(field) for field in fields}, unset_times

    def _field(self, field: Field) -> Settle:
        type_, check = field.type, self._value(field.type)
        kept = type_.pointer or field.required
        if type_.item is not None:
            empty: Any = ABSENT if kept else ({} if type_.container == "{}" else [])
            return lambda value: _unset(field) if value is None or value == empty else check(value)
        if type_.of in TIMES and not type_.pointer:
            return lambda value: None if not value else check(value)
        if type_.of in self._types:
            return lambda value: self._nothing(field) if value is None else check(value)
        unset = _unset(field)
        zero = ABSENT if kept else ZEROS.get(type_.of, ABSENT)

        def settle(value: Any) -> Any:
            # In Python False equals 0, but only one of them is the zero of the field's type.
            if value is None or (value == zero and type(value) is type(zero)):
                return unset
            return check(value)

        return settle

    def _nothing(self, field: Field) -> Any:
        """The value for a null in place of an object."""
        always = field.default is not None or self._types.zero(field) is not None
        return self._types.blank(field.type.of) if always else ABSENT

    def _value(self, type_: Type) -> Settle:
        """How a value that is not null is checked and stored."""
        if type_.item is not None:
            return self._container(type_, self._value(type_.item))
        return _SETTLERS.get(type_.of) or self._struct(type_.of)

    def _struct(self, name: str) -> Settle:
        def settle(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mistyped(json_name(value), f"v1.{name}")
            self.settle(name, value)
            return value

        return settle

    def _container(self, type_: Type, item: Settle) -> Settle:
        wanted, stored_as_is = _go_name(type_), frozenset(_PYTHON_TYPES.get(type_.of, ()))
        is_struct = type_.of in self._types

        def nothing() -> Any:
            """The value for a null: an object with its defaults, which is stored as any other, or the zero."""
            return copied(self._types.blank(type_.of)) if is_struct else ZEROS.get(type_.of)

        def settle_map(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mistyped(json_name(value), wanted)
            if stored_as_is.issuperset(map(type, value.values())):
                return value
            return {key: item(nothing() if entry is None else entry) for key, entry in value.items()}

        def settle_list(value: Any) -> Any:
            if not isinstance(value, list):
                raise Mistyped(json_name(value), wanted)
            return [item(nothing() if entry is None and is_struct else entry) for entry in value]

        return settle_map if type_.container == "{}" else settle_list


def _unset(field: Field) -> Any:
    """The value of a field that is not set: its own copy of the default, if there is one."""
    return ABSENT if field.default is None else copied(field.default)


def _plain(name: str) -> Settle:
    """How a scalar is checked and stored."""
    allowed, wanted = _PYTHON_TYPES[name], _GO_NAMES.get(name, name)

    def settle(value: Any) -> Any:
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise Mistyped(json_name(value), wanted)
        return value

    return settle


def _integer(name: str, *, bits: int) -> Settle:
    bound: int = 2 ** (bits - 1)

    def settle(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Mistyped(f"number {value}" if isinstance(value, float) else json_name(value), name)
        if not -bound <= value < bound:
            raise Mistyped(f"number {value}", name)
        return value

    return settle


def _quantity(value: Any) -> str:
    try:
        return str(Quantity.parse(value))
    except QuantityError:
        raise Mistyped(QUANTITY_RULE) from None


def _time(value: Any) -> str:
    return _rewritten(_text(value), times.format)


def _micro_time(value: Any) -> str:
    return _rewritten(_text(value), times.format_micro)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Mistyped(json_name(value), "string")
    return value


@lru_cache(maxsize=4096)  # an object has the same times in every write
def _rewritten(time: str, write: Callable[[datetime], str]) -> str:
    try:
        return write(times.parse_micro(time))
    except times.TimeError:
        raise Mistyped(f'parsing time "{time}" as "2006-01-02T15:04:05Z07:00": cannot parse it') from None


def _bytes(value: Any) -> str:
    if not isinstance(value, str):
        raise Mistyped(json_name(value), "[]uint8")
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        raise Mistyped("illegal base64 data; write the bytes in base64") from None
    return value


_SETTLERS: Final[Mapping[str, Settle]] = {
    **{name: _plain(name) for name in _PYTHON_TYPES},
    "int32": _integer("int32", bits=32),
    "int64": _integer("int64", bits=64),
    "quantity": _quantity,
    "time": _time,
    "microtime": _micro_time,
    "bytes": _bytes,
    "json": lambda value: value,
}


def _go_name(type_: Type) -> str:
    """The Go name of a type, for error messages."""
    if type_.item is not None:
        inner = _go_name(type_.item)
        return f"map[string]{inner}" if type_.container == "{}" else f"[]{inner}"
    return _GO_NAMES.get(type_.of, type_.of) if type_.of in SCALARS else f"v1.{type_.of}"


def json_name(value: Any) -> str:
    """The JSON type of a value."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"
