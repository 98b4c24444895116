"""How much memory a server takes while 300 clients send it large bodies at the same time.

python -m tests.torture bodies
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.torture.figures import Figure, at_most, counted
from tests.torture.growth import memory
from tests.torture.requests import Address, address_of, token_of
from tests.torture.server import CONFIGMAPS, ready, server_process

CONNECTIONS = 300
SIZE = 3 * 2**20 - 1_000
UNKNOWN_LIMIT = 300
KNOWN_LIMIT = 512
"""MiB that the server may take in addition, for clients without and with credentials."""

PATIENCE = 120.0


@dataclass(frozen=True)
class Taken:
    """MiB of memory of a server: before, and the most while the bodies came; and how many clients were answered."""

    before: float
    most: float
    answered: int

    @property
    def added(self) -> float:
        return self.most - self.before


def figures(scale: float, seed: int) -> Iterator[Figure]:
    del seed  # nothing is drawn
    number = max(int(CONNECTIONS * min(scale * 10, 1)), 20)
    yield counted("connections, each with a body of 3 MiB", number)
    for known, what, limit in ((False, "without", UNKNOWN_LIMIT), (True, "with", KNOWN_LIMIT)):
        with tempfile.TemporaryDirectory() as directory:
            taken = asyncio.run(sent(Path(directory), connections=number, known=known))
        yield at_most(f"memory added {what} credentials", taken.added, limit, "MiB")
        yield Figure(f"clients answered {what} credentials", str(taken.answered), str(number), taken.answered == number)


async def sent(directory: Path, *, connections: int, known: bool) -> Taken:
    """Have so many clients send their body at once."""
    async with server_process(directory) as process:
        await ready(process)
        address, token = address_of(directory), token_of(directory) if known else ""
        # What the first request takes is not the subject.
        await _send(address, token, b"{}")
        before = memory(process.pid)
        body = json.dumps({"metadata": {"generateName": "x-"}, "data": {"text": "x" * SIZE}}).encode()
        most = [before]

        async def look() -> None:
            while True:
                most[0] = max(most[0], memory(process.pid))
                await asyncio.sleep(0.02)

        looking = asyncio.create_task(look())
        answers = await asyncio.gather(*(_send(address, token, body) for _ in range(connections)))
        looking.cancel()
        return Taken(before, max(most[0], memory(process.pid)), sum(answer > 0 for answer in answers))


async def _send(address: Address, token: str, body: bytes) -> int:
    """The status that a body was answered with; 0 if it was not."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=address.trust)
        lines = [f"POST {CONFIGMAPS}?dryRun=All HTTP/1.1", "Host: x", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", *([f"Authorization: Bearer {token}"] if token else []), "", ""]

        async def write() -> None:
            with suppress(OSError):
                writer.write("\r\n".join(lines).encode())
                for at in range(0, len(body), 2**16):
                    writer.write(body[at : at + 2**16])
                    await writer.drain()

        writing = asyncio.create_task(write())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            return int(head.split()[1])
        except (OSError, asyncio.IncompleteReadError):
            return 0
        finally:
            writing.cancel()
            writer.transport.abort()
