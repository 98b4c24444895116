"""Which machines of a Provider get which place.

One pass places all machines of a Provider that need a place, one after the other, so that each is counted for the
next one.  A place is written to the status of the machine before the machine is created.  The next pass begins when
the stores have seen these writes, so no decision is made without those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.kernel.outcomes import Again, Done, Outcome, Retry
from holdfast.kinds.virtrigaud import Provider
from holdfast.meta import durations, times
from holdfast.meta.patches import merge
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.choices import MOST
from holdfast.operators.virtualmachine.placement.observe import Chosen, Unplaced, World
from holdfast.operators.virtualmachine.placement.schedule import Choice, grouped
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason
from holdfast.providers.contract import Placement
from holdfast.runtime.decisions import Decision, Notice, Patch, Write
from holdfast.runtime.status import present, wire

_REFUSED: Final = 200
"""How many hosts that were refused a status names."""

_UNMET: Final = 50


def decide(world: World, now: datetime) -> Decision:
    """Place the machines, in their order; those that fit nowhere are tried again when something changes."""
    if world.error is not None:
        reason, message = OF_CODE[world.error.code], f"the provider was asked for its hosts: {world.error.message}"
        if world.error.transient:
            raise Retry(reason, message)
        return Decision(outcome=Again(_interval(world), message))
    writes = [write for each in world.choices for write in _writes(each, now)]
    notices = [notice for each in world.choices for notice in _notices(each.of, each.choice)]
    return Decision(writes=tuple(writes), notices=tuple(notices), outcome=_next(world))


def _next(world: World) -> Outcome:
    if sum(each.choice.placement is not None for each in world.choices) == MOST:
        return Again(timedelta(milliseconds=100), "more machines need a place")
    if any(each.choice.placement is None for each in world.choices):
        return Again(_interval(world), "the provider is asked again for its hosts")
    return Done()


def _interval(world: World) -> timedelta:
    """How often a provider is asked for its hosts while a machine fits nowhere: as often as for its health."""
    check = world.provider.decode(Provider).spec.health_check
    return max(durations.parse((check.interval if check else None) or "30s"), timedelta(seconds=1))


def _writes(chosen: Chosen, now: datetime) -> Iterator[Write]:
    each, choice = chosen.of, chosen.choice
    difference = merge.diff(wire(each.before), _status(each, choice, chosen.failed, now))
    if not difference:
        return
    where = "it fits nowhere" if choice.placement is None else f"it is placed on {choice.placement.host or 'a host'}"
    yield Patch(
        because=f"VMPlacementPolicy {each.policy.key.name}: {where}",
        resource=each.object.resource,
        key=each.object.key,
        patch={"status": {"placement": difference}},
        uid=each.object.uid,
        subresource="status",
    )


def _status(each: Unplaced, choice: Choice, failed: tuple[str, ...], now: datetime) -> dict[str, Any]:
    """What the status of the machine says of its place."""
    placed = choice.placement
    said: dict[str, Any] = {
        "phase": demand.UNPLACEABLE if placed is None else demand.PLACED,
        "policy": each.policy.key.name,
        "policyGeneration": each.policy_generation,
        "machineGeneration": each.object.meta.generation,
        "reason": reason(each.policy.key.name, choice),
        "candidates": len(choice.scores),
        "refused": [{"host": one.host, "reason": one.reason} for one in choice.refused[:_REFUSED]] or None,
        "failures": each.failures or None,
        "failedHosts": list(failed) or None,
    }
    if placed is not None:
        said |= _place(placed)
        said |= {
            "zone": choice.zone or None,
            "score": None if choice.blind else round(choice.score),
            "unmet": list(choice.unmet[:_UNMET]) or None,
            "lastScheduledTime": times.format(now),
        }
    return present(said)


def _place(placed: Placement) -> dict[str, Any]:
    return {
        "host": placed.host or None,
        "cluster": placed.cluster or None,
        "datastore": placed.datastore or None,
        "folder": placed.folder or None,
        "resourcePool": placed.resource_pool or None,
    }


# --- words


def reason(policy: str, choice: Choice) -> str:
    """The choice in a sentence."""
    total = len(choice.scores) + len(choice.refused)
    if choice.placement is None:
        return f"VMPlacementPolicy {policy}: none of {total} hosts is possible"
    if choice.blind:
        return f"VMPlacementPolicy {policy}: the provider reports no hosts, so it gets the hard constraints as they are"
    placed = choice.placement
    best = sorted((each for each in choice.scores.items() if each[0] != placed.host), key=lambda each: -each[1])
    others = f"; next {best[0][0]} with {best[0][1]:.0f}" if best else ""
    return (
        f"VMPlacementPolicy {policy}: {placed.host} has the best score ({choice.score:.0f} of 100) "
        f"of {len(choice.scores)} possible hosts, {total} in all{others}"
    )


def _notices(each: Unplaced, choice: Choice) -> Iterator[Notice]:
    """One Event for each choice, and one when a machine begins to fit nowhere."""
    text, why = reason(each.policy.key.name, choice), grouped(choice.refused)
    if choice.placement is None:
        if each.before.phase != demand.UNPLACEABLE:
            message = f"{text}: {why}" if why else text
            yield Notice(
                type="Warning", reason=MachineReason.UNPLACEABLE.value, message=message, about=each.object.wire()
            )
        return
    unmet = f"; not met: {'; '.join(choice.unmet)}" if choice.unmet else ""
    refused = f"; refused: {why}" if why else ""
    yield Notice(reason=MachineReason.PLACED.value, message=f"{text}{unmet}{refused}", about=each.object.wire())
