"""The scheduler of the mock engine, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiler.mocker.timings import Linear

from holdfast.profiler.mocker.engine import Chunk, Engine, Limits, Step, Token, TooLong
from holdfast.profiler.mocker.timing import Scaled

TIMING = Linear(step=10, prompt=0.1, token=1, context=0)


@dataclass
class Recorded:
    """A timing that keeps the steps that it was asked about."""

    steps: list[Step] = field(default_factory=list)

    def step_ms(self, step: Step) -> float:
        self.steps.append(step)
        return TIMING.step_ms(step)


def engine(**limits: int) -> tuple[Engine, Recorded]:
    recorded = Recorded()
    return Engine(Limits(**{"kv_tokens": 10_000, "batch": 8, "step_tokens": 512, **limits}), recorded), recorded


def run(engine: Engine, *, until: int = 100_000) -> dict[str, list[float]]:
    """The times of the tokens of every sequence."""
    times: dict[str, list[float]] = {}
    free = 0.0
    for _ in range(until):
        start = engine.next_start(free)
        if start is None:
            return times
        outcome = engine.step(start)
        assert outcome is not None, "there is work, and none of it is done"
        for token in outcome.tokens:
            times.setdefault(token.sequence, []).append(outcome.end)
        free = outcome.end
    raise AssertionError("the engine does not come to an end")


def test_a_prompt_is_computed_in_one_step_and_each_token_in_another() -> None:
    one, recorded = engine()
    one.submit("a", at=5.0, prompt=100, output=3)
    assert run(one) == {"a": pytest.approx([5.020, 5.031, 5.042])}
    assert recorded.steps == [Step(0, 0, (Chunk(100),)), Step(1, 100), Step(1, 101)]


def test_a_long_prompt_is_computed_in_chunks_beside_the_sequences_that_decode() -> None:
    one, recorded = engine(step_tokens=64)
    one.submit("a", at=0, prompt=10, output=4)
    assert one.step(0) is not None
    one.submit("b", at=0, prompt=100, output=1)
    run(one)
    assert recorded.steps[1:3] == [Step(1, 10, (Chunk(63),)), Step(1, 11, (Chunk(37, 63),))]


def test_what_arrives_during_a_step_waits_for_the_next() -> None:
    one, _ = engine()
    one.submit("a", at=0, prompt=10, output=1)
    one.submit("b", at=0.005, prompt=10, output=1)
    assert run(one) == {"a": pytest.approx([0.011]), "b": pytest.approx([0.022])}


def test_no_more_sequences_run_than_the_batch_allows() -> None:
    one, recorded = engine(batch=2)
    for name in "abc":
        one.submit(name, at=0, prompt=10, output=5)
    times = run(one)
    assert max(step.decoding + len(step.prefill) for step in recorded.steps) == 2
    assert times["c"][0] > times["a"][-1]


def test_a_full_cache_takes_the_place_of_the_sequence_that_was_admitted_last() -> None:
    one, recorded = engine(kv_tokens=40)
    one.submit("a", at=0, prompt=15, output=20)
    one.submit("b", at=0, prompt=15, output=20)
    times = run(one)
    assert one.preemptions == 1
    assert len(times["a"]) == len(times["b"]) == 20, "no token is lost, and none comes twice"
    again = [step for step in recorded.steps if step.prefill and step.prefill[0].tokens > 15]
    assert again, "the sequence that lost its cache is computed again, with what it had produced"


def test_a_sequence_that_can_never_run_is_refused() -> None:
    one, _ = engine(kv_tokens=40)
    with pytest.raises(TooLong, match="41 tokens of prompt and answer do not fit into a KV cache of 40"):
        one.submit("a", at=0, prompt=21, output=20)


def test_a_prompt_that_was_computed_elsewhere_goes_on_with_the_second_token() -> None:
    one, recorded = engine()
    one.submit("a", at=0, prompt=100, output=3, cached=True)
    assert one.next_start(0) == 0
    outcome = one.step(0)
    assert outcome is not None
    assert outcome.tokens == (Token("a", 1, last=False),)
    assert recorded.steps == [Step(1, 100)]


def test_a_sequence_that_is_cancelled_is_forgotten_wherever_it_is() -> None:
    one, _ = engine(batch=1)
    one.submit("a", at=0, prompt=10, output=50)
    one.submit("b", at=0, prompt=10, output=50)
    one.step(0)
    assert (one.running, one.waiting) == (1, 1)
    one.cancel("a")
    one.cancel("b")
    one.cancel("c")
    assert (one.running, one.waiting, one.kv_used) == (0, 0, 0)
    assert one.next_start(0) is None


def test_tokens_come_more_slowly_in_a_larger_batch() -> None:
    means = []
    for batch in (1, 4, 8):
        one, _ = engine()
        for number in range(batch):
            one.submit(str(number), at=0, prompt=10, output=20)
        times = run(one)["0"]
        means.append((times[-1] - times[0]) / 19)
    assert means == sorted(means)
    assert means[0] < means[1] < means[2]


def test_an_engine_that_is_twice_as_fast_takes_half_the_time() -> None:
    step = Step(3, 100, (Chunk(10),))
    assert Scaled(TIMING, 2).step_ms(step) == TIMING.step_ms(step) / 2


REQUESTS = st.lists(st.tuples(st.floats(0, 2), st.integers(1, 300), st.integers(1, 30)), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(requests=REQUESTS, kv_tokens=st.integers(330, 1500), batch=st.integers(1, 8), step_tokens=st.integers(8, 256))
def test_every_schedule_is_complete_bounded_in_order_and_without_pauses(
    requests: list[tuple[float, int, int]], kv_tokens: int, batch: int, step_tokens: int
) -> None:
    one, recorded = engine(kv_tokens=kv_tokens, batch=batch, step_tokens=step_tokens)
    for number, (at, prompt, output) in enumerate(requests):
        one.submit(str(number), at=at, prompt=prompt, output=output)
    times = run(one)
    wanted = {str(number): output for number, (_, _, output) in enumerate(requests)}
    assert {name: len(found) for name, found in times.items()} == wanted
    for step in recorded.steps:
        assert step.decoding + len(step.prefill) <= batch
        assert step.decoding + sum(chunk.tokens for chunk in step.prefill) <= step_tokens
        assert step.context + sum(chunk.tokens + chunk.prefix for chunk in step.prefill) <= kv_tokens
        assert step.decoding or step.prefill
    in_order = sorted(range(len(requests)), key=lambda number: (requests[number][0], number))
    firsts = [times[str(number)][0] for number in in_order]
    if not one.preemptions:
        assert firsts == sorted(firsts), "first tokens come in the order of arrival"
    busy = sum(TIMING.step_ms(step) for step in recorded.steps) / 1000
    assert max(found[-1] for found in times.values()) <= max(at for at, _, _ in requests) + busy + 1e-9
