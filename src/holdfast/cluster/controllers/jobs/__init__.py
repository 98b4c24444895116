"""Jobs: pods that run to their end, each counted once."""

from __future__ import annotations

from holdfast.cluster.controllers.jobs.controller import CONTROLLER, World, decide, observe

__all__ = ["CONTROLLER", "World", "decide", "observe"]
