"""The store: what is written is there, in order, durably, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import json
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apiserver.storage import sqlite_log
from holdfast.apiserver.storage.entries import outcome
from holdfast.apiserver.storage.store import (
    Ahead,
    CannotOpen,
    Change,
    Closed,
    Corrupted,
    Draft,
    Entry,
    Event,
    Expired,
    Full,
    InUse,
    Put,
    Remove,
    Stale,
    Store,
    TooNew,
    Watch,
    Window,
    WriteFailed,
)

PODS = "/pods"


def put(name: str, expect: int | None = None, *, namespace: str = "default", **content: Any) -> Put:
    draft = Draft.of({"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, **content})
    return Put(PODS, namespace, name, draft, expect)


def remove(name: str, expect: int | None = None, *, namespace: str = "default") -> Remove:
    return Remove(PODS, namespace, name, expect)


def names(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.namespace}/{entry.name}" for entry in entries]


def run(path: Path | None, play: Callable[[Store], Awaitable[None]], **options: Any) -> None:
    """Open a store, play with it, close it."""

    async def whole() -> None:
        store = Store.open(str(path) if path else None, **options)
        try:
            await play(store)
        finally:
            await store.close()

    asyncio.run(whole())


async def nothing(store: Store) -> None:
    pass


async def drain(watch: Watch) -> list[Event]:
    events: list[Event] = []
    while batch := await watch.take(within=0):
        events += batch
    return events


# --- Values ---------------------------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["metadata", "resourceVersion", "kind", 'meta"data', '"resourceVersion":"', "é"])


@given(
    metadata=st.none() | st.dictionaries(FIELDS, JSON_VALUES),
    rest=st.dictionaries(FIELDS, JSON_VALUES),
    rv=st.integers(1, 2**63),
)
def test_a_draft_is_the_object_with_its_version_put_in_whatever_it_contains(
    metadata: dict[str, Any] | None, rest: dict[str, Any], rv: int
) -> None:
    obj = {**rest, "metadata": metadata}
    before = copy.deepcopy(obj)
    value = json.loads(Draft.of(obj).at(rv))
    assert obj == before
    assert value == {**rest, "metadata": {**(metadata or {}), "resourceVersion": str(rv)}}
    assert list(value) == list(obj)


def test_a_draft_of_an_object_without_metadata_has_some() -> None:
    assert Draft.of({}).at(7) == b'{"metadata":{"resourceVersion":"7"}}'


def test_an_entry_tells_the_metadata_that_others_go_by() -> None:
    metadata = {
        "uid": "u-1",
        "labels": {"app": "db"},
        "deletionTimestamp": "2025-01-15T10:00:00Z",
        "ownerReferences": [{"kind": "Set", "name": "s", "uid": "u-0"}],
    }
    full = Entry(PODS, "default", "a", 5, json.dumps({"metadata": metadata, "spec": {}}).encode())
    assert (full.uid, full.labels, full.deleting, full.owners) == ("u-1", {"app": "db"}, True, ("u-0",))
    bare = Entry(PODS, "default", "a", 5, b'{"metadata":{"labels":null}}')
    assert (bare.uid, bare.labels, bare.deleting, bare.owners) == ("", {}, False, ())


FOUND = Entry(PODS, "default", "a", 5, b'{"metadata":{"resourceVersion":"5"},"kept":true}')


@pytest.mark.parametrize(
    ("change", "found", "type_"),
    [
        (put("a"), None, "ADDED"),
        (put("a"), FOUND, "MODIFIED"),
        (put("a", 0), None, "ADDED"),
        (put("a", 0), FOUND, None),
        (put("a", 5), FOUND, "MODIFIED"),
        (put("a", 4), FOUND, None),
        (put("a", 5), None, None),
        (remove("a"), FOUND, "DELETED"),
        (remove("a"), None, None),
        (remove("a", 5), FOUND, "DELETED"),
        (remove("a", 4), FOUND, None),
        (remove("a", 0), None, None),
    ],
)
def test_a_change_happens_only_to_what_it_expects(change: Change, found: Entry | None, type_: str | None) -> None:
    if type_ is not None:
        event = outcome(change, found, rv=9, at=0)
        assert (event.type, event.rv, event.previous) == (type_, 9, found)
        assert json.loads(event.entry.value)["metadata"]["resourceVersion"] == "9"
        return
    with pytest.raises(Stale) as stale:
        outcome(change, found, rv=9, at=0)
    assert (stale.value.change, stale.value.found) == (change, found)


def test_a_removal_shows_the_last_state_or_the_one_it_is_given() -> None:
    plain = outcome(remove("a"), FOUND, rv=9, at=0)
    assert json.loads(plain.entry.value) == {"metadata": {"resourceVersion": "9"}, "kept": True}
    given_ = outcome(Remove(PODS, "default", "a", draft=Draft.of({"final": 1})), FOUND, rv=9, at=0)
    assert json.loads(given_.entry.value) == {"final": 1, "metadata": {"resourceVersion": "9"}}


# --- Against a model ------------------------------------------------------------------------------------------------

RESOURCES, NAMESPACES, NAMES = ("/pods", "apps/sets"), ("a", "b"), ("x", "y")
CHANGES = st.tuples(
    st.sampled_from(["put", "put", "remove"]),
    st.sampled_from(RESOURCES),
    st.sampled_from(NAMESPACES),
    st.sampled_from(NAMES),
    st.sampled_from(["any", "any", "current", "none", "older"]),
)
GROUPS = st.lists(st.lists(CHANGES, min_size=1, max_size=3), min_size=1, max_size=5)
STEPS = st.lists(GROUPS | st.integers(0, 8) | st.just("restart"), max_size=8)


class Model:
    """What the store should do, in the plainest way: a list of all that ever happened."""

    def __init__(self) -> None:
        self.log: list[tuple[int, str, tuple[str, str, str], bytes]] = []
        self.compacted = 1

    @property
    def revision(self) -> int:
        return len(self.log) + 1

    def state(self, rv: int) -> dict[tuple[str, str, str], tuple[int, bytes]]:
        objects: dict[tuple[str, str, str], tuple[int, bytes]] = {}
        for version, type_, key, value in self.log[: rv - 1]:
            if type_ == "DELETED":
                del objects[key]
            else:
                objects[key] = version, value
        return objects

    def write(self, changes: Sequence[Change]) -> bool:
        length = len(self.log)
        for change in changes:
            key = change.resource, change.namespace, change.name
            found = self.state(self.revision).get(key)
            at = found[0] if found else 0
            if change.expect not in (None, at) or (isinstance(change, Remove) and not found):
                del self.log[length:]
                return False
            rv = self.revision + 1
            if isinstance(change, Remove):
                self.log.append((rv, "DELETED", key, b""))
            else:
                self.log.append((rv, "MODIFIED" if found else "ADDED", key, change.draft.at(rv)))
        return True


def change_of(choice: tuple[str, str, str, str, str], model: Model, number: int) -> Change:
    action, resource, namespace, name, expectation = choice
    at, _ = model.state(model.revision).get((resource, namespace, name), (0, b""))
    expect = {"any": None, "current": at, "none": 0, "older": max(at - 1, 0)}[expectation]
    if action == "remove":
        return Remove(resource, namespace, name, expect)
    return Put(resource, namespace, name, Draft.of({"number": number}), expect)


async def compare(store: Store, model: Model) -> None:
    assert (store.revision, store.compacted) == (model.revision, model.compacted)
    for resource in RESOURCES:
        for namespace in (None, *NAMESPACES):
            for rv in range(store.compacted, store.revision + 1):
                wanted = sorted(
                    (key, *found)
                    for key, found in model.state(rv).items()
                    if key[0] == resource and namespace in (None, key[1])
                )
                listed = await store.list_at(resource, namespace, rv)
                assert [(entry.key, entry.rv, entry.value) for entry in listed] == wanted
                watch = store.watch(resource, namespace, since=rv)
                assert [(event.rv, event.type, event.entry.key) for event in await drain(watch)] == [
                    (version, type_, key)
                    for version, type_, key, _ in model.log[rv - 1 :]
                    if key[0] == resource and namespace in (None, key[1])
                ]
                watch.close()
            assert store.list(resource, namespace) == listed
            assert store.count(resource, namespace) == len(listed)
            assert [store.get(*entry.key) for entry in listed] == listed
        changes = [version for version, _, key, _ in model.log if key[0] == resource]
        assert store.changed_at(resource) >= max(changes, default=0)
        with pytest.raises(Expired):
            store.watch(resource, since=store.compacted - 1)
        with pytest.raises(Ahead):
            await store.list_at(resource, None, store.revision + 1)


async def play(path: str | None, steps: list[Any]) -> None:
    store, model = Store.open(path), Model()
    try:
        for number, step in enumerate(steps):
            if step == "restart":
                if path is not None:
                    await store.close()
                    store = Store.open(path)
            elif isinstance(step, int):
                await store.compact(keep=step)
                model.compacted = max(model.compacted, model.revision - step)
            else:
                writes = [[change_of(choice, model, number) for choice in group] for group in step]
                answers = await asyncio.gather(*(store.write(*changes) for changes in writes), return_exceptions=True)
                for changes, answer in zip(writes, answers, strict=True):
                    if model.write(changes):
                        assert not isinstance(answer, BaseException)
                        first = model.revision - len(changes) + 1
                        assert [entry.rv for entry in answer] == list(range(first, model.revision + 1))
                    else:
                        assert isinstance(answer, Stale)
            await compare(store, model)
    finally:
        await store.close()


@given(steps=STEPS)
def test_an_ephemeral_store_does_what_the_model_does(steps: list[Any]) -> None:
    asyncio.run(play(None, steps))


@settings(max_examples=25)
@given(steps=STEPS)
def test_a_durable_store_does_what_the_model_does_across_restarts(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as path:
        asyncio.run(play(path, steps))


# --- Writers --------------------------------------------------------------------------------------------------------


class HeldLog:
    """A log that waits for a signal, and can be made to fail."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.appended: list[int] = []
        self.failure: Exception | None = None
        self.closed = False

    def append(self, events: Sequence[Event], forgotten: Sequence[Event], *, reserved: bool = False) -> None:
        self.go.wait()
        if self.failure is not None:
            raise self.failure
        self.appended.append(len(events))

    def close(self) -> None:
        self.closed = True


