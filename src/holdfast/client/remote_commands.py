"""Commands in containers, over the WebSocket protocol of the ``exec`` subresource (``v5.channel.k8s.io`` and ``v4``).

Each message begins with the number of its channel.  This module knows the messages, and nothing of terminals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from holdfast.client.protocols import Client, Unreachable
from holdfast.client.resources import PODS
from holdfast.meta.errors import from_status
from holdfast.meta.exchange import WEBSOCKET, Duplex, Request
from holdfast.meta.objects import Key

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
CLOSES: Final = "v5.channel.k8s.io"
"""The protocol in which the end of the input can be said."""

INPUT, OUTPUT, ERRORS, RESULT, SIZE, CLOSED = 0, 1, 2, 3, 4, 255


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes that the command wrote, on `OUTPUT` or `ERRORS`."""

    channel: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The command has ended with a code; `failure` says why it could not run."""

    code: int
    failure: str = ""


class RemoteCommand:
    """A command that runs in a container."""

    def __init__(self, duplex: Duplex) -> None:
        self._duplex = duplex

    async def next(self) -> Written | Ended:
        """What comes next; `Ended` is the last."""
        while (message := await self._duplex.receive()) is not None:
            channel, data = (message[0], message[1:]) if message else (-1, b"")
            if channel in (OUTPUT, ERRORS) and data:
                return Written(channel, data)
            if channel == RESULT and data:
                return ended(data)
        raise Unreachable("the connection was closed before the command ended")

    async def write(self, data: bytes) -> None:
        await self._duplex.send(bytes([INPUT]) + data)

    async def end_input(self) -> bool:
        """Say that no more input comes; False where the server does not know how that is said."""
        if self._duplex.protocol != CLOSES:
            return False
        await self._duplex.send(bytes([CLOSED, INPUT]))
        return True

    async def resize(self, width: int, height: int) -> None:
        await self._duplex.send(bytes([SIZE]) + json.dumps({"Width": width, "Height": height}).encode())

    async def close(self) -> None:
        await self._duplex.close()


async def execute(
    client: Client, pod: Key, command: Sequence[str], *, container: str = "", input: bool = False, tty: bool = False
) -> RemoteCommand:
    """Run a command in a container of a pod; raises `StatusError` if the server refuses."""
    query = {
        "command": tuple(command),
        "stdout": ("true",),
        **({"container": (container,)} if container else {}),
        **({"stdin": ("true",)} if input else {}),
        **({"tty": ("true",)} if tty else {"stderr": ("true",)}),
    }
    headers = {"upgrade": WEBSOCKET, "sec-websocket-protocol": ",".join(PROTOCOLS)}
    path = unquote(PODS.path(pod.namespace, pod.name, "exec"))
    response = await client.raw(Request("GET", path, query, headers))
    if response.duplex is None:
        raise Unreachable("the server answered without a connection; does it serve exec by WebSocket?")
    return RemoteCommand(response.duplex)


def ended(data: bytes) -> Ended:
    """How a command ended, from the Status that says it."""
    try:
        status: dict[str, Any] = json.loads(data)
    except ValueError:
        return Ended(1, data.decode(errors="replace"))
    if status.get("status") == "Success":
        return Ended(0)
    causes = (status.get("details") or {}).get("causes") or ()
    code = next((each.get("message", "") for each in causes if each.get("reason") == "ExitCode"), "")
    if code.isdecimal():
        return Ended(int(code))
    return Ended(1, from_status(status, 500).message)
