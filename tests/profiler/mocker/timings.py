"""How long the steps of an engine take in tests."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.profiler.mocker.engine import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Timing by a few figures, in milliseconds.

    step     of every step: reading the weights
    prompt   of each token of a prompt
    token    of each sequence that decodes
    context  of each cached token that a step reads
    """

    step: float = 5.0
    prompt: float = 0.05
    token: float = 0.02
    context: float = 0.00001

    def step_ms(self, step: Step) -> float:
        prompts = sum(chunk.tokens * self.prompt + chunk.prefix * self.context for chunk in step.prefill)
        return self.step + prompts + step.decoding * self.token + step.context * self.context
