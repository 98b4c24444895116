"""Waiting for others on a cluster whose nodes do not know how: by watching the pods of the gang."""

from __future__ import annotations

import asyncio

import pytest
from tests.operators.podcliqueset.gangsets import SETS, Cluster, cordon, simulated, until_available, workload

from holdfast.cli.errors import InputError
from holdfast.cli.operator.wait_for import parse, wait
from holdfast.client.protocols import Scope
from holdfast.operators.podcliqueset import OPERATOR


def test_what_is_waited_for_is_named_with_numbers() -> None:
    assert parse("wl-0-pc-a:2,wl-0-sg-x-0-pc-b:1", option="podcliques") == {"wl-0-pc-a": 2, "wl-0-sg-x-0-pc-b": 1}
    for text in ("", "wl-0-pc-a", ":2", "wl-0-pc-a:many"):
        with pytest.raises(InputError):
            parse(text, option="podcliques")


def test_it_ends_when_enough_pods_are_ready_and_not_before() -> None:
    async def story(cluster: Cluster) -> None:
        assert OPERATOR.start_order is not None
        label = OPERATOR.start_order.group
        scope = Scope(namespace="default", labels="grove.io/podgang=wl-0")
        await cordon(cluster)
        await cluster.create(SETS, workload())
        waiting = asyncio.create_task(wait(cluster.client, {"wl-0-pc-a": 2}, scope, label=label))
        await cluster.advance(30)
        assert not waiting.done()
        await cordon(cluster, off=True)
        await until_available(cluster)
        await asyncio.wait_for(waiting, 10)
        await asyncio.wait_for(wait(cluster.client, {"wl-0-sg-x-1-pc-c": 3}, scope, label=label), 10)

    simulated(story)
