"""Sessions with a container: a command that a client runs in it, and connections to its ports.

Messages begin with the number of their channel, as Kubernetes has it (``v4.channel.k8s.io`` and ``v5``): input 0,
output 1, errors 2, the result 3, the size of the terminal 4, and in v5 the end of a channel 255.  The command writes
to descriptors of this process, so a client that does not read holds up the command and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import termios
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from holdfast.cluster.process.running.containers import ContainerRun, Executed
from holdfast.meta.errors import BadRequest
from holdfast.meta.exchange import Duplex, Request

EXEC_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")

INPUT, OUTPUT, ERRORS, RESULT, SIZE, CLOSED = 0, 1, 2, 3, 4, 255

_CHUNK: Final = 32 * 1024
_LAST_WORDS: Final = 1.0
"""Seconds that output may still come from processes which the command left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOptions:
    """What a client asks for."""

    command: tuple[str, ...]
    container: str = ""
    input: bool = False
    output: bool = False
    errors: bool = False
    tty: bool = False

    @classmethod
    def of(cls, request: Request) -> ExecOptions:
        command = request.query.get("command", ())
        if not command:
            raise BadRequest("you must specify at least 1 command for the container")
        options = cls(
            command=command,
            container=request.param("container"),
            input=request.flag("stdin"),
            output=request.flag("stdout"),
            errors=request.flag("stderr") and not request.flag("tty"),
            tty=request.flag("tty"),
        )
        if not (options.input or options.output or options.errors):
            raise BadRequest("you must specify at least one of stdin, stdout, stderr")
        return options


async def execute(duplex: Duplex, run: ContainerRun, argv: tuple[str, ...], options: ExecOptions) -> None:
    """Run a command in a container for a client, until it ends or the client goes; nothing of it stays."""
    with contextlib.ExitStack() as stack:
        ends = _Terminal(stack) if options.tty else _Pipes(stack, options)
        variables = {"TERM": "xterm"} if options.tty else {}
        attached = asyncio.ensure_future(
            run.attach(argv, ends.theirs, tty=options.tty, variables=variables, begun=ends.close_theirs)
        )
        outputs = [asyncio.ensure_future(_forward(duplex, *each)) for each in ends.outputs]
        listening = asyncio.ensure_future(_listen(duplex, ends, options))
        try:
            done, _ = await asyncio.wait({attached, listening}, return_when=asyncio.FIRST_COMPLETED)
            if attached not in done:
                return  # the client has gone
            await asyncio.wait(outputs, timeout=_LAST_WORDS) if outputs else None
            await duplex.send(bytes([RESULT]) + json.dumps(result(attached.result())).encode())
        finally:
            for task in (attached, listening, *outputs):
                task.cancel()
            await asyncio.gather(attached, listening, *outputs, return_exceptions=True)


def result(executed: Executed) -> dict[str, Any]:
    """How a command ended, as a Status."""
    if executed.failure:
        return {
            "metadata": {},
            "status": "Failure",
            "reason": "InternalError",
            "message": executed.failure,
            "code": 500,
        }
    if executed.code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {executed.code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(executed.code)}]},
    }


class _Pipes:
    """Descriptors of a command without a terminal."""

    def __init__(self, stack: contextlib.ExitStack, options: ExecOptions) -> None:
        self._stack = stack
        self._input: int | None = None
        self.outputs: list[tuple[int, int]] = []
        theirs = []
        if options.input:
            read, write = self._pipe()
            theirs.append(read)
            self._input = write
        else:
            theirs.append(self._null())
        for wanted, channel in ((options.output, OUTPUT), (options.errors, ERRORS)):
            if wanted:
                read, write = self._pipe()
                theirs.append(write)
                self.outputs.append((channel, read))
            else:
                theirs.append(self._null())
        self.theirs = tuple(theirs)
        stack.callback(self.close_theirs)
        stack.callback(self.end_input)

    def _pipe(self) -> tuple[int, int]:
        read, write = os.pipe()
        return read, write

    def _null(self) -> int:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def close_theirs(self) -> None:
        """Close what the command has, so that its end is seen here."""
        theirs, self.theirs = self.theirs, ()
        for descriptor in theirs:
            os.close(descriptor)

    async def write(self, data: bytes) -> None:
        if self._input is not None:
            await _write(self._input, data)

    def end_input(self) -> None:
        descriptor, self._input = self._input, None
        if descriptor is not None:
            os.close(descriptor)

    def resize(self, width: int, height: int) -> None:
        """Nothing: there is no terminal."""


class _Terminal:
    """Descriptors of a command with a terminal."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._ours, slave = os.openpty()
        stack.callback(os.close, self._ours)
        self.theirs: tuple[int, ...] = (slave, os.dup(slave), os.dup(slave))
        stack.callback(self.close_theirs)
        # A descriptor of its own: the other one is closed with the terminal.
        self.outputs = [(OUTPUT, os.dup(self._ours))]

    def close_theirs(self) -> None:
        theirs, self.theirs = self.theirs, ()
        for descriptor in theirs:
            os.close(descriptor)

    async def write(self, data: bytes) -> None:
        await _write(self._ours, data)

    def end_input(self) -> None:
        """Send the character that ends input."""
        with contextlib.suppress(OSError):
            os.write(self._ours, b"\x04")

    def resize(self, width: int, height: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


async def _listen(duplex: Duplex, ends: _Pipes | _Terminal, options: ExecOptions) -> None:
    """Take what the client sends, until it is gone."""
    while (message := await duplex.receive()) is not None:
        if not message:
            continue
        channel, data = message[0], message[1:]
        match channel:
            case 0 if options.input and data:
                with contextlib.suppress(OSError):  # the command does not read any more
                    await ends.write(data)
            case 255 if data[:1] == bytes([INPUT]):
                ends.end_input()
            case 4 if (size := _size(data)) is not None:
                ends.resize(*size)


def _size(data: bytes) -> tuple[int, int] | None:
    """The width and the height of a terminal; None if the client sent something else."""
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return None
    return size.width, size.height


class _Size(msgspec.Struct, rename="pascal"):
    width: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    height: Annotated[int, msgspec.Meta(ge=1, le=65535)]


async def _forward(duplex: Duplex, channel: int, descriptor: int) -> None:
    try:
        async for data in _chunks(descriptor):
            await duplex.send(bytes([channel]) + data)
    finally:
        os.close(descriptor)


# Descriptors, without a thread for each.


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What can be read from a descriptor, until its end."""
    os.set_blocking(descriptor, False)
    while True:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await _ready(descriptor, writing=False)
            continue
        except OSError:
            return  # the end of a terminal
        if not data:
            return
        yield data


async def _write(descriptor: int, data: bytes) -> None:
    os.set_blocking(descriptor, False)
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            await _ready(descriptor, writing=True)


async def _ready(descriptor: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    add(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(descriptor)
