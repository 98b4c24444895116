"""The choices of one pass: pure, and carried out a machine at a time, because many hosts take a while to compare."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.placement import validate
from holdfast.operators.virtualmachine.placement.observe import Chosen, Unplaced, World
from holdfast.operators.virtualmachine.placement.schedule import Choice, resident, schedule
from holdfast.operators.virtualmachine.placement.world import World as Placing
from holdfast.providers.contract import ProviderError

MOST: Final = 100
"""How many machines one pass places; the next one goes on."""


async def survey(world: World, *, connections: Connections) -> World:
    """The world with the hosts of the provider, and with what is chosen for its machines."""
    try:
        world = replace(world, inventory=await connections.to(world.target).inventory())
    except ProviderError as error:
        return replace(world, error=error)
    found = []
    for each in choices(world):
        found.append(each)
        # Others run in between.
        await asyncio.sleep(0)
    return replace(world, choices=tuple(found))


def choices(world: World) -> Iterator[Chosen]:
    """What is chosen for each machine, one after the other; each that gets a place counts for the next one."""
    placing, placed = world.placing, 0
    # Machines that ask for the same fit nowhere for the same reasons, until one more has a place.
    nowhere: list[tuple[Unplaced, Chosen]] = []
    for each in world.unplaced:
        if validate.problems_of(each.policy.spec):
            # The machine says so; it is looked at again when the policy is changed.
            continue
        same = next((chosen for other, chosen in nowhere if _asks_the_same(each, other)), None)
        found = _chosen(each, placing) if same is None else replace(same, of=each)
        yield found
        if found.choice.placement is None:
            nowhere += [(each, found)] if same is None else []
            continue
        nowhere, placed = [], placed + 1
        placing = placing.with_resident(resident(each.policy, each.request, found.choice.placement))
        if placed == MOST:
            return


def _asks_the_same(a: Unplaced, b: Unplaced) -> bool:
    request = replace(a.request, key=b.request.key)
    failed = (a.failed_host, a.before.failed_hosts) == (b.failed_host, b.before.failed_hosts)
    return a.policy.key == b.policy.key and request == b.request and failed


def _chosen(each: Unplaced, placing: Placing) -> Chosen:
    """The choice; hosts on which the machine could not be created are avoided if others are possible."""
    last = (each.failed_host,) if each.failed_host else ()
    failed = tuple(dict.fromkeys((*each.before.failed_hosts, *last)))
    choice = schedule(each.policy, replace(each.request, avoided=frozenset(failed)), placing)
    if choice.placement is not None or not failed:
        return Chosen(each, choice, failed)
    again: Choice = schedule(each.policy, each.request, placing)
    return Chosen(each, choice if again.placement is None else again, failed)
