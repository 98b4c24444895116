"""The timing of engines that are faster, or slower, than their model."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.profiler.mocker.engine import Step, Timing


@dataclass(frozen=True, slots=True)
class Scaled:
    """The timing of an engine that is `speed` times as fast."""

    timing: Timing
    speed: float

    def step_ms(self, step: Step) -> float:
        return self.timing.step_ms(step) / self.speed
