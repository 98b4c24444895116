"""A rule for the place of a machine, how it judges a place, and in which words.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.kernel.reasons import some
from holdfast.operators.virtualmachine.placement.world import HOST_KEYS, Place

WEIGHT: Final = 50
"""The weight of a preference that has none of its own."""

_NAMED: Final = 3
"""How many machines a sentence names."""

Judgement = tuple[float, str]
MET: Final[Judgement] = (1.0, "")

PLACES: Final[Mapping[str, Callable[[Place], str]]] = {
    "host": lambda place: place.host.name,
    "cluster": lambda place: place.host.cluster,
    "datastore": lambda place: place.datastore,
    "zone": lambda place: place.host.zone,
    "region": lambda place: place.host.region,
}
"""The name of each kind of place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """
    path    the field of the policy, or of the machine, that it comes from
    weight  how much it counts; None: it is required
    judge   how well a place meets it, from 0 to 1, and why not fully
    """

    path: str
    weight: int | None
    judge: Callable[[Place], Judgement]


def unless(failed: bool, words: str) -> Judgement:
    """A rule that a place meets fully, or not at all for the reason in these words."""
    return (0.0, words) if failed else MET


def listed(names: Iterable[str], most: int = _NAMED) -> str:
    """Names in a sentence; of many, the first ones."""
    return some(names, most)


def one_of(path: str, weight: int | None, what: str, names: tuple[str, ...], of: Callable[[Place], str]) -> Rule:
    """The rule that a place has one of these names."""
    allowed = frozenset(names)

    def judge(place: Place) -> Judgement:
        name = of(place)
        said = f"{_named(what, name)}not among {path} ({listed(names)})"
        return unless(name not in allowed, said if name else f"no {what}, and {path} is {listed(names)}")

    return Rule(path, weight, judge)


def none_of(path: str, weight: int | None, what: str, names: tuple[str, ...], of: Callable[[Place], str]) -> Rule:
    """The rule that a place has none of these names."""
    avoided = frozenset(names)
    return Rule(path, weight, lambda place: unless(of(place) in avoided, f"{_named(what, of(place))}among {path}"))


def _named(what: str, name: str) -> str:
    """The beginning of a sentence about a place; a host is named where the sentence stands."""
    return "" if what == "host" else f"{what} {name} is "


def there_in(what: str, name: str) -> str:
    """The end of a sentence about other machines in a place."""
    return "there" if what in HOST_KEYS else f"in {what} {name}"
