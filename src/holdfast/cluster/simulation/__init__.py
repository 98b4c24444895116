"""Simulated nodes: pods that get addresses, start, crash and end, though nothing runs."""

from __future__ import annotations

from holdfast.cluster.simulation.agent import NODE_LABEL, controller

__all__ = ["NODE_LABEL", "controller"]
