"""Taints of nodes and what pods tolerate of them.

Pure; read by the scheduler and by evictions.  This module must not know which
controller taints a node, nor what a taint means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.meta.nodes import Taint, Toleration

__all__ = ["NO_EXECUTE", "NO_SCHEDULE", "Taint", "Toleration", "tolerating"]

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"


def tolerating(taint: Taint, tolerations: Iterable[Toleration]) -> Toleration | None:
    """The first toleration that bears with a taint."""
    return next((each for each in tolerations if each.tolerates(taint)), None)
