"""What operations that take a while (imports, snapshots, clones, migrations) have in common.

The module must not know what an operation does.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.kinds.model import Count, Duration, Model, Percentage, Positive, Status, Time, Total, api
from holdfast.kinds.virtrigaud.references import Environment, Message, Tags


class RetryPolicy(Model):
    """How often, and after how long, a failed operation is tried again."""

    max_retries: Annotated[Count, api("How often to try again.", default=3, le=10)] | None = None
    retry_delay: Annotated[Duration, api("How long to wait before the first retry.", default="5m")] | None = None
    backoff_multiplier: (
        Annotated[Positive, api("What the wait is multiplied by after each retry.", default=2, le=10)] | None
    ) = None


class Progress(Model):
    """Progress of an operation, as its provider reports it."""

    total_bytes: Annotated[Total, api("Bytes to transfer in all.")] | None = None
    percentage: Annotated[Percentage, api("Overall progress in per cent.")] | None = None
    eta: Annotated[Duration, api("Time left, as estimated.")] | None = None
    message: Message | None = None


class OperationMetadata(Model):
    """Descriptive metadata of an operation."""

    created_by: Annotated[str, api("Who or what asked for it.", max_length=255)] | None = None
    project: Annotated[str, api("Project that it belongs to.", max_length=255)] | None = None
    environment: Annotated[Environment, api("Environment that it belongs to.")] | None = None
    tags: Annotated[Tags, api("Tags to find it by.")] = {}


class OperationStatus(Status):
    """An operation that a provider's task carries out, and that is tried again when it fails."""

    message: Message | None = None
    task_ref: Annotated[str, api("The provider's task that runs for it.")] | None = None
    start_time: Annotated[Time, api("When it began.")] | None = None
    completion_time: Annotated[Time, api("When it ended.")] | None = None
    retry_count: Annotated[Count, api("How often it was tried again.")] | None = None
    last_retry_time: Annotated[Time, api("When it was last tried again.")] | None = None


class FailedAttempts(Model):
    """What failed, how often in a row, and when it is tried again."""

    count: Annotated[Count, api("How often in a row it failed.")]
    time: Annotated[Time, api("When it last failed.")]
    reason: Annotated[str, api("Why it last failed, in one word.")]
    message: Annotated[str, api("Why it last failed, in a sentence.")]
    next_time: Annotated[Time, api("When it is tried again; unset if it is not.")] | None = None
    generation: Annotated[int, api("The generation of the spec that failed.")] | None = None


class OnProvider(Model):
    """An image, snapshot or network on one provider."""

    available: Annotated[bool, api("Whether machines can use it there.")]
    id: Annotated[str, api("The provider's identifier of it.")] | None = None
    last_updated: Annotated[Time, api("When this was observed.")] | None = None
    message: Message | None = None
