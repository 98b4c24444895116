"""What a rollout costs: how often the API is written to, and that nothing is written when nothing happens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.operators.workload.stages import Writes, change, operator, reaches, staged, workload

from holdfast.client.resources import CONTROLLER_REVISIONS, PODS
from holdfast.cluster.simulation.behaviours import Defaults
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster, connected
from holdfast.testing.faults import Faulty

ONE_SECOND = Defaults(ready=(timedelta(seconds=1), timedelta(seconds=1)))


@pytest.mark.parametrize(("surge", "reports"), [("10%", 75), (1, 120)])
def test_each_replica_is_started_and_stopped_with_one_write_each(surge: int | str, reports: int) -> None:
    """The status is written once a reconciliation at most, so that batches cost less than single replicas."""

    async def story(cluster: Cluster) -> None:
        writes = Writes()
        async with operator(cluster, Faulty(connected(cluster.server), writes)):
            await cluster.create(WORKLOADS, workload(replicas=30, rollout={"maxSurge": surge, "maxUnavailable": 0}))
            await reaches(cluster, "Completed")
            assert writes.by_resource[PODS] == 30
            writes.by_resource.clear()
            await change(cluster, image="web:2")
            await reaches(cluster, "Completed")
            assert (writes.by_resource[PODS], writes.by_resource[CONTROLLER_REVISIONS]) == (60, 1)
            assert writes.by_resource[WORKLOADS] <= reports

    staged(story, defaults=ONE_SECOND)


def test_an_idle_workload_costs_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        writes = Writes()
        async with operator(cluster, Faulty(connected(cluster.server), writes)):
            await cluster.create(WORKLOADS, workload())
            await reaches(cluster, "Completed")
            await cluster.settle()
            writes.by_resource.clear()
            await cluster.advance(900)
            assert writes.by_resource == {}

    staged(story)
