"""Objects: what is decoded once, and what is everybody's own."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.client.objects import Object
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
