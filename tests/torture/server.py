"""Kill a whole server at random moments and see that it kept every promise it made to its clients.

    python -m tests.torture server --seed 1

`store` does the same to the store alone.  Here clients speak HTTPS to `holdfast apiserver`: some write ConfigMaps
together and note each write that was acknowledged, one watches, and the server is killed with SIGKILL; a few of them
while they start.  The next server goes on with the same directory, and the watch resumes after the last event that
was heard.  After each kill SQLite is asked whether a copy of what was left is sound: the original is for the next
server to recover.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
import signal
import ssl
import sys
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import aiohttp
import yaml
from tests.torture.figures import Figure, counted
from tests.torture.store import Witness, check_integrity

COMMAND = (sys.executable, "-m", "holdfast", "apiserver")
UP = (sys.executable, "-m", "holdfast", "up")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ROUNDS = 200
NAMES = [f"object-{number}" for number in range(20)]
WRITERS = 8
MOST_WRITES = 200
STARTING = 1.0
"""Seconds in which a server that is to die young is killed."""
LATER = 0.01
"""Seconds within which the kill follows the last write that was waited for: in the midst of others."""
PATIENCE = 30.0
"""Seconds that a server has for anything that is asked of it."""


def figures(scale: float, seed: int) -> Iterator[Figure]:
    rounds = max(int(ROUNDS * scale), 3)
    with tempfile.TemporaryDirectory() as directory:
        witness = asyncio.run(torture(Path(directory), rounds=rounds, seed=seed))
    yield counted("kills", rounds)
    yield counted("acknowledged deletions", len(witness.removed))
    yield from witness.figures()


async def torture(directory: Path, *, rounds: int, seed: int) -> ClientWitness:
    """Run servers one after the other, each killed; raises AssertionError on a broken promise."""
    choice = random.Random(seed)
    witness = ClientWitness()
    for _ in range(rounds):
        async with server_process(directory) as process:
            # A fifth of them die while they start.
            if choice.random() < 0.2:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ready(process), choice.uniform(0, STARTING))
            else:
                await ready(process)
                async with asyncio.timeout(PATIENCE), connected(directory) as client:
                    await _work(process, client, witness, choice=choice)
        _check_copy(directory)
    async with server_process(directory) as process:
        await ready(process)
        async with asyncio.timeout(PATIENCE), connected(directory) as client:
            await _finish(client, witness)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    check_integrity(str(directory))
    return witness


class ClientWitness(Witness):
    """What clients were promised, who see less than the store.

    Versions are shared with other kinds, so theirs may have gaps.  A client that deletes does not get its version,
    but the identity of what is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.removed: set[str] = set()
        self.gone: set[str] = set()

    @property
    def promises(self) -> int:
        return len(self.acknowledged) + len(self.removed)

    def hear(self, line: list[Any]) -> None:
        match line:
            case ["removed", uid]:
                self.removed.add(uid)
            case ["gone", uid]:
                assert uid not in self.gone, f"deleted twice: {uid}"
                self.gone.add(uid)
            case _:
                super().hear(line)

    def settle(self) -> None:
        super().settle()
        unseen = self.removed - self.gone
        assert not unseen, f"deleted, but never among the events: {sorted(unseen)[:10]}"

    def _advance(self, rv: int) -> None:
        assert rv > self.revision, f"event {rv} follows {self.revision}"
        if self.found is not None and rv > self.found[0]:
            # With the first event after it, everything up to the state that was found has been heard.
            self.revision = self.found[0]
            self._compare()
        self.revision = rv


# The server.


