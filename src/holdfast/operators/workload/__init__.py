"""The operator of Workloads: what a manifest asks of the engine."""

from __future__ import annotations

from holdfast.operators.workload.decide import revision, rollout_spec

__all__ = ["revision", "rollout_spec"]
