"""``holdfast apply``: objects as manifests say, by server-side apply.

Everything is read and checked before anything is sent.  Then each object is
applied by itself: what is wrong with one keeps no other from being applied.
Namespaces and definitions of kinds go first, for the others may need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote

import click
import msgspec

from holdfast.cli import connecting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.manifests import explaining, sources
from holdfast.cli.manifests.sources import Manifest
from holdfast.client import waiting
from holdfast.client.discovery import Discovery, Served, UnknownResource
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType
from holdfast.client.resources import DEFINITIONS, NAMESPACES
from holdfast.meta.errors import Conflict, NotFound, StatusError
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.objects import GVK, Key

MANAGER: Final = "holdfast-apply"
"""The field manager of this command; operators apply as `holdfast`."""

DryRun = Literal["none", "client", "server"]

_ESTABLISHED_SECONDS: Final = 30.0
_FIRST: Final = (NAMESPACES.gvk, DEFINITIONS.gvk)
_NOTES: Final[dict[DryRun, str]] = {"none": "", "client": " (dry run)", "server": " (server dry run)"}
_UNCOMPARED: Final = ("managedFields", "resourceVersion", "generation")
"""Metadata that differs although no field of the manifest has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to apply."""

    manager: str
    force: bool
    dry_run: DryRun
    validation: str


def _refuse_prune(ctx: click.Context, parameter: click.Parameter, given: bool) -> bool:
    if given:
        hint = "delete what is no longer wanted by name, or by label: holdfast delete TYPE -l LABELS"
        raise InputError(Complaint(message="apply deletes nothing", hint=hint, path="--prune"))
    return given


@click.command("apply", cls=Verb)
@sources.files
@sources.recursive
@click.option("--server-side/--no-server-side", default=True, help="Let the server merge; there is no other way.")
@click.option(
    "--dry-run", type=click.Choice(["none", "client", "server"]), default="none", show_default=True,
    help="Change nothing: only check here, or have the server do all but keep it.",
)  # fmt: skip
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others have set otherwise.")
@click.option("--field-manager", default=MANAGER, show_default=True, metavar="NAME", help="Who owns what is applied.")
@click.option(
    "--validate", type=click.Choice(["strict", "warn", "ignore"]), default="strict", show_default=True,
    help="What becomes of fields that the server does not know.",
)  # fmt: skip
@click.option("--prune", is_flag=True, hidden=True, expose_value=False, callback=_refuse_prune)
@connecting.options
def command(
    *,
    where: Where,
    files: tuple[str, ...],
    recursive: bool,
    server_side: bool,
    dry_run: DryRun,
    force_conflicts: bool,
    field_manager: str,
    validate: str,
) -> None:
    """Create or change objects as manifests declare.

    \b
    From a file:         holdfast apply -f web.yaml
    From a directory:    holdfast apply -R -f manifests/
    From a pipe:         holdfast crds | holdfast apply -f -
    Just to see:         holdfast apply -f web.yaml --dry-run=server

    Exits with 1 when anything could not be applied; all else was.
    """
    if not files:
        raise click.UsageError("nothing is given to apply; write -f FILE")
    if not server_side:
        raise click.UsageError("only server-side apply is there; leave out --no-server-side")
    read = sources.read(files, recursive=recursive)
    way = Way(manager=field_manager, force=force_conflicts, dry_run=dry_run, validation=validate.capitalize())
    connecting.run(where, lambda session: _apply(session, read, way))


async def _apply(session: Session, read: Sequence[Manifest], way: Way) -> ExitCode | None:
    known = await session.discovery()
    check(read, known, session)
    problems: list[str] = []
    for manifest in sorted(read, key=turn):
        try:
            if not _is_served(manifest, known) and way.dry_run != "client":
                known = await session.discovery()
            click.echo(await _applied(session, manifest, known, way))
            if manifest.gvk == DEFINITIONS.gvk and way.dry_run == "none":
                await _established(session, manifest.name)
        except StatusError as error:
            problems.append(await refused(session, error, manifest, way))
        except (UnknownResource, TimeoutError) as error:
            problems.append(f"error: {manifest.document.place}: {error}")
    return connecting.report(problems)


def turn(manifest: Manifest) -> int:
    return _FIRST.index(manifest.gvk) if manifest.gvk in _FIRST else len(_FIRST)


# Before anything is sent.


def check(read: Sequence[Manifest], known: Discovery, session: Session) -> None:
    """Check that the server serves every object's kind; raises `InputError` with all that it does not."""
    coming = {gvk for manifest in read for gvk in _defined(manifest)}
    complaints: list[Complaint] = []
    for manifest in read:
        try:
            manifest.key(known.kind(manifest.gvk), session.namespace, strict=session.strict)
        except UnknownResource as error:
            if manifest.gvk not in coming:
                complaints.append(manifest.complaint(str(error), path="kind"))
        except InputError as error:
            complaints += error.complaints
    if complaints:
        raise InputError(*complaints)


