"""Clients of an API server, as many as it takes to keep it busy; they know Kubernetes' API and nothing of the server.

Objects are ConfigMaps, which every API server has and no controller touches.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import aiohttp
import msgspec
from yarl import URL

from benchmarks.processes import Usage, usage_of_all
from benchmarks.targets import Target

CONNECTIONS: Final = 32
LONGEST_SECONDS: Final = 5.0
"""After which a measurement of speed ends, however few it has done."""

_JSON: Final = {"Content-Type": "application/json"}
_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}
_WATCH_SECONDS: Final = 30.0
_WATCHED: Final = 1_000_000
"""Where the numbers of objects begin that are written to be seen."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Requests a second, and the server's own work for one of them."""

    per_second: float
    cpu_seconds: float


class _Event(msgspec.Struct):
    type: Literal["ADDED"]


_decode_event = msgspec.json.Decoder(_Event).decode


class Clients:
    """Everything that is done in one namespace of one server."""

    def __init__(self, target: Target, namespace: str) -> None:
        self._target = target
        self._session = target.session(CONNECTIONS)
        self._namespace = f"holdfast-bench-{os.getpid()}-{namespace}"
        self._path = f"/api/v1/namespaces/{self._namespace}/configmaps"

    async def __aenter__(self) -> Clients:
        body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": self._namespace}}
        await self._send("POST", "/api/v1/namespaces", data=msgspec.json.encode(body), headers=_JSON)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._target.shared:
            await self._send("DELETE", self._path)
            await self._send("DELETE", f"/api/v1/namespaces/{self._namespace}")
        await self._session.close()

    async def create(self, number: int, *, size: int) -> None:
        await self._send("POST", self._path, data=_config_map(number, size), headers=_JSON)

    async def get(self, number: int) -> None:
        await self._send("GET", f"{self._path}/{_name(number)}")

    async def list_all(self, *, gzip: bool) -> None:
        await self._send("GET", self._path, headers={"Accept-Encoding": "gzip" if gzip else "identity"})

    async def patch(self, number: int, *, value: str) -> None:
        body = msgspec.json.encode({"data": {"patched": value}})
        await self._send("PATCH", f"{self._path}/{_name(number)}", data=body, headers=_MERGE_PATCH)

    async def usage(self) -> Usage:
        """What the server has used: its processes if they are known, or what its metrics say."""
        if self._target.pids:
            return usage_of_all(self._target.pids)
        text = (await self._send("GET", "/metrics", headers={"Accept-Encoding": "identity"})).decode()
        return Usage(_metric(text, "process_cpu_seconds_total"), _metric(text, "process_resident_memory_bytes"))

    async def speed(self, call: Callable[[int], Awaitable[None]], *, most: int) -> Speed:
        """How fast the calls 0, 1, 2... are answered on all connections at once."""
        used = (await self.usage()).cpu_seconds
        begin = time.perf_counter()
        done = await self.repeat(call, most=most, seconds=LONGEST_SECONDS)
        seconds = time.perf_counter() - begin
        return Speed(done / seconds, ((await self.usage()).cpu_seconds - used) / done)

    async def repeat(self, call: Callable[[int], Awaitable[None]], *, most: int, seconds: float) -> int:
        """Make calls until so many are answered or the time is over; how many it were."""
        numbers = iter(range(most))
        ends = time.perf_counter() + seconds
        done = 0

        async def client() -> None:
            nonlocal done
            for number in numbers:
                await call(number)
                done += 1
                if time.perf_counter() > ends:
                    return

        await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
        return done

    async def fan_out(self, *, watchers: int, writes: int, size: int) -> list[float]:
        """Seconds from the beginning of each write, one after the other, to each watcher's seeing it."""
        listed = msgspec.json.decode(await self._send("GET", self._path, params={"limit": "1"}))
        params = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
        together = asyncio.Barrier(watchers + 1)
        began = 0.0
        seen: list[float] = []

        async def watch(session: aiohttp.ClientSession) -> None:
            async with session.get(self._path, params=params) as answer:
                answer.raise_for_status()
                await together.wait()
                for _ in range(writes):
                    _decode_event(await answer.content.readline())
                    seen.append(time.perf_counter() - began)
                    await together.wait()

        async with (
            asyncio.timeout(_WATCH_SECONDS),
            self._target.session(watchers) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(watchers):
                group.create_task(watch(session))
            await together.wait()
            for number in range(writes):
                began = time.perf_counter()
                await self.create(_WATCHED + number, size=size)
                await together.wait()
        return seen

    async def _send(self, method: str, path: str, **options: Any) -> bytes:
        # Not left to the session, which would join and quote it for each request, at the cost of what is measured.
        url = URL(f"{self._target.url}{path}", encoded=True)
        async with self._session.request(method, url, **options) as answer:
            body = await answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {body[:500].decode(errors='replace')}")
        return body


def _name(number: int) -> str:
    return f"bench-{number:07}"


def _config_map(number: int, size: int) -> bytes:
    """An object of `size` bytes, before the server adds what is its own."""
    obj: dict[str, Any] = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": _name(number), "labels": {"app": "bench", "number": str(number)}},
        "data": {f"setting-{n:02}": f"{number * 7919 + n * 104729:048d}" for n in range(size // 100)},
    }
    obj["data"]["rest"] = ""
    obj["data"]["rest"] = "x" * (size - len(msgspec.json.encode(obj)))
    return msgspec.json.encode(obj)


def _metric(text: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else float("nan")
