"""StatefulSets: pods with identities, in order or at once, updated from the top."""

from __future__ import annotations

from holdfast.cluster.controllers.statefulsets.controller import CONTROLLER, World, decide, observe

__all__ = ["CONTROLLER", "World", "decide", "observe"]
