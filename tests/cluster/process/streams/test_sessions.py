"""Commands that clients run in containers: what goes in, what comes out, how they end, and that nothing stays."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.process.running.test_containers import play, running, written
from tests.cluster.processes import PATIENCE
from tests.waiting import eventually

from holdfast.cluster.process.running.containers import ContainerRun, Executed
from holdfast.cluster.process.streams.sessions import (
    CLOSED,
    ERRORS,
    INPUT,
    OUTPUT,
    RESULT,
    SIZE,
    ExecOptions,
    execute,
    result,
)
from holdfast.meta.errors import BadRequest
from holdfast.meta.exchange import Request


class Client:
    """The other side of a session."""

    protocol = "v5.channel.k8s.io"

    def __init__(self) -> None:
        self._sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.received: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(self) -> bytes | None:
        return await self._sent.get()

    async def send(self, message: bytes) -> None:
        self.received.put_nowait(message)

    async def close(self) -> None:
        self._sent.put_nowait(None)

    def say(self, channel: int, data: bytes = b"") -> None:
        self._sent.put_nowait(bytes([channel]) + data)

    def leave(self) -> None:
        self._sent.put_nowait(None)

    async def until(self, text: bytes) -> bytes:
        """What was written on the output, once it has a text in it."""
        seen = b""
        async with asyncio.timeout(PATIENCE):
            while text not in seen:
                message = await self.received.get()
                assert message[0] == OUTPUT, message
                seen += message[1:]
        return seen

    def all(self) -> dict[int, bytes]:
        """Everything that was received, by channel."""
        found: dict[int, bytes] = {}
        while not self.received.empty():
            message = self.received.get_nowait()
            found[message[0]] = found.get(message[0], b"") + message[1:]
        return found


async def session(run: ContainerRun, client: Client, *argv: str, **options: Any) -> None:
    given = {"command": argv, "output": True, "errors": not options.get("tty", False), **options}
    async with asyncio.timeout(PATIENCE):
        await execute(client, run, argv, ExecOptions(**given))


def test_output_and_errors_are_told_apart_and_the_code_comes_last(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            await session(run, client, "sh", "-c", "echo out; echo err >&2; exit 3")
            found = client.all()
            assert (found[OUTPUT], found[ERRORS]) == (b"out\n", b"err\n")
            causes = json.loads(found[RESULT])["details"]["causes"]
            assert causes == [{"reason": "ExitCode", "message": "3"}]

    play(story)


def test_input_reaches_the_command_until_the_client_ends_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            client.say(INPUT, b"one\n")
            client.say(INPUT, b"two\n")
            client.say(CLOSED, bytes([INPUT]))
            await session(run, client, "cat", input=True)
            found = client.all()
            assert found[OUTPUT] == b"one\ntwo\n"
            assert json.loads(found[RESULT])["status"] == "Success"

    play(story)


def test_much_output_arrives_whole(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            await session(run, client, "head", "-c", "3000000", "/dev/zero")
            assert len(client.all()[OUTPUT]) == 3_000_000

    play(story)


def test_a_terminal_has_the_size_of_the_client_and_passes_its_interrupts(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            client.say(SIZE, json.dumps({"Width": 101, "Height": 33}).encode())
            client.say(SIZE, b"not a size")
            script = "trap 'echo interrupted; exit 7' INT; read line; stty size; while true; do sleep 0.05; done"
            task = asyncio.ensure_future(session(run, client, "sh", "-c", script, tty=True, input=True))
            client.say(INPUT, b"\n")
            await client.until(b"33 101")
            client.say(INPUT, b"\x03")
            await client.until(b"interrupted")
            await task
            assert b'"7"' in client.all()[RESULT]

    play(story)


def test_a_client_that_goes_takes_its_command_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            task = asyncio.ensure_future(session(run, client, "sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 100"))
            number = int(await written(tmp_path / "pid"))
            client.leave()
            await task
            await eventually(lambda: not Path(f"/proc/{number}").exists())

    play(story)


def test_a_container_that_ends_ends_the_commands_in_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            task = asyncio.ensure_future(session(run, client, "sh", "-c", f"echo x > {tmp_path}/x; sleep 100"))
            await written(tmp_path / "x")
            await run.kill()
            await task
            assert json.loads(client.all()[RESULT])["message"] == "the container has ended"
            later = Client()
            await session(run, later, "true")
            assert json.loads(later.all()[RESULT])["message"] == "the container has ended"

    play(story)


def test_a_command_that_does_not_exist_is_said_to_be_missing(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            client = Client()
            await session(run, client, "no-such-command")
            assert "no such executable" in json.loads(client.all()[RESULT])["message"]

    play(story)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            await session(run, Client(), "true")
            before = len(os.listdir("/proc/self/fd"))
            for tty in (False, True):
                client = Client()
                client.say(CLOSED, bytes([INPUT]))
                await session(run, client, "true", input=True, tty=tty)
            await session(run, Client(), "no-such-command")
            assert len(os.listdir("/proc/self/fd")) == before

    play(story)


@pytest.mark.parametrize(
    ("query", "said"),
    [({"stdout": ("true",)}, "at least 1 command"), ({"command": ("ls",)}, "stdin, stdout, stderr")],
)
def test_a_request_without_a_command_or_a_stream_is_refused(query: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        ExecOptions.of(Request("GET", "/", query))


def test_a_terminal_has_no_errors_of_its_own() -> None:
    query = dict.fromkeys(("stdin", "stdout", "stderr", "tty"), ("true",)) | {"command": ("sh", "-c", "x")}
    options = ExecOptions.of(Request("GET", "/", query))
    assert (options.errors, options.command) == (False, ("sh", "-c", "x"))


def test_success_and_failure_are_statuses() -> None:
    assert result(Executed())["status"] == "Success"
    assert result(Executed(failure="why"))["message"] == "why"