def test_nothing_is_visible_before_it_is_durable_and_all_is_before_the_writer_knows() -> None:
    async def main() -> None:
        log = HeldLog()
        store = Store(log)
        watch = store.watch(PODS, since=store.revision)
        writing = asyncio.create_task(store.write(put("a")))
        assert await watch.take(within=0) == []
        assert (store.get(PODS, "default", "a"), store.list(PODS), store.revision) == (None, [], 1)
        log.go.set()
        (entry,) = await writing
        assert store.get(PODS, "default", "a") == entry
        assert [event.entry for event in await watch.take(within=0)] == [entry]
        await store.close()

    asyncio.run(main())


def test_writes_that_wait_share_a_transaction() -> None:
    async def main() -> None:
        log = HeldLog()
        store = Store(log)
        first = asyncio.create_task(store.write(put("first")))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(store.write(put(f"pod-{number}"))) for number in range(100)]
        await asyncio.sleep(0)
        log.go.set()
        await asyncio.gather(first, *rest)
        assert log.appended == [1, 100]
        await store.close()

    asyncio.run(main())


def test_of_writers_that_race_for_a_version_each_wins_once(tmp_path: Path) -> None:
    async def count_up(store: Store, times: int) -> None:
        while times:
            found = store.get(PODS, "default", "counter")
            number = json.loads(found.value)["number"] if found else 0
            try:
                await store.write(put("counter", found.rv if found else 0, number=number + 1))
            except Stale:
                continue
            times -= 1

    async def play(store: Store) -> None:
        await asyncio.gather(*(count_up(store, 5) for _ in range(8)))
        found = store.get(PODS, "default", "counter")
        assert found is not None
        assert json.loads(found.value)["number"] == 40
        assert store.revision == 41

    run(tmp_path, play)


