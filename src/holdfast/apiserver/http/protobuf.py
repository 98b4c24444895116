"""Kubernetes' protocol buffers, read into the objects that JSON would have given.

Typed clients send what they create in this form.  Here are the wire format, the
envelope that Kubernetes puts around every message, and how the scalars of
`notation` travel.  Types and the numbers of their fields are arguments;
this module knows no particular type.

A zero is left out where JSON would leave it out; an unknown field is skipped;
bytes that are not a message always raise `Malformed`.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.apiserver.builtins.types.notation import ZEROS, Field, Struct, Type
from holdfast.apiserver.builtins.types.numbers import Numbers
from holdfast.apiserver.resources import Object
from holdfast.meta import times
from holdfast.meta.errors import MalformedError

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
MAX_DEPTH: Final = 100
"""The deepest nesting of messages; schemas in definitions, the deepest in practice, have some thirty levels."""

MAX_FIELDS: Final = 200_000
"""The most fields of a message: more than any real object has, and decoded in under a second."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_LAST_NUMBER: Final = 2**29 - 1

Read = Callable[[Any, int], Any]
"""Decodes wire data, with the nesting that is left, to the JSON value."""

Put = Callable[[Object, int, Any, int], None]
"""Decodes a field with a wire type into an object."""


class Malformed(MalformedError):
    """Bytes that are not a valid message."""

    def __init__(self, problem: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"proto: {'.'.join(path)}: {problem}" if path else f"proto: {problem}")
        self.problem = problem
        self.path = path

    def within(self, field: str) -> Malformed:
        """The same error with a field before its path."""
        return Malformed(self.problem, (field, *self.path) if field else self.path)


class Envelope(NamedTuple):
    """A message with its apiVersion and kind."""

    api_version: str
    kind: str
    message: memoryview


def unwrap(body: bytes) -> Envelope:
    if not body.startswith(MAGIC):
        raise Malformed(f"the data does not begin with {MAGIC!r}, as Kubernetes' messages do")
    named, message, encoding, content = parts(memoryview(body)[len(MAGIC) :], LENGTH, LENGTH, LENGTH, LENGTH)
    api_version, kind = parts(named or _EMPTY, LENGTH, LENGTH)
    if encoding or (content and _text(content) != MEDIA_TYPE):
        raise Malformed("the envelope must hold a protocol buffer message that is not compressed")
    return Envelope(_text(api_version or _EMPTY), _text(kind or _EMPTY), message or _EMPTY)


