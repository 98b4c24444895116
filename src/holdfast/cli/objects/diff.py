"""``holdfast diff``: what ``holdfast apply`` would change, by a dry run on the server.

The server merges, defaults and checks as it would for the change, and stores nothing; the two objects are compared as
YAML.  Values in Secrets are not shown, only that they differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from holdfast.cli import connecting, painting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.manifests import sources
from holdfast.cli.manifests.sources import Manifest
from holdfast.cli.objects import apply, printers
from holdfast.cli.objects.apply import Way
from holdfast.client.discovery import UnknownResource
from holdfast.meta.errors import StatusError
from holdfast.views.spans import Line, Span, Tone

Object = dict[str, Any]

_BY_SERVER: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
"""Metadata that the server sets, which differs although no field of the manifest does."""

_TONES: Final = {"-": Tone.BAD, "+": Tone.GOOD, "@": Tone.OLD}


@click.command("diff", cls=Verb)
@sources.files
@sources.recursive
@click.option("--force-conflicts", is_flag=True, help="As if fields of other managers were taken over.")
@click.option("--field-manager", default=apply.MANAGER, show_default=True, metavar="NAME", help="Who would apply.")
@click.option(
    "-U", "--unified", "around", type=click.IntRange(0), default=3, metavar="N", help="Lines around a change."
)
@connecting.options
def command(
    *, where: Where, files: tuple[str, ...], recursive: bool, force_conflicts: bool, field_manager: str, around: int
) -> None:
    """Show what apply would change.

    \b
    A file:           holdfast diff -f web.yaml
    A directory:      holdfast diff -R -f manifests/
    In a script:      holdfast diff -f web.yaml || echo "it would change"

    Exits with 0 when nothing would change, with 1 when something would, and with 2 when that cannot be determined.
    """
    if not files:
        raise click.UsageError("nothing is given to compare; write -f FILE")
    read = sources.read(files, recursive=recursive)
    way = Way(manager=field_manager, force=force_conflicts, dry_run="server", validation="Strict")
    try:
        connecting.run(where, lambda session: _diff(session, read, way, around))
    except (connecting.NoServer, connecting.Refused) as error:
        error.show()
        raise click.exceptions.Exit(ExitCode.BAD_INPUT) from None


async def _diff(session: Session, read: Sequence[Manifest], way: Way, around: int) -> ExitCode | None:
    known = await session.discovery()
    apply.check(read, known, session)
    problems: list[str] = []
    differs = False
    colours = painting.has_colours()
    for manifest in sorted(read, key=apply.turn):
        try:
            before, after = await apply.sent(session, manifest, known, way)
        except StatusError as error:
            problems.append(await apply.refused(session, error, manifest, way))
            continue
        except UnknownResource as error:
            problems.append(f"error: {manifest.document.place}: {error}")
            continue
        lines = list(compared(before, after, name=f"{manifest.gvk.group_kind.lower()}/{manifest.name}", around=around))
        if lines:
            differs = True
            click.echo(painting.text(lines, colours=colours), color=True)
    if connecting.report(problems):
        return ExitCode.BAD_INPUT
    return ExitCode.BLOCKED if differs else None


def compared(before: Object | None, after: Object, *, name: str, around: int = 3) -> Iterator[Line]:
    """The lines that differ, with some around them; none where nothing differs."""
    old, new = _hidden(before, after)
    title = "created" if before is None else "now"
    changes = difflib.unified_diff(
        _lines(old), _lines(new), f"{name} ({title})", f"{name} (as applied)", lineterm="", n=around
    )
    for line in changes:
        head = line.startswith(("---", "+++"))
        yield (Span(line, Tone.STRONG if head else _TONES.get(line[:1], Tone.PLAIN)),)


def _lines(obj: Object | None) -> list[str]:
    return [] if obj is None else printers.as_yaml(_bare(obj)).splitlines()


def _bare(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _BY_SERVER}
    return {name: metadata if name == "metadata" else value for name, value in obj.items() if name != "status"}


def _hidden(before: Object | None, after: Object) -> tuple[Object | None, Object]:
    """The objects without the values of a Secret, but with what shows which of them differ."""
    if after.get("kind") != "Secret":
        return before, after
    old, new = (before or {}).get("data") or {}, after.get("data") or {}

    def masked(obj: Object, side: str) -> Object:
        data = obj.get("data") or {}
        changed = {name for name in (*old, *new) if name in old and name in new and old[name] != new[name]}
        hidden = {name: f"*** ({side})" if name in changed else "***" for name in data}
        return {**obj, "data": hidden} if data else obj

    return (None if before is None else masked(before, "before")), masked(after, "after")
