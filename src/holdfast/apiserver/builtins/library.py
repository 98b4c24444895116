"""All built-in types together, and how a kind is made of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.apiserver.builtins.decoding import Decoder, Mistyped
from holdfast.apiserver.builtins.notation import Types
from holdfast.apiserver.builtins.types import (
    claims,
    containers,
    core,
    metadata,
    pods,
    policies,
    services,
    storage,
    volumes,
    workloads,
)
from holdfast.apiserver.http.refusals import Undecodable
from holdfast.apiserver.resources import Object, ResourceType, nothing

TYPES: Final = Types(
    metadata.TEXT,
    claims.TEXT,
    volumes.TEXT,
    containers.TEXT,
    pods.TEXT,
    workloads.TEXT,
    services.TEXT,
    core.TEXT,
    storage.TEXT,
    policies.TEXT,
)
DECODER: Final = Decoder(TYPES)


def builtin(
    kind: str, *, version: str = "v1", type_name: str = "", default: Callable[[Object], None] = nothing, **rest: Any
) -> ResourceType:
    """A built-in kind.  Its objects take the form of their type before its own default sees them."""
    type_name = type_name or kind

    def settled(obj: Object) -> None:
        try:
            DECODER.settle(type_name, obj)
        except Mistyped as problem:
            raise Undecodable(kind, version, why=str(problem)) from None
        default(obj)

    rest.setdefault("group", "")
    rest.setdefault("singular", kind.lower())
    rest.setdefault("plural", f"{kind.lower()}s")
    return ResourceType(kind=kind, version=version, schema=TYPES.schema(type_name), default=settled, prune=True, **rest)