def test_a_write_of_several_changes_is_done_whole_or_not_at_all() -> None:
    async def play(store: Store) -> None:
        with pytest.raises(Stale) as stale:
            await store.write(put("a"), put("b"), remove("c"))
        assert stale.value.change == remove("c")
        assert (store.list(PODS), store.revision) == ([], 1)
        await store.write(put("a", 0), remove("a"), put("a", 0))
        assert (names(store.list(PODS)), store.revision) == (["default/a"], 4)

    run(None, play)


def test_lists_are_sorted_by_namespace_and_name() -> None:
    async def play(store: Store) -> None:
        for namespace, name in (("b", "z"), ("a", "y"), ("b", "x"), ("a-b", "w")):
            await store.write(put(name, namespace=namespace))
        assert names(store.list(PODS)) == ["a/y", "a-b/w", "b/x", "b/z"]
        assert names(store.list(PODS, "b")) == ["b/x", "b/z"]
        await store.write(remove("x", namespace="b"))
        assert names(store.list(PODS, "b")) == ["b/z"]
        assert (store.count(PODS), store.count(PODS, "b"), store.count("apps/sets")) == (3, 1, 0)

    run(None, play)


def test_a_write_given_up_before_it_is_decided_is_not_done() -> None:
    async def play(store: Store) -> None:
        writing = asyncio.create_task(store.write(put("a")))
        await asyncio.sleep(0)
        writing.cancel()
        await store.write(put("b"))
        assert names(store.list(PODS)) == ["default/b"]

    run(None, play)


