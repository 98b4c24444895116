"""What one-off operations (clones, migrations) have in common.

This module must not know what is retried.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.kinds.model import (
    Count,
    Duration,
    Model,
    Positive,
    api,
)


class RetryPolicy(Model):
    """How often, and after how long, a failed operation is tried again."""

    max_retries: Annotated[Count, api("How often to try again.", default=3, le=10)] | None = None
    retry_delay: Annotated[Duration, api("How long to wait before the first retry.", default="5m")] | None = None
    backoff_multiplier: (
        Annotated[Positive, api("What the wait is multiplied by after each retry.", default=2, le=10)] | None
    ) = None
