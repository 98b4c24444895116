"""The built-in kinds in protocol buffers: complete tables, and bodies that mean what their JSON means.

The encoder (`tests.apiserver.encoding`) uses the same tables; samples in bytes keep the two from being wrong together.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.encoding import encode, envelope, field_of

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.builtins.types.library import TYPES, message_struct, numbers, protobuf_types
from holdfast.apiserver.builtins.types.notation import Type
from holdfast.apiserver.http import bodies, messages, protobuf
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.verbs.subresources import SCALE
from holdfast.meta import times
from holdfast.meta.errors import BadRequest, UnsupportedMediaType
from holdfast.meta.exchange import Request

KINDS: Mapping[tuple[str, str], ResourceType] = {(each.api_version, each.kind): each for each in BUILTINS}
NAMES = sorted(numbers())

# The tables.

SAID_BY_THE_ENVELOPE = {"apiVersion", "kind"}
"""Fields of whole objects and of options that have no number."""


@pytest.mark.parametrize("name", sorted({*TYPES, *protobuf_types()}))
def test_every_field_of_every_type_has_a_number(name: str) -> None:
    whole = {*messages.type_names().values(), *messages.IN_EVERY_GROUP}
    fields = {field.name for field in message_struct(name).fields}
    numbered = list(numbers()[name])
    assert len(numbered) == len(set(numbered))
    assert set(numbered) == (fields - SAID_BY_THE_ENVELOPE if name in whole else fields)


def test_no_number_is_given_to_a_type_that_there_is_not() -> None:
    assert set(numbers()) == {*TYPES, *protobuf_types()}


def test_every_built_in_kind_may_be_sent() -> None:
    assert set(messages.type_names()) == set(KINDS) | set(messages.SUBRESOURCES)


# Bytes that are written out by hand.


def test_a_config_map_as_a_typed_client_sends_it() -> None:
    meta = bytes.fromhex("0a 01 61 12 00 1a 00 22 00 2a 00 32 00 38 00 42 00")
    message = field_of(1, meta) + bytes.fromhex("12 06 0a 01 78 12 01 79")
    assert messages.decode(envelope("v1", "ConfigMap", message)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "creationTimestamp": None},
        "data": {"x": "y"},
    }


def test_a_volume_has_its_source_beside_its_name() -> None:
    source = field_of(19, field_of(1, field_of(1, b"settings")) + b"\x18\xa4\x03")
    pod_spec = field_of(1, field_of(1, b"config") + field_of(2, source))
    assert messages.messages().decode("PodSpec", pod_spec) == {
        "volumes": [{"name": "config", "configMap": {"name": "settings", "defaultMode": 420}}]
    }


def test_the_extra_of_a_user_is_lists_by_name() -> None:
    entry = field_of(1, b"k") + field_of(2, field_of(1, b"a") + field_of(1, b"b"))
    assert messages.messages().decode("UserInfo", field_of(4, entry)) == {"extra": {"k": ["a", "b"]}}


def test_a_schema_in_a_definition_is_spelled_out() -> None:
    number = field_of(5, b"integer") + b"\x59" + struct.pack("<d", 0.0)
    schema = field_of(5, b"object") + field_of(29, field_of(1, b"size") + field_of(2, number))
    schema += field_of(8, field_of(1, b'{"size":1}')) + field_of(30, b"\x08\x00")
    assert messages.messages().decode("CustomResourceValidation", field_of(1, schema)) == {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"size": {"type": "integer", "minimum": 0}},
            "default": {"size": 1},
            "additionalProperties": False,
        }
    }


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "policy/v1"])
def test_options_come_under_the_group_of_what_they_are_about(api_version: str) -> None:
    message = b"\x08\x00" + field_of(2, field_of(1, b"u")) + field_of(4, b"Orphan") + field_of(5, b"All")
    assert messages.decode(envelope(api_version, "DeleteOptions", message)) == {
        "kind": "DeleteOptions",
        "apiVersion": api_version,
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
    }


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v2", "Pod"), ("apps/v1", "Pod"), ("example.com/v1", "Widget"), ("", "")]
)
def test_a_kind_without_messages_is_unknown(api_version: str, kind: str) -> None:
    with pytest.raises(messages.UnknownKind, match=f'no kind "{kind}" is registered for version "{api_version}"'):
        messages.decode(envelope(api_version, kind, b""))


# There and back.


INSTANTS = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
SCALARS: Mapping[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "number": st.sampled_from([0, 3, -7, 0.5, 1e300]),
    "bytes": st.binary(max_size=5).map(lambda content: base64.b64encode(content).decode()),
    "time": st.none() | INSTANTS.map(times.format),
    "microtime": st.none() | INSTANTS.map(times.format_micro),
    "intstr": TEXTS | st.integers(-(2**31), 2**31 - 1),
    "quantity": st.sampled_from(["0", "1", "500m", "2Gi"]),
    "any": st.sampled_from([{}, {"a": [1, None, "x"]}]),
    "json": st.sampled_from([{}, [1, 2], "text", 3, None, True]),
}


@st.composite
def objects(draw: st.DrawFn, name: str, depth: int = 3) -> Object:
    """An object of a type, a few of its fields set, in the form in which JSON has it."""
    numbered = set(numbers()[name])
    fields = [each for each in message_struct(name).fields if each.name in numbered]
    if depth == 0:
        fields = [each for each in fields if each.type.of in SCALARS]
    if not fields:
        return {}
    chosen = draw(st.lists(st.sampled_from(fields), max_size=5, unique_by=lambda field: field.name))
    found = {field.name: draw(values(field.type, depth)) for field in chosen}
    kept = {field.name for field in fields if field.type.pointer or field.required or field.type.container}
    return {each: value for each, value in found.items() if each in kept or not is_zero(value)}


def is_zero(value: Any) -> bool:
    return value in ("", 0, False) and not isinstance(value, float)


def values(type_: Type, depth: int) -> st.SearchStrategy[Any]:
    if type_.item is not None:
        item = values(type_.item, depth)
        if type_.container == "{}":
            return st.dictionaries(TEXTS, item, min_size=1, max_size=2)
        return st.lists(item, min_size=1, max_size=2)
    if type_.of in SCALARS:
        return SCALARS[type_.of]
    return choices(type_.of, depth) if numbers()[type_.of].stands_for_field else objects(type_.of, depth - 1)


def choices(name: str, depth: int) -> st.SearchStrategy[Any]:
    fields = [each for each in message_struct(name).fields if each.type.of in SCALARS or depth > 0]
    return st.one_of([values(each.type, depth) for each in fields] or [st.just(True)])


@st.composite
def named_objects(draw: st.DrawFn) -> tuple[str, Object]:
    name = draw(st.sampled_from([each for each in NAMES if not numbers()[each].stands_for_field]))
    return name, draw(objects(name))


@settings(max_examples=400)
@given(named_objects())
def test_what_was_encoded_comes_back_as_its_json(named: tuple[str, Object]) -> None:
    name, obj = named
    assert messages.messages().decode(name, encode(name, obj)) == obj


@given(named_objects(), st.data())
def test_a_damaged_message_is_read_or_refused(named: tuple[str, Object], data: st.DataObject) -> None:
    name, obj = named
    message = bytearray(encode(name, obj) or b"\x00")
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(message)))
    for damaged in (message, message[:cut]):
        with contextlib.suppress(protobuf.Malformed):
            assert isinstance(messages.messages().decode(name, bytes(damaged)), dict)


# Bodies.


def read_object(request: Request, kind: ResourceType) -> Object:
    return asyncio.run(bodies.read_object(request, kind))


def read_body(request: Request) -> Any:
    return asyncio.run(bodies.read_body(request))


def posted(body: bytes, media_type: str = protobuf.MEDIA_TYPE) -> Request:
    return Request("POST", "/", headers={"content-type": media_type}, body=body)


POD = KINDS["v1", "Pod"]
WIDGET = ResourceType(
    group="example.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    singular="widget",
    schema={"type": "object"},
    custom=True,
)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_a_body_means_the_same_in_both_forms(named: tuple[str, str], data: st.DataObject) -> None:
    kind = KINDS[named]
    obj = data.draw(objects(messages.type_names()[named], 2))
    body = envelope(*named, encode(messages.type_names()[named], obj))
    in_json = json.dumps({**obj, "apiVersion": kind.api_version, "kind": kind.kind}).encode()
    assert read_object(posted(body), kind) == read_object(posted(in_json, "application/json"), kind)


def test_what_a_message_does_not_say_the_request_says() -> None:
    meta = field_of(1, field_of(1, b"a"))
    assert read_object(posted(b"k8s\x00" + field_of(2, meta)), POD) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
    }


def test_a_scale_may_be_sent_for_any_kind() -> None:
    body = envelope("autoscaling/v1", "Scale", field_of(2, b"\x08\x03"))
    assert read_object(posted(body), SCALE)["spec"] == {"replicas": 3}


def test_options_are_read_without_knowing_what_they_are_about() -> None:
    assert read_body(posted(envelope("v1", "DeleteOptions", b"\x08\x05")))["gracePeriodSeconds"] == 5


def test_custom_kinds_have_no_messages() -> None:
    with pytest.raises(UnsupportedMediaType, match=r"include: application/json, application/yaml$"):
        read_object(posted(envelope("example.com/v1", "Widget", b"")), WIDGET)


def test_other_media_types_are_told_which_there_are() -> None:
    with pytest.raises(UnsupportedMediaType, match=r"application/yaml, application/vnd\.kubernetes\.protobuf$"):
        read_object(posted(b"", "text/plain"), POD)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"", r"must be of type Pod\): proto: the data does not begin", id="nothing"),
        pytest.param(b"{}", r"must be of type Pod\): proto: the data does not begin", id="JSON"),
        pytest.param(envelope("v1", "Pod", b"\x0a\x05"), r"must be of type Pod\): proto: unexpected end", id="cut off"),
        pytest.param(envelope("v1", "Widget", b""), 'no kind "Widget" is registered', id="an unknown kind"),
        pytest.param(
            envelope("v1", "ConfigMap", b""), 'ConfigMap in version "v1" cannot be handled as a Pod', id="another kind"
        ),
    ],
)
def test_a_bad_message_is_a_bad_request(body: bytes, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        read_object(posted(body), POD)