def test_a_write_given_up_while_it_is_committed_is_done_and_others_go_on() -> None:
    async def main() -> None:
        log = HeldLog()
        store = Store(log)
        writing = asyncio.create_task(store.write(put("a")))
        watch = store.watch(PODS, since=store.revision)
        await watch.take(within=0)
        writing.cancel()
        log.go.set()
        await store.write(put("b"))
        assert names(store.list(PODS)) == ["default/a", "default/b"]
        await store.close()

    asyncio.run(main())


def test_closing_finishes_what_waits_and_refuses_the_rest() -> None:
    async def main() -> None:
        log = HeldLog()
        store = Store(log)
        watch = store.watch(PODS, since=store.revision)
        writes = [asyncio.create_task(store.write(put("under way")))]
        await watch.take(within=0)
        writes.append(asyncio.create_task(store.write(put("waiting"))))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        with pytest.raises(Closed):
            await store.write(put("late"))
        log.go.set()
        await closing
        await store.close()
        assert [entry.name for write in writes for entry in await write] == ["under way", "waiting"]
        assert [event.entry.name async for batch in watch for event in batch] == ["under way", "waiting"]
        assert log.closed
        with pytest.raises(Closed):
            store.watch(PODS, since=store.revision)

    asyncio.run(main())


# --- Failures -------------------------------------------------------------------------------------------------------


def test_after_a_failed_write_the_store_is_as_before_and_writes_no_more() -> None:
    async def main() -> None:
        log = HeldLog()
        log.failure = OSError(5, "Input/output error")
        store = Store(log)
        watch = store.watch(PODS, since=store.revision)
        writes = [asyncio.create_task(store.write(change)) for change in (put("a"), put("a", 0))]
        await watch.take(within=0)
        writes.append(asyncio.create_task(store.write(put("late"))))
        await asyncio.sleep(0)
        log.go.set()
        for write in writes:
            with pytest.raises(WriteFailed, match="Input/output error"):
                await write
        log.failure = None
        with pytest.raises(WriteFailed):
            await store.write(put("b"))
        assert "Input/output error" in store.trouble
        assert (store.list(PODS), store.revision, await drain(watch)) == ([], 1, [])
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("many", [1, 3, 32, 33, 63, 64, 65, 127, 200])
def test_writes_of_any_number_at_once_are_there_after_a_restart(tmp_path: Path, many: int) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path))
        await asyncio.gather(*(store.write(put(f"p{index}", filler=index)) for index in range(many)))
        before = store.snapshot()
        await store.close()
        store = Store.open(str(tmp_path))
        revision, entries = store.snapshot()
        assert (revision, [entry.value for entry in entries]) == (before[0], [entry.value for entry in before[1]])
        assert len(entries) == many
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(("many", "refused"), [(1, 0), (32, 31), (33, 32), (100, 0), (100, 64), (100, 99)])
def test_of_writes_at_once_of_which_the_database_refuses_one_none_is_kept(
    tmp_path: Path, many: int, refused: int
) -> None:
    async def main() -> None:
        await Store.open(str(tmp_path)).close()
        trigger = f"CREATE TRIGGER refuse BEFORE INSERT ON log WHEN new.name = 'p{refused}'"
        with contextlib.closing(sqlite3.connect(tmp_path / "objects.db")) as database:
            database.execute(f"{trigger} BEGIN SELECT raise(ABORT, 'refused'); END")
        store = Store.open(str(tmp_path))
        written = await asyncio.gather(
            *(store.write(put(f"p{index}")) for index in range(many)), return_exceptions=True
        )
        assert {type(each) for each in written} == {WriteFailed}
        await store.close()
        store = Store.open(str(tmp_path))
        assert store.list(PODS) == []
        await store.close()

    asyncio.run(main())


