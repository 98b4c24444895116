"""The rollout of a Workload: the fields of its spec, and of its status."""

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
    """A step of a canary: how many replicas run the new revision, and how the step ends."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.weight) != has(self.replicas)",
            message="give either the weight or the replicas of a step",
        ),
        Rule(
            rule="!(has(self.pauseDuration) && has(self.manual) && self.manual)",
            message="a step ends after a time or by approval: give pauseDuration or manual, not both",
        ),
    )

    weight: Annotated[Percentage, api("The percentage of replicas that run the new revision.")] | None = None
    replicas: Annotated[Count, api("The number of replicas that run the new revision.")] | None = None
    pause_duration: Annotated[Duration, api("How long the step lasts once its replicas are ready.")] | None = None
    manual: Annotated[bool, api("Whether the step lasts until it is promoted.")] | None = None


class Canary(Model):
    """The steps of a canary; after the last one, all replicas run the new revision."""

    steps: Annotated[
        tuple[CanaryStep, ...], api("The steps, in order.", min_length=1, max_length=64, list_type="atomic")
    ]


class BlueGreen(Model):
    """How the traffic is switched to a second full set of replicas."""

    service: (
        Annotated[Name, api("The Service whose selector is switched; the one of the Workload's name when absent.")]
        | None
    ) = None
    auto_promote: (
        Annotated[bool, api("Whether to switch without approval when the new set is ready.", default=True)] | None
    ) = None
    scale_down_delay: (
        Annotated[Duration, api("How long the old set is kept after the switch, for an instant undo.", default="30s")]
        | None
    ) = None


def _only_with(field: str, strategy: Strategy) -> Rule:
    spellings = [strategy.value, *(other for other, value in Strategy.__spellings__.items() if value == strategy.value)]
    return Rule(
        rule=f"!has(self.{field}) || (has(self.strategy) && self.strategy in {spellings})",
        message=f"{field} is only for the strategy {strategy.value}",
    )


class Rollout(Model):
    """How changes reach the replicas, and how many stay available meanwhile."""

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
            api(
                "Replicas that must stay available, also if maxUnavailable allows fewer; percentages round up. Absent "
                "or 0: what maxUnavailable leaves, or all but one. 0%: none."
            ),
        ]
        | None
    ) = None
    pause_duration: Annotated[Duration, api("How long to wait between batches.")] | None = None
    min_ready_seconds: Annotated[Count, api("How long a replica must be ready to be available.")] | None = None
    progress_deadline: (
        Annotated[Duration, api("How long a rollout may make no progress before it has failed.", default="10m")] | None
    ) = None
    on_failure: (
        Annotated[
            Literal["hold", "abort", "rollBack"],
            api(
                "What happens when a rollout fails: hold (nothing changes), abort (new replicas are stopped, old ones "
                "are started again), or rollBack (the last complete revision is rolled out again).",
                default="hold",
            ),
        ]
        | None
    ) = None
    canary: Canary | None = None
    blue_green: BlueGreen | None = None
    partition: Annotated[IntOrPercent, api("Replicas that stay at the old revision.")] | None = None
    paused: Annotated[bool, api("Whether the rollout is paused.")] | None = None
    replacement: (
        Annotated[
            Literal["immediately", "onTermination"],
            api(
                "When a terminating replica is replaced: immediately, or when it has terminated.",
                default="immediately",
            ),
        ]
        | None
    ) = None
    disruption_budget: BudgetPolicy | None = None
    revision_history_limit: Annotated[Count, api("Old revisions to keep for undo.", default=10)] | None = None


class Because(Model):
    """A reason: a code and a sentence."""

    code: Annotated[str, api("The reason as one word, for programs.")]
    message: Annotated[str, api("The reason as a sentence.")]


class Rejection(Model):
    """Why a revision was rejected, and when; it is kept until the revision is retried."""

    revision: Annotated[str, api("The revision that was rejected.")]
    reason: Annotated[str, api("The reason as one word: the problem of a replica, the missed deadline, or a verb.")]
    message: Annotated[str, api("The reason as a sentence.")]
    pod: Annotated[str, api("The replica that shows why.")] | None = None
    time: Annotated[Time, api("When it was rejected.")]


class EffectiveLimits(Model):
    """The limits in replicas, after percentages, defaults and clamping."""

    min_available: Annotated[Count, api("Replicas that must stay available.")] | None = None
    max_surge: Annotated[Count, api("Replicas that may run beyond spec.replicas.")] | None = None
    max_unavailable: Annotated[Count, api("Replicas that may be missing.")] | None = None
    floor: Annotated[Count, api("Available replicas below which no ready replica is stopped.")] | None = None
    max_live: Annotated[Count, api("Replicas above which none is started.")] | None = None
    warnings: Annotated[tuple[Because, ...], api("What was adjusted, and why.", list_type="atomic")] = ()


class RolloutStatus(Model):
    """Where the rollout stands."""

    step: Annotated[Count, api("The current step, from 1.")] | None = None
    steps: Annotated[Count, api("How many steps there are.")] | None = None
    started_at: Annotated[Time, api("When the rollout began.")] | None = None
    step_started_at: Annotated[Time, api("When the step began.")] | None = None
    reached_at: Annotated[Time, api("When the replicas of the step were available, while the step waits.")] | None = (
        None
    )
    last_batch_at: Annotated[Time, api("When replicas were last started or stopped for it.")] | None = None
    progressed_at: (
        Annotated[Time, api("When the rollout last made progress; progressDeadline counts from then.")] | None
    ) = None
    estimated_end: (
        Annotated[Time, api("When the rollout will end if replicas become available as fast as so far.")] | None
    ) = None
    paused_until: Annotated[Time, api("When a timed pause ends.")] | None = None
    size: (
        Annotated[Count, api("Replicas that the rollout keeps while it progresses, also if spec.replicas shrinks.")]
        | None
    ) = None
    most_available: (
        Annotated[
            Count,
            api("The most replicas that were available at once, up to spec.replicas."),
        ]
        | None
    ) = None
    lowest_ready: (
        Annotated[Count, api("The fewest replicas that were available since the rollout began, also after it ended.")]
        | None
    ) = None
    because: Annotated[Because, api("Why the rollout does what it does, or what it waits for.")] | None = None
    plan: Annotated[str, api("The rest of the plan in one line.")] | None = None
