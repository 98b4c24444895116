"""The progress of an update of a PodCliqueSet, read from its status."""

from __future__ import annotations

from holdfast.kinds.grove.sets import PodCliqueSet


def is_rolling_update_in_progress(pod_clique_set: PodCliqueSet) -> bool:
    """Whether a rolling update has begun and not ended."""
    status = pod_clique_set.status
    progress = None if status is None else status.rolling_update_progress
    return progress is not None and progress.update_ended_at is None


def currently_updating_replica(pod_clique_set: PodCliqueSet) -> int | None:
    """The index of the replica that is being updated; None where there is none."""
    status = pod_clique_set.status
    progress = None if status is None else status.rolling_update_progress
    turn = None if progress is None else progress.currently_updating
    return None if turn is None else turn.replica_index


def update_progress(pod_clique_set: PodCliqueSet) -> tuple[int, int]:
    """How many replicas are updated, and how many should exist."""
    status = pod_clique_set.status
    return (0, 0) if status is None else (status.updated_replicas or 0, status.replicas or 0)
