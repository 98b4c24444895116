"""``holdfast operator wait-for``: keep a pod from starting until pods of other groups are ready.

It runs in the init container of pods that start in an order.  It reads the pod's
namespace and the value of the shared label from files, and the groups to wait for from
its options; each operator declares its own (`StartOrder`).  It retries while the server
cannot be reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.operator import selection
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Client, Deleted, Scope, Unreachable
from holdfast.client.resources import PODS
from holdfast.meta.errors import StatusError
from holdfast.operators.operator import StartOrder

_RETRY_SECONDS: Final = 1.0
"""How long to wait before the server is asked again."""


class _WaitFor(click.Command):
    """A command with one option for each operator that declares a start order."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        options = (
            click.Option([f"--{each.option}"], metavar="NAME:READY,...", help="How many pods of which must be ready.")
            for each in _orders()
        )
        return [*options, *super().get_params(ctx)]


@click.command("wait-for", cls=_WaitFor)
@click.option(
    "--pod-info",
    type=PathType(file_okay=False),
    help="The directory with the pod's namespace and shared label.  [default: as the operator mounts it]",
)
def command(pod_info: Path | None, **given: Any) -> None:
    """Wait until enough pods that start earlier are ready; for init containers."""
    orders = [each for each in _orders() if given.get(each.option) is not None]
    if len(orders) != 1:
        raise click.UsageError(f"give one of {', '.join(f'--{each.option}' for each in _orders())}")
    (order,) = orders
    needed = parse(given[order.option], option=order.option)
    directory = pod_info or Path(order.pod_info)
    scope = Scope(namespace=_read(directory, "namespace"), labels=f"{order.scope}={_read(directory, order.file)}")
    asyncio.run(_run(needed, scope, order.group))


def _orders() -> tuple[StartOrder, ...]:
    return tuple(each.start_order for each in selection.operators() if each.start_order is not None)


def parse(text: str, *, option: str) -> dict[str, int]:
    """``leader:1,workers:3`` as numbers by name."""
    needed: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.rpartition(":")
        if not name or not number.isascii() or not number.isdecimal():
            hint = f"write names with numbers, such as --{option}=set-0-leader:1,set-0-workers:3"
            raise InputError(Complaint(message=f"{part!r} is not NAME:READY", hint=hint, path=f"--{option}"))
        needed[name] = int(number)
    return needed


def missing(needed: Mapping[str, int], pods: Iterable[Pod], *, label: str) -> dict[str, int]:
    """How many ready pods each group still needs."""
    ready = [pod.metadata.labels.get(label, "") for pod in pods if pod.active and pod.ready]
    short = {name: number - ready.count(name) for name, number in needed.items()}
    return {name: number for name, number in short.items() if number > 0}


async def wait(client: Client, needed: Mapping[str, int], scope: Scope, *, label: str) -> None:
    """Return when enough pods are ready."""
    while True:
        try:
            if await _watched(client, needed, scope, label):
                return
        except Unreachable as error:
            click.echo(f"the server cannot be reached; retrying in {_RETRY_SECONDS:g}s: {error}", err=True)
        except StatusError as error:
            if not error.transient:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


async def _watched(client: Client, needed: Mapping[str, int], scope: Scope, label: str) -> bool:
    """List the pods, then watch them; False if the watch ends before enough are ready."""
    listed = await client.list(PODS, scope)
    known: dict[str, Object] = {obj.meta.name: obj for obj in listed.objects}
    short = missing(needed, map(Pod.of, known.values()), label=label)
    if not short:
        return True
    click.echo(f"waiting for {', '.join(f'{number} ready pods of {name}' for name, number in short.items())}")
    async with client.watch(PODS, scope, since=listed.version) as events:
        async for event in events:
            match event:
                case Bookmark():
                    continue
                case Deleted(object=obj):
                    known.pop(obj.meta.name, None)
                case _:
                    known[event.object.meta.name] = event.object
            if not missing(needed, map(Pod.of, known.values()), label=label):
                return True
    return False


async def _run(needed: Mapping[str, int], scope: Scope, label: str) -> None:
    connection = connect()
    try:
        await wait(connection.client, needed, scope, label=label)
    finally:
        await connection.client.close()


def _read(directory: Path, name: str) -> str:
    path = directory / name
    try:
        return path.read_text().strip()
    except OSError as error:
        hint = "this command is for init containers of pods that start in an order; elsewhere give --pod-info"
        raise InputError(Complaint(message=f"{path} cannot be read: {error.strerror}", hint=hint)) from error
