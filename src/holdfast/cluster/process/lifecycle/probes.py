"""Probes as values: when one is due, and what its answers in a row amount to.

Pure.  A verdict turns only when enough answers in a row say so; until then it is
what it was, and in the beginning a container is alive, but neither started nor
ready.  This module must not know how a probe asks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.cluster.process.lifecycle.pods import Container, Probe


class Kind(StrEnum):
    """What a probe is asked for."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one probe found."""

    good: bool
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """A probe of a container that runs.

    due      when it is asked next
    asked    it has been asked, and has not answered yet
    good     the verdict
    failed   the verdict has turned bad: enough failures in a row
    last     the last answer, and `streak` how many like it came in a row
    """

    probe: Probe
    due: datetime
    good: bool
    failed: bool = False
    asked: bool = False
    last: Answer | None = None
    streak: int = 0

    def ask(self) -> Probing:
        return replace(self, asked=True)

    def answer(self, answer: Answer, *, now: datetime) -> Probing:
        """The probe after an answer.  It keeps its rhythm, but does not catch up on what a slow answer made it miss."""
        same = self.last is not None and self.last.good == answer.good
        streak = self.streak + 1 if same else 1
        enough = streak >= (self.probe.success_threshold if answer.good else self.probe.failure_threshold)
        return replace(
            self,
            asked=False,
            due=max(self.due + timedelta(seconds=self.probe.period_seconds), now),
            last=answer,
            streak=streak,
            good=answer.good if enough else self.good,
            failed=not answer.good if enough else self.failed,
        )


def begin(container: Container, started_at: datetime) -> dict[Kind, Probing]:
    """The probes of a container that has just been started."""
    declared = {
        Kind.STARTUP: container.startup_probe,
        Kind.LIVENESS: container.liveness_probe,
        Kind.READINESS: container.readiness_probe,
    }
    return {
        kind: Probing(
            probe=probe,
            due=started_at + timedelta(seconds=probe.initial_delay_seconds),
            good=kind is Kind.LIVENESS,
        )
        for kind, probe in declared.items()
        if probe is not None
    }


def is_started(probes: dict[Kind, Probing]) -> bool:
    """Its startup probe has succeeded, if it has one."""
    startup = probes.get(Kind.STARTUP)
    return startup is None or startup.good


def is_ready(probes: dict[Kind, Probing]) -> bool:
    readiness = probes.get(Kind.READINESS)
    return is_started(probes) and (readiness is None or readiness.good)


def in_turn(probes: dict[Kind, Probing], *, ending: bool) -> tuple[Kind, ...]:
    """The probes that are asked now: startup alone until it succeeds; only readiness of what is being stopped."""
    if not is_started(probes):
        return () if ending else (Kind.STARTUP,)
    return tuple(kind for kind in probes if kind is Kind.READINESS or (kind is Kind.LIVENESS and not ending))


def failure(probes: dict[Kind, Probing]) -> tuple[Kind, Probing] | None:
    """The probe whose verdict ends the container, if one does."""
    for kind in (Kind.STARTUP, Kind.LIVENESS):
        probing = probes.get(kind)
        if probing is not None and probing.failed:
            return kind, probing
    return None
