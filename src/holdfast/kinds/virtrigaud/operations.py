"""What operations that take a while (imports, snapshots, clones, migrations) have in common.

This module must not know what is done, only how far it is and how often it is tried.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.kinds.model import Count, Duration, Model, Percentage, Positive, Total, api
from holdfast.kinds.virtrigaud.references import Message


class RetryPolicy(Model):
    """How often, and after how long, a failed operation is tried again."""

    max_retries: Annotated[Count, api("How often to try again.", default=3, le=10)] | None = None
    retry_delay: Annotated[Duration, api("How long to wait before the first retry.", default="5m")] | None = None
    backoff_multiplier: (
        Annotated[Positive, api("What the wait is multiplied by after each retry.", default=2, le=10)] | None
    ) = None


class Progress(Model):
    """How far an operation has come, as far as its provider says."""

    total_bytes: Annotated[Total, api("Bytes to transfer in all.")] | None = None
    percentage: Annotated[Percentage, api("How far in all, in per cent.")] | None = None
    eta: Annotated[Duration, api("Time left, as estimated.")] | None = None
    message: Message | None = None