def _is_served(manifest: Manifest, known: Discovery) -> bool:
    return any(each.resource.gvk == manifest.gvk for each in known.served)


def _defined(manifest: Manifest) -> list[GVK]:
    """The kinds that a CustomResourceDefinition defines."""
    if manifest.gvk != DEFINITIONS.gvk:
        return []
    try:
        spec = msgspec.convert(manifest.value.get("spec"), _Definition)
    except msgspec.ValidationError:
        return []  # the server says better what is wrong
    return [GVK(spec.group, version.name, spec.names.kind) for version in spec.versions]


class _Names(msgspec.Struct):
    kind: str


class _Version(msgspec.Struct):
    name: str


class _Definition(msgspec.Struct):
    group: str
    names: _Names
    versions: list[_Version]


async def _established(session: Session, name: str) -> None:
    """Wait until a new kind is served."""

    def served(obj: Object | None) -> bool:
        conditions = (obj.wire().get("status") or {}).get("conditions") or () if obj else ()
        return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)

    await waiting.until(session.client, DEFINITIONS, Key("", name), served, timeout=_ESTABLISHED_SECONDS)


# Sending.


async def _applied(session: Session, manifest: Manifest, known: Discovery, way: Way) -> str:
    """Apply one object; returns the result in a word."""
    subject = f"{manifest.gvk.group_kind.lower()}/{manifest.name}"
    if way.dry_run == "client" and not _is_served(manifest, known):
        return f"{subject} created{_NOTES[way.dry_run]}"  # its definition is only about to be
    if way.dry_run == "client":
        served = known.kind(manifest.gvk)
        before = await _before(session, served, manifest.key(served, session.namespace, strict=session.strict))
        result = "created" if before is None else "configured"
    else:
        before, after = await sent(session, manifest, known, way)
        same = before is not None and _comparable(before) == _comparable(after)
        result = "created" if before is None else "unchanged" if same else "configured"
    return f"{subject} {result}{_NOTES[way.dry_run]}"


async def sent(
    session: Session, manifest: Manifest, known: Discovery, way: Way
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Send an object; returns it as it was, if it was there, and as it is afterwards, or would be."""
    served = known.kind(manifest.gvk)
    key = manifest.key(served, session.namespace, strict=session.strict)
    before = await _before(session, served, key)
    answer = await session.ask(_request(manifest, served, key, way))
    return before, msgspec.json.decode(answer.body)


async def _before(session: Session, served: Served, key: Key) -> dict[str, Any] | None:
    try:
        return (await session.client.get(served.resource, key)).wire()
    except NotFound:
        return None


def _request(manifest: Manifest, served: Served, key: Key, way: Way) -> Request:
    query = {"fieldManager": way.manager, "fieldValidation": way.validation, "force": str(way.force).lower()}
    if way.dry_run == "server":
        query["dryRun"] = "All"
    metadata = {**manifest.value["metadata"], **({"namespace": key.namespace} if key.namespace else {})}
    headers = {"accept": JSON, "content-type": PatchType.APPLY.value}
    body = encode({**manifest.value, "metadata": metadata})
    path = unquote(served.resource.path(key.namespace, key.name))
    return Request("PATCH", path, {name: (value,) for name, value in query.items()}, headers, body)


def _comparable(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _UNCOMPARED}
    return {**obj, "metadata": metadata}


async def refused(session: Session, error: StatusError, manifest: Manifest, way: Way) -> str:
    """An error of the server, with the lines of the file that it is about and what to write instead."""
    if isinstance(error, Conflict) and not way.force:
        said = connecting.words(error, doing=f'error when applying "{manifest.document.place}"')
        owners = list(dict.fromkeys(cause.message for cause in error.causes if cause.message))
        lines = [said, *(f"  {owner}" for owner in owners if owner not in said)]
        lines.append("hint: --force-conflicts takes these fields over, --field-manager=NAME applies as their owner")
        return "\n".join(lines)
    found = await explaining.complaints(session, manifest, error)
    if found:
        return InputError(*found).format_message()
    return connecting.words(error, doing=f'error when applying "{manifest.document.place}"')
