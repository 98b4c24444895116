"""The wire format, on types of the test's own and on bytes that are written out by hand."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.builtins.types import numbers
from holdfast.apiserver.builtins.types.notation import NotationError, Types
from holdfast.apiserver.http import protobuf
from holdfast.apiserver.http.protobuf import MAX_DEPTH, Malformed
from holdfast.meta.exchange import encode

TYPES = Types("""
Thing
  name string; id! string; size int32; big *int64; ready bool; maybe *bool; ratio *number; blob bytes
  born time; seen *microtime; port intstr; room *quantity; raw any
  tags []string; counts []int32; parts []Part; labels {}string; rooms {}quantity; owners {}[]string; sizes {}int32
  part Part; other *Part; choice *Choice; color string

Part
  name string; inner *Part

Choice
  allows! bool; part *Part; names []string
""")
NUMBERS = numbers.read("""
Thing name 1 id 2 size 3 big 4 ready 5 maybe 6 ratio 7 blob 8 born 9 seen 10 port 11 room 12 raw 13
  tags 14 counts 15 parts 16 labels 17 rooms 18 owners 19 part 20 other 21 choice 22 sizes 24
Thing/23 color 1
Part name 1 inner 2
Choice = allows 1 part 2 names 3
""")
MESSAGES = protobuf.Messages(TYPES.struct, NUMBERS)


def thing(text: str) -> dict[str, Any]:
    """The Thing in a message, which is written in hexadecimal."""
    return MESSAGES.decode("Thing", bytes.fromhex(text))


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        pytest.param("", {}, id="nothing says nothing"),
        pytest.param("0a 02 68 69", {"name": "hi"}, id="a text"),
        pytest.param("0a 02 c3 a9", {"name": "é"}, id="a text in UTF-8"),
        pytest.param("0a 00", {}, id="a zero is left out as JSON leaves it out"),
        pytest.param("12 00", {"id": ""}, id="the zero of a required field is kept"),
        pytest.param("0a 01 61 0a 01 62", {"name": "b"}, id="the last one holds"),
        pytest.param("0a 01 61 0a 00", {}, id="the last one holds even if it is zero"),
        pytest.param("18 96 01", {"size": 150}, id="a number in two bytes"),
        pytest.param("18 ff ff ff ff ff ff ff ff ff 01", {"size": -1}, id="a negative number"),
        pytest.param("20 80 80 80 80 80 80 80 80 80 01", {"big": -(2**63)}, id="the smallest number"),
        pytest.param("20 00", {"big": 0}, id="the zero of a pointer is kept"),
        pytest.param("28 01", {"ready": True}, id="true"),
        pytest.param("28 00", {}, id="false is zero"),
        pytest.param("30 00", {"maybe": False}, id="a false that was said"),
        pytest.param("39 00 00 00 00 00 00 e0 3f", {"ratio": 0.5}, id="a fraction"),
        pytest.param("39 00 00 00 00 00 00 14 40", {"ratio": 5}, id="a whole number in a double is whole in JSON"),
        pytest.param("42 03 00 ff 61", {"blob": "AP9h"}, id="bytes are in base64"),
        pytest.param("4a 00", {"born": None}, id="an unset time is null"),
        pytest.param("4a 06 08 80 e2 cf aa 06", {"born": "2023-11-14T22:13:20Z"}, id="a time"),
        pytest.param("4a 08 08 80 e2 cf aa 06 10 05", {"born": "2023-11-14T22:13:20Z"}, id="a time in whole seconds"),
        pytest.param(
            "52 0a 08 80 e2 cf aa 06 10 c0 84 3d", {"seen": "2023-11-14T22:13:20.001000Z"}, id="a time in microseconds"
        ),
        pytest.param("5a 04 08 00 10 50", {"port": 80}, id="a number where a text may be"),
        pytest.param("5a 08 08 01 10 00 1a 02 35 25", {"port": "5%"}, id="a text where a number may be"),
        pytest.param("62 04 0a 02 31 47", {"room": "1G"}, id="a quantity"),
        pytest.param("62 00", {"room": "0"}, id="a quantity of nothing"),
        pytest.param("6a 09 0a 07 7b 22 61 22 3a 31 7d", {"raw": {"a": 1}}, id="JSON within"),
        pytest.param("6a 00", {"raw": None}, id="no JSON within"),
        pytest.param("72 01 61 72 00", {"tags": ["a", ""]}, id="a list keeps its empty texts"),
        pytest.param("78 01 78 02", {"counts": [1, 2]}, id="a list of numbers, one by one"),
        pytest.param("7a 03 01 96 01", {"counts": [1, 150]}, id="a list of numbers, packed"),
        pytest.param("7a 01 01 78 02", {"counts": [1, 2]}, id="a list of numbers, both ways"),
        pytest.param("82 01 03 0a 01 61 82 01 00", {"parts": [{"name": "a"}, {}]}, id="a list of messages"),
        pytest.param("8a 01 06 0a 01 6b 12 01 76", {"labels": {"k": "v"}}, id="a map"),
        pytest.param("8a 01 03 0a 01 6b", {"labels": {"k": ""}}, id="an entry without a value"),
        pytest.param("8a 01 03 12 01 76", {"labels": {"": "v"}}, id="an entry without a key"),
        pytest.param("92 01 08 0a 01 6b 12 03 0a 01 31", {"rooms": {"k": "1"}}, id="a map of quantities"),
        pytest.param("9a 01 0b 0a 01 6b 12 06 0a 01 61 0a 01 62", {"owners": {"k": ["a", "b"]}}, id="a map of lists"),
        pytest.param("c2 01 03 0a 01 6b", {"sizes": {"k": 0}}, id="an entry without a number"),
        pytest.param("a2 01 00", {"part": {}}, id="an empty message is an empty object"),
        pytest.param("aa 01 03 0a 01 61", {"other": {"name": "a"}}, id="a message"),
        pytest.param(
            "aa 01 03 0a 01 61 aa 01 02 12 00", {"other": {"name": "a", "inner": {}}}, id="a message in two pieces"
        ),
        pytest.param("b2 01 02 08 00", {"choice": False}, id="a message that stands for its first field"),
        pytest.param("b2 01 04 08 01 12 00", {"choice": {}}, id="a message that stands for its last field"),
        pytest.param("b2 01 05 1a 01 61 08 01", {"choice": ["a"]}, id="which is the last by number, not by place"),
        pytest.param("b2 01 00", {"choice": None}, id="a message that stands for nothing"),
        pytest.param("ba 01 03 0a 01 72", {"color": "r"}, id="fields of an inlined message are the type's own"),
        pytest.param("ca 01 01 61 0a 01 61", {"name": "a"}, id="an unknown text is skipped"),
        pytest.param("c8 01 05 0a 01 61", {"name": "a"}, id="an unknown number is skipped"),
        pytest.param("cd 01 00 00 00 00 0a 01 61", {"name": "a"}, id="an unknown number in four bytes is skipped"),
    ],
)
def test_a_message_means_what_its_json_would(message: str, meaning: dict[str, Any]) -> None:
    assert thing(message) == meaning


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param("0a", "is not terminated", id="a field without a value"),
        pytest.param("0a 05 61", "unexpected end of data", id="a text that is cut off"),
        pytest.param("39 00 00", "unexpected end of data", id="a double that is cut off"),
        pytest.param("0a ff ff ff ff ff ff ff ff 7f", "unexpected end of data", id="a length beyond all memory"),
        pytest.param("18 ff ff ff ff ff ff ff ff ff 02", "more than 64 bits", id="a number of 65 bits"),
        pytest.param("18 80 80 80 80 80 80 80 80 80 80 01", "more than 64 bits", id="a number without end"),
        pytest.param("02 00", "0 is not a field number", id="field 0"),
        pytest.param("82 80 80 80 10 00", "is not a field number", id="a field beyond all numbers"),
        pytest.param("0b", "wire type 3", id="a group"),
        pytest.param("0f", "wire type 7", id="a wire type that there is not"),
        pytest.param("08 01", "name: wire type 0 where 2 should be", id="a number for a text"),
        pytest.param("1a 01 61", "size: wire type 2 where 0 should be", id="a text for a number"),
        pytest.param("0a 01 ff", "name: a string is not UTF-8", id="a text in another code"),
        pytest.param("39 00 00 00 00 00 00 f0 7f", "ratio: a number is not finite", id="infinity"),
        pytest.param("39 00 00 00 00 00 00 f8 7f", "ratio: a number is not finite", id="not a number"),
        pytest.param("4a 0a 08 ff ff ff ff ff ff ff ff 7f", "born: a time is out of range", id="the end of times"),
        pytest.param("6a 03 0a 01 7b", "raw: the embedded value is not JSON", id="broken JSON within"),
        pytest.param("7a 01 80", "counts: an integer is not terminated", id="a packed list that is cut off"),
        pytest.param("aa 01 04 12 02 08 01", "other.inner.name: wire type", id="the error has the path of the field"),
        pytest.param("ba 01 02 08 01", "proto: color: wire type", id="without the inlined message"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(message: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        thing(message)


def test_messages_nest_to_a_bound() -> None:
    message = b""
    for _ in range(MAX_DEPTH - 1):
        message = b"\x12" + _length(message) + message
    assert MESSAGES.decode("Part", message)
    with pytest.raises(Malformed, match="nested"):
        MESSAGES.decode("Part", b"\x12" + _length(message) + message)


def test_json_within_a_message_nests_to_a_bound() -> None:
    raw = b"[" * 100_000
    content = b"\x0a" + _length(raw) + raw
    with pytest.raises(Malformed, match="not JSON"):
        MESSAGES.decode("Thing", b"\x6a" + _length(content) + content)


def _length(message: bytes) -> bytes:
    size, out = len(message), bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(message: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(MESSAGES.decode("Thing", message), dict)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_keep_their_value_and_can_be_written(number: float) -> None:
    obj = MESSAGES.decode("Thing", b"\x39" + struct.pack("<d", number))
    assert json.loads(encode(obj)) == {"ratio": number}


@pytest.mark.parametrize(("number", "text"), [(5.0, "5"), (-0.5, "-0.5"), (2.0**53, "9007199254740992.0")])
def test_whole_numbers_are_written_without_a_point_while_they_are_exact(number: float, text: str) -> None:
    obj = MESSAGES.decode("Thing", b"\x39" + struct.pack("<d", number))
    assert encode(obj["ratio"]).decode() == text


# The envelope.

POD = "0a 09 0a 02 76 31 12 03 50 6f 64"


def test_the_envelope_says_what_the_message_is() -> None:
    envelope = protobuf.unwrap(b"k8s\x00" + bytes.fromhex(f"{POD} 12 02 08 01"))
    assert (envelope.api_version, envelope.kind, bytes(envelope.message)) == ("v1", "Pod", b"\x08\x01")


def test_an_envelope_need_not_say_what_the_message_is() -> None:
    envelope = protobuf.unwrap(b"k8s\x00")
    assert (envelope.api_version, envelope.kind, bytes(envelope.message)) == ("", "", b"")


def test_an_envelope_may_name_its_media_type() -> None:
    content = protobuf.MEDIA_TYPE.encode()
    assert protobuf.unwrap(b"k8s\x00" + bytes.fromhex(POD) + b"\x22" + _length(content) + content).kind == "Pod"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "does not begin with"),
        (b"k8s", "does not begin with"),
        (b'{"kind":"Pod"}', "does not begin with"),
        (b"k8s\x00\x0a\x05", "unexpected end"),
        (b"k8s\x00\x08\x01", "wire type"),
        (b"k8s\x00\x1a\x04gzip", "not compressed"),
        (b"k8s\x00\x22\x10application/json", "protocol buffer message"),
        (b"k8s\x00\x22\x01\xff", "not UTF-8"),
    ],
)
def test_what_is_no_envelope_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        protobuf.unwrap(body)


# The notation.


@pytest.mark.parametrize(
    "text",
    [
        "Thing name 1 other 1",
        "Thing name 1 name 2",
        "Thing name 1 other",
        "Thing name 1\nThing other 2",
        "Thing name 1\nThing/1 other 2",
        "Thing name 1\nThing/2 other 1\nThing/2 third 2",
    ],
)
def test_a_field_has_one_number_of_its_own(text: str) -> None:
    with pytest.raises(NotationError):
        numbers.read(text)
