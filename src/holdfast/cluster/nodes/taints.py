"""Taints of nodes and what pods tolerate of them.

Pure; read by the scheduler and by evictions.  This module must not know which
controller taints a node, nor what a taint means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What keeps pods away from a node, or drives them from it."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    @property
    def mark(self) -> tuple[str, str]:
        """What tells it from the other taints of its node."""
        return self.key, self.effect

    def wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = msgspec.to_builtins(self)
        return wire


class Toleration(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What a pod puts up with; without a key or an effect, whatever they are."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def tolerating(taint: Taint, tolerations: Iterable[Toleration]) -> Toleration | None:
    """The first toleration that bears with a taint."""
    return next((each for each in tolerations if each.tolerates(taint)), None)
