"""``holdfast operator wait-for``: hold a pod back until those that it starts after are ready.

It is the init container of pods that start in an order, so it takes what such a pod
knows: its namespace and its gang, from files, and the PodCliques that it waits for,
from its arguments.  A server that is away is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from holdfast.cli.errors import Complaint, InputError
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Client, Deleted, Scope, Unreachable
from holdfast.client.resources import PODS
from holdfast.meta.errors import StatusError

POD_INFO: Final = Path("/var/grove/pod-info")
"""Where a pod finds what it is: files ``namespace`` and ``podgangname``."""

_GANG: Final = "grove.io/podgang"
_CLIQUE: Final = "grove.io/podclique"
_AGAIN: Final = 1.0
"""Seconds before a server that did not answer is asked again."""


@click.command("wait-for")
@click.option(
    "--podcliques", "wanted", metavar="NAME:READY,...", required=True, help="How many of which must be ready."
)
@click.option(
    "--pod-info",
    type=click.Path(file_okay=False, path_type=Path),
    default=POD_INFO,
    show_default=True,
    help="Where the pod's namespace and gang stand.",
)
def command(wanted: str, pod_info: Path) -> None:
    """Wait until enough pods of other PodCliques of the same gang are ready; run by pods that start in an order."""
    needed = parse(wanted)
    scope = Scope(namespace=_read(pod_info, "namespace"), labels=f"{_GANG}={_read(pod_info, 'podgangname')}")
    asyncio.run(_run(needed, scope))


def parse(text: str) -> dict[str, int]:
    """``leader:1,workers:3`` as numbers by name."""
    needed: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.rpartition(":")
        if not name or not number.isascii() or not number.isdecimal():
            hint = "write names with numbers, such as --podcliques=set-0-leader:1,set-0-workers:3"
            raise InputError(
                Complaint(message=f"{part!r} does not say how many of what", hint=hint, path="--podcliques")
            )
        needed[name] = int(number)
    return needed


def lacking(needed: Mapping[str, int], pods: Iterable[Pod]) -> dict[str, int]:
    """How many ready pods of which PodCliques are still missing."""
    ready = [pod.metadata.labels.get(_CLIQUE, "") for pod in pods if pod.active and pod.ready]
    short = {name: number - ready.count(name) for name, number in needed.items()}
    return {name: number for name, number in short.items() if number > 0}


async def wait(client: Client, needed: Mapping[str, int], scope: Scope) -> None:
    """Returns when enough are ready."""
    while True:
        try:
            if await _watched(client, needed, scope):
                return
        except Unreachable as error:
            click.echo(f"the server cannot be reached, and is asked again: {error}", err=True)
        except StatusError as error:
            if not error.transient:
                raise
        await asyncio.sleep(_AGAIN)


async def _watched(client: Client, needed: Mapping[str, int], scope: Scope) -> bool:
    """Look, and then watch; whether enough are ready, or the watch ended before."""
    listed = await client.list(PODS, scope)
    known: dict[str, Object] = {obj.meta.name: obj for obj in listed.objects}
    missing = lacking(needed, map(Pod.of, known.values()))
    if not missing:
        return True
    click.echo(f"waiting for {', '.join(f'{number} of {name}' for name, number in missing.items())}")
    async with client.watch(PODS, scope, since=listed.version) as events:
        async for event in events:
            match event:
                case Bookmark():
                    continue
                case Deleted(object=obj):
                    known.pop(obj.meta.name, None)
                case _:
                    known[event.object.meta.name] = event.object
            if not lacking(needed, map(Pod.of, known.values())):
                return True
    return False


async def _run(needed: Mapping[str, int], scope: Scope) -> None:
    connection = connect()
    try:
        await wait(connection.client, needed, scope)
    finally:
        await connection.client.close()


def _read(directory: Path, name: str) -> str:
    path = directory / name
    try:
        return path.read_text().strip()
    except OSError as error:
        hint = "this command is run by pods that start in an order; give --pod-info to run it elsewhere"
        raise InputError(Complaint(message=f"{path} cannot be read: {error.strerror}", hint=hint)) from error
