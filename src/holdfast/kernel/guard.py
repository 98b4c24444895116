"""The guard: a second check of a decision, just before it is carried out.

`decide` already keeps floor and ceiling.  Between the decision and the action
the fleet may change (a replica crashes, a disruption budget appears), so the
operator checks again with the latest fleet.  The arithmetic is written a second
time on purpose, from the promises alone, so that a mistake in the rule of
`rollout` does not pass here as well.
"""

from __future__ import annotations

import msgspec

from holdfast.kernel.fleet import Fleet
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Blocked, Decision, Kind, Shape, Start, Stop, Switch


def guard(decision: Decision, fleet: Fleet, *, shape: Shape) -> Decision:
    """The part of `decision` that still keeps the promises; `Blocked` when nothing is left of it."""
    match decision:
        case Stop(side=side, kind=Kind.READY, count=wanted) if fleet.active in (None, side):
            allowed = min(wanted, fleet.pool(side).ready, fleet.available - shape.floor)
            if allowed > 0:
                return decision if allowed == wanted else msgspec.structs.replace(decision, count=allowed)
            message = f"{fleet.available:,} available now and the floor needs {shape.floor:,}; nothing is stopped"
            return Blocked(Because(Code.AT_FLOOR, message), "wait until more replicas are available")
        case Start(count=wanted):
            occupied = fleet.live
            if shape.count_terminating:
                occupied += fleet.old.terminating + fleet.new.terminating
            allowed = min(wanted, shape.ceiling - occupied)
            if allowed > 0:
                return decision if allowed == wanted else msgspec.structs.replace(decision, count=allowed)
            message = f"{occupied:,} live now and at most {shape.ceiling:,} may be; nothing is started"
            return Blocked(Because(Code.AT_CEILING, message), "wait until replicas are gone")
        case Switch() if fleet.new.available < min(shape.floor, fleet.available):
            message = f"{fleet.new.available:,} available now and the floor needs {shape.floor:,}; traffic stays"
            return Blocked(Because(Code.AT_FLOOR, message), "wait until more replicas are available")
        case _:
            return decision