class Messages:
    """Decodes messages of the types that `struct` returns by name, with the numbers of their fields."""

    def __init__(self, struct: Callable[[str], Struct], numbers: Mapping[str, Numbers]) -> None:
        self._struct = struct
        self._numbers = numbers
        self._plans: dict[str, dict[int, tuple[str, Put]]] = {}
        self._left = 0

    def decode(self, name: str, message: bytes | memoryview) -> Object:
        """The object of type `name` in a message."""
        self._left = MAX_FIELDS
        return self._into({}, self._plan(name), memoryview(message), MAX_DEPTH)

    def _into(self, obj: Object, plan: Mapping[int, tuple[str, Put]], message: memoryview, depth: int) -> Object:
        if depth == 0:
            raise Malformed(f"more than {MAX_DEPTH} messages are nested")
        for number, wire, value in scan(message):
            self._left -= 1
            if self._left < 0:
                raise Malformed(f"there are more than {MAX_FIELDS:,} fields")
            known = plan.get(number)
            if known is None:
                continue
            name, put = known
            try:
                put(obj, wire, value, depth - 1)
            except Malformed as malformed:
                raise malformed.within(name) from None
        return obj

    def _plan(self, name: str) -> dict[int, tuple[str, Put]]:
        plan = self._plans.get(name)
        if plan is None:
            types = {field.name: field for field in self._struct(name).fields}
            plan = self._plans[name] = self._numbered(self._numbers[name], types)
        return plan

    def _numbered(self, numbers: Numbers, types: Mapping[str, Field]) -> dict[int, tuple[str, Put]]:
        plan = {number: (each, self._put(types[each])) for number, each in numbers.fields.items()}
        for number, inner in numbers.inlined.items():
            plan[number] = ("", self._inlined(self._numbered(inner, types)))
        return plan

    def _inlined(self, plan: Mapping[int, tuple[str, Put]]) -> Put:
        def put(obj: Object, wire: int, value: Any, depth: int) -> None:
            _expect(wire, LENGTH)
            self._into(obj, plan, value, depth)

        return put

    def _put(self, field: Field) -> Put:
        name, type_ = field.name, field.type
        if type_.item is not None:
            item_wire, item = self._reader(type_.item)
            return _put_entry(name, item_wire, item) if type_.container == "{}" else _put_item(name, item_wire, item)
        if self._is_plain(type_.of):
            return self._put_message(name, type_.of)
        wire, read = self._reader(type_)
        zero = None if type_.pointer or field.required else ZEROS.get(type_.of)

        def put(obj: Object, given: int, value: Any, depth: int) -> None:
            _expect(given, wire)
            found = read(value, depth)
            if zero is not None and found == zero:
                obj.pop(name, None)  # the last value wins, and it is a zero
            else:
                obj[name] = found

        return put

    def _put_message(self, name: str, of: str) -> Put:
        """A repeated message is merged into the previous one."""

        def put(obj: Object, wire: int, value: Any, depth: int) -> None:
            _expect(wire, LENGTH)
            obj[name] = self._into(obj.get(name, {}), self._plan(of), value, depth)

        return put

    def _is_plain(self, name: str) -> bool:
        return name not in _SCALARS and not self._numbers[name].stands_for_field

    def _reader(self, type_: Type) -> tuple[int, Read]:
        """The wire type of a value, and its decoder."""
        if type_.item is not None:
            return LENGTH, _wrapped_list(*self._reader(type_.item))
        if type_.of in _SCALARS:
            return _SCALARS[type_.of]
        return LENGTH, self._message(type_.of) if self._is_plain(type_.of) else self._standing_for_field(type_.of)

    def _message(self, name: str) -> Read:
        return lambda value, depth: self._into({}, self._plan(name), value, depth)

    def _standing_for_field(self, name: str) -> Read:
        names = tuple(self._numbers[name])

        def read(value: Any, depth: int) -> Any:
            found = self._into({}, self._plan(name), value, depth)
            return next((found[each] for each in reversed(names) if each in found), None)

        return read


def _put_item(name: str, wire: int, read: Read) -> Put:
    def put(obj: Object, given: int, value: Any, depth: int) -> None:
        items: list[Any] = obj.setdefault(name, [])
        if wire == VARINT and given == LENGTH:
            items.extend(read(number, depth) for number in packed(value))
            return
        _expect(given, wire)
        items.append(read(value, depth))

    return put


def _put_entry(name: str, wire: int, read: Read) -> Put:
    """An entry of a map is a message of its key and its value."""
    absent: Any = _EMPTY if wire == LENGTH else 0

    def put(obj: Object, given: int, value: Any, depth: int) -> None:
        _expect(given, LENGTH)
        key, content = parts(value, LENGTH, wire)
        entries: Object = obj.setdefault(name, {})
        entries[_text(key or _EMPTY)] = read(absent if content is None else content, depth)

    return put


def _wrapped_list(wire: int, read: Read) -> Read:
    """A list where only a message can be, as in a map, is a message whose field 1 is repeated."""

    def unwrap_list(value: Any, depth: int) -> Any:
        found = []
        for number, given, item in scan(value):
            if number == 1:
                _expect(given, wire)
                found.append(read(item, depth))
        return found

    return unwrap_list


# The wire.


