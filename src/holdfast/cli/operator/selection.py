"""The operators there are: one table, and how to choose from it.

What stands in the table is imported when it is asked for, so that a list of names
costs nothing.  This module must not know what any of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from holdfast import kinds
from holdfast.cli.errors import Complaint, InputError
from holdfast.kinds.model import Kind
from holdfast.kinds.values import nearest
from holdfast.runtime.controllers import Controller

OPERATORS: Final = (
    "holdfast.operators.workload:CONTROLLERS",
    "holdfast.operators.podcliqueset:CONTROLLERS",
    "holdfast.operators.tenant:CONTROLLERS",
)
"""``module:attribute`` of the controllers of each system, in the order in which they are listed."""


def every_controller() -> tuple[Controller[Any], ...]:
    """Those of all operators."""
    return tuple(controller for target in OPERATORS for controller in _imported(target))


def chosen(names: Iterable[str]) -> tuple[Controller[Any], ...]:
    """The controllers of these names, each of which may be several with commas between; all, if there is none."""
    wanted = dict.fromkeys(each.strip() for name in names for each in name.split(",") if each.strip())
    known = {controller.name: controller for controller in every_controller()}
    for name in wanted:
        if name not in known:
            suggestion = nearest(name, list(known))
            hint = f"the controllers are {', '.join(known)}" if suggestion is None else f"did you mean {suggestion}?"
            raise InputError(Complaint(message=f"there is no controller {name!r}", hint=hint, path="--controllers"))
    return tuple(known[name] for name in wanted or known)


def kinds_of(controllers: Iterable[Controller[Any]]) -> tuple[Kind, ...]:
    """The kinds of ours that controllers read or write, each once: what a server must serve for them to work."""
    named = ((each.api_version, each.kind) for controller in controllers for each in controller.resources)
    found = (kinds.find(*each) for each in dict.fromkeys(named))
    return tuple(kind for kind in found if kind is not None)


def _imported(target: str) -> Sequence[Controller[Any]]:
    module, _, attribute = target.partition(":")
    controllers: Sequence[Controller[Any]] = getattr(import_module(module), attribute)
    return controllers
