"""Every live namespace has a default service account."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.client.resources import NAMESPACES, SERVICE_ACCOUNTS
from holdfast.cluster.controllers import accounts
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIVE = {"metadata": {"name": "shop", "uid": "u"}}
GOING = {"metadata": {"name": "shop", "uid": "u", "deletionTimestamp": "2030-01-01T00:00:00Z"}}
ACCOUNT = {"metadata": {"name": "default", "namespace": "shop"}}
OTHER = {"metadata": {"name": "robot", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("namespaces", "present", "makes"),
    [
        pytest.param([LIVE], [], True, id="a namespace without one gets one"),
        pytest.param([LIVE], [OTHER], True, id="another one is not it"),
        pytest.param([LIVE], [ACCOUNT], False, id="one is enough"),
        pytest.param([GOING], [], False, id="a namespace on its way out gets none"),
        pytest.param([], [], False, id="a namespace that is gone gets none"),
    ],
)
def test_who_gets_an_account(namespaces: list[Any], present: list[Any], makes: bool) -> None:
    view = Snapshot([*((NAMESPACES, each) for each in namespaces), *((SERVICE_ACCOUNTS, each) for each in present)])
    world = accounts.observe(view, Key("", "shop"))
    writes = () if world is None else accounts.decide(world, NOW).writes
    assert [write.manifest for write in writes if isinstance(write, Create)] == ([ACCOUNT] if makes else [])


def test_an_account_that_is_deleted_comes_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await cluster.settle()
        first = await cluster.get(SERVICE_ACCOUNTS, "default", "shop")
        assert await cluster.find(SERVICE_ACCOUNTS, "default", "kube-system")
        await cluster.delete(SERVICE_ACCOUNTS, "default", "shop")
        await cluster.settle()
        assert (await cluster.get(SERVICE_ACCOUNTS, "default", "shop"))["metadata"]["uid"] != first["metadata"]["uid"]

    play(story, controllers=[accounts.CONTROLLER])
