"""The harness repeats a story exactly, and fails where it would wait, or turn, without end."""

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


def _played(seed: int) -> list[tuple[str, ...]]:
    """The names, uids and versions of what there is at the end of a story."""

    async def story(cluster: Cluster) -> list[tuple[str, ...]]:
        await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "c-"}})
        found = await cluster.list(CONFIG_MAPS)
        return [tuple(each["metadata"][key] for key in ("name", "uid", "resourceVersion")) for each in found]

    return play(story, seed=seed)


def test_a_story_has_the_same_names_and_uids_each_time_it_is_played_with_a_seed() -> None:
    assert _played(1) == _played(1) != _played(2)
