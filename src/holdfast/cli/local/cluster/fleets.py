"""Simulated nodes as the option ``--node`` describes them: ``cpu=32,memory=128Gi,count=4,labels=disk=ssd``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from holdfast.cli.errors import Complaint, InputError
from holdfast.cluster.simulation.nodes import Fleet
from holdfast.meta.names import label_key, label_value
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.meta.suggestions import nearest

MOST: Final = 1000
"""The most nodes of one cluster."""

_KEYS: Final = ("cpu", "memory", "pods", "count", "labels")


def parsed_fleets(texts: Iterable[str]) -> tuple[Fleet, ...]:
    """The nodes of all options, numbered one after the other; raises `InputError`."""
    fleets: list[Fleet] = []
    first = 1
    for text in texts:
        fleet = replace(_fleet(text), first=first)
        fleets.append(fleet)
        first += fleet.count
    if first - 1 > MOST:
        raise _wrong(f"{first - 1} nodes in all are too many; the most is {MOST}")
    return tuple(fleets)


def _fleet(text: str) -> Fleet:
    fleet = Fleet()
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise _wrong(f"{part!r} has no value; write KEY=VALUE")
        match key:
            case "count":
                fleet = replace(fleet, count=_number(key, value))
            case "pods":
                fleet = replace(fleet, pods=_number(key, value))
            case "cpu":
                fleet = replace(fleet, cpu=_quantity(key, value))
            case "memory":
                fleet = replace(fleet, memory=_quantity(key, value))
            case "labels":
                name, colon, content = value.partition("=" if "=" in value else ":")
                problem = next(iter((*label_key(name), *label_value(content))), None)
                if not colon or problem is not None:
                    raise _wrong(f"labels={value} is not a label; write labels=KEY=VALUE, once for each label")
                fleet = replace(fleet, labels={**fleet.labels, name: content})
            case _ if "/" in key:
                fleet = replace(fleet, extended={**fleet.extended, key: str(_number(key, value))})
            case _:
                hint = nearest(key, _KEYS)
                raise _wrong(
                    f"there is no {key!r}; " + (f"did you mean {hint}?" if hint else f"write one of {', '.join(_KEYS)}")
                )
    return fleet.discoverable()


def _number(key: str, value: str) -> int:
    if not value.isdecimal() or not (key != "count" or 1 <= int(value) <= MOST):
        raise _wrong(f"{key}={value} is not a number" + (f" from 1 to {MOST}" if key == "count" else ""))
    return int(value)


def _quantity(key: str, value: str) -> str:
    try:
        return str(Quantity.parse(value))
    except QuantityError as error:
        raise _wrong(f"{key}={value}: {error}") from None


def _wrong(message: str) -> InputError:
    return InputError(Complaint(message=message, path="--node"))
