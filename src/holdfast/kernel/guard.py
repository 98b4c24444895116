"""The last mile: re-check a decision against the world just before it is carried out.

`decide` already keeps floor and ceiling.  Between deciding and acting the world
moves (a replica crashed, a disruption budget appeared), so whoever acts asks
once more, with the freshest fleet.  The arithmetic is written down again on
purpose and from the promises alone: a mistake in the rule cannot hide here.
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
            return Blocked(Because(Code.AT_FLOOR, message), "wait: it goes on when more replicas are available")
        case Start(count=wanted):
            occupied = fleet.live
            if shape.count_terminating:
                occupied += fleet.old.terminating + fleet.new.terminating
            allowed = min(wanted, shape.ceiling - occupied)
            if allowed > 0:
                return decision if allowed == wanted else msgspec.structs.replace(decision, count=allowed)
            message = f"{occupied:,} live now and at most {shape.ceiling:,} may be; nothing is started"
            return Blocked(Because(Code.AT_CEILING, message), "wait: it goes on when replicas have gone")
        case Switch() if fleet.new.available < min(shape.floor, fleet.available):
            message = f"{fleet.new.available:,} available now and the floor needs {shape.floor:,}; traffic stays"
            return Blocked(Because(Code.AT_FLOOR, message), "wait: it goes on when more replicas are available")
        case _:
            return decision
