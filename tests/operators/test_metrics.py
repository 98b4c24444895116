"""Rollouts as metrics: what they say of real rollouts, what they count, and how many series there are at most."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from tests.places import ROOT

from holdfast.client.resources import Resource
from holdfast.kinds import cloudless
from holdfast.operators import workload
from holdfast.operators.metrics import RolloutMetrics
from holdfast.testing.clusters import Cluster, play

WORKLOADS = Resource.of(cloudless.KINDS[0])
(KIND,) = workload.OPERATOR.rollouts


def manifest(name: str, *, image: str = "a:1", replicas: int = 2, **rollout: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"image": image, "replicas": replicas, "rollout": rollout}}


class Scrape:
    """The metrics of a cluster, as they are read."""

    def __init__(self, cluster: Cluster, **options: Any) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(RolloutMetrics([KIND], cluster.manager.caches, lambda: cluster.now(), **options))

    def values(self, metric: str, /, **labels: str) -> list[float]:
        """The values of a metric whose labels are these, among others."""
        lines = generate_latest(self._registry).decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        series = (line for line in lines if line.startswith((f"{metric}{{", f"{metric} ")))
        found = [line for line in series if all(label in line for label in wanted)]
        return [float(line.rpartition(" ")[2]) for line in found]


async def settled(cluster: Cluster, *, ready: bool = True) -> None:
    for _ in range(6):
        await cluster.settle()
        await cluster.report_all(ready=ready)
    await cluster.settle()


def play_story(story: Any) -> None:
    play(story, controllers=workload.OPERATOR.controllers, kinds=cloudless.KINDS)


def test_a_rollout_is_seen_with_its_counts_its_floor_and_its_end() -> None:
    async def story(cluster: Cluster) -> None:
        scrape = Scrape(cluster)
        await cluster.create(WORKLOADS, manifest("web", minAvailable=1))
        await cluster.settle()
        assert scrape.values("holdfast_rollout_desired", name="web") == [2]
        assert scrape.values("holdfast_rollout_ready", name="web") == [0]
        assert scrape.values("holdfast_rollouts_finished_total", kind="Workload", result="completed") == [0]
        await settled(cluster)
        assert scrape.values("holdfast_rollout_ready", kind="Workload", namespace="default", name="web") == [2]
        assert scrape.values("holdfast_rollout_floor", name="web") != []
        assert scrape.values("holdfast_rollout_state", name="web", state="Completed") == [1]
        before = scrape.values("holdfast_rollouts_finished_total", result="completed")
        await cluster.patch(WORKLOADS, "web", {"spec": {"image": "a:2"}})
        await cluster.advance(5)
        assert scrape.values("holdfast_rollout_state", name="web", state="UnderWay") == [1]
        assert scrape.values("holdfast_rollout_seconds_since_progress", name="web") != []
        await settled(cluster)
        assert scrape.values("holdfast_rollout_updated", name="web") == [2]
        (finished,) = scrape.values("holdfast_rollouts_finished_total", result="completed")
        assert finished == before[0] + 1
        assert scrape.values("holdfast_rollout_duration_seconds_count", kind="Workload") == [finished]
        assert scrape.values("holdfast_floor_breaches_total", kind="Workload") == [0]
        await cluster.delete(WORKLOADS, "web")
        await settled(cluster)
        assert scrape.values("holdfast_rollout_desired") == []

    play_story(story)


def test_a_rollout_that_stops_says_why_and_when_it_fails() -> None:
    async def story(cluster: Cluster) -> None:
        scrape = Scrape(cluster)
        await cluster.create(WORKLOADS, manifest("web", progressDeadline="60s", maxUnavailable=0))
        await settled(cluster)
        await cluster.patch(WORKLOADS, "web", {"spec": {"image": "a:2"}})
        await cluster.advance(10)
        (left,) = scrape.values("holdfast_rollout_seconds_to_deadline", name="web")
        assert 0 < left <= 60
        await cluster.advance(600)
        assert scrape.values("holdfast_rollout_stopped", name="web", reason="ProgressDeadlineExceeded") == [1]

    play_story(story)


def test_the_number_of_series_is_bounded_and_trouble_comes_first() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("a", "b", "c"):
            await cluster.create(WORKLOADS, manifest(name, replicas=1))
        await settled(cluster)
        await cluster.create(WORKLOADS, manifest("z", replicas=1))
        await cluster.settle()
        scrape = Scrape(cluster, most=2)
        assert len(scrape.values("holdfast_rollout_desired")) == 2
        assert scrape.values("holdfast_rollout_desired", name="z") == [1]
        assert scrape.values("holdfast_rollout_objects_omitted", kind="Workload") == [2]

    play_story(story)


def test_every_metric_of_rollouts_is_documented() -> None:
    async def story(cluster: Cluster) -> None:
        families = RolloutMetrics([KIND], cluster.manager.caches, lambda: cluster.now()).collect()
        names = {family.name.removeprefix("holdfast_rollout_").removeprefix("holdfast_") for family in families}
        page = (ROOT / "docs" / "operator.md").read_text()
        assert [name for name in sorted(names) if f"_{name}" not in page] == []

    play_story(story)
