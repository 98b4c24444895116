"""Continuous batching in virtual time: which sequences share a step, and when each token is ready.

Pure and deterministic: times are arguments, in seconds.  One rule schedules everything.  A sequence has `known`
tokens (its prompt and what was produced) and `computed` of them are in the KV cache; a step computes some of the
difference, and a sequence that has caught up has produced one more token.  A prompt is a large difference, decoding
is a difference of one, and a sequence that lost its cache is a prompt again.

Running sequences come first, in the order in which they were admitted; what is left of the step's tokens goes to
waiting ones, in the order in which they became ready.  Where the cache is full, the sequence that was admitted last
gives up its place.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol


class TooLong(Exception):
    """A sequence that does not fit into the KV cache, even alone."""

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(f"{tokens} tokens of prompt and answer do not fit into a KV cache of {limit} tokens")
        self.tokens = tokens
        self.limit = limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an engine may hold.

    kv_tokens    tokens in the KV cache, of all sequences together
    batch        sequences that run at a time
    step_tokens  tokens that one step computes: one for each sequence that decodes, the rest for prompts
    """

    kv_tokens: int
    batch: int = 256
    step_tokens: int = 8192

    def __post_init__(self) -> None:
        if min(self.kv_tokens, self.batch, self.step_tokens) < 1:
            raise ValueError("kv_tokens, batch and step_tokens must be at least 1")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt: `tokens` that are computed over `prefix` tokens that are cached already."""

    tokens: int
    prefix: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The work of one step: `decoding` sequences with `context` cached tokens together, and chunks of prompts."""

    decoding: int
    context: int
    prefill: tuple[Chunk, ...] = ()


class Timing(Protocol):
    """How long steps take."""

    def step_ms(self, step: Step) -> float:
        """Milliseconds of one step."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """The token number `index` of a sequence, from 0."""

    sequence: str
    index: int
    last: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a step: when it ended, and the tokens that were ready then."""

    end: float
    tokens: tuple[Token, ...]


@dataclass(slots=True, order=True)
class _Sequence:
    ready: float
    number: int
    id: str = field(compare=False)
    prompt: int = field(compare=False)
    output: int = field(compare=False)
    computed: int = field(compare=False, default=0)
    produced: int = field(compare=False, default=0)

    @property
    def known(self) -> int:
        return self.prompt + self.produced


class Engine:
    """One engine.  `submit` what arrives, and call `step` with the start of each step."""

    def __init__(self, limits: Limits, timing: Timing) -> None:
        self.limits = limits
        self._timing = timing
        self._running: list[_Sequence] = []
        self._waiting: list[_Sequence] = []
        self._number = 0
        self.preemptions = 0

    # --- what there is

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def kv_used(self) -> int:
        """Tokens of the KV cache that running sequences hold or have reserved."""
        return sum(each.known for each in self._running)

    # --- input

    def submit(self, id: str, *, at: float, prompt: int, output: int, cached: bool = False) -> None:
        """Take a sequence that is ready at a time; `cached`: its prompt was computed elsewhere, and its first token.

        Raises `TooLong` where it can never run.
        """
        if prompt < 1 or output < (2 if cached else 1):
            raise ValueError("a sequence has at least one token of prompt, and one of output that is to be computed")
        if prompt + output > self.limits.kv_tokens:
            raise TooLong(prompt + output, self.limits.kv_tokens)
        self._number += 1
        sequence = _Sequence(at, self._number, id, prompt, output)
        if cached:
            sequence.computed, sequence.produced = prompt, 1
        insort(self._waiting, sequence)

    def cancel(self, id: str) -> None:
        """Forget a sequence; one that is not there is no error."""
        self._running = [each for each in self._running if each.id != id]
        self._waiting = [each for each in self._waiting if each.id != id]

    # --- steps

    def next_start(self, after: float) -> float | None:
        """When the next step can start, not before `after`; None while there is nothing to do."""
        if self._running:
            return after
        return max(after, self._waiting[0].ready) if self._waiting else None

    def step(self, start: float) -> Outcome | None:
        """Run the step that starts at a time; None where nothing is ready by then."""
        self._make_room()
        self._admit(start)
        work = tuple(self._shares())
        if not work:
            return None
        duration = self._timing.step_ms(_described(work)) / 1000
        tokens = tuple(token for sequence, share in work if (token := _advance(sequence, share)) is not None)
        self._running = [each for each in self._running if each.produced < each.output]
        return Outcome(start + duration, tokens)

    def _make_room(self) -> None:
        while self.kv_used > self.limits.kv_tokens:
            evicted = self._running.pop()
            evicted.computed = 0
            insort(self._waiting, evicted)
            self.preemptions += 1

    def _admit(self, start: float) -> None:
        room = self.limits.kv_tokens - self.kv_used
        budget = self.limits.step_tokens - sum(each.known - each.computed for each in self._running)
        while self._waiting and len(self._running) < self.limits.batch and budget > 0:
            head = self._waiting[0]
            if head.ready > start or head.known > room:
                break
            self._running.append(self._waiting.pop(0))
            room -= head.known
            budget -= head.known - head.computed

    def _shares(self) -> Iterator[tuple[_Sequence, int]]:
        """The sequences of this step, with the tokens that are computed of each."""
        budget = self.limits.step_tokens
        for sequence in self._running:
            share = min(sequence.known - sequence.computed, budget)
            if share:
                budget -= share
                yield sequence, share


def _advance(sequence: _Sequence, share: int) -> Token | None:
    sequence.computed += share
    if sequence.computed < sequence.known:
        return None
    sequence.produced += 1
    return Token(sequence.id, sequence.produced - 1, sequence.produced == sequence.output)


def _described(work: tuple[tuple[_Sequence, int], ...]) -> Step:
    decoding, context = 0, 0
    prefill = []
    for sequence, share in work:
        if sequence.produced and sequence.known - sequence.computed == 1:
            decoding += 1
            context += sequence.computed
        else:
            prefill.append(Chunk(share, sequence.computed))
    return Step(decoding, context, tuple(prefill))
