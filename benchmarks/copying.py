"""The controller that is held against kopf's: it copies a field of the spec to the status, and nothing else.

`kopf_copy` is the same for kopf.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import Decision

COPIES: Final = Resource("bench.holdfast.dev", "v1", "copies", "Copy")

_VALUE: Final = {"type": "object", "properties": {"value": {"type": "string"}}}

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": COPIES.group_resource},
    "spec": {
        "group": COPIES.group,
        "scope": "Namespaced",
        "names": {"plural": COPIES.plural, "kind": COPIES.kind},
        "versions": [
            {
                "name": COPIES.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _VALUE, "status": _VALUE}}},
            }
        ],
    },
}


class Value(msgspec.Struct, frozen=True):
    """Spec and status alike."""

    value: str = ""


class Copy(msgspec.Struct, frozen=True):
    """As much of an object as matters here."""

    spec: Value = Value()
    status: Value = Value()


def observe(view: View, key: Key) -> Copy | None:
    found = view.get(COPIES, key)
    return None if found is None else found.decode(Copy)


def decide(copy: Copy, now: datetime) -> Decision:
    return Decision(status={"value": copy.spec.value})


CONTROLLER: Final = Controller(name="copy", resource=COPIES, observe=observe, decide=decide, workers=32)
