"""Fields that a server dropped: the definition of the kind there does not have them.

A server prunes what the definition of a kind does not declare, without an error.  A controller whose status does not
stay would decide on less than it knows, again and again; so the answer to a status write is compared with what was
sent.  What has been kept once is not compared again.  This module must not know how anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.kernel.outcomes import Permanent
from holdfast.runtime.controllers import Controller

REASON = "StatusPruned"
"""The reason of an object whose status the server does not keep."""


class Pruned(Permanent):
    """The server dropped fields of a status."""

    def __init__(self, obj: Object, fields: tuple[str, ...]) -> None:
        kind = obj.resource.kind
        super().__init__(
            REASON,
            f"the API server dropped {', '.join(fields)}: its definition of {kind} does not have "
            f"{'this field' if len(fields) == 1 else 'these fields'}, so that {kind}s cannot be operated; "
            "install Holdfast's definition (holdfast operator run --adopt-crds)",
        )


class Refusals:
    """The resources that cannot be operated on this server, and why; none of their objects is worked on."""

    def __init__(self) -> None:
        self._why: dict[Resource, Permanent] = {}

    def add(self, resource: Resource, why: Permanent) -> None:
        self._why.setdefault(resource, why)

    def of(self, controller: Controller[Any]) -> Permanent | None:
        """Why a controller cannot work: for its own resource, or for one whose objects it would create."""
        if not self._why:
            return None
        return next((why for each in (controller.resource, *controller.owns) if (why := self._why.get(each))), None)


class Kept:
    """The paths of a status that a server is known to keep."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def check(self, sent: Mapping[str, Any], answer: Object) -> None:
        """Compare what was sent of a status with the answer; raises `Pruned`."""
        paths = set(_paths(sent, "status"))
        if paths <= self._paths:
            return
        kept = set(_paths(answer.wire().get("status") or {}, "status"))
        if lost := paths - kept:
            # A field within a dropped field is no news.
            shown = sorted(path for path in lost if path.rpartition(".")[0].removesuffix("[]") not in lost)
            raise Pruned(answer, tuple(shown))
        self._paths |= paths


def _paths(value: Any, path: str) -> Iterator[str]:
    """The paths of members, without the positions of items; empty values may be left out by a server."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not _is_empty(member):
                yield f"{path}.{name}"
                yield from _paths(member, f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _paths(item, f"{path}[]")


def _is_empty(value: Any) -> bool:
    """Whether nothing is in a value; a member that is None is one that a patch removes."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value in (None, "", (), [])
