"""Deployments: ReplicaSets of revisions, rolled out as Kubernetes does."""

from __future__ import annotations

from holdfast.cluster.controllers.deployments.controller import CONTROLLER, World, decide, observe

__all__ = ["CONTROLLER", "World", "decide", "observe"]
