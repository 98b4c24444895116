"""The provider or the operator is killed after any write: sets, snapshots and clones come about, and nothing is left.

The hypervisor keeps a journal.  A provider that is killed with a write leaves the journal as it is, all calls under way
fail, and the next call is answered by a new one that reads the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.operators.virtualmachine.snapshot_stories import gone, taken
from tests.operators.virtualmachine.stories import (
    CLONES,
    KINDS,
    MACHINES,
    SETS,
    SNAPSHOTS,
    Hypervisors,
    Latencies,
    created,
    operator,
    prepare,
)
from tests.operators.virtualmachine.test_clones import clone
from tests.operators.virtualmachine.test_clones import in_phase as clone_in_phase
from tests.operators.virtualmachine.test_sets import ANOTHER, rolling, vm_set

from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.providers.contract import Code, Hypervisor, ProviderError
from holdfast.providers.simulated import Simulated
from holdfast.providers.simulated.journal import Journal
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import Scenario, check

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 61
QUICK = Latencies(create=1, boot=1, bytes_per_second=4.0 * (1 << 30))


class Killed(BaseException):
    """The process of the provider is no more."""


class Deadly(Journal):
    """A journal whose process is killed with the n-th write; a process that was killed writes nothing."""

    def __init__(self, path: Path | None, deaths: Deaths) -> None:
        super().__init__(path)
        self._deaths, self._dead = deaths, False

    def write(self, kind: str, id: str, value: Any) -> None:
        self._alive()
        super().write(kind, id, value)
        self._count()

    def remove(self, kind: str, id: str) -> None:
        self._alive()
        super().remove(kind, id)
        self._count()

    def _alive(self) -> None:
        if self._dead:
            raise Killed

    def _count(self) -> None:
        self._deaths.writes += 1
        if self._deaths.writes == self._deaths.at:
            self._dead = True
            raise Killed


class Deaths:
    """How often the journal was written, and with which write the process is killed."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.writes = at, 0


class Mortal(Simulated):
    """A hypervisor whose provider is killed once; the calls go to the process that is there."""

    def __init__(self, *args: Any, deaths: Deaths, path: Path, **settings: Any) -> None:
        def process() -> Simulated:
            found = Simulated(*args, **settings)
            found._journal = Deadly(path, deaths)
            found._recover()
            return found

        self._process, self.now = process, process()


def _mortal(name: str) -> Callable[..., Any]:
    async def call(self: Mortal, *args: Any, **settings: Any) -> Any:
        asked = self.now
        try:
            return await getattr(asked, name)(*args, **settings)
        except Killed:
            if self.now is asked:
                self.now = self._process()
            raise ProviderError(Code.RETRYABLE, "the connection was closed") from None

    return call


for _name in (*(each for each in vars(Hypervisor) if not each.startswith("_")), "execute"):
    setattr(Mortal, _name, _mortal(_name))


async def story(cluster: Cluster) -> None:
    """A machine with two snapshots and two clones, a set that is updated; in the end everything is deleted."""
    await prepare(cluster)
    await created(cluster)
    await cluster.create(SETS, vm_set("farm", replicas=2, updateStrategy=rolling(maxSurge=0, maxUnavailable=1)))
    await taken(cluster, "first", snapshotConfig={"includeMemory": True})
    await taken(cluster, "second")
    await cluster.create(CLONES, clone(options={"powerOn": True, "retryPolicy": {"retryDelay": "1s"}}))
    linked = {"type": "LinkedClone", "retryPolicy": {"retryDelay": "1s"}}
    origin = {"snapshotRef": {"name": "first"}}
    await cluster.create(CLONES, clone("linking", source=origin, target={"name": "thin"}, options=linked))
    await clone_in_phase(cluster, "Ready")
    await clone_in_phase(cluster, "Ready", "linking")
    await cluster.patch(SETS, "farm", ANOTHER)
    await cluster.until(lambda: _updated(cluster), within=900)
    await cluster.delete(SNAPSHOTS, "first")
    await gone(cluster, "first")
    await cluster.delete(SETS, "farm")
    for name in ("web", "copy", "thin"):
        await cluster.delete(MACHINES, name)
    await cluster.until(lambda: _nothing(cluster), within=900)


async def _updated(cluster: Cluster) -> bool:
    found = await cluster.get(SETS, "farm")
    status = found.get("status") or {}
    current = status.get("observedGeneration") == found["metadata"]["generation"]
    return bool(current and status.get("updateStatus", {}).get("phase") == "Completed")


async def _nothing(cluster: Cluster) -> bool:
    return not [each for resource in (MACHINES, SNAPSHOTS) for each in await cluster.list(resource)]


def played(path: Path, deaths: Deaths) -> tuple[str, ...]:
    """Play the story; what is left on the hypervisor in the end, but for its images."""
    hypervisors = Hypervisors(latencies=QUICK, make=Mortal, deaths=deaths, path=path)

    async def whole(cluster: Cluster) -> tuple[str, ...]:
        await story(cluster)
        found = hypervisors.at()
        assert isinstance(found, Mortal)
        await found.now._advance()
        return found.now.leftovers()

    components = (GarbageCollector(),)
    return play(whole, controllers=operator(hypervisors), components=components, kinds=KINDS)


def test_a_provider_that_is_killed_after_any_write_leaves_nothing(tmp_path: Path) -> None:
    known = Deaths()
    assert played(tmp_path / "journal", known) == ()
    assert known.writes > 30
    for n in range(1, known.writes + 1, EVERY):
        assert played(tmp_path / f"journal-{n}", Deaths(n)) == (), f"killed with write {n}"


def test_an_operator_that_is_killed_after_any_write_leaves_nothing() -> None:
    hypervisors = Hypervisors(latencies=QUICK)

    async def whole(cluster: Cluster) -> None:
        await story(cluster)
        assert hypervisors.at().leftovers() == ()

    scenario = Scenario(
        name="sets, snapshots and clones that are made and deleted",
        controllers=operator(hypervisors),
        components=lambda: (GarbageCollector(),),
        story=whole,
        kinds=KINDS,
        patience=30,
        ignored=frozenset({"lastTaskRef", "id", "targetVMID", "taskRef", "retryCount", "lastRetryTime", "progress"}),
    )
    check(scenario, "dying with any write", every=EVERY)
