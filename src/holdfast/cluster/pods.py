"""Pods, as those who own them see them; kept where operators find them too."""

from __future__ import annotations

from holdfast.client.pods import FINISHED, Condition, ContainerStatus, Pod, PodSpec, PodStatus, from_template

__all__ = ["FINISHED", "Condition", "ContainerStatus", "Pod", "PodSpec", "PodStatus", "from_template"]
