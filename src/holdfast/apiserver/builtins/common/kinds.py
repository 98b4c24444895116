"""Declaring a built-in kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.apiserver.builtins.types.decoding import Mistyped
from holdfast.apiserver.builtins.types.library import DECODER, TYPES
from holdfast.apiserver.http.refusals import Undecodable
from holdfast.apiserver.resources import Object, ResourceType, nothing


def builtin(
    kind: str, *, version: str = "v1", type_name: str = "", default: Callable[[Object], None] = nothing, **rest: Any
) -> ResourceType:
    """A built-in kind.  The decoder brings an object into the form of its type before `default` completes it."""
    type_name = type_name or kind

    def settle(obj: Object) -> None:
        try:
            DECODER.settle(type_name, obj)
        except Mistyped as problem:
            raise Undecodable(kind, version, why=str(problem)) from None

    rest.setdefault("group", "")
    rest.setdefault("singular", kind.lower())
    rest.setdefault("plural", f"{kind.lower()}s")
    schema = TYPES.schema(type_name)
    return ResourceType(kind=kind, version=version, schema=schema, settle=settle, default=default, prune=True, **rest)
