"""Parts that change their size before or during an update are updated once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    SETS,
    Cluster,
    changed,
    filmed,
    scale,
    simulated,
    until_available,
    until_updated,
    update,
)
from tests.operators.podcliqueset.rollings import WL1, all_updated, is_running

from holdfast.client.resources import PODS

SCALINGS = [
    # id, resource, name, from, to, during the update or before it, pods in the end
    pytest.param(GROUPS, "wl-{}-sg-x", 2, 3, "during", 28, id="RU-14 a group grows during an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 2, 3, "before", 28, id="RU-15 a group grew before an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 3, 2, "during", 20, id="RU-16 a group shrinks during an update"),
    pytest.param(GROUPS, "wl-{}-sg-x", 3, 2, "before", 20, id="RU-17 a group shrank before an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 2, 4, "during", 24, id="RU-18 a clique grows during an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 2, 4, "before", 24, id="RU-19 a clique grew before an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 3, 2, "during", 20, id="RU-20 a clique shrinks during an update"),
    pytest.param(CLIQUES, "wl-{}-pc-a", 3, 2, "before", 20, id="RU-21 a clique shrank before an update"),
]


@pytest.mark.parametrize(("resource", "name", "first", "then", "when", "total"), SCALINGS)
def test_parts_that_change_their_size_are_updated_once(
    resource: Any, name: str, first: int, then: int, when: str, total: int
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, WL1)
        await until_available(cluster)
        parts = [name.format(index) for index in range(2)]
        if first != 2:
            for part in parts:
                await scale(cluster, resource, part, first)
            await cluster.advance(10)
        if when == "before":
            for part in parts:
                await scale(cluster, resource, part, then)
            await cluster.advance(10)
        async with filmed(cluster, PODS) as film:
            await update(cluster, changed(WL1))
            if when == "during":
                await cluster.until(lambda: is_running(cluster), step=0.1)
                for part in parts:
                    await scale(cluster, resource, part, then)
            await until_updated(cluster)
            await cluster.advance(10)
        await all_updated(cluster, total)
        assert (await until_available(cluster))["availableReplicas"] == 2
        made = {pod["metadata"]["name"] for event, pod in film.frames if event == "Added"}
        going = {pod["metadata"]["name"] for _, pod in film.frames if "deletionTimestamp" in pod["metadata"]}
        if resource == GROUPS:
            assert not made & going, "what was made from the new template is not made again"

    simulated(story)
