"""What one-off operations (clones, migrations) have in common.

This module must not know what is retried.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.kinds.model import Duration, Model, api


class RetryPolicy(Model, kw_only=True):
    """How often, and after how long, a failed operation is tried again."""

    max_retries: Annotated[int, api("How often to try again.", default=3, ge=0, le=10)] | None = None
    retry_delay: Annotated[Duration, api("How long to wait before the first retry.", default="5m")] | None = None
    backoff_multiplier: (
        Annotated[int, api("What the wait is multiplied by after each retry.", default=2, ge=1, le=10)] | None
    ) = None
