"""Operator and provider are killed after every write and every call: both machines never run at the same time.

However a migration ends, it ends the same, and nothing is left but the machines.  `HOLDFAST_WHOLE_CONTRACT=1` kills
after every single one of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.operators.virtualmachine.migration_stories import (
    SOURCE,
    TARGET,
    Pair,
    in_phase,
    left,
    migration,
    nothing_but,
    prepare,
)
from tests.operators.virtualmachine.stories import KINDS, MACHINES, MIGRATIONS, created, operator, reaches, status_of

from holdfast.client.resources import CLAIMS, Resource
from holdfast.operators.virtualmachine.connections import Target
from holdfast.providers.contract import Code
from holdfast.providers.simulated import Fault, Latencies, Simulated
from holdfast.providers.simulated.records import MachineRecord
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing import faults
from holdfast.testing.clusters import Cluster, connected, opened
from holdfast.testing.loops import VirtualLoop, run

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 67
FILE = "/etc/motd"


class Kill(faults.Fault):
    """Kills with the n-th event: a write to the API that was done, or a call that a provider has carried out."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n, self.events, self.armed = n, 0, False
        self.dead = asyncio.Event()

    async def alive(self) -> None:
        if self.dead.is_set():
            await asyncio.get_running_loop().create_future()

    async def after_write(self, resource: Resource) -> None:
        await super().after_write(resource)
        await self.passed()

    async def passed(self) -> None:
        self.events += self.armed
        if self.armed and self.events == self.n:
            self.dead.set()
        await self.alive()


