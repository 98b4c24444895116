"""Nodes as several packages read them: taints, what pods tolerate of them, and whether a node is ready.

The types hold the few fields that are read.  This module must not know who taints a
node, nor what is done about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What keeps pods off a node, or evicts them from it."""

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
    """A taint that a pod tolerates; an empty key or effect stands for every one."""

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
    """The first toleration that matches a taint."""
    return next((each for each in tolerations if each.tolerates(taint)), None)


class NodeCondition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str = "Unknown"


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node: its taints, whether it takes new pods, and its conditions."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
