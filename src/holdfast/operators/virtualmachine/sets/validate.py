"""Problems of a VMSet that its schema does not find: the selector, the floor, and the template.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMSet
from holdfast.kinds.virtrigaud.sets import (
    RollingUpdateVMSetStrategy,
    TemplateMetadata,
    VMSetUpdateStrategy,
    VMSetUpdateStrategyType,
)
from holdfast.meta import amounts, names
from holdfast.meta.selectors import LabelSelector, SelectorError
from holdfast.operators.virtualmachine.machines.validate import spec_problems
from holdfast.operators.virtualmachine.sets.render import REVISION, SET

_ROLLING: Final = "spec.updateStrategy.rollingUpdate"
_TEMPLATE: Final = "spec.template"
_ALL: Final = 100


def problems(set: VMSet) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return (
        *_selector(set),
        *_metadata(set.spec.template.metadata or TemplateMetadata()),
        *_floor(set),
        *spec_problems(f"{_TEMPLATE}.spec", set.spec.template.spec),
    )


def _selector(set: VMSet) -> Iterator[Problem]:
    labels = set.spec.template.metadata.labels if set.spec.template.metadata else {}
    try:
        selector = LabelSelector.from_object(msgspec.to_builtins(set.spec.selector))
    except SelectorError as error:
        yield Problem("spec.selector", str(error))
        return
    if not selector.matches(labels):
        message = f"{selector} does not match the labels of the template"
        yield Problem("spec.selector", message, f"add the labels to {_TEMPLATE}.metadata.labels")


def _metadata(metadata: TemplateMetadata) -> Iterator[Problem]:
    at = f"{_TEMPLATE}.metadata"
    for key, value in metadata.labels.items():
        if key in (SET, REVISION):
            yield Problem(f"{at}.labels", f"the controller sets the label {key} of the machines", "remove it")
        for wrong in (*names.label_key(key), *names.label_value(value)):
            yield Problem(f"{at}.labels", f"{key}: {value!r} is not a label: {wrong}")
    for key in metadata.annotations:
        for wrong in names.annotation_key(key):
            yield Problem(f"{at}.annotations", f"{key!r} is not the name of an annotation: {wrong}")


def _floor(set: VMSet) -> Iterator[Problem]:
    """A floor that leaves no way to replace a machine, however many replicas there are."""
    strategy = set.spec.update_strategy or VMSetUpdateStrategy()
    rolling, least = strategy.rolling_update or RollingUpdateVMSetStrategy(), set.spec.min_available
    for path, share in (("spec.minAvailable", least), (f"{_ROLLING}.maxUnavailable", rolling.max_unavailable)):
        if isinstance(share, str) and _number(share) > _ALL:
            yield Problem(path, f"{share} is more than all machines", "write 100% or less")
    rolls = strategy.type in (None, VMSetUpdateStrategyType.ROLLING_UPDATE)
    if not rolls or rolling.max_surge is None or _number(rolling.max_surge) != 0:
        return
    if rolling.max_unavailable is not None and _number(rolling.max_unavailable) == 0:
        message = "maxSurge and maxUnavailable cannot both be 0: no machine could ever be replaced"
        yield Problem(f"{_ROLLING}.maxSurge", message, "write 1 or more for one of them")
    elif isinstance(least, str) and _number(least) == _ALL:
        message = "with minAvailable 100% and maxSurge 0 no machine could ever be replaced"
        yield Problem("spec.minAvailable", message, "write maxSurge: 1, or a smaller minAvailable")


def _number(share: int | str) -> int:
    return amounts.IntOrPercent.parse(share).number
