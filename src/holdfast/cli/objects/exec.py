"""``holdfast exec``: a command in a container, with the input and output of this terminal.

The pod is one by its name, or one of the pods of an object of any kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import click

from holdfast.cli import connecting
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import completing, owned, targets
from holdfast.client import remote_commands
from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.remote_commands import OUTPUT, Ended, RemoteCommand
from holdfast.client.resources import PODS

_CHUNK: Final = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to run, and how."""

    command: tuple[str, ...]
    container: str
    input: bool
    tty: bool


@click.command("exec", cls=Verb, context_settings={"ignore_unknown_options": False})
@click.argument(
    "words",
    nargs=-1,
    metavar="POD | TYPE/NAME -- COMMAND [ARGUMENT...]",
    type=click.UNPROCESSED,
    shell_complete=completing.objects_or_pods,
)
@click.option("-c", "--container", default="", metavar="NAME", help="The container.  [default: the first]")
@click.option("-i", "--stdin", "input", is_flag=True, help="Send standard input to the command.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal, such as for a shell.")
@connecting.options
@click.pass_context
def command(
    ctx: click.Context, *, where: Where, words: tuple[str, ...], container: str, input: bool, tty: bool
) -> None:
    """Run a command in a container.

    The pod is one by its name, or the first ready pod of an object of any kind.

    \b
    A command:      holdfast exec web-0 -- ls -l
    A shell:        holdfast exec -it workload/shop -- sh
    With input:     echo hello | holdfast exec -i web-0 -- cat

    Exits with the code of the command.
    """
    named, argv = _split(words)
    if tty and not sys.stdin.isatty():
        click.echo("note: standard input is not a terminal, so the command gets none", err=True)
        tty = False
    wanted = Wanted(command=argv, container=container, input=input, tty=tty)
    code = 0

    async def run(session: Session) -> ExitCode | None:
        nonlocal code
        code = await _exec(session, named, wanted)
        return None

    connecting.run(where, run)
    ctx.exit(code)


def _split(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that name the pod, and the command."""
    if not words:
        raise click.UsageError("name a pod and a command: holdfast exec web-0 -- ls")
    # A name with a slash, or one alone, is all of the target; click has taken the -- away.
    count = 1
    named, argv = words[:count], words[count:]
    if not argv:
        raise click.UsageError(f"no command is given; write one after --: holdfast exec {named[0]} -- ls")
    return named, argv


async def _exec(session: Session, named: tuple[str, ...], wanted: Wanted) -> int:
    pod = await _pod(session, named)
    running = await remote_commands.execute(
        session.client, pod.key, wanted.command, container=wanted.container, input=wanted.input, tty=wanted.tty
    )
    try:
        with _raw_terminal() if wanted.tty else contextlib.nullcontext():
            async with _following_size(running) if wanted.tty else contextlib.nullcontext():
                sending = asyncio.ensure_future(_send_input(running)) if wanted.input else None
                try:
                    end = await _show_output(running)
                finally:
                    if sending is not None:
                        sending.cancel()
                        await asyncio.gather(sending, return_exceptions=True)
    finally:
        await running.close()
    if end.failure:
        raise Refused(printable(f"error: {end.failure}"))
    return end.code


async def _pod(session: Session, named: tuple[str, ...]) -> Object:
    """The pod in which the command runs."""
    known = await session.discovery()
    words = named if "/" in named[0] else ("pod", *named)
    target = await targets.one(session, words, discovery=known)
    obj = await session.client.get(target.resource, target.key)
    if target.resource == PODS:
        return obj
    found = await owned.pods(session, target.served, obj, known)
    active = [each for each in found if Pod.of(each).active]
    ready = [each for each in active if Pod.of(each).ready]
    if not active:
        called = f"{target.type}/{target.name}"
        raise Refused(
            f"error: {called} has no pods that run, so no command can run in one",
            f"hint: 'holdfast describe {called}' shows what it waits for",
        )
    chosen = (ready or active)[0]
    if len(active) > 1:
        click.echo(printable(f"note: in pod {chosen.key.name}, one of {len(active)}"), err=True)
    return chosen


async def _show_output(running: RemoteCommand) -> Ended:
    while not isinstance(said := await running.next(), Ended):
        stream = sys.stdout if said.channel == OUTPUT else sys.stderr
        stream.buffer.write(said.data)
        stream.buffer.flush()
    return said


# The terminal.


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass every key to the command, Ctrl-C too, until the block ends."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed ahead is kept
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.asynccontextmanager
async def _following_size(running: RemoteCommand) -> AsyncGenerator[None, None]:
    """Keep the command's terminal as large as this one."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[Any]] = set()

    def resize() -> None:
        size = shutil.get_terminal_size()
        task = asyncio.ensure_future(running.resize(size.columns, size.lines))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    resize()
    loop.add_signal_handler(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        for task in tuple(tasks):
            task.cancel()


async def _send_input(running: RemoteCommand) -> None:
    """Send standard input until its end."""
    descriptor = sys.stdin.fileno()
    while data := await _read(descriptor):
        await running.write(data)
    await running.end_input()


async def _read(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    except (OSError, PermissionError):
        return os.read(descriptor, _CHUNK)  # a file is always ready, and cannot be waited for
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _CHUNK)