async def write_on(store: Store) -> None:
    while True:
        await store.write(put("a", filler="x" * 10_000))


def test_a_full_disk_fails_writes_until_there_is_room_again(tmp_path: Path) -> None:
    async def play(store: Store) -> None:
        with pytest.raises(Full, match="raise the quota"):
            await write_on(store)
        assert "no space left" in store.trouble
        revision = store.revision
        found = store.get(PODS, "default", "a")
        assert found is not None
        assert found.rv == revision
        await store.compact()
        await store.write(put("b"))
        assert (store.trouble, store.revision) == ("", revision + 1)

    run(tmp_path, play, quota=256 * 1024)
    run(tmp_path, nothing)


# --- Files ----------------------------------------------------------------------------------------------------------


def test_an_ephemeral_store_needs_no_thread_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = threading.active_count()

    async def play(store: Store) -> None:
        await store.write(put("a"))
        assert threading.active_count() == before

    run(None, play)
    assert not list(tmp_path.iterdir())


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    directory = tmp_path / "data"

    async def play(store: Store) -> None:
        await store.write(put("a"))
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {
            "objects.db": 0o600,
            "objects.db-wal": 0o600,
            "objects.last": 0o600,
            "objects.reserve": 0o600,
        }

    run(directory, play)


def test_a_commit_is_flushed_to_the_device(tmp_path: Path) -> None:
    statements: list[str] = []
    log = sqlite_log.SqliteLog.open(tmp_path)
    connection = log._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.set_trace_callback(statements.append)
    log.append([outcome(put("a"), None, rv=2, at=0)], [])
    # One statement is a transaction by itself.
    assert [each.split()[0] for each in statements] == ["INSERT"]
    assert not connection.in_transaction
    del statements[:]
    log.append([outcome(put(f"b{rv}"), None, rv=rv, at=0) for rv in range(3, 36)], [])
    assert (statements[0], statements[-1], connection.in_transaction) == ("BEGIN IMMEDIATE", "COMMIT", False)
    log.close()


def test_what_is_compacted_leaves_the_file_and_stays_compacted(tmp_path: Path) -> None:
    async def write(store: Store) -> None:
        for _ in range(5):
            await store.write(put("a"), put("b"))
        await store.write(remove("b"))
        await store.compact()

    async def read(store: Store) -> None:
        assert (store.compacted, store.revision) == (12, 12)
        assert [(entry.name, entry.rv) for entry in store.list(PODS)] == [("a", 10)]
        (entry,) = await store.write(put("b"))
        assert entry.rv == 13

    run(tmp_path, write)
    with sqlite3.connect(tmp_path / "objects.db") as connection:
        assert connection.execute("SELECT rv, name FROM log").fetchall() == [(10, "a")]
    connection.close()
    run(tmp_path, read)


