"""How far an update may disturb the components of a graph, as its annotations say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holdfast.kinds import Problem
from holdfast.kinds.grove.sets import UpdateStrategyType
from holdfast.operators.deploymentrequest.graphs import names

_AMOUNT: Final = re.compile(r"[0-9]{1,9}|[0-9]{1,3}%")
_QUARTER: Final = "25%"


class LimitsError(ValueError):
    """An annotation with a value that it cannot have."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def rolling_update(annotations: Mapping[str, str]) -> dict[str, Any]:
    """`rollingUpdate` of the PodCliqueSet: by default a quarter may be missing, and a quarter may be surplus.

    A component of few replicas is then replaced by surge, so that its floor is kept.
    """
    found = {
        "maxSurge": _amount(annotations, names.MAX_SURGE),
        "maxUnavailable": _amount(annotations, names.MAX_UNAVAILABLE),
    }
    if all(str(value).rstrip("%").strip("0") == "" for value in found.values()):
        at = f"metadata.annotations[{names.MAX_SURGE}]"
        raise LimitsError(
            Problem(at, "it is 0, and so is max-unavailable: nothing could be replaced", "set one above 0")
        )
    return found


def _amount(annotations: Mapping[str, str], name: str) -> int | str:
    text = annotations.get(name, _QUARTER)
    if not _AMOUNT.fullmatch(text):
        raise LimitsError(Problem(f"metadata.annotations[{name}]", f"{text!r} is no amount", "write 1 or 25%"))
    return text if text.endswith("%") else int(text)


def update_strategy(annotations: Mapping[str, str]) -> str:
    """The type of the update strategy of the PodCliqueSet."""
    text = annotations.get(names.UPDATE_STRATEGY, UpdateStrategyType.ROLLING_RECREATE.value)
    known = [each.value for each in UpdateStrategyType]
    if text not in known:
        at = f"metadata.annotations[{names.UPDATE_STRATEGY}]"
        raise LimitsError(Problem(at, f"{text!r} is no update strategy", f"write {' or '.join(known)}"))
    return text
