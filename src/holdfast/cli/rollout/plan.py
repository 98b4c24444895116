"""``holdfast rollout plan``: what will happen, from what runs now.

The server is asked what it would make of a change (a dry run), and the world is read as
the operator reads it; the plan is the engine's own preview from there.  Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from holdfast.cli.connecting import Refused, Session
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.manifests import sources
from holdfast.cli.objects.apply import MANAGER
from holdfast.cli.objects.targets import Target
from holdfast.cli.plan.command import show
from holdfast.cli.rollout.listed import listed
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Scope
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.operators.rollouts import Planner, Refusal, RolloutKind
from holdfast.runtime.controllers import Controller, View


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


async def plan(session: Session, target: Target | None, wish: Wish, *, kinds: Sequence[RolloutKind]) -> ExitCode | None:
    """Print the plan of a change, or of what is under way."""
    manifest: Mapping[str, Any] | None = None
    if target is None:
        target, manifest = await _described(session, wish, kinds)
    outlook = _outlook(kinds, target)
    if manifest is None:
        obj = await _changed(session, target, wish.changes())
    else:
        obj = await _tried(session, target, manifest, type=PatchType.APPLY, force="true")
    view = outlook.plan(await _world(session, outlook.controller, obj), obj.key, datetime.now(UTC))
    if isinstance(view, Refusal):
        raise Refused(f"blocked: {view.message}", f"remedy: {view.hint}")
    show(view, wish.output)
    return ExitCode.BLOCKED if view.blocked else None


def _outlook(kinds: Sequence[RolloutKind], target: Target) -> Planner:
    """How the kind of an object is planned; raises `Refused`."""
    kind = next(each for each in kinds if each.name == target.resource.group_resource)
    if kind.planner is None:
        raise Refused(*kind.unsupported["plan"].lines(f"{target.type}/{target.name}"))
    return kind.planner


# Asking the server.


async def _changed(session: Session, target: Target, changes: Mapping[str, Any]) -> Object:
    if not changes:
        return await session.client.get(target.resource, target.key)
    return await _tried(session, target, changes, type=PatchType.MERGE)


async def _described(session: Session, wish: Wish, kinds: Sequence[RolloutKind]) -> tuple[Target, Mapping[str, Any]]:
    """The one manifest in the file that rolls out, and which object it is about."""
    known = await session.discovery()
    found = [(each, known.kind(each.gvk)) for each in sources.read((wish.file,))]
    names = [each.name for each in kinds]
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
    return target, document


async def _tried(session: Session, target: Target, body: Mapping[str, Any], *, type: PatchType, **query: str) -> Object:
    """The object as it would be; the server keeps nothing."""
    asked = {"dryRun": ("All",), "fieldManager": (MANAGER,), **{name: (value,) for name, value in query.items()}}
    headers = {"accept": JSON, "content-type": type.value}
    answer = await session.ask(Request("PATCH", unquote(target.path), asked, headers, encode(body)))
    return Object(target.resource, answer.body)


# The world as the operator sees it.


async def _world(session: Session, controller: Controller[Any], obj: Object) -> View:
    """Everything that the operator would look at, with the object as it would be."""
    resources = {*controller.owns, *(watch.resource for watch in controller.watches), *controller.reads}
    here, everywhere = Scope(namespace=obj.key.namespace), Scope()
    scopes = {resource: here if resource.namespaced else everywhere for resource in sorted(resources)}
    return await listed(session.client, obj, scopes, indexes=controller.indexes)
