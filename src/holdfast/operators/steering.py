"""Carrying out the verbs of a rollout, and planning what they lead to, with any client.

The verbs themselves are pure (`rollouts`); this is how they are applied: to the latest
object, with its version as a precondition, so that no change of others is lost.  The
command line, the terminal and the dashboard all steer in this way.  This module must not
know any kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from holdfast.client import waiting
from holdfast.client.objects import Object, Undecodable
from holdfast.client.protocols import Client, PatchType, Scope
from holdfast.client.resources import CONTROLLER_REVISIONS, Resource
from holdfast.meta.errors import Conflict
from holdfast.meta.exchange import JSON, Request, Response, encode
from holdfast.meta.managed_fields import handed_back
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import Answer, Case, Change, Refusal, RolloutKind, records_of
from holdfast.runtime.caching.listed import listed
from holdfast.runtime.controllers import Controller, View, is_paused
from holdfast.views.plans import PlanSummary, PlanView
from holdfast.views.rollouts import Record

MANAGER: Final = "holdfast-rollout"
"""The field manager of verbs."""

ATTEMPTS: Final = 10
"""How often a change is tried again after a conflict."""

FRESH_SECONDS: Final = 5.0
"""How long to wait until the operator has observed the latest change."""

Ask = Callable[[Request], Awaitable[Response]]
"""Sends a request; the command line shows the warnings of its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A verb for an object, with its options (see `rollouts.Case`)."""

    resource: Resource
    key: Key
    verb: str
    full: bool = False
    number: int | None = None


async def carried_out(client: Client, kind: RolloutKind, order: Order, *, ask: Ask | None = None) -> Answer:
    """Carry out a verb; after a conflict, decide again from the latest object."""
    ask = ask or client.raw
    for attempt in range(ATTEMPTS):
        obj = await fresh(client, kind, order.resource, order.key)
        answer = await answered(client, kind, order, obj)
        if not isinstance(answer, Change):
            return answer
        try:
            await ask(patch_of(obj, answer.patch))
        except Conflict:
            if attempt + 1 == ATTEMPTS:
                raise
        else:
            if "spec" in answer.patch:
                await hand_back(ask, client, obj, restored=answer.restored)
            return answer
    raise AssertionError("the last attempt returns or raises")


async def answered(client: Client, kind: RolloutKind, order: Order, obj: Object) -> Answer:
    """What a verb would do to an object; nothing is changed."""
    try:
        known = await records(client, kind, obj)
        case = Case(object=obj, records=known, now=datetime.now(UTC), full=order.full, number=order.number)
        return kind.answer(order.verb, case)
    except Undecodable as error:
        return _unreadable(obj, error)


def _unreadable(obj: Object, error: Undecodable) -> Refusal:
    """The refusal for an object that cannot be read, or that refers to one that cannot be read."""
    which = "it" if error.ref == obj.ref else str(error.ref)
    return Refusal(f"{which} cannot be read: {error.problem}", "correct the field and apply it again")


async def records(client: Client, kind: RolloutKind, obj: Object) -> tuple[Record, ...]:
    """The earlier revisions of an object; none where its kind keeps none."""
    if kind.history is None:
        return ()
    listing = await client.list(CONTROLLER_REVISIONS, Scope(namespace=obj.key.namespace, labels=kind.selector(obj)))
    return records_of(listing.objects, obj)


async def fresh(client: Client, kind: RolloutKind, resource: Resource, key: Key) -> Object:
    """The object, once its operator has observed its latest generation, or after `FRESH_SECONDS`."""

    def seen(obj: Object | None) -> bool:
        try:
            return obj is None or is_paused(obj) or kind.fresh(obj)
        except Undecodable:
            return True  # what its operator observed cannot be read either; `answered` says what is wrong

    try:
        found = await waiting.until(client, resource, key, seen, timeout=FRESH_SECONDS)
    except TimeoutError:
        found = None
    return found or await client.get(resource, key)


async def hand_back(
    ask: Ask, client: Client, before: Object, *, manager: str = MANAGER, restored: bool = False, subresource: str = ""
) -> None:
    """Give the fields of the spec back to their owners: a user who applies them next must not meet a conflict."""
    owned = _managed(before)
    for _ in range(ATTEMPTS):
        with suppress(Conflict):
            obj = await client.get(before.resource, before.key)
            managed = handed_back(owned, _managed(obj), manager=manager, restored=restored, subresource=subresource)
            if managed is not None:
                await ask(patch_of(obj, {"metadata": {"managedFields": managed}}, manager=manager))
            return


def _managed(obj: Object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj.wire()["metadata"].get("managedFields") or []
    return found


def patch_of(obj: Object, patch: Mapping[str, Any], *, manager: str = MANAGER, dry_run: bool = False) -> Request:
    """The patch; the server applies it only to the version that was read."""
    metadata = {**patch.get("metadata", {}), "resourceVersion": obj.version, "uid": obj.uid}
    headers = {"accept": JSON, "content-type": PatchType.MERGE.value}
    query = {"fieldManager": (manager,), **({"dryRun": ("All",)} if dry_run else {})}
    path = unquote(obj.resource.path(obj.key.namespace, obj.key.name))
    return Request("PATCH", path, query, headers, encode({**patch, "metadata": metadata}))


# --- plans


async def as_it_would_be(client: Client, obj: Object, patch: Mapping[str, Any]) -> Object:
    """The object with a patch; the server checks it and stores nothing."""
    answer = await client.raw(patch_of(obj, patch, dry_run=True))
    return Object(obj.resource, answer.body)


async def planned(client: Client, kind: RolloutKind, obj: Object) -> PlanView | PlanSummary | Refusal:
    """The plan from what runs now to the object as it would be."""
    if kind.planner is None:
        return kind.unsupported["plan"]
    try:
        return kind.planner.plan(await _world(client, kind.planner.controllers, obj), obj.key, datetime.now(UTC))
    except Undecodable as error:
        return _unreadable(obj, error)


async def _world(client: Client, controllers: Sequence[Controller[Any]], obj: Object) -> View:
    """Everything that the controllers read, with the object as it would be."""
    resources = {
        resource
        for each in controllers
        for resource in (each.resource, *each.owns, *(watch.resource for watch in each.watches), *each.reads)
    }
    here, everywhere = Scope(namespace=obj.key.namespace), Scope()
    scopes = {resource: here if resource.namespaced else everywhere for resource in sorted(resources)}
    indexes = [index for each in controllers for index in each.indexes]
    return await listed(client, obj, scopes, indexes=indexes)
