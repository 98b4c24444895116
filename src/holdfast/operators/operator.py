"""The declaration of an operator: its controllers, and how its rollouts are shown and steered.

This module must not know any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from holdfast import operators
from holdfast.client.resources import Resource
from holdfast.kernel.reasons import Reason
from holdfast.kinds import Problem
from holdfast.kinds.model import Kind
from holdfast.operators.rollouts import RolloutKind
from holdfast.operators.shown import ShownKind, completed
from holdfast.runtime.controllers import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrder:
    """How pods of a system wait for other pods before they start, with ``holdfast operator wait-for``.

    option    the option that names the groups to wait for, such as ``--podcliques``
    group     the label that says to which group a pod belongs
    scope     the label whose value the pod shares with the pods that it waits for
    pod_info  the directory where a pod finds the files ``namespace`` and `file`, which has the value of `scope`
    """

    option: str
    group: str
    scope: str
    pod_info: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value that an installation sets for one operator and all its objects.

    name      such as ``tenant.image``: the operator's name, a dot, and what is set
    variable  the environment variable that sets it
    default   the value where nothing sets it
    meaning   what it is, in one sentence
    problem   what is wrong with a value, if something is
    """

    name: str
    variable: str
    default: str
    meaning: str
    problem: Callable[[str], str | None]


Review = Callable[[Any], Iterable[Problem]]
"""What is wrong with an object, beyond its schema; may raise `kinds.DocumentError` with the same."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A field that an object leaves out, and the value that is written to it; what contains the field exists."""

    path: tuple[str | int, ...]
    value: Any


Defaulting = Callable[[Any, Any], Iterable[Filled]]
"""The fields to write into an object, beside the object that it replaces, which is None when it is created.

Only for a default that depends on other fields and must not follow them later: see docs/decisions/0014.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One system that Holdfast operates.

    name         the name of the system, such as ``workload``
    summary      what it operates, in one sentence
    controllers  the controllers of its kinds; the kinds that a server must serve are derived from them
    rollouts     its kinds that roll out
    shown        how its kinds are shown on the overview and on their pages, beyond what is the same for every kind
    reasons      the reasons of its conditions and Events, beside the engine's
    reviews      what is wrong with an object, beyond its schema, before it is stored: a pure function for each kind
    defaulting   the defaults that are written into an object before it is stored: a pure function for each kind
    start_order  how its pods wait for other pods before they start
    settings     what an installation may set for it
    configure    the same controllers with other values of settings, by name; None where it has no settings
    embedded     the settings that a cluster of `holdfast up` has, by name, where nothing else is set
    defaults     the objects that a cluster of `holdfast up` with nodes has from the start; users may change them
    """

    name: str
    summary: str
    controllers: tuple[Controller[Any], ...]
    rollouts: tuple[RolloutKind, ...] = ()
    shown: tuple[ShownKind, ...] = ()
    reasons: tuple[type[Reason], ...] = ()
    reviews: Mapping[Kind, Review] = field(default_factory=dict)
    defaulting: Mapping[Kind, Defaulting] = field(default_factory=dict)
    start_order: StartOrder | None = None
    settings: tuple[Setting, ...] = ()
    configure: Callable[[Mapping[str, str]], tuple[Controller[Any], ...]] | None = None
    embedded: Mapping[str, str] = field(default_factory=dict)
    defaults: Callable[[], tuple[tuple[Resource, Mapping[str, Any]], ...]] = tuple

    def configured(self, values: Mapping[str, str]) -> tuple[Controller[Any], ...]:
        """The controllers with these values of settings; what is not among them has its default."""
        return self.controllers if self.configure is None else self.configure(values)

    def shown_kinds(self) -> tuple[ShownKind, ...]:
        """How each of its kinds is shown: as declared in `shown`, and else as its rollouts and conditions say."""
        declared = {each.resource: each for each in self.shown}
        rollouts = {each.resource: each for each in self.rollouts}
        resources = (*rollouts, *declared, *(each.resource for each in self.controllers))
        return tuple(
            completed(declared.get(each) or ShownKind(resource=each), rollouts.get(each))
            for each in dict.fromkeys(resources)
        )


def load() -> tuple[Operator, ...]:
    """The operators that the modules of `OPERATORS` export, in their order."""
    return tuple(import_module(module).OPERATOR for module in operators.OPERATORS)
