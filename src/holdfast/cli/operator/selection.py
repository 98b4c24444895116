"""The list of operators, and how a user selects controllers from it.

The operators are imported when the list is first read.  This module must not know what
any of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast import kinds
from holdfast.cli.errors import Complaint, InputError
from holdfast.kinds.model import Kind
from holdfast.meta.suggestions import nearest
from holdfast.operators.operator import Operator, load
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller

NONE: Final = "none"
"""Stands for no operator."""


def operators() -> tuple[Operator, ...]:
    """All operators."""
    return load()


def named(text: str) -> tuple[Operator, ...]:
    """The operators of these names, separated by commas; ``none`` is no operator."""
    known = {each.name: each for each in operators()}
    wanted = dict.fromkeys(each.strip() for each in text.split(",") if each.strip())
    if list(wanted) == [NONE]:
        return ()
    for name in wanted:
        if name not in known:
            suggestion = nearest(name, [*known, NONE])
            hint = f"the operators are {', '.join(known)}" if suggestion is None else f"did you mean {suggestion}?"
            message = f"{NONE} stands alone" if name == NONE else f"there is no operator {name!r}"
            raise InputError(Complaint(message=message, hint=None if name == NONE else hint, path="--operators"))
    if not wanted:
        hint = f"write {NONE}, or names of {', '.join(known)}"
        raise InputError(Complaint(message="it names no operator", hint=hint, path="--operators"))
    return tuple(known[name] for name in wanted)


def every_controller(settings: Mapping[str, str] = MappingProxyType({})) -> tuple[Controller[Any], ...]:
    """The controllers of all operators, with these settings."""
    return tuple(controller for each in operators() for controller in each.configured(settings))


def rollout_kinds() -> tuple[RolloutKind, ...]:
    """The kinds that roll out, of all operators."""
    return tuple(kind for each in operators() for kind in each.rollouts)


def rollout_kind(group_resource: str) -> RolloutKind | None:
    """The kind of a resource such as ``deployments.apps``, if it rolls out."""
    return next((kind for kind in rollout_kinds() if kind.name == group_resource), None)


def chosen(names: Iterable[str], settings: Mapping[str, str] = MappingProxyType({})) -> tuple[Controller[Any], ...]:
    """The controllers of these names; a name may be several, separated by commas; without names, all controllers."""
    wanted = dict.fromkeys(each.strip() for name in names for each in name.split(",") if each.strip())
    known = {controller.name: controller for controller in every_controller(settings)}
    for name in wanted:
        if name not in known:
            suggestion = nearest(name, list(known))
            hint = f"the controllers are {', '.join(known)}" if suggestion is None else f"did you mean {suggestion}?"
            raise InputError(Complaint(message=f"there is no controller {name!r}", hint=hint, path="--controllers"))
    return tuple(known[name] for name in wanted or known)


def left_out(chosen: Iterable[Controller[Any]]) -> tuple[str, ...]:
    """The controllers that the chosen ones need: the rest of their operators, and those of kinds that they write."""
    chosen = tuple(chosen)
    names = {each.name for each in chosen}
    written = {resource for each in chosen for resource in (*each.owns, *each.writes)}
    found = []
    for operator in operators():
        partly = any(each.name in names for each in operator.controllers)
        found += [each.name for each in operator.controllers if partly or each.resource in written]
    return tuple(name for name in found if name not in names)


def kinds_of(controllers: Iterable[Controller[Any]]) -> tuple[Kind, ...]:
    """The custom kinds that controllers read or write, each once: the server must serve them."""
    named = ((each.api_version, each.kind) for controller in controllers for each in controller.resources)
    found = (kinds.find(*each) for each in dict.fromkeys(named))
    return tuple(kind for kind in found if kind is not None)


def created(controllers: Iterable[Controller[Any]]) -> frozenset[str]:
    """The names of the definitions of the custom kinds whose objects controllers create."""
    owned = (each.group_resource for controller in controllers for each in controller.owns)
    return frozenset(owned)
