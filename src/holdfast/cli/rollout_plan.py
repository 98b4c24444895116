"""``holdfast rollout plan``: what will happen, from what runs now.

The server is asked what it would make of a change (a dry run), and the world is read as
the operator reads it; the plan is the engine's own preview from there.  Nothing is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from holdfast.cli import sources
from holdfast.cli.apply import MANAGER
from holdfast.cli.connecting import Refused, Session
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.plan import show
from holdfast.cli.rollout_verbs import Refusal, Rolls
from holdfast.cli.targets import Target
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Scope
from holdfast.client.resources import Resource
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.stores import Store, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked about: a manifest, or an object that exists and what would be changed of it."""

    file: str = ""
    image: str = ""
    replicas: int | None = None
    output: str = "table"

    def changes(self) -> dict[str, Any]:
        given = {"image": self.image or None, "replicas": self.replicas}
        spec = {field: value for field, value in given.items() if value is not None}
        return {"spec": spec} if spec else {}


async def plan(session: Session, target: Target | None, wish: Wish, *, kinds: Sequence[Rolls]) -> ExitCode | None:
    """Print the plan of a change, or of what is under way."""
    if target is not None:
        obj = await _changed(session, target, wish.changes())
    else:
        obj = await _applied(session, wish, kinds)
    rolls = next(each for each in kinds if each.resource == obj.resource.group_resource)
    view = rolls.outlook(await _world(session, rolls.controller, obj), obj.key, datetime.now(UTC))
    if isinstance(view, Refusal):
        raise Refused(f"blocked: {view.message}", f"remedy: {view.hint}")
    show(view, wish.output)
    return ExitCode.BLOCKED if view.blocked else None


# Asking the server.


async def _changed(session: Session, target: Target, changes: Mapping[str, Any]) -> Object:
    if not changes:
        return await session.client.get(target.resource, target.key)
    return await _tried(session, target, changes, type=PatchType.MERGE)


async def _applied(session: Session, wish: Wish, kinds: Sequence[Rolls]) -> Object:
    """What the server would make of the one manifest in the file that rolls out."""
    known = await session.discovery()
    found = [(each, known.kind(each.gvk)) for each in sources.read((wish.file,))]
    names = [each.resource for each in kinds]
    rolling = [(each, served) for each, served in found if served.resource.group_resource in names]
    if len(rolling) != 1:
        there = ", ".join(each.name for each, _ in rolling) or "none"
        message = f"exactly one object that rolls out has to be in {wish.file}, and there is {there}"
        raise InputError(Complaint(message=message, hint=f"such objects are of {', '.join(names)}"))
    ((manifest, served),) = rolling
    key = manifest.key(served, session.namespace, strict=session.strict)
    target = Target(served, Scope(namespace=key.namespace), key.name)
    metadata = {**manifest.value["metadata"], "namespace": key.namespace}
    document = {**manifest.value, "metadata": metadata, "spec": manifest.value["spec"] | wish.changes().get("spec", {})}
    return await _tried(session, target, document, type=PatchType.APPLY, force="true")


async def _tried(session: Session, target: Target, body: Mapping[str, Any], *, type: PatchType, **query: str) -> Object:
    """The object as it would be; the server keeps nothing."""
    asked = {"dryRun": ("All",), "fieldManager": (MANAGER,), **{name: (value,) for name, value in query.items()}}
    headers = {"accept": JSON, "content-type": type.value}
    answer = await session.ask(Request("PATCH", unquote(target.path), asked, headers, encode(body)))
    return Object(target.resource, answer.body)


# The world as the operator sees it.


class _World:
    """A `View` of what was listed."""

    def __init__(self, stores: Mapping[Resource, Store]) -> None:
        self._stores = stores

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._stores[resource].get(key)

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        return self._stores[resource].list(namespace=namespace, labels=labels)

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return self._stores[resource].owned(uid)

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        return self._stores[resource].indexed(index, value)


async def _world(session: Session, controller: Controller[Any], obj: Object) -> View:
    """Everything that the operator would look at, with the object as it would be."""
    resources = {*controller.owns, *(watch.resource for watch in controller.watches), *controller.reads}
    resources.discard(controller.resource)

    async def listed(resource: Resource) -> Store:
        scope = Scope(namespace=obj.key.namespace) if resource.namespaced else Scope()
        listing = await session.client.list(resource, scope)
        store = Store(resource, indexes=(each for each in controller.indexes if each.resource == resource))
        Writer(store).replace(listing.objects, listing.version)
        return store

    ordered = sorted(resources)
    stores = dict(zip(ordered, await asyncio.gather(*map(listed, ordered)), strict=True))
    own = Store(controller.resource, indexes=(each for each in controller.indexes if each.resource == obj.resource))
    Writer(own).put(obj)
    return _World({**stores, controller.resource: own})
