"""Protocol buffer bodies: decodes the messages that clients send, by apiVersion and kind.

Combines the built-in types with the numbers of their fields.  Custom kinds have no numbers and cannot be sent as
messages, as on any API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.builtins.types.library import TYPES, message_struct, numbers
from holdfast.apiserver.http import protobuf
from holdfast.apiserver.resources import Object

IN_EVERY_GROUP: Final = frozenset({"DeleteOptions", "ListOptions", "Status"})
"""Kinds that clients send in the group of the resource."""

SUBRESOURCES: Final = {
    ("autoscaling/v1", "Scale"): "Scale",
    ("policy/v1", "Eviction"): "Eviction",
    ("v1", "Binding"): "Binding",
    ("authentication.k8s.io/v1", "TokenRequest"): "TokenRequest",
}
"""Types of subresources, which are no resources."""


class UnknownKind(ValueError):
    """A message of an unknown kind."""


def decode(body: bytes, of: tuple[str, str] | None = None) -> Object:
    """The object in a body; `of` is its apiVersion and kind if the message has none."""
    envelope = protobuf.unwrap(body)
    api_version, kind = of if of is not None and not envelope.kind else (envelope.api_version, envelope.kind)
    name = kind if kind in IN_EVERY_GROUP else type_names().get((api_version, kind))
    if name is None:
        raise UnknownKind(f'no kind "{kind}" is registered for version "{api_version}" in this server')
    return {"kind": kind, "apiVersion": api_version, **messages().decode(name, envelope.message)}


@cache
def type_names() -> Mapping[tuple[str, str], str]:
    """The type of every kind that may be sent; computed for the first message."""
    by_schema = {id(TYPES.schema(name)): name for name in TYPES}
    return {(each.api_version, each.kind): by_schema[id(each.schema)] for each in BUILTINS} | SUBRESOURCES


@cache
def messages() -> protobuf.Messages:
    return protobuf.Messages(message_struct, numbers())
