"""One run of a container: its process, under a supervisor that ends with this process.

The edge to the operating system.  A run is started, signalled, asked to run other
commands beside it, and awaited; the supervisor (`supervisor`) does all of it
in a process of its own, so that a talkative container costs this process nothing.
This module must not know pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.cluster.process.running import supervisor

LOG_BYTES: Final = 10 * 2**20
"""How large a log file may get; one more of that size is kept beside it."""

_LONGEST_MESSAGE: Final = 2**20
_AGAIN: Final = 0.01
"""Seconds until a connection that is full is tried again."""

_LOST: Final = "its supervisor was lost"


class StartFailed(Exception):
    """The command could not be started."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended; `message` where that is not its own doing."""

    code: int
    signal: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of a command that was run beside: its exit code, unless `failure` says why there is none."""

    code: int = 0
    output: str = ""
    failure: str = ""


class ContainerRun:
    """A process that runs, until `ended` says how it ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        channel: socket.socket,
    ) -> None:
        self._process, self._reader, self._writer, self._channel = process, reader, writer, channel
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Executed]] = {}
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._listening: asyncio.Task[None] | None = None
        self.pid = 0

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        directory: Path,
        log: Path,
        log_bytes: int = LOG_BYTES,
        means: str = "",
        hidden: Sequence[Path] = (),
        shown: Sequence[Path] = (),
        spares: bool = False,
    ) -> ContainerRun:
        """Start a command, which by these `means` cannot reach the paths in `hidden` but for those in `shown`.

        With `spares`, daemons that it started outlive its crash.

        Raises `StartFailed` with the reason.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            # Neither its arguments nor its environment may hold anything: both can be read by others.
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        channel = ours.dup()  # by which descriptors are passed
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_LONGEST_MESSAGE)
        run = cls(process, reader, writer, channel)
        spec = {"argv": list(argv), "env": dict(env), "directory": str(directory), "log": str(log)}
        paths = {"means": means, "hidden": _real(hidden), "shown": _real(shown)}
        try:
            await run._begin({**spec, "log_bytes": log_bytes, **paths, "spares": spares})
        except BaseException:
            await run._close()
            raise
        return run

    async def _begin(self, spec: Mapping[str, Any]) -> None:
        self._say(spec)
        answer = await self._heard()
        if answer is None:
            raise StartFailed(f"it could not be started, because {_LOST}; is the disk full?")
        if "failed" in answer:
            raise StartFailed(answer["failed"])
        self.pid = answer["pid"]
        self._listening = asyncio.create_task(self._listen(), name=f"process {self.pid}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process; nothing happens if it has ended."""
        self._say({"signal": int(number)})

    async def execute(self, argv: Sequence[str], *, timeout: float) -> Executed:
        """Run another command where this one runs, with its variables; it is killed after `timeout` seconds."""
        id = next(self._ids)
        answer: asyncio.Future[Executed] = asyncio.get_running_loop().create_future()
        self._asked[id] = answer
        self._say({"execute": id, "argv": list(argv), "timeout": timeout})
        try:
            return await answer
        finally:
            del self._asked[id]

    async def attach(
        self,
        argv: Sequence[str],
        descriptors: Sequence[int],
        *,
        tty: bool,
        variables: Mapping[str, str],
        begun: Callable[[], None],
    ) -> Executed:
        """Run another command where this one runs, with these descriptors as its input, output and errors.

        With `tty` they are a terminal, which it controls.  `begun` is called once the supervisor has the descriptors.
        If this is cancelled, the command is killed.
        """
        id = next(self._ids)
        answer: asyncio.Future[Executed] = asyncio.get_running_loop().create_future()
        if self._exit.done():
            return Executed(failure="the container has ended")
        self._asked[id] = answer
        try:
            await self._pass(descriptors, {"attach": id, "argv": list(argv), "tty": tty, "env": dict(variables)})
            begun()
            return await answer
        finally:
            del self._asked[id]
            if not answer.done() or answer.cancelled():
                self._say({"detach": id})

    async def _pass(self, descriptors: Sequence[int], said: Mapping[str, Any]) -> None:
        """Say something that comes with descriptors; they belong to its first byte, so nothing may be queued before."""
        transport = self._writer.transport
        data = json.dumps(said).encode() + b"\n"
        while transport.get_write_buffer_size():
            await asyncio.sleep(_AGAIN)
        while True:
            try:
                sent = socket.send_fds(self._channel, [data], descriptors)
                break
            except BlockingIOError:
                await asyncio.sleep(_AGAIN)
            except OSError:
                return  # the supervisor is gone, which `_listen` notices
        if sent < len(data):
            self._writer.write(data[sent:])

    async def ended(self) -> Exit:
        """How it ended, when it has; its log is complete then."""
        return await asyncio.shield(self._exit)

    async def kill(self) -> None:
        """End it at once, and everything that it started."""
        self._say({"stop": True})
        self._writer.close()
        await self.ended()

    # --- the conversation with the supervisor

    def _say(self, said: Mapping[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(said).encode() + b"\n")

    async def _heard(self) -> dict[str, Any] | None:
        """What the supervisor says next; None when it is gone."""
        try:
            line = await self._reader.readline()
        except ConnectionError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    async def _listen(self) -> None:
        last = Exit(128 + signal.SIGKILL, signal.SIGKILL)
        try:
            while (said := await self._heard()) is not None:
                if "executed" in said:
                    self._answer(said)
                else:
                    last = Exit(said["code"], said["signal"])
        finally:
            await self._close()
            if self._process.returncode != 0:
                # A signal that killed the supervisor killed the command too, but not the processes that it had started.
                last = Exit(last.code, last.signal, _LOST)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            self._exit.set_result(last)
            for answer in self._asked.values():
                _settle(answer, Executed(failure="the container has ended"))

    def _answer(self, said: Mapping[str, Any]) -> None:
        answer = self._asked.get(said["executed"])
        if answer is None:
            return
        failure = "command timed out" if said.get("timeout") else said.get("failed", "")
        _settle(answer, Executed(code=said.get("code", 0), output=said.get("output", ""), failure=failure))

    async def _close(self) -> None:
        """Close the connection to the supervisor, which ends whatever still runs, and wait for that."""
        self._say({"stop": True})
        self._writer.close()
        self._channel.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        await asyncio.to_thread(self._process.wait)


@dataclass(frozen=True, slots=True)
class Hiding:
    """How this machine can hide paths from commands (`supervisor.MEANS`); without means, `problem` says why not."""

    means: str = ""
    problem: str = ""


def hiding(path: Path, among: Iterable[str] = tuple(supervisor.MEANS)) -> Hiding:
    """The first means by which this machine can hide a path."""
    if sys.platform != "linux":
        return Hiding(problem="it does not run Linux")
    problems = []
    for means in among:
        problem = _problem(means, path)
        if not problem:
            return Hiding(means)
        problems.append(f"{means}: {problem}")
    return Hiding(problem="; ".join(problems))


def _problem(means: str, path: Path) -> str:
    """Why a path cannot be hidden by some means; empty if it can."""
    tried = subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__, means, *_real([path])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={},
        cwd="/",
        text=True,
        errors="replace",
    )
    return "" if tried.returncode == 0 else tried.stderr.strip().rpartition("\n")[2] or f"exit code {tried.returncode}"


def _real(paths: Sequence[Path]) -> list[str]:
    return [os.path.realpath(path) for path in paths]


def _settle(answer: asyncio.Future[Executed], with_what: Executed) -> None:
    if not answer.done():
        answer.set_result(with_what)