@asynccontextmanager
async def server_process(
    directory: Path, *, command: Sequence[str] = COMMAND, errors: IO[bytes] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A server that is dead when the block ends; its log goes to `errors`, or where ours goes."""
    process = await asyncio.create_subprocess_exec(
        *command, "--data-dir", str(directory), stdout=asyncio.subprocess.PIPE, stderr=errors
    )
    try:
        yield process
    finally:
        _kill(process)
        await process.communicate()


async def ready(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    assert line.startswith(b"ready: "), f"the server did not start: {line!r}"


def _kill(process: asyncio.subprocess.Process) -> None:
    """Not with its own `kill`, which reaps the dead before asyncio learns how it died."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _check_copy(directory: Path) -> None:
    """A server that died very young has left nothing to check."""
    if (directory / "objects.db").exists():
        with tempfile.TemporaryDirectory() as copy:
            for file in directory.glob("objects.db*"):
                shutil.copy(file, copy)
            check_integrity(copy)


# Its clients.


@asynccontextmanager
async def connected(directory: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that knows the server from the kubeconfig in its directory."""
    kubeconfig = yaml.safe_load((directory / "kubeconfig").read_text())
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    trust = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {user['token']}"}
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(cluster["server"], headers=headers, connector=connector) as client:
        yield client


async def _work(
    process: asyncio.subprocess.Process, client: aiohttp.ClientSession, witness: ClientWitness, *, choice: random.Random
) -> None:
    """Write and watch until the server is killed, which is after some writes."""
    await _found(client, witness)
    enough = witness.promises + choice.randrange(MOST_WRITES)
    later = choice.uniform(0, LATER)
    killing: list[asyncio.TimerHandle] = []

    def told() -> None:
        if witness.promises >= enough and not killing:
            killing.append(asyncio.get_running_loop().call_later(later, _kill, process))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_follow(client, witness))
        for _ in range(WRITERS):
            tasks.create_task(_write(client, witness, choice=random.Random(choice.randrange(2**32)), told=told))


async def _finish(client: aiohttp.ClientSession, witness: ClientWitness) -> None:
    """After the last kill, hear what was written but not heard of, up to one more write."""
    await _found(client, witness)
    async with client.post(CONFIGMAPS, json=_configmap("the-last", "")) as response:
        last = await response.json()
    _acknowledge(witness, last)
    await _follow(client, witness, until=int(last["metadata"]["resourceVersion"]))
    witness.settle()


async def _found(client: aiohttp.ClientSession, witness: ClientWitness) -> None:
    async with client.get(CONFIGMAPS) as response:
        listed = await response.json()
    objects = {each["metadata"]["name"]: [_version(each), _digest(each)] for each in listed["items"]}
    witness.hear(["found", _version(listed), objects])


async def _follow(client: aiohttp.ClientSession, witness: ClientWitness, *, until: int | None = None) -> None:
    """Watch on from the last event that was heard, until the server dies or a version has come."""
    query = {"watch": "1", "resourceVersion": str(witness.revision)}
    with suppress(aiohttp.ClientError):
        async with client.get(CONFIGMAPS, params=query) as response:
            async for line in response.content:
                # Death may cut a line short; that event was not heard, and comes again.
                if line.endswith(b"\n"):
                    _hear(witness, json.loads(line))
                if until is not None and witness.revision >= until:
                    return
    assert until is None, f"the watch ended at {witness.revision}, before {until}"


def _hear(witness: ClientWitness, event: dict[str, Any]) -> None:
    obj, deleted = event["object"], event["type"] == "DELETED"
    assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
    witness.hear(["event", _version(obj), obj["metadata"]["name"], deleted, _digest(obj)])
    if deleted:
        witness.hear(["gone", obj["metadata"]["uid"]])


async def _write(
    client: aiohttp.ClientSession, witness: ClientWitness, *, choice: random.Random, told: Callable[[], None]
) -> None:
    """Write until the server is dead; refusals because of the other writers are no promises."""
    with suppress(aiohttp.ClientError):
        while True:
            name = choice.choice(NAMES)
            method = choice.choice(("POST", "POST", "PUT", "PATCH", "DELETE"))
            target = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/{name}"
            body = None if method == "DELETE" else _configmap(name, choice.randbytes(choice.randrange(1000)).hex())
            headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
            async with client.request(method, target, json=body, headers=headers) as response:
                answer = await response.json()
            if response.status in (404, 409):
                continue
            assert response.status in (200, 201), answer
            if method == "DELETE":
                witness.hear(["removed", answer["details"]["uid"]])
            else:
                _acknowledge(witness, answer)
            told()


def _acknowledge(witness: ClientWitness, obj: dict[str, Any]) -> None:
    witness.hear(["acknowledged", _version(obj), obj["metadata"]["name"], False, _digest(obj)])


def _configmap(name: str, payload: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"payload": payload}}


def _version(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _digest(obj: dict[str, Any]) -> str:
    """Of everything but the kind, which objects in a list do not say."""
    content = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