def test_an_object_that_is_renewed_again_and_again_grows_neither_file_nor_memory(tmp_path: Path) -> None:
    sizes: list[tuple[int, int]] = []

    async def renew(store: Store) -> None:
        tracemalloc.start()
        try:
            for _ in range(4):
                for number in range(500):
                    await store.write(put("lease", filler=f"{number:0300}"))
                gc.collect()
                files = sum(each.stat().st_size for each in tmp_path.glob("objects.db*"))
                sizes.append((files, tracemalloc.get_traced_memory()[0]))
        finally:
            tracemalloc.stop()

    run(tmp_path, renew, window=Window(events=100))
    with sqlite3.connect(tmp_path / "objects.db") as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() <= (101,)
    connection.close()
    (file, memory), (last_file, last_memory) = sizes[1], sizes[-1]
    assert last_file <= file * 1.1
    assert last_memory <= memory + 16 * 1024


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from holdfast.apiserver.storage.store import InUse, Store\n"
        "try:\n"
        f"    Store.open({str(tmp_path)!r})\n"
        "except InUse as error:\n"
        "    sys.exit(str(error))\n"
    )

    async def play(store: Store) -> None:
        await store.write(put("a"))
        with pytest.raises(InUse):
            Store.open(str(tmp_path))
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert other.stderr.strip() == (
            f"{tmp_path}/objects.db: another process has it open; stop it, or choose another data directory"
        )
        await store.write(put("b"))

    run(tmp_path, play)
    run(tmp_path, nothing)


def test_a_newer_schema_is_refused_and_an_older_one_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(store: Store) -> None:
        await store.write(put("a"))

    async def read(store: Store) -> None:
        assert names(store.list(PODS)) == ["default/a"]

    run(tmp_path, write)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_log, "MIGRATIONS", (*sqlite_log.MIGRATIONS, "ALTER TABLE log ADD COLUMN note TEXT"))
        run(tmp_path, read)
        run(tmp_path, read)
    with pytest.raises(TooNew, match="has schema 3, but this release supports 2; run a newer release"):
        Store.open(str(tmp_path))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM log WHERE rv = 3", "version 4 of /pods default/c does not follow"),
        ("UPDATE log SET previous = 9 WHERE rv = 4", "1 rows .* checksums: version 4 of /pods default/c;"),
        ("UPDATE log SET name = 'd' WHERE rv > 3", "2 rows .*: version 4 of /pods default/d, version 5 of /pods"),
        ("UPDATE log SET value = 'text' WHERE rv = 2", "1 rows .*: version 2 of /pods default/a;"),
        ("UPDATE mark SET compacted = 5", "version 5 of /pods default/a should have been compacted"),
        ("PRAGMA application_id = 1", "is not a Holdfast store"),
    ],
)
def test_a_log_that_is_not_whole_is_refused(tmp_path: Path, damage: str, problem: str) -> None:
    async def write(store: Store) -> None:
        await store.write(put("a"), put("b"), put("c"), put("a"))

    run(tmp_path, write)
    with sqlite3.connect(tmp_path / "objects.db") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(Corrupted, match=problem):
        Store.open(str(tmp_path))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    async def write(store: Store) -> None:
        for number in range(50):
            await store.write(put(f"pod-{number}", filler="x" * 2000))

    run(tmp_path, write)
    path = tmp_path / "objects.db"
    content = bytearray(path.read_bytes())
    content[3 * 8192 : 3 * 8192 + 100] = b"\xff" * 100
    path.write_bytes(content)
    with pytest.raises(Corrupted, match="restore a backup"):
        Store.open(str(tmp_path))
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(Corrupted, match="restore a backup"):
        Store.open(str(tmp_path))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotOpen, match=r"file/objects.db: .*choose a data directory that can be written"):
        Store.open(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        (Window(events=3), 3),
        (Window(octets=1000), 2),
        (Window(age=10), 4),
    ],
)
def test_history_is_bounded_by_count_size_and_age(window: Window, kept: int) -> None:
    now = 0.0

    async def play(store: Store) -> None:
        nonlocal now
        for _ in range(9):
            now += 3
            await store.write(put("a", filler="x" * 330))
        assert store.revision - store.compacted == kept

    run(None, play, window=window, clock=lambda: now)
