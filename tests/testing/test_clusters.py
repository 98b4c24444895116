"""The harness fails where it would wait, or turn, without end."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client.resources import CONFIG_MAPS
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.testing import clusters
from holdfast.testing.clusters import Cluster, play


def test_a_manager_that_reads_a_kind_that_is_not_installed_fails_the_story() -> None:
    async def story(cluster: Cluster) -> None:
        raise AssertionError("it must not begin")

    with pytest.raises(AssertionError, match=r"the manager does not work after 60 virtual seconds: .*Workload"):
        play(story, controllers=CONTROLLERS)


def test_writes_without_end_while_no_time_passes_fail_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_BUSY", 500)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "c"}})

        async def spin() -> None:
            for number in range(10_000):
                await cluster.patch(CONFIG_MAPS, "c", {"data": {"n": str(number)}})

        spinning = asyncio.create_task(spin())
        try:
            await cluster.settle()
        finally:
            spinning.cancel()

    with pytest.raises(AssertionError, match=r"a loop without end: .* writes in 500 turns"):
        play(story)
