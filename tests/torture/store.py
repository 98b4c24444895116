"""Kill the store at random moments and see that it kept every promise.

    python -m tests.torture store --seed 1

A child process writes with many tasks and follows its own events, and says on its standard output what it was
promised: each acknowledged write, each event, and what it found when it opened the store.  It is killed with
SIGKILL after a random number of lines, then another goes on with the same directory, its watch resuming after the
last event that was heard.  `Witness` checks all of it: versions without gap or repetition, every acknowledged write
among the events with the very same content, and the state found equal to the replayed events.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.places import ROOT
from tests.torture.figures import Figure, counted, none_of

from holdfast.apiserver.storage.store import Change, Draft, Entry, Event, Put, Remove, Stale, Store, Window

RESOURCE = "torture/objects"
ROUNDS = 200
NAMES = [f"object-{number}" for number in range(40)]
WRITERS = 24
MOST_LINES = 1500
WINDOW = Window(events=1000)
"""More than can be committed and not heard of, less than all together: so compaction is part of it."""


def figures(scale: float, seed: int) -> Iterator[Figure]:
    rounds = max(int(ROUNDS * scale), 3)
    with tempfile.TemporaryDirectory() as directory:
        witness = torture(directory, rounds=rounds, seed=seed)
    yield counted("kills", rounds)
    yield from witness.figures()


def torture(directory: str, *, rounds: int, seed: int) -> Witness:
    """Run children one after the other, each killed; raises AssertionError on a broken promise."""
    choice = random.Random(seed)
    witness = Witness()
    for _ in range(rounds):
        arguments = [directory, str(witness.revision), str(choice.randrange(2**32))]
        command = [sys.executable, "-m", "tests.torture.store", *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            # A quarter of them die while they open the store.
            lines = choice.choice((1, choice.randrange(2, MOST_LINES), *2 * [MOST_LINES // 2]))
            for number, line in enumerate(process.stdout):
                # What was under way in the pipe when it died was promised too, but for a line cut short.
                if line.endswith("\n"):
                    witness.hear(json.loads(line))
                if number + 1 == lines:
                    process.kill()
    check_integrity(directory)
    asyncio.run(_finish(directory, witness))
    return witness


def check_integrity(directory: str) -> None:
    """See that SQLite finds nothing wrong with what the dead left."""
    with closing(sqlite3.connect(Path(directory) / "objects.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def _finish(directory: str, witness: Witness) -> None:
    """After the last kill, hear what was written but not said."""
    store = Store.open(directory, window=WINDOW)
    witness.hear(_found(store))
    watch = store.watch(RESOURCE, since=witness.revision)
    await store.close()
    async for batch in watch:
        for event in batch:
            witness.hear(_event(event))
    witness.settle()


class Witness:
    """Everything that was promised so far."""

    def __init__(self) -> None:
        self.revision = 1
        self.objects: dict[str, list[Any]] = {}
        self.events: dict[int, list[Any]] = {}
        self.acknowledged: dict[int, list[Any]] = {}
        self.openings = 0
        self.found: tuple[int, dict[str, list[Any]]] | None = None

    def hear(self, line: list[Any]) -> None:
        match line:
            case ["begin"]:
                pass
            case ["found", revision, objects]:
                lost = [rv for rv in self.acknowledged if rv > revision]
                assert not lost, f"acknowledged, but gone after a restart: {lost}"
                self.openings += 1
                self.found = revision, objects
                self._compare()
            case ["acknowledged", rv, name, deleted, digest]:
                self.acknowledged[rv] = [name, deleted, digest]
                assert self.events.get(rv, self.acknowledged[rv]) == self.acknowledged[rv], line
            case ["event", rv, name, deleted, digest]:
                self._advance(rv)
                self.events[rv] = [name, deleted, digest]
                assert self.acknowledged.get(rv, self.events[rv]) == self.events[rv], line
                if deleted:
                    del self.objects[name]
                else:
                    self.objects[name] = [rv, digest]
                self._compare()
            case _:
                raise AssertionError(f"unknown line: {line}")

    def settle(self) -> None:
        """Nothing more is to come: every promise must have been kept by now."""
        unseen = self.acknowledged.keys() - self.events.keys()
        assert not unseen, f"acknowledged, but never among the events: {sorted(unseen)[:10]}"
        assert self.found is None, "the events never came to the version at which the state was found"

    def figures(self) -> Iterator[Figure]:
        """What was promised; a broken promise would have ended the run."""
        yield counted("acknowledged writes", len(self.acknowledged))
        yield counted("events, none missed or out of order", len(self.events))
        yield none_of("lost writes", 0)

    def _advance(self, rv: int) -> None:
        """Come to the version of the next event."""
        assert rv == self.revision + 1, f"event {rv} follows {self.revision}"
        self.revision = rv

    def _compare(self) -> None:
        """Once the events have come to the version at which the state was found, both must agree."""
        if self.found is not None and self.found[0] == self.revision:
            assert self.found[1] == self.objects, f"the state found at {self.revision} differs from the events"
            self.found = None


async def child(directory: str, since: int, seed: int) -> None:
    """Write until killed."""
    _say(["begin"])
    store = Store.open(directory, window=WINDOW)
    _say(_found(store))
    choice = random.Random(seed)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_follow(store, since))
        for _ in range(WRITERS):
            tasks.create_task(_write(store, random.Random(choice.randrange(2**32))))


async def _follow(store: Store, since: int) -> None:
    async for batch in store.watch(RESOURCE, since=since):
        for event in batch:
            _say(_event(event))


async def _write(store: Store, choice: random.Random) -> None:
    while True:
        changes = [_change(store, choice, name) for name in choice.sample(NAMES, choice.choice((1, 1, 1, 3)))]
        try:
            entries = await store.write(*changes)
        except Stale:
            continue
        for change, entry in zip(changes, entries, strict=True):
            _say(["acknowledged", entry.rv, entry.name, isinstance(change, Remove), _digest(entry)])


def _change(store: Store, choice: random.Random, name: str) -> Change:
    found = store.get(RESOURCE, "", name)
    expect = choice.choice((None, found.rv if found else 0))
    if found is not None and choice.random() < 0.2:
        return Remove(RESOURCE, "", name, expect)
    payload = choice.randbytes(choice.randrange(2000)).hex()
    return Put(RESOURCE, "", name, Draft.of({"metadata": {"name": name}, "payload": payload}), expect)


def _found(store: Store) -> list[Any]:
    return ["found", store.revision, {entry.name: [entry.rv, _digest(entry)] for entry in store.list(RESOURCE)}]


def _event(event: Event) -> list[Any]:
    return ["event", event.rv, event.entry.name, event.type == "DELETED", _digest(event.entry)]


def _digest(entry: Entry) -> str:
    return hashlib.sha256(entry.value).hexdigest()[:16]


def _say(line: list[Any]) -> None:
    """In one system call: what is said is not lost with the process."""
    os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
