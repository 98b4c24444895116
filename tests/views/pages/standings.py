"""A rollout that pages are made of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.views.rollouts import Because, Floor, RolloutState, Standing

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)


def standing(**fields: Any) -> Standing:
    usual: dict[str, Any] = {
        "name": "shop",
        "strategy": "Canary",
        "state": RolloutState.UNDER_WAY,
        "phase": "Progressing",
        "because": Because("Waiting", "waits for 1 replica"),
        "desired": 3,
        "ready": 3,
        "available": 3,
        "updated": 1,
        "floors": (Floor(ready=3, desired=3, floor=2, lowest=2),),
        "started": NOW - timedelta(minutes=5),
    }
    return Standing(**(usual | fields))
