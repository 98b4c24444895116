"""Objects: what is decoded once, and what each reader gets for itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.client.objects import Object, Undecodable
from holdfast.client.resources import PODS


class Frozen(msgspec.Struct, frozen=True):
    spec: dict[str, Any] = {}


class Other(msgspec.Struct, frozen=True):
    kind: str = ""


class Open(msgspec.Struct):
    spec: dict[str, Any] = {}


def pod() -> Object:
    return Object.of(PODS, {"kind": "Pod", "metadata": {"name": "one"}, "spec": {"nodeName": "node-1"}})


def test_a_type_that_cannot_be_changed_is_decoded_once() -> None:
    obj = pod()
    assert obj.decode(Frozen) is obj.decode(Frozen)


def test_readers_of_several_types_do_not_make_each_other_decode_again() -> None:
    obj = pod()
    first, other = obj.decode(Frozen), obj.decode(Other)
    assert obj.decode(Frozen) is first
    assert obj.decode(Other) is other


def test_the_head_is_what_owner_references_are_made_from() -> None:
    wire = {"kind": "Pod", "metadata": {"name": "one", "namespace": "here", "uid": "u", "deletionTimestamp": "t"}}
    assert Object.of(PODS, {**wire, "spec": {}}).head() == {"apiVersion": "v1", **wire}


def test_each_type_says_what_it_declares_whatever_was_read_before() -> None:
    obj = pod()
    assert obj.decode(Frozen).spec == {"nodeName": "node-1"}
    assert obj.decode(Other).kind == "Pod"
    assert obj.decode(Frozen).spec == {"nodeName": "node-1"}


def test_what_can_be_changed_is_the_readers_own() -> None:
    obj = pod()
    obj.decode(Open).spec.clear()
    obj.decode(dict[str, Any]).clear()
    obj.wire()["spec"].clear()
    assert obj.decode(Open).spec == obj.wire()["spec"] == {"nodeName": "node-1"}


def test_what_cannot_be_decoded_names_the_object_the_problem_and_the_path() -> None:
    class Wrong(msgspec.Struct, frozen=True):
        spec: dict[str, int]

    with pytest.raises(Undecodable) as raised:
        pod().decode(Wrong)
    assert raised.value.ref == pod().ref
    assert raised.value.problem == "Expected `int`, got `str` - at `$.spec[...]`"
    assert str(raised.value) == f"{pod().ref}: {raised.value.problem}"
    assert pod().decode(Frozen).spec == {"nodeName": "node-1"}, "another type reads it all the same"
