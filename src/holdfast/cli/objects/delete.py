"""``holdfast delete``: delete objects, and wait until they are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from holdfast.cli import connecting, progress
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.objects import fetching, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.cli.objects.wait import timeout_of, too_late
from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import Propagation
from holdfast.meta.errors import NotFound, StatusError

_CASCADES: Final[dict[str, Propagation]] = {
    "background": "Background",
    "foreground": "Foreground",
    "orphan": "Orphan",
}
_FORCED: Final = (
    "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
    "The resource may continue to run on the cluster indefinitely."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to delete objects."""

    propagation: Propagation
    grace: int | None
    """Seconds; None: the default of each object."""
    forced: bool
    wait: bool
    timeout: float | None
    ignore_not_found: bool


@click.command("delete", cls=Verb)
@targets.options
@click.option("--all", "every", is_flag=True, help="All objects of the type.")
@click.option(
    "--cascade", type=click.Choice(list(_CASCADES)), default="background", show_default=True,
    help="What becomes of its children: they go afterwards, or before it, or stay.",
)  # fmt: skip
@click.option(
    "--grace-period", type=int, default=-1, metavar="SECONDS", help="How long it may take to end.  [default: its own]"
)
@click.option("--now", is_flag=True, help="The same as --grace-period=1.")
@click.option("--force", is_flag=True, help="Let it vanish at once, whatever still runs.")
@click.option("--wait/--no-wait", default=True, help="Whether to wait until it is gone.  [default: wait]")
@click.option(
    "--timeout", callback=timeout_of, default="0s", metavar="DURATION",
    help="How long to wait at most.  [default: as long as it takes]",
)  # fmt: skip
@click.option("--ignore-not-found", is_flag=True, help="Succeed where there is no such object.")
@connecting.options
def command(
    *,
    where: Where,
    asked: Asked,
    every: bool,
    cascade: str,
    grace_period: int,
    now: bool,
    force: bool,
    wait: bool,
    timeout: float,
    ignore_not_found: bool,
) -> None:
    """Delete objects, and wait until they are deleted.

    \b
    One:                 holdfast delete pod web-0
    By its manifest:     holdfast delete -f web.yaml --ignore-not-found
    Those with a label:  holdfast delete pods,services -l app=web
    But keep its pods:   holdfast delete statefulset db --cascade=orphan
    """
    if every and asked.labels:
        raise click.UsageError("--all and a selector are given; leave one of them out")
    way = Way(
        propagation=_CASCADES[cascade],
        grace=_grace(grace_period, now=now, force=force),
        forced=force,
        wait=wait,
        timeout=timeout or None,
        # Of all there are, none may be missing: they may go on their own meanwhile.
        ignore_not_found=ignore_not_found or every,
    )
    connecting.run(where, lambda session: _delete(session, asked, way, every=every))


def _grace(seconds: int, *, now: bool, force: bool) -> int | None:
    if now and seconds >= 0:
        raise click.UsageError("--now and --grace-period are given; leave one of them out")
    if now:
        seconds = 1
    if force:
        if seconds > 0:
            raise click.UsageError("--force leaves no time, so there is no --grace-period; leave one of them out")
        return 0
    # Without --force, nothing vanishes while it may still run: the shortest time is a second.
    return None if seconds < 0 else max(seconds, 1)


async def _delete(session: Session, asked: Asked, way: Way, *, every: bool) -> ExitCode | None:
    found = await targets.targets(asked, session)
    targets.check_named(found, asked, every=every)
    objects = await fetching.named(session.client, found)
    if not objects:
        click.echo("No resources found")
    elif way.forced:
        click.echo(_FORCED, err=True)
    leaving: list[tuple[Target, Object]] = []
    problems: list[str] = []
    for target in objects:
        try:
            left = await session.client.delete(
                target.resource, target.key, propagation=way.propagation, grace_seconds=way.grace
            )
        except StatusError as error:
            if not (isinstance(error, NotFound) and way.ignore_not_found):
                problems.append(connecting.words(error))
            continue
        click.echo(f'{target.type} "{target.name}" {"force " if way.forced else ""}deleted')
        if left is not None:
            leaving.append((target, left))
    if way.wait:
        problems += await _waited(session, leaving, timeout=way.timeout)
    return connecting.report(problems)


async def _waited(session: Session, leaving: Sequence[tuple[Target, Object]], *, timeout: float | None) -> list[str]:
    """Wait until all are deleted; returns the messages about those that are not."""
    waits = [asyncio.ensure_future(_late(session, each, left.uid, timeout=timeout)) for each, left in leaving]
    async with progress.waiting(lambda: _left([target for target, _ in leaving], waits)):
        late = await asyncio.gather(*waits)
    return [too_late(target) for (target, _), each in zip(leaving, late, strict=True) if each]


def _left(leaving: Sequence[Target], waits: Sequence[asyncio.Future[bool]]) -> str:
    there = [f"{target.type}/{target.name}" for target, wait in zip(leaving, waits, strict=True) if not wait.done()]
    more = f" and {len(there) - 2} more" if len(there) > 2 else ""
    return f"waiting until {', '.join(there[:2])}{more} {'is' if len(there) == 1 else 'are'} deleted"


async def _late(session: Session, target: Target, uid: str, *, timeout: float | None) -> bool:
    def gone(obj: Object | None) -> bool:
        return obj is None or obj.uid != uid  # another of the same name is none of our business

    try:
        await waiting.until(session.client, target.resource, target.key, gone, timeout=timeout)
    except TimeoutError:
        return True
    return False
