"""Limits: how many replicas must serve, and how many may exist.

The only place where percentages are rounded, defaults chosen and values
clamped; everything else works with whole numbers.  `Limits.warnings` says where
the limits differ from what the user wrote.

    >>> resolve(5, max_unavailable="40%").floor
    3
    >>> resolve(3, min_available=3).surge          # derived, and said so
    1
    >>> resolve(3, min_available=3, max_surge=0).feasible
    False
    >>> resolve(3, min_available=3, max_surge=0, may_lower=True).floor
    2
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.kernel.reasons import Because, Code, count
from holdfast.meta import amounts

Amount = int | str
"""A count, or a percentage of the replicas such as ``25%``."""

MAX_REPLICAS = 2**31 - 1
"""What Kubernetes can count; a larger number is a mistake."""


class InvalidLimits(ValueError):
    """The numbers cannot be limits at all; ``field`` names the one at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class Limits(msgspec.Struct, frozen=True):
    """Whole numbers that a rollout must keep.

    replicas       how many are desired
    min_available  what was asked for or derived, within [0, replicas]
    floor          no action may leave fewer available than this
    surge          how many replicas more than `replicas` may run
    can_surge      whether more could be allowed at all
    """

    replicas: int
    min_available: int
    floor: int
    surge: int
    warnings: tuple[Because, ...] = ()
    can_surge: bool = True

    @property
    def ceiling(self) -> int:
        return self.replicas + self.surge

    @property
    def max_unavailable(self) -> int:
        return self.replicas - self.floor

    @property
    def lowered(self) -> int:
        """By how many replicas the floor lies below `min_available`, as a declared exception."""
        return max(0, self.min_available - self.floor)

    @property
    def drain_floor(self) -> int:
        """What a disruption budget keeps: the floor, or all but one replica where the floor would let no drain end."""
        return self.floor if self.feasible else max(self.replicas - 1, 0)

    @property
    def feasible(self) -> bool:
        """Whether ready replicas can be replaced at all without breaking the floor."""
        return self.surge > 0 or self.floor < self.replicas or self.replicas == 0


def resolve(
    replicas: int,
    *,
    max_surge: Amount | None = None,
    max_unavailable: Amount | None = None,
    min_available: Amount | None = None,
    other_floors: Iterable[int] = (),
    can_surge: bool = True,
    may_lower: bool = False,
) -> Limits:
    """Turn what the user wrote into `Limits`.

    Unset is None and an explicit 0 is 0.  `other_floors` are demands from
    elsewhere, such as disruption budgets; the strictest wins.  `can_surge` is
    False for fleets whose replicas have fixed identities.  Their floor is
    lowered by one where a default or a rounded percentage would otherwise make
    an update impossible; with `may_lower`, that of any fleet is, also where
    `min_available` asks for all replicas.  A lowered floor is a declared
    exception: `FloorLowered` is among the warnings, with the fields to change.
    """
    if isinstance(replicas, bool) or not 0 <= replicas <= MAX_REPLICAS:
        raise InvalidLimits("replicas", f"must be a whole number from 0 to {MAX_REPLICAS:,}, not {replicas!r}")
    warnings: list[Because] = []
    surge = _amount("maxSurge", max_surge, replicas, up=True)
    unavailable = _amount("maxUnavailable", max_unavailable, replicas, up=False)
    asked = _amount("minAvailable", min_available, replicas, up=True)

    if unavailable is not None and unavailable > replicas:
        warnings.append(_clamped(Code.MAX_UNAVAILABLE_CLAMPED, "maxUnavailable", unavailable, replicas))
        unavailable = replicas
    if asked is not None and asked > replicas:
        warnings.append(_clamped(Code.MIN_AVAILABLE_CLAMPED, "minAvailable", asked, replicas))
        asked = replicas

    if asked is not None:
        minimum = asked
    elif unavailable is not None:
        minimum = replicas - unavailable
    else:
        minimum = min(replicas, max(1, replicas - 1))
    floor = minimum if unavailable is None else max(minimum, replicas - unavailable)
    others = min(replicas, max(other_floors, default=0))
    floor = max(floor, others)

    if not can_surge:
        if surge:
            warnings.append(Because(Code.SURGE_IGNORED, f"maxSurge is {surge:,} but these replicas cannot surge"))
        surge = 0
    elif surge is None:
        surge = 0
        if floor == replicas > 0:
            surge = 1
            warnings.append(
                Because(
                    Code.SURGE_DERIVED,
                    f"the floor of {floor:,} leaves no replica that may be down and maxSurge is not set, "
                    "so one replica is started first; set maxSurge to choose another number",
                )
            )
    implied = not can_surge and replicas > (asked or 0) and max_unavailable not in (0, "0%")
    if surge == 0 and floor == replicas > others and (may_lower or implied):
        floor = replicas - 1
        minimum = minimum if asked == replicas else min(minimum, floor)
        warnings.append(_lowered(replicas, minimum, can_surge=can_surge))
    return Limits(
        replicas=replicas,
        min_available=minimum,
        floor=floor,
        surge=surge,
        warnings=tuple(warnings),
        can_surge=can_surge,
    )


def _amount(field: str, value: Amount | None, replicas: int, *, up: bool) -> int | None:
    if value is None:
        return None
    try:
        resolved = amounts.resolve(value, replicas, round="up" if up else "down")
    except ValueError as error:
        raise InvalidLimits(field, str(error)) from error
    if resolved > MAX_REPLICAS:
        raise InvalidLimits(field, f"must be at most {MAX_REPLICAS:,}, not {value!r}")
    return resolved


def _lowered(replicas: int, minimum: int, *, can_surge: bool) -> Because:
    """The declared exception: how low the floor goes, and which fields would keep it."""
    asked = f"minAvailable is {minimum:,}, which is all replicas" if minimum == replicas else "no replica may be down"
    way = f"set minAvailable to {replicas - 1:,} or less" + (", or maxSurge to 1 or more" if can_surge else "")
    return Because(
        Code.FLOOR_LOWERED,
        f"{asked}, and no surge is allowed: an update takes one replica down at a time, "
        f"so {replicas - 1:,} of {replicas:,} stay available; to avoid this, {way}",
    )


def _clamped(code: Code, field: str, value: int, replicas: int) -> Because:
    return Because(code, f"{field} is {value:,} but there are only {count(replicas)}; it counts as {replicas:,}")
