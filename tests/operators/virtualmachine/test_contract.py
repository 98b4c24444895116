"""The contract: whatever fails once on the way, a machine ends the same, also where the provider fails many calls."""

from __future__ import annotations

import os

import pytest
from tests.operators.virtualmachine.stories import (
    CLASSES,
    HOT,
    IMAGES,
    KINDS,
    MACHINES,
    PROVIDERS,
    Fault,
    Hypervisors,
    created,
    image,
    operator,
    prepare,
    reaches,
    status_of,
    vm_class,
)
from tests.operators.virtualmachine.test_providers import NAME, own, process

from holdfast.client.resources import DEPLOYMENTS
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.providers.simulated import INSTANT
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 29
MANY = ("dying with any write", "losing any change", "any write refused")


async def story(cluster: Cluster) -> None:
    """A machine is created, changed while it runs, stopped and started."""
    await prepare(cluster, **HOT)
    await created(cluster, disks=[{"name": "data", "sizeGiB": 10}])
    await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 4}, "powerState": "OffGraceful"}})
    await reaches(cluster, "Stopped")
    await cluster.patch(MACHINES, "web", {"spec": {"powerState": "On", "disks": [{"name": "data", "sizeGiB": 20}]}})
    await reaches(cluster, "Running")


SCENARIO = Scenario(
    name="a machine that is created, changed, stopped and started",
    controllers=operator(Hypervisors()),
    story=story,
    kinds=KINDS,
    deleted=(MACHINES, "web"),
    patience=45,
    # Tasks are numbered in the order of the calls, which are repeated after a crash.
    ignored=frozenset({"lastTaskRef", "id", "ips", "consoleURL", "name"}),
)

FLAKY = Scenario(
    name="the same, on a provider that fails a tenth of all calls",
    controllers=operator(
        Hypervisors(
            seed=7,
            faults=tuple(
                Fault(call=call, rate=rate, when=when)
                for call in ("create", "delete", "power", "reconfigure", "describe", "task")
                for when, rate in (("before", 0.05), ("after", 0.05), ("task", 0.1))
            ),
        )
    ),
    story=story,
    kinds=KINDS,
    deleted=(MACHINES, "web"),
    patience=400,
    ignored=frozenset({"lastTaskRef", "id", "ips", "consoleURL", "name"}),
)


AT_ONCE = Scenario(
    name="the same, on a provider that does everything at once",
    controllers=operator(Hypervisors(latencies=INSTANT)),
    story=story,
    kinds=KINDS,
    deleted=(MACHINES, "web"),
    patience=45,
    ignored=frozenset({"lastTaskRef", "id", "ips", "consoleURL", "name"}),
)


@pytest.mark.parametrize("faults", MANY)
def test_the_contract_holds_on_a_provider_that_does_everything_at_once(faults: str) -> None:
    check(AT_ONCE, faults)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults, every=EVERY if faults in MANY else 1 if WHOLE else 3)


@pytest.mark.parametrize("faults", FAULTS if WHOLE else ("dying with any write", "stale reads"))
def test_the_contract_holds_on_a_provider_that_fails_a_tenth_of_all_calls(faults: str) -> None:
    check(FLAKY, faults, every=EVERY if faults in MANY else 1)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_nothing_is_left_of_a_machine_that_is_deleted() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))


async def own_process(cluster: Cluster) -> None:
    """A provider whose process is ours, which starts, fails and starts again; and an image that is imported."""
    await cluster.create(PROVIDERS, own())
    await cluster.create(CLASSES, vm_class())
    await cluster.create(IMAGES, image(source={"http": {"url": "https://images.example.com/u.qcow2"}}))
    await cluster.until(lambda: cluster.find(DEPLOYMENTS, NAME))
    for ready in (True, False, True):
        await process(cluster, ready=ready)
        await cluster.until(lambda ready=ready: is_healthy(cluster, ready))
    await created(cluster)


async def is_healthy(cluster: Cluster, expected: bool) -> bool:
    return (await status_of(cluster, "sim", PROVIDERS)).get("healthy") is expected


PROCESS = Scenario(
    name="a provider with a process, and an image that is imported",
    controllers=operator(Hypervisors()),
    story=own_process,
    kinds=KINDS,
    deleted=(MACHINES, "web"),
    patience=45,
    # Keys are random, and how often a Secret was applied may differ.
    ignored=frozenset({"lastTaskRef", "id", "ips", "consoleURL", "name", "data", "path", "clusterIP", "clusterIPs"}),
)


@pytest.mark.parametrize("faults", FAULTS if WHOLE else ("any write refused", "stale reads"))
def test_the_contract_holds_for_the_process_of_a_provider_and_for_an_import(faults: str) -> None:
    check(PROCESS, faults, every=EVERY if faults in MANY else 1)
