"""``holdfast rollout plan``: what a rollout will do, starting from what runs now.

A dry run on the server gives the object as it would be.  The command then reads what the
operator would read, and the engine previews the rollout from there.  Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from holdfast.cli.connecting import Refused, Session
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.manifests import sources
from holdfast.cli.objects.apply import MANAGER
from holdfast.cli.objects.targets import Target
from holdfast.cli.plan.command import show
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Scope
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.patches import merge
from holdfast.operators import steering
from holdfast.operators.rollouts import Refusal, RolloutKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What to plan: a manifest, or an object that exists and the settings that would change.

    settings  the values of --image and --replicas, by setting
    """

    file: str = ""
    settings: Mapping[str, Any]
    output: str = "table"


async def plan(
    session: Session, target: Target | None, options: PlanOptions, *, kinds: Sequence[RolloutKind]
) -> ExitCode | None:
    """Print the plan of a change, or of the rollout that is in progress."""
    manifest: Mapping[str, Any] | None = None
    if target is None:
        target, manifest = await _described(session, options, kinds)
    kind = next(each for each in kinds if each.name == target.resource.group_resource)
    if kind.planner is None:
        raise Refused(*kind.unsupported["plan"].lines(f"{target.type}/{target.name}"))
    changes = changed(kind, options.settings)
    if manifest is not None:
        body = merge.apply(manifest, changes)
        obj = await _dry_run(session, target, body, type=PatchType.APPLY, force="true")
    elif changes:
        obj = await _dry_run(session, target, changes, type=PatchType.MERGE)
    else:
        obj = await session.client.get(target.resource, target.key)
    view = await steering.planned(session.client, kind, obj)
    if isinstance(view, Refusal):
        raise Refused(f"blocked: {view.message}", f"remedy: {view.hint}")
    show(view, options.output, paths=kind.settings)
    return ExitCode.BLOCKED if view.blocked else None


def changed(kind: RolloutKind, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as a merge patch; raises `InputError` for one that the kind does not have."""
    patch: dict[str, Any] = {}
    for setting, value in settings.items():
        path = kind.settings.get(setting)
        if path is None:
            message = f"{kind.name} has no field that this option sets"
            raise InputError(Complaint(message=message, hint="write the change in a manifest: -f", path=f"--{setting}"))
        *parents, last = path.split(".")
        inner = patch
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return patch


# The object as it would be.


async def _described(
    session: Session, options: PlanOptions, kinds: Sequence[RolloutKind]
) -> tuple[Target, Mapping[str, Any]]:
    """The one manifest of the file whose kind rolls out, and the object that it describes."""
    known = await session.discovery()
    found = [(each, known.kind(each.gvk)) for each in sources.read((options.file,))]
    names = [each.name for each in kinds]
    rolling = [(each, served) for each, served in found if served.resource.group_resource in names]
    if len(rolling) != 1:
        there = ", ".join(each.name for each, _ in rolling) or "none"
        message = f"{options.file} must have exactly one object that rolls out, and it has {there}"
        raise InputError(Complaint(message=message, hint=f"such objects are of {', '.join(names)}"))
    ((manifest, served),) = rolling
    key = manifest.key(served, session.namespace, strict=session.strict)
    target = Target(served, Scope(namespace=key.namespace), key.name)
    return target, {**manifest.value, "metadata": {**manifest.value["metadata"], "namespace": key.namespace}}


async def _dry_run(
    session: Session, target: Target, body: Mapping[str, Any], *, type: PatchType, **query: str
) -> Object:
    """The object as it would be; the server stores nothing."""
    asked = {"dryRun": ("All",), "fieldManager": (MANAGER,), **{name: (value,) for name, value in query.items()}}
    headers = {"accept": JSON, "content-type": type.value}
    answer = await session.ask(Request("PATCH", unquote(target.path), asked, headers, encode(body)))
    return Object(target.resource, answer.body)
