"""An operator of one kind, Beacon: what an operator consists of, with nothing that it does not need.

It is a folder that exports `OPERATOR`; `__main__` adds it to the list of operators and
its kinds to the list of API groups, and runs the command line.
"""

from __future__ import annotations

from typing import Final

from tests.operators.toy.controller import CONTROLLERS
from tests.operators.toy.rollout import ROLLOUT

from holdfast.operators.operator import Operator

OPERATOR: Final = Operator(name="toy", summary="Beacons, for tests.", controllers=CONTROLLERS, rollouts=(ROLLOUT,))
