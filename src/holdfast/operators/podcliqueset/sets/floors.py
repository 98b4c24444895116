"""The floors of a PodCliqueSet: the conditions about the floors of its parts, repeated for the whole set.

`FloorLowered` is True from the pass that starts an update, before a part may stop a pod,
until no part is left whose update lowers its floor.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.floors import FLOOR_HELD, FLOOR_LOWERED, FloorReason
from holdfast.kernel.reasons import Code
from holdfast.operators.podcliqueset.part_status import Clique, Part
from holdfast.operators.podcliqueset.sets.observe import World
from holdfast.operators.podcliqueset.update import limits_of

_MOST_NAMED: Final = 5


def verdicts(world: World, *, updating: bool) -> dict[str, Verdict]:
    """The conditions about the floors of all parts; `updating` while an update runs."""
    lowered = tuple(dict.fromkeys(_lowered(world))) if updating else ()
    held = {FLOOR_HELD: _held([part for replica in world.replicas for part in replica.parts])}
    return held | ({FLOOR_LOWERED: _announced(lowered)} if lowered else {})


def _held(parts: list[Part]) -> Verdict:
    broken = [part for part in parts if part.is_false(FLOOR_HELD)]
    if broken:
        worst = max(broken, key=lambda part: part.missing)
        others = f", and {len(broken) - 1} other parts" if len(broken) > 1 else ""
        message = f"{worst.name} has fewer available than its floor of {worst.floor}{others}"
        return Verdict.false(FloorReason.BELOW_FLOOR, message)
    growing = next((part for part in parts if part.missing > 0), None)
    if growing is not None:
        return Verdict.true(FloorReason.STILL_GROWING, f"{growing.name} has not reached its floor of {growing.floor}")
    return Verdict.true(FloorReason.HELD, "every part has as many available as its floor needs")


def _lowered(world: World) -> Iterator[str]:
    """The parts that the update still has to change and whose floor it lowers, with the numbers."""
    for replica in world.replicas:
        for part in replica.parts:
            template = world.layout.by_name.get(part.template) or world.layout.group(part.template)
            if template is None or part.name not in world.changed:
                continue
            limits = limits_of(part.spec.replicas, part.spec.min_available, world.layout.rolling_update(template))
            if limits.lowered:
                noun = "pods" if isinstance(part, Clique) else "replicas"
                yield f"{part.template} keeps {limits.floor} of {limits.replicas} {noun}"


def _announced(lowered: tuple[str, ...]) -> Verdict:
    rest = len(lowered) - _MOST_NAMED
    named = ", ".join(lowered[:_MOST_NAMED]) + (f", and {rest} more parts" if rest > 0 else "")
    message = (
        "minAvailable needs all replicas and no surge is allowed, so the update goes one below minAvailable: "
        f"{named}; to avoid this, set rollingUpdate.maxSurge to 1 or more"
    )
    return Verdict.true(Code.FLOOR_LOWERED, message)
