"""How changes reach the replicas of a Workload, and how far they have come.

The fields are those that people write and read; what they come to is computed
by the kernel, which this module must not know.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holdfast.kinds.model import (
    BudgetPolicy,
    Count,
    Duration,
    IntOrPercent,
    Model,
    Name,
    Percentage,
    Rule,
    Spelling,
    Time,
    api,
    is_zero,
)


class Strategy(Spelling):
    """How a new revision replaces the old one."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"
    CANARY = "Canary"
    ON_DELETE = "OnDelete"

    __spellings__ = {
        "ROLLING_UPDATE": "RollingUpdate",
        "RECREATE": "Recreate",
        "BLUE_GREEN": "BlueGreen",
        "CANARY": "Canary",
        "ON_DELETE": "OnDelete",
    }


class CanaryStep(Model):
    """How far the new revision goes before the next gate."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.weight) != has(self.replicas)",
            message="give either the weight or the replicas of a step",
        ),
        Rule(
            rule="!(has(self.pauseDuration) && has(self.manual) && self.manual)",
            message="a step ends by time or by approval: give pauseDuration or manual, not both",
        ),
    )

    weight: Annotated[Percentage, api("The share of replicas in percent.")] | None = None
    replicas: Annotated[Count, api("The number of replicas.")] | None = None
    pause_duration: Annotated[Duration, api("How long the step lasts once its replicas are ready.")] | None = None
    manual: Annotated[bool, api("Whether the step lasts until it is promoted by hand.")] | None = None


class Canary(Model):
    """The steps by which a canary grows; after the last one it is everywhere."""

    steps: Annotated[
        tuple[CanaryStep, ...], api("The steps, in order.", min_length=1, max_length=64, list_type="atomic")
    ]


class BlueGreen(Model):
    """How traffic goes over to a complete second set of replicas."""

    service: (
        Annotated[Name, api("The Service whose selector is switched; that of the Workload's name when absent.")] | None
    ) = None
    auto_promote: (
        Annotated[bool, api("Whether to switch without approval once the new set is ready.", default=True)] | None
    ) = None
    scale_down_delay: (
        Annotated[Duration, api("How long the old set is kept after the switch, for an instant undo.", default="30s")]
        | None
    ) = None


def _only_with(field: str, strategy: Strategy) -> Rule:
    spellings = [strategy.value, *(other for other, value in Strategy.__spellings__.items() if value == strategy.value)]
    return Rule(
        rule=f"!has(self.{field}) || (has(self.strategy) && self.strategy in {spellings})",
        message=f"{field} is for the strategy {strategy.value} alone",
    )


class Rollout(Model):
    """How changes reach the replicas, and what must hold meanwhile."""

    RULES: ClassVar = (
        _only_with("canary", Strategy.CANARY),
        _only_with("blueGreen", Strategy.BLUE_GREEN),
        _only_with("partition", Strategy.ROLLING_UPDATE),
        Rule(
            rule="!has(self.strategy) || !(self.strategy in ['Canary', 'CANARY']) || has(self.canary)",
            message="the strategy Canary needs canary.steps",
        ),
        Rule(
            rule=(
                "(has(self.strategy) && !(self.strategy in ['RollingUpdate', 'ROLLING_UPDATE']))"
                " || !has(self.maxSurge) || !has(self.maxUnavailable)"
                f" || !({is_zero('self.maxSurge')} && {is_zero('self.maxUnavailable')})"
            ),
            message="maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced",
        ),
    )

    strategy: Annotated[Strategy, api("How a new revision replaces the old one.", default="RollingUpdate")] | None = (
        None
    )
    max_surge: (
        Annotated[IntOrPercent, api("Replicas that may run beyond spec.replicas; percentages round up.")] | None
    ) = None
    max_unavailable: Annotated[IntOrPercent, api("Replicas that may be missing; percentages round down.")] | None = None
    min_available: (
        Annotated[
            IntOrPercent,
            api("Replicas that must keep serving, whatever maxUnavailable says; percentages round up."),
        ]
        | None
    ) = None
    pause_duration: Annotated[Duration, api("How long to wait between batches.")] | None = None
    min_ready_seconds: Annotated[Count, api("How long a replica must be ready to count as available.")] | None = None
    progress_deadline: (
        Annotated[
            Duration, api("How long a rollout may go without progress before it counts as failed.", default="10m")
        ]
        | None
    ) = None
    on_failure: (
        Annotated[
            Literal["hold", "abort", "rollBack"],
            api(
                "What a failed rollout does: hold where it is, abort (the new replicas go, the old ones come back), "
                "or rollBack (the last complete revision is rolled out again).",
                default="hold",
            ),
        ]
        | None
    ) = None
    canary: Canary | None = None
    blue_green: BlueGreen | None = None
    partition: Annotated[IntOrPercent, api("Replicas that stay on the old revision.")] | None = None
    paused: Annotated[bool, api("Whether the rollout stands still.")] | None = None
    replacement: (
        Annotated[
            Literal["immediately", "onTermination"],
            api(
                "When a replica that is shutting down is replaced: immediately, or only once it has terminated.",
                default="immediately",
            ),
        ]
        | None
    ) = None
    disruption_budget: BudgetPolicy | None = None
    revision_history_limit: Annotated[Count, api("Old revisions to keep for undo.", default=10)] | None = None


class Because(Model):
    """Why something happens, or does not."""

    code: Annotated[str, api("One word for machines.")]
    message: Annotated[str, api("A sentence for people.")]


class EffectiveLimits(Model):
    """The limits in replicas, after percentages, defaults and clamping."""

    min_available: Annotated[Count, api("Replicas that must keep serving.")] | None = None
    max_surge: Annotated[Count, api("Replicas that may run beyond spec.replicas.")] | None = None
    max_unavailable: Annotated[Count, api("Replicas that may be missing.")] | None = None
    floor: Annotated[Count, api("Ready replicas below which nothing is stopped.")] | None = None
    max_live: Annotated[Count, api("Replicas above which nothing is started.")] | None = None
    warnings: Annotated[tuple[Because, ...], api("What was adjusted, and why.", list_type="atomic")] = ()


class RolloutStatus(Model):
    """Where the rollout stands."""

    step: Annotated[Count, api("The step that is being taken, from 1.")] | None = None
    steps: Annotated[Count, api("How many steps there are.")] | None = None
    started_at: Annotated[Time, api("When the rollout began.")] | None = None
    step_started_at: Annotated[Time, api("When the step began.")] | None = None
    reached_at: Annotated[Time, api("When the step's replicas were reached, while its gate is closed.")] | None = None
    last_batch_at: Annotated[Time, api("When replicas were last started or stopped for it.")] | None = None
    progressed_at: Annotated[Time, api("When it last made progress; the deadline counts from here.")] | None = None
    estimated_end: Annotated[Time, api("When it will end if replicas become ready as fast as so far.")] | None = None
    paused_until: Annotated[Time, api("When a timed pause ends.")] | None = None
    size: (
        Annotated[Count, api("Replicas that it keeps while it gets on, also if an autoscaler asks for fewer.")] | None
    ) = None
    most_available: (
        Annotated[
            Count,
            api("The most replicas that were available at once, of those that are wanted."),
        ]
        | None
    ) = None
    lowest_ready: Annotated[Count, api("The fewest ready replicas seen since it began.")] | None = None
    because: Annotated[Because, api("Why it does what it does, or what it waits for.")] | None = None
    plan: Annotated[str, api("The rest of the plan in one line.")] | None = None
