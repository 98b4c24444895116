"""The controller of DynamoGraphDeployments."""

from __future__ import annotations

from typing import Any, Final

from holdfast.kernel.reasons import Reason
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller

CONTROLLERS: Final[tuple[Controller[Any], ...]] = ()
ROLLOUTS: Final[tuple[RolloutKind, ...]] = ()
REASONS: Final[tuple[type[Reason], ...]] = ()
