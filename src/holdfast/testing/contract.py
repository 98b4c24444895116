"""The contract that every controller keeps, tested with faults.

A `Scenario` is what a user does to a cluster, and what must be true in the end.
It is played once undisturbed, and then again and again with one fault at a time
(`faults`); each time the end must be the same (`Ending`), but for what no two runs
have in common: identities, times, generated names.

    SCENARIO = Scenario(name="two replicas", controllers=(CONTROLLER,), story=story)

    @pytest.mark.parametrize("faults", FAULTS)
    def test_the_contract_holds(faults: str) -> None:
        check(SCENARIO, faults)

What is tested: a second reconcile writes nothing; the process crashes with any one of its
writes; any one change is lost; every read is one version old; changes of different
kinds come in another order; a write is refused; replies to writes that were done are
lost while changes come late; deletion leaves nothing behind.  `Bounds` of the pods are
checked at every committed change of a pod, in every one of these runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Final

import msgspec

from holdfast.apiserver.server import Server
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Deleted
from holdfast.client.resources import PODS, Resource
from holdfast.kernel.children import APPLIED_HASH
from holdfast.kinds.model import Kind
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import Cluster, connected, opened
from holdfast.testing.faults import Crash, Disorder, Fault, Faulty, Lag, Loss, Refusal, Silence
from holdfast.testing.loops import VirtualLoop, run

Story = Callable[[Cluster], Awaitable[None]]

_TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_UID: Final = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NEVER_SAME: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "managedFields",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "nodeName",
        "containerID",
        APPLIED_HASH,
    }
)
_IGNORED: Final = frozenset({"/events", "events.k8s.io/events", "coordination.k8s.io/leases", "/namespaces", "/nodes"})


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How many pods there must be, and may be, at every moment.

    floor    a ready pod is not deleted if fewer than so many others are ready
    ceiling  no pod is created if so many exist that are not being deleted
    by       a label: pods with different values are counted apart
    """

    floor: int
    ceiling: int
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    controllers  the controllers under test
    components   new ones for every process, because they may keep something in memory
    kinds        whose definitions are installed first
    story        what the user does; it waits with `until`, never for a fixed number of passes
    deleted      what is deleted at the end, after which nothing that it owned may be left; None skips that
    patience     virtual seconds after which everything has come to rest
    ignored      fields that may differ from run to run, beside those that always may
    bounds       what is checked at every change of a pod; None checks nothing
    """

    name: str
    controllers: tuple[Controller[Any], ...]
    story: Story
    components: Callable[[], Sequence[Component]] = tuple
    kinds: tuple[Kind, ...] = ()
    deleted: tuple[Resource, str] | None = None
    patience: float = 120.0
    ignored: frozenset[str] = field(default_factory=frozenset)
    bounds: Bounds | None = None


Ending = Counter[str]
"""The objects there are, each as its canonical text."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """How a scenario goes when nothing fails."""

    ending: Ending
    writes: int
    changes: int


def _crashes(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    for n in range(1, known.writes + 1):
        yield f"it dies with write {n}", Crash(n)


def _losses(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    for n in range(1, known.changes + 1):
        yield f"change {n} is lost", Loss(n)


def _refusals(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    for n in range(1, known.writes + 1):
        yield f"write {n} is refused", Refusal(n)


def _lags(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    yield "every read is one version old", Lag()


def _disorders(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    for seed in (1, 2, 3):
        yield f"changes come in another order, seed {seed}", Disorder(seed)


def _silences(known: Undisturbed) -> Iterator[tuple[str, Fault]]:
    for seed in range(1, 7):
        yield f"replies are lost and changes come late, seed {seed}", Silence(seed)


FAULTS: Final[Mapping[str, Callable[[Undisturbed], Iterator[tuple[str, Fault]]]]] = {
    "dying with any write": _crashes,
    "losing any change": _losses,
    "any write refused": _refusals,
    "stale reads": _lags,
    "changes out of order": _disorders,
    "replies lost and changes late": _silences,
}
"""What is tried, by name, for `pytest.mark.parametrize`."""


def check(scenario: Scenario, faults: str, *, every: int = 1) -> None:
    """Try every fault of one kind; fails with the differences of the runs that ended otherwise.

    Of a scenario with very many writes one may try only one in `every` so many.
    """
    known = undisturbed(scenario)
    _check(_tried(scenario, name, fault, known.ending) for name, fault in islice(FAULTS[faults](known), 0, None, every))


def check_bounds(scenario: Scenario, faults: str) -> None:
    """Try every fault of one kind; fails with the breaches of the bounds, however the runs end.

    For stories whose ending depends on the moment at which something is seen, such as templates that change midway.
    """
    assert scenario.bounds is not None, f"{scenario.name} has no bounds"
    known = undisturbed(scenario)
    _check(_tried(scenario, name, fault) for name, fault in FAULTS[faults](known))


def breaches(scenario: Scenario, fault: Fault) -> list[str]:
    """The breaches of the bounds in one run with a fault, however it ends."""
    assert scenario.bounds is not None, f"{scenario.name} has no bounds"
    return run(lambda loop: _played(loop, scenario, fault))[1]


def _check(differences: Iterable[str]) -> None:
    failed = [difference for difference in differences if difference]
    assert not failed, "\n\n".join(failed[:3]) + (f"\n\nand {len(failed) - 3} more" if len(failed) > 3 else "")


def _tried(scenario: Scenario, name: str, fault: Fault, expected: Ending | None = None) -> str:
    """What is wrong with one run; empty if nothing is.  Without an `expected` ending, any ending is right."""
    ending, breaches = run(lambda loop: _played(loop, scenario, fault))
    title = f"{scenario.name}, when {name},"
    if breaches:
        return "\n".join((f"{title} breaks its bounds", *(f"  {breach}" for breach in breaches)))
    missing, surplus = (Counter(), Counter()) if expected is None else (expected - ending, ending - expected)
    return _difference(title, missing, surplus) if missing or surplus else ""


@cache
def undisturbed(scenario: Scenario) -> Undisturbed:
    """The run that all others are compared with; it also shows that a second look writes nothing."""

    async def played(loop: VirtualLoop) -> Undisturbed:
        fault = Fault()
        ending, breaches = await _played(loop, scenario, fault)
        assert not breaches, "\n".join((f"{scenario.name}, undisturbed, breaks its bounds", *breaches))
        return Undisturbed(ending=ending, writes=fault.writes, changes=fault.changes)

    return run(played)


def check_second_look(scenario: Scenario) -> None:
    """A controller that is restarted and looks at everything again finds nothing to write."""

    async def played(loop: VirtualLoop) -> None:
        fault = Fault()
        async with opened(loop, employ=_employer(loop, scenario, fault), kinds=scenario.kinds) as cluster:
            await scenario.story(cluster)
            await cluster.advance(scenario.patience)
            before, revision = fault.writes, cluster.server.store.revision
            await cluster.restart()
            await cluster.settle()
            assert fault.writes == before, f"{fault.writes - before} writes although nothing had changed"
            assert cluster.server.store.revision == revision, "something was written although nothing had changed"

    run(played)


def check_deletion(scenario: Scenario, *, components: Callable[[], Sequence[Component]]) -> None:
    """When its owner is deleted, nothing is left of what was made for it; `components` has the garbage collector."""
    assert scenario.deleted is not None, f"{scenario.name} says nothing about deletion"
    resource, name = scenario.deleted

    async def played(loop: VirtualLoop) -> None:
        employ = _employer(loop, scenario, Fault(), components=components)
        async with opened(loop, employ=employ, kinds=scenario.kinds) as cluster:
            await scenario.story(cluster)
            await cluster.settle()
            await cluster.delete(resource, name)
            await cluster.advance(scenario.patience)
            left = [text for text in _ending(cluster.server, scenario) if '"ownerReferences"' in text]
            assert await cluster.find(resource, name) is None, f"{name} is still there"
            assert not left, "left behind:\n" + "\n".join(left)

    run(played)


async def _played(loop: VirtualLoop, scenario: Scenario, fault: Fault) -> tuple[Ending, list[str]]:
    """Play to the end, with a new process in the place of one that dies; the ending, and breaches of the bounds."""
    async with opened(loop, employ=_employer(loop, scenario, fault), kinds=scenario.kinds) as cluster:
        undertaker = asyncio.create_task(_revive(cluster, fault))
        try:
            async with bounded(cluster, scenario.bounds) as breaches:
                await scenario.story(cluster)
                await cluster.advance(scenario.patience)
        finally:
            undertaker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await undertaker
        return _ending(cluster.server, scenario), breaches


@contextlib.asynccontextmanager
async def bounded(cluster: Cluster, bounds: Bounds | None) -> AsyncIterator[list[str]]:
    """Check bounds at every committed change of a pod; gives the list of breaches."""
    breaches: list[str] = []
    if bounds is None:
        yield breaches
        return
    watching = asyncio.create_task(_follow(cluster, bounds, breaches))
    try:
        yield breaches
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _follow(cluster: Cluster, bounds: Bounds, breaches: list[str]) -> None:
    ready: dict[str, set[str]] = {}
    live: dict[str, set[str]] = {}
    async with cluster.client.watch(PODS, initial=True) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                continue
            pod = event.object
            part, stays = pod.meta.labels.get(bounds.by, ""), not (isinstance(event, Deleted) or pod.deleting)
            said = f"at {cluster.now():%H:%M:%S.%f} {pod.key.name}"
            of_part = ready.setdefault(part, set()), live.setdefault(part, set())
            was_ready, was_live = (pod.uid in each for each in of_part)
            for each, belongs in zip(of_part, (stays and Pod.of(pod).ready, stays), strict=True):
                (each.add if belongs else each.discard)(pod.uid)
            if was_ready and not stays and len(ready[part]) < bounds.floor:
                breaches.append(f"{said} was deleted: {len(ready[part])} others are ready, floor {bounds.floor}")
            if not was_live and stays and len(live[part]) > bounds.ceiling:
                breaches.append(f"{said} was created: there are {len(live[part])} now, ceiling {bounds.ceiling}")


async def _revive(cluster: Cluster, fault: Fault) -> None:
    while isinstance(fault, Silence):
        await fault.kill.wait()
        await cluster.restart()
        fault.kill.clear()
    if isinstance(fault, Crash):
        await fault.dead.wait()
        await cluster.restart()


def _employer(
    loop: VirtualLoop, scenario: Scenario, fault: Fault, *, components: Callable[[], Sequence[Component]] | None = None
) -> Callable[[Server], Manager]:
    """The first process has the fault; those after a crash are sound, and go on counting where it is none."""
    made = 0

    def employ(server: Server) -> Manager:
        nonlocal made
        made += 1
        sound = made > 1 and isinstance(fault, Crash)
        return Manager(
            Faulty(connected(server), Fault() if sound else fault),
            controllers=scenario.controllers,
            components=(*scenario.components(), *(components() if components is not None else ())),
            now=loop.now,
            # One write after the other, so that the n-th is the same one in every run.
            settings=Settings(side_by_side=1),
            seed=1,
            takes_over=made > 1,
        )

    return employ


def _ending(server: Server, scenario: Scenario) -> Ending:
    ending: Ending = Counter()
    for kind in server.registry:
        if kind.key in _IGNORED or kind.stored_key:
            continue
        for entry in server.store.list(kind.key):
            obj = msgspec.json.decode(entry.value)
            if not _is_default_object(obj):
                ending[_canonical(_plain(obj, scenario.ignored))] += 1
    return ending


def _is_default_object(obj: Mapping[str, Any]) -> bool:
    """What every cluster has, whatever the scenario."""
    metadata = obj["metadata"]
    return metadata.get("namespace", "") in ("kube-system", "kube-public", "kube-node-lease") or (
        not metadata.get("namespace") and not metadata.get("ownerReferences") and obj["kind"] != "PersistentVolume"
    )


def _plain(value: Any, ignored: frozenset[str]) -> Any:
    """What must be equal of two runs."""
    if isinstance(value, dict):
        plain = {
            name: _plain(item, ignored)
            for name, item in value.items()
            if name not in _NEVER_SAME and name not in ignored
        }
        if "generateName" in value and "name" in value:
            plain["name"] = value["generateName"] + "…"
        return plain
    if isinstance(value, list):
        return [_plain(item, ignored) for item in value]
    if isinstance(value, str) and (_TIME.match(value) or _UID.match(value)):
        return "…"
    return value


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _difference(name: str, missing: Ending, surplus: Ending) -> str:
    lines = [f"{name} ends otherwise than undisturbed"]
    lines += [f"  missing ({number}): {text}" for text, number in missing.items()]
    lines += [f"  surplus ({number}): {text}" for text, number in surplus.items()]
    return "\n".join(lines)
