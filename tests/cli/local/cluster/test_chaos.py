"""``holdfast chaos``: what it writes, what it says, and that simulated nodes obey, on a server in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli.connecting import Refused, Session, Where
from holdfast.cli.local.cluster import chaos as cli
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS
from holdfast.cluster import simulation
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.testing.clusters import Cluster, play

Work = Callable[[Session], Coroutine[Any, Any, Any]]
Said = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def holdfast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs ``holdfast chaos`` on a cluster in this process; what it says."""

    async def said(cluster: Cluster, *words: str) -> str:
        works: list[tuple[Where, Work]] = []
        monkeypatch.setattr(cli, "run", lambda where, work: works.append((where, work)))
        monkeypatch.setattr(cli, "_now", cluster.now)
        result = CliRunner().invoke(cli.command, words)
        assert result.exit_code == 0, result.output
        ((where, work),) = works
        capsys.readouterr()
        await work(Session(cluster.client, where.namespace or "default"))
        await cluster.settle()
        shown = capsys.readouterr()
        return shown.out + shown.err

    return said


def on_nodes(story: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    play(story, components=[Scheduler(), SimulatedNodes(Fleet(count=2))], controllers=[simulation.controller()])


async def pods(cluster: Cluster, number: int, **labels: str) -> None:
    for _ in range(number):
        spec = {"containers": [{"name": "c", "image": "web:1"}]}
        await cluster.create(PODS, {"metadata": {"generateName": "web-", "labels": labels}, "spec": spec})
    await cluster.advance(2)


async def restarts(cluster: Cluster, labels: str = "") -> int:
    found = await cluster.list(PODS, labels)
    return sum(pod["status"]["containerStatuses"][0]["restartCount"] for pod in found)


async def ready(cluster: Cluster) -> int:
    return sum(pod["status"]["containerStatuses"][0]["ready"] for pod in await cluster.list(PODS))


def test_pods_crash_by_their_labels(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        await pods(cluster, 3, app="web")
        await pods(cluster, 2, app="db")
        said = await holdfast(cluster, "crash", "-l", "app=web")
        assert said.partition(" ordered: ")[2] == "it hits 3 of 3 pods\n"
        await cluster.advance(2)
        assert await restarts(cluster, "app=web") == 3
        assert await restarts(cluster, "app=db") == 0

    on_nodes(story)


def test_only_a_share_is_hit_and_it_is_said_how_many(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        await pods(cluster, 20)
        said = await holdfast(cluster, "crash", "--share", "0.5", "--seed", "3")
        assert said.endswith("it hits 10 of 20 pods\n")
        await cluster.advance(2)
        assert await restarts(cluster) == 10

    on_nodes(story)


def test_pods_hang_until_it_is_stopped(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        await pods(cluster, 2)
        name = (await holdfast(cluster, "hang", "-A")).split()[0]
        await cluster.advance(60)
        assert await ready(cluster) == 0
        assert await holdfast(cluster, "stop", name) == f"{name} stopped\n"
        assert await ready(cluster) == 2

    on_nodes(story)


def test_pods_are_slow_for_a_while(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        said = await holdfast(cluster, "slow", "--factor", "100", "--for", "1m")
        hits, note = said.splitlines()
        assert hits.endswith("it hits 0 of 0 pods, for 1m")
        assert note.startswith("note: no pod on simulated nodes in namespace default matches")
        await cluster.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        await cluster.advance(5)
        assert (await cluster.get(PODS, "a"))["status"]["phase"] == "Pending"
        await cluster.advance(60)
        assert await ready(cluster) == 1

    on_nodes(story)


def test_nodes_vanish_and_are_brought_back(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        await holdfast(cluster, "node-remove", "node-1", "node-2")
        assert await cluster.list(NODES) == []
        assert await holdfast(cluster, "node-up", "node-2") == "node-2 up again\n"
        assert [node["metadata"]["name"] for node in await cluster.list(NODES)] == ["node-2"]
        assert "node-1" in await holdfast(cluster, "list")

    on_nodes(story)


def test_what_is_going_on_is_listed(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        assert await holdfast(cluster, "list") == "no trouble\n"
        await holdfast(cluster, "node-down", "node-1", "--for", "5m")
        await holdfast(cluster, "crash", "-n", "default", "-l", "app=web", "--share", "0.25")
        await cluster.advance(30)
        shown = [line.split(maxsplit=1)[1] for line in (await holdfast(cluster, "list")).splitlines()]
        assert [" ".join(line.split()) for line in shown] == [
            "WHAT WHOM SINCE LASTS",
            "crash 25% of app=web in default 30s ago once",
            "node-down node-1 30s ago 4m30s more",
        ]
        listed = json.loads(await holdfast(cluster, "list", "-o", "json"))
        assert [fault["kind"] for fault in listed.values()] == ["crash", "node-down"]
        assert (await holdfast(cluster, "stop", "--all")).endswith(" stopped\n")
        assert await holdfast(cluster, "list") == "no trouble\n"

    on_nodes(story)


def test_what_is_over_is_taken_away_when_something_new_comes(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        await holdfast(cluster, "hang", "--for", "1m")
        await cluster.advance(3 * 3600)
        name = (await holdfast(cluster, "crash")).split()[0]
        kept = await cluster.get(CONFIG_MAPS, chaos.PLACE.name, chaos.PLACE.namespace)
        assert list(kept["data"]) == [name]

    on_nodes(story)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("node-down", "node-9"), "node-9: no simulated node of that name; there are node-1, node-2"),
        (("node-up", "node-1"), "nothing is wrong with node-1"),
        (("stop", "crash-1"), "there is no crash-1"),
    ],
)
def test_what_cannot_be_done_is_said(holdfast: Said, words: tuple[str, ...], why: str) -> None:
    async def story(cluster: Cluster) -> None:
        with pytest.raises(Refused) as refused:
            await holdfast(cluster, *words)
        assert why in refused.value.format_message()

    on_nodes(story)


def test_where_nobody_obeys_it_is_said(holdfast: Said) -> None:
    async def story(cluster: Cluster) -> None:
        assert "so the fault has no effect" in await holdfast(cluster, "crash")

    play(story)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("crash", "--for", "soon"), "is not a duration"),
        (("crash", "--for", "0s"), "is no time"),
        (("crash", "-l", "a in"), "label selector"),
        (("crash", "--share", "2"), "is not in the range"),
        (("slow", "--factor", "0"), "is not in the range"),
        (("stop",), "or write --all"),
        (("node-down",), "Missing argument"),
    ],
)
def test_what_cannot_be_understood_is_refused(words: tuple[str, ...], why: str) -> None:
    result = CliRunner().invoke(cli.command, words)
    assert result.exit_code == 2
    assert why in result.output
