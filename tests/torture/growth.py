"""Create and delete very many objects, and see that neither the server's memory nor its file grows with them.

python -m tests.torture.growth --objects 300000
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from tests.torture.server import CONFIGMAPS, connected, ready, server_process

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Create and delete objects; see that nothing of them stays.")
    parser.add_argument("--objects", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sizes = asyncio.run(grown(Path(directory), objects=options.objects))
    for number, size in enumerate(sizes):
        print("empty:" if not number else f"after {number * options.objects // ROUNDS:,} created and deleted:", size)


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


def _size(pid: int, directory: Path) -> Size:
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    files = sum(each.stat().st_size for each in directory.glob("objects.db*"))
    return Size(int(resident.split()[1]) / 1024, files / 2**20)


if __name__ == "__main__":
    main()