def scan(message: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field: whole numbers as such, all else as bytes."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= _LAST_NUMBER:
            raise Malformed(f"{number} is not a field number")
        if wire == VARINT:
            value, at = _varint(message, at)
            yield number, wire, value
            continue
        if wire == LENGTH:
            size, at = _varint(message, at)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise Malformed(f"field {number} has wire type {wire}, which is not supported")
        if size > end - at:
            raise Malformed("unexpected end of data")
        yield number, wire, message[at : at + size]
        at += size


def packed(data: memoryview) -> Iterator[int]:
    """A packed list of integers."""
    at = 0
    while at < len(data):
        number, at = _varint(data, at)
        yield number


def parts(message: memoryview, *wires: int) -> list[Any]:
    """The fields 1, 2 and so on of a small message, by their wire types; None for one that is not there."""
    found: list[Any] = [None] * len(wires)
    for number, wire, value in scan(message):
        if number <= len(wires):
            _expect(wire, wires[number - 1])
            found[number - 1] = value
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The varint at an offset, and the offset after it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value < 2**64:
            return value, at
        shift += 7
    raise Malformed("an integer is not terminated, or has more than 64 bits")


def _expect(given: int, wanted: int) -> None:
    if given != wanted:
        raise Malformed(f"wire type {given} where {wanted} should be")


_SIZES: Final = {FIXED64: 8, FIXED32: 4}
_EMPTY: Final = memoryview(b"")


# Scalars, and the small messages that JSON writes as scalars.


def _signed(bits: int) -> Read:
    modulus, half = 2**bits, 2 ** (bits - 1)

    def read(value: Any, depth: int) -> int:
        low: int = value % modulus
        return low - modulus if low >= half else low

    return read


_int32, _int64 = _signed(32), _signed(64)


def _text(value: Any, depth: int = 0) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise Malformed("a string is not UTF-8") from None


def _double(value: Any, depth: int) -> float:
    """A number as in JSON: an integral one without a fraction, as long as it is exact."""
    number: float = struct.unpack("<d", value)[0]
    if not math.isfinite(number):
        raise Malformed("a number is not finite")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _bytes(value: Any, depth: int) -> str:
    return base64.b64encode(value).decode()


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(value: memoryview) -> datetime | None:
    """The time in a Timestamp; an empty message is an unset time."""
    if not value:
        return None
    seconds, nanos = parts(value, VARINT, VARINT)
    try:
        return _EPOCH + timedelta(seconds=_int64(seconds or 0, 0), microseconds=_int32(nanos or 0, 0) // 1000)
    except OverflowError:
        raise Malformed("a time is out of range") from None


def _time(value: Any, depth: int) -> str | None:
    instant = _instant(value)
    return None if instant is None else times.format(instant)


def _micro_time(value: Any, depth: int) -> str | None:
    instant = _instant(value)
    return None if instant is None else times.format_micro(instant)


def _int_or_string(value: Any, depth: int) -> int | str:
    is_text, number, text = parts(value, VARINT, VARINT, LENGTH)
    return _text(text or _EMPTY) if is_text else int(_int32(number or 0, 0))


def _quantity(value: Any, depth: int) -> str:
    (text,) = parts(value, LENGTH)
    return "0" if text is None else _text(text)


def _raw(value: Any, depth: int) -> Any:
    """JSON that is embedded as bytes."""
    (content,) = parts(value, LENGTH)
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        raise Malformed("the embedded value is not JSON") from None


_SCALARS: Final[Mapping[str, tuple[int, Read]]] = {
    "string": (LENGTH, _text),
    "bool": (VARINT, lambda value, depth: value != 0),
    "int32": (VARINT, _int32),
    "int64": (VARINT, _int64),
    "number": (FIXED64, _double),
    "bytes": (LENGTH, _bytes),
    "time": (LENGTH, _time),
    "microtime": (LENGTH, _micro_time),
    "intstr": (LENGTH, _int_or_string),
    "quantity": (LENGTH, _quantity),
    "any": (LENGTH, _raw),
    "json": (LENGTH, _raw),
}
