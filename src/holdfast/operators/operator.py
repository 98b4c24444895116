"""An operator as one value: what it reconciles, and how its rollouts are shown and steered.

This module must not know any operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from holdfast.kernel.reasons import Reason
from holdfast.operators import OPERATORS
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One system that Holdfast operates.

    name         of the system, such as ``workload``
    summary      what it operates, in one sentence
    controllers  what reconciles its kinds; the kinds that a server must serve are derived from them
    rollouts     those of its kinds that roll out
    reasons      every reason that its conditions and Events give, beside the engine's
    """

    name: str
    summary: str
    controllers: tuple[Controller[Any], ...]
    rollouts: tuple[RolloutKind, ...] = ()
    reasons: tuple[type[Reason], ...] = ()


def load(modules: Iterable[str] = OPERATORS) -> tuple[Operator, ...]:
    """The operators that these modules export, in their order."""
    return tuple(import_module(module).OPERATOR for module in modules)