class Powers:
    """When each machine was switched on and off, by the clock."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, str, bool]] = []

    def spans(self, prefix: str) -> list[tuple[float, float]]:
        found, since = [], None
        for at, name, on in sorted(self.changes, key=lambda each: each[0]):
            if not name.startswith(prefix):
                continue
            if on and since is None:
                since = at
            elif not on and since is not None:
                found.append((since, at))
                since = None
        return [*found, (since, float("inf"))] if since is not None else found

    def check(self) -> None:
        for began, ended in self.spans("web-"):
            for on, off in self.spans("moved-"):
                assert ended <= on or off <= began, f"both ran: {began}..{ended} and {on}..{off}"


class Recording(Simulated):
    """A hypervisor that reports each change of power."""

    powers: Powers

    def _set_power(self, record: MachineRecord, power: str, at: float) -> None:
        super()._set_power(record, power, at)
        self.powers.changes.append((at, record.name, power == "On"))

    def _forget(self, machine: MachineRecord) -> None:
        super()._forget(machine)
        self.powers.changes.append((self._now(), machine.name, False))


class Caller:
    """A connection to a hypervisor whose answers may never come."""

    def __init__(self, hypervisor: Simulated, kill: Kill) -> None:
        self._hypervisor, self._kill = hypervisor, kill

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._hypervisor, name)

        async def answered(*arguments: Any, **more: Any) -> Any:
            await self._kill.alive()
            answer = await called(*arguments, **more)
            await self._kill.passed()
            return answer

        return answered


class KilledPair(Pair):
    """Two hypervisors with journals, from which they are opened again after they were killed."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.kill, self.powers = folder, Kill(0), Powers()
        super().__init__(make=self._opened, **more)

    def _opened(self, *arguments: Any, **more: Any) -> Simulated:
        made = Recording(*arguments, journal=self.folder / self._address.partition(":")[0], **more)
        made.powers = self.powers
        return made

    def __call__(self, target: Target) -> Any:
        return Caller(self.at(target.address), self.kill)

    async def reopened(self) -> None:
        loop = asyncio.get_running_loop()
        for address in (SOURCE, TARGET):
            await self.at(address).close()
            del self._made[loop][address]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a user does, after the machine runs and the migration is created, and how it ends."""

    spec: dict[str, Any]
    then: Callable[[Cluster], Awaitable[None]]
    succeeds: bool
    faults: tuple[Fault, ...] = ()


async def _ready(cluster: Cluster) -> None:
    await in_phase(cluster, "Ready")


async def _failed(cluster: Cluster) -> None:
    await in_phase(cluster, "Failed")


async def _deleted(cluster: Cluster) -> None:
    async def gone() -> bool:
        return await cluster.find(MIGRATIONS, "move") is None

    await in_phase(cluster, "Importing")
    await cluster.delete(MIGRATIONS, "move")
    await cluster.until(gone, within=300)


OFF, RUNS = {"powerOffBeforeMigration": True}, {"powerOn": True}
CASES = {
    "a machine that is stopped first": Case(spec={"source": OFF, "target": RUNS}, then=_ready, succeeds=True),
    "a machine that runs until its target is made": Case(
        spec={"source": {"deleteAfterMigration": False}, "target": RUNS}, then=_ready, succeeds=True
    ),
    "a target that has no room": Case(
        spec={"source": OFF, "target": RUNS, "options": {"cleanupPolicy": "Always"}},
        then=_failed,
        succeeds=False,
        faults=(Fault(call="import_disk", code=Code.QUOTA, when="task"),),
    ),
    "a target that cannot be made": Case(
        spec={"source": OFF, "target": RUNS, "options": {"cleanupPolicy": "Always", "timeout": "30s"}},
        then=_failed,
        succeeds=False,
        faults=(Fault(call="power", name="moved-*", code=Code.INTERNAL, when="task"),),
    ),
    "a migration that is deleted": Case(spec={"source": OFF, "target": RUNS}, then=_deleted, succeeds=False),
}


def with_kill(case: Case, n: int, folder: Path) -> int:
    """Play a case in which everything is killed with the n-th event; returns how many events there were."""
    folder.mkdir()
    pair = KilledPair(folder, latencies=Latencies(bytes_per_second=64 << 20), faults=case.faults)

    async def played(loop: VirtualLoop) -> int:
        kill = pair.kill = Kill(n)
        controllers, made = operator(pair), 0

        def employ(server: Any) -> Manager:
            nonlocal made
            made += 1
            client = connected(server) if made > 1 else faults.Faulty(connected(server), kill)
            settings = Settings(side_by_side=1)
            return Manager(
                client, controllers=controllers, now=loop.now, settings=settings, seed=1, takes_over=made > 1
            )

        async def revive(cluster: Cluster) -> None:
            await kill.dead.wait()
            pair.kill = Kill(0)
            await pair.reopened()
            nonlocal controllers
            controllers = operator(pair)
            await cluster.restart()

        async with opened(loop, employ=employ, kinds=KINDS) as cluster:
            reviver = asyncio.create_task(revive(cluster))
            await prepare(cluster)
            await created(cluster)
            pair.source.write_file((await status_of(cluster))["id"], FILE, "hello")
            kill.armed = True
            await cluster.create(MIGRATIONS, migration(**case.spec))
            await case.then(cluster)
            await cluster.advance(90)
            await _check(cluster, case, pair)
            reviver.cancel()
            return kill.events

    return run(played)


async def _check(cluster: Cluster, case: Case, pair: KilledPair) -> None:
    pair.powers.check()
    assert await cluster.find(CLAIMS, "move-storage") is None
    if not case.succeeds:
        assert (await reaches(cluster, "Running"))["powerState"] == "On"
        assert await cluster.find(MACHINES, "moved") is None
        assert left(pair) == nothing_but(1, 0)
        return
    assert (await reaches(cluster, "Stopped"))["powerState"] == "Off"
    moved = await reaches(cluster, "Running", "moved")
    assert pair.target.read_file(moved["id"], FILE) == "hello"
    assert left(pair) == nothing_but(1, 1)


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_moment_converges_and_both_machines_never_run_at_the_same_time(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    events = with_kill(case, 0, tmp_path / "undisturbed")
    assert events > 20
    for n in range(1 + sum(map(ord, name)) % EVERY, events + 1, EVERY):
        try:
            with_kill(case, n, tmp_path / str(n))
        except AssertionError as error:
            raise AssertionError(f"{name}, killed with event {n} of {events}: {error}") from error
