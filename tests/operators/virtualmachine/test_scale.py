"""Many machines: what each costs to create, what they cost at rest, and what one change costs among many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from tests.operators.virtualmachine.stories import (
    HOT,
    INSTANT,
    KINDS,
    MACHINES,
    POLICIES,
    Hypervisors,
    Latencies,
    machine,
    operator,
    policy,
    prepare,
    status_of,
)

from holdfast.apiserver.server import Server
from holdfast.runtime.manager import Manager
from holdfast.runtime.metrics import Metrics
from holdfast.testing.clusters import Cluster, connected, opened
from holdfast.testing.faults import Fault, Faulty
from holdfast.testing.loops import VirtualLoop, run


class Passes(Metrics):
    """Counts passes by controller."""

    def __init__(self) -> None:
        super().__init__()
        self.number: Counter[str] = Counter()

    def passed(self, controller: str, result: str, *, seconds: float) -> None:
        self.number[controller] += 1


class Costs:
    """The writes of the operator, its passes, and the calls to the hypervisor so far."""

    def __init__(self, fault: Fault, passes: Passes, hypervisors: Hypervisors) -> None:
        self._fault, self._passes, self._hypervisors = fault, passes, hypervisors
        self._before = (0, Counter[str](), 0)

    def reset(self) -> None:
        self._before = (self._fault.writes, self._passes.number.copy(), len(self._hypervisors.at().calls))

    @property
    def writes(self) -> int:
        return self._fault.writes - self._before[0]

    @property
    def passes(self) -> Counter[str]:
        return self._passes.number - self._before[1]

    @property
    def calls(self) -> Counter[str]:
        return Counter(call for call, _ in self._hypervisors.at().calls[self._before[2] :])


def measured(story: Callable[[Cluster, Costs], Awaitable[None]], *, latencies: Latencies = INSTANT) -> None:
    hypervisors, fault, passes = Hypervisors(latencies=latencies), Fault(), Passes()

    async def played(loop: VirtualLoop) -> None:
        def employ(server: Server) -> Manager:
            return Manager(
                Faulty(connected(server), fault),
                controllers=operator(hypervisors),
                now=loop.now,
                metrics=passes,
                seed=1,
            )

        async with opened(loop, employ=employ, kinds=KINDS) as cluster:
            await prepare(cluster, **HOT)
            await story(cluster, Costs(fault, passes, hypervisors))

    run(played)


async def grown(cluster: Cluster, number: int) -> None:
    for each in range(number):
        await cluster.create(MACHINES, machine(f"m{each}"))
    await cluster.settle()


def test_a_thousand_machines_cost_two_writes_each_and_nothing_at_rest() -> None:
    number = 1000

    async def story(cluster: Cluster, costs: Costs) -> None:
        costs.reset()
        await grown(cluster, number)
        assert {(await status_of(cluster, f"m{each}"))["phase"] for each in range(0, number, 50)} == {"Running"}
        await cluster.advance(60)
        assert costs.writes <= 2 * number + 20
        costs.reset()
        await cluster.advance(600)
        # A health check every 30 s, and one write and one more look after it.
        assert costs.writes == 20
        assert costs.passes == Counter(provider=40)
        assert "describe" not in costs.calls

    measured(story)


def test_one_change_costs_the_same_among_many_as_among_few() -> None:
    found = []

    def change_among(number: int) -> None:
        async def story(cluster: Cluster, costs: Costs) -> None:
            await grown(cluster, number)
            await cluster.advance(25)
            costs.reset()
            await cluster.patch(MACHINES, "m3", {"spec": {"resources": {"cpu": 4}}})
            await cluster.settle()
            assert (await status_of(cluster, "m3"))["currentResources"]["cpu"] == 4
            found.append((costs.writes, costs.passes, costs.calls))

        measured(story)

    change_among(10)
    change_among(100)
    assert found[0] == found[1]


def test_the_progress_of_a_long_task_is_recorded_seldom_although_time_passes_with_every_call() -> None:
    slow = Latencies(call=0.01, create=600, power_on=0, boot=0)

    async def story(cluster: Cluster, costs: Costs) -> None:
        costs.reset()
        await cluster.create(MACHINES, machine("slow"))
        seen = set()
        for _ in range(70):
            await cluster.advance(10)
            seen.add(((await status_of(cluster, "slow")).get("operation") or {}).get("percentage"))
        assert (await status_of(cluster, "slow"))["phase"] == "Running"
        assert len(seen) > 8
        # Beside those of the provider's health, of the class and of the image.
        assert costs.writes < 30 + 700 / 30

    measured(story, latencies=slow)


def test_a_hundred_machines_with_a_policy_cost_four_writes_each_and_few_looks_at_the_hosts() -> None:
    number = 100

    async def story(cluster: Cluster, costs: Costs) -> None:
        rules = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict", "maxVMsPerHost": 25}}}
        await cluster.create(POLICIES, policy("spread", **rules))
        costs.reset()
        for each in range(number):
            await cluster.create(MACHINES, machine(f"m{each}", placementRef={"name": "spread"}))
        await cluster.settle()
        assert {(await status_of(cluster, f"m{each}"))["phase"] for each in range(number)} == {"Running"}
        await cluster.advance(60)
        assert costs.writes <= 4 * number + 20
        assert costs.passes["vmplacementpolicy"] < 10
        assert costs.calls["inventory"] < 20
        costs.reset()
        await cluster.advance(600)
        assert costs.passes == Counter(provider=40)

    measured(story)
