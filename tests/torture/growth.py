"""Create and delete very many objects, and see that neither the server's memory nor its file grows with them.

python -m tests.torture growth
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from tests.torture.figures import Figure, at_most, counted
from tests.torture.server import CONFIGMAPS, connected, ready, server_process

OBJECTS = 300_000
CLIENTS = 32
ROUNDS = 3
"""The first round fills the window of recent events; the later ones must not add to what it took."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a server takes, in MiB."""

    memory: float
    file: float

    def __str__(self) -> str:
        return f"memory {self.memory:.0f} MiB, file {self.file:.0f} MiB"


def figures(scale: float, seed: int) -> Iterator[Figure]:
    del seed  # nothing is drawn
    objects = max(int(OBJECTS * scale), 2_400)
    with tempfile.TemporaryDirectory() as directory:
        empty, first, *_, last = asyncio.run(grown(Path(directory), objects=objects))
    yield counted("objects created and deleted", objects)
    yield Figure("empty server", str(empty))
    yield Figure("after a third of them", str(first))
    for what, value, limit in zip(("memory", "file"), (last.memory, last.file), limits(empty, first), strict=True):
        yield at_most(f"{what} after all of them", value, limit, "MiB")


def limits(empty: Size, first: Size) -> tuple[float, float]:
    """The memory and the file that a server may have after all rounds, by what it had before and after the first.

    What the first round added is the window of recent events, and pages that are used again.
    """
    return first.memory + (first.memory - empty.memory) + 32, 4 * first.file + 8


async def grown(directory: Path, *, objects: int) -> list[Size]:
    """The size of an empty server, and after each round."""
    async with server_process(directory) as process:
        await ready(process)
        async with connected(directory) as client:
            sizes = [_size(process.pid, directory)]
            for _ in range(ROUNDS):
                await _created_and_deleted(client, objects // ROUNDS)
                sizes.append(_size(process.pid, directory))
            return sizes


async def _created_and_deleted(client: aiohttp.ClientSession, objects: int) -> None:
    numbers = iter(range(objects))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(_work(client, numbers))


async def _work(client: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
    for number in numbers:
        name = f"object-{number}"
        body = {"metadata": {"name": name}, "data": {"text": "x" * 1_000}}
        async with client.post(CONFIGMAPS, json=body) as answer:
            assert answer.status == 201, await answer.text()
        async with client.delete(f"{CONFIGMAPS}/{name}") as answer:
            assert answer.status == 200, await answer.text()


def memory(pid: int) -> float:
    """The memory that a process has, in MiB."""
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(resident.split()[1]) / 1024


def _size(pid: int, directory: Path) -> Size:
    return Size(memory(pid), sum(each.stat().st_size for each in directory.glob("objects.db*")) / 2**20)
