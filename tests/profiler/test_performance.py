"""Workers: whole models against measurements, what never makes a prediction worse, and what load does."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.profiler import hardware, measuring, models
from holdfast.profiler.models import Architecture
from holdfast.profiler.performance import CHUNK, Worker, chunks, decoding, full, loaded, waiting
from holdfast.profiler.results import Precision
from holdfast.profiler.timing import Timing

WHOLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "whole_models.json").read_text())
IN_THE_TABLE = ("8b", "32b", "70b")
H200 = hardware.find("h200_sxm")
TIMING = Timing(H200)
L4 = Timing(hardware.find("l4"))

NAMES = [
    "Qwen/Qwen3-0.6B",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.1-70B",
    "Qwen/Qwen2.5-7B",
    "microsoft/phi-4",
    "google/gemma-3-27b-it",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-R1",
    "openai/gpt-oss-20b",
]


@cache
def worker(name: str, split: int, precision: Precision = "bf16", communication: bool = True) -> Worker:
    return Worker(models.find(name), TIMING, split, precision, communication=communication)


@cache
def measured(name: str, split: int) -> Worker:
    model = msgspec.convert({"name": name, **WHOLE["models"][name]}, Architecture)
    return Worker(model, TIMING, split, communication=False)


def errors(kind: str) -> dict[bool, list[float]]:
    """Relative errors of the predictions, by whether the shapes are in the table."""
    found: dict[bool, list[float]] = defaultdict(list)
    for name, split, *sizes, ms in WHOLE[kind]:
        made = measured(name, split).prefill(*sizes) if kind == "prefill" else measured(name, split).decode(*sizes)
        found[name in IN_THE_TABLE].append(made.ms / ms - 1)
    return found


@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_whole_models_take_about_what_was_measured(kind: str) -> None:
    """These stacks have some ten microseconds a layer more of small kernels than an engine's, so they are slower."""
    found = errors(kind)
    for known in (True, False):
        assert statistics.median(map(abs, found[known])) < 0.08
        assert max(map(abs, found[known])) < 0.25


@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_shapes_that_were_not_measured_are_predicted_as_well_as_those_that_were(kind: str) -> None:
    found = errors(kind)
    assert abs(statistics.median(found[False]) - statistics.median(found[True])) < 0.04


@pytest.mark.parametrize("name", IN_THE_TABLE)
def test_a_model_is_predicted_from_the_shapes_of_the_others(name: str) -> None:
    assert H200.table is not None
    model = measured(name, 1).architecture
    products, _ = measuring.shapes([model])
    rows = tuple(row for row in H200.table.gemm_bf16 if row[1:3] not in products)
    assert len(rows) < len(H200.table.gemm_bf16)
    table = msgspec.structs.replace(H200.table, gemm_bf16=rows)
    blind = Timing(msgspec.structs.replace(H200, table=table))
    found: list[float] = []
    for split in (1, 2, 4):
        seeing, guessing = measured(name, split), Worker(model, blind, split, communication=False)
        pairs = [(guessing.prefill(tokens), seeing.prefill(tokens)) for tokens in (256, 512, 1024, 2048, 4096, 8192)]
        pairs += [(guessing.decode(batch, 2048), seeing.decode(batch, 2048)) for batch in (1, 4, 16, 64, 128)]
        found += [abs(guess.ms / known.ms - 1) for guess, known in pairs]
    assert statistics.median(found) < 0.03
    assert max(found) < 0.13


# --- monotone ----------------------------------------------------------------

splits = st.sampled_from([1, 2, 4, 8])
precisions: st.SearchStrategy[Precision] = st.sampled_from(["bf16", "fp8"])


def worse(better: float, than: float) -> bool:
    return better > than * (1 + 1e-9)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(NAMES), splits, splits, precisions, st.booleans(), st.integers(1, 40_000), st.integers(1, 40_000)
)
def test_more_gpus_and_shorter_inputs_never_make_a_prefill_slower(
    name: str, one: int, other: int, precision: Precision, communication: bool, first: int, second: int
) -> None:
    (few, many), (short, long) = sorted((one, other)), sorted((first, second))
    base = worker(name, few, precision, communication)
    assert not worse(base.prefill(short).ms, base.prefill(long).ms)
    assert not worse(worker(name, many, precision, communication).prefill(long).ms, base.prefill(long).ms)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(NAMES),
    splits,
    splits,
    precisions,
    st.booleans(),
    st.tuples(st.integers(1, 512), st.integers(1, 512)),
    st.tuples(st.integers(1, 65_536), st.integers(1, 65_536)),
)
def test_more_gpus_smaller_batches_and_shorter_contexts_never_make_a_step_slower(
    name: str,
    one: int,
    other: int,
    precision: Precision,
    communication: bool,
    batches: tuple[int, int],
    contexts: tuple[int, int],
) -> None:
    (few, many), (small, large), (short, long) = sorted((one, other)), sorted(batches), sorted(contexts)
    base = worker(name, few, precision, communication)
    assert not worse(base.decode(small, long).ms, base.decode(large, long).ms)
    assert not worse(base.decode(large, short).ms, base.decode(large, long).ms)
    assert not worse(worker(name, many, precision, communication).decode(large, long).ms, base.decode(large, long).ms)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(NAMES), splits, st.integers(1, 20_000), st.integers(1, 200))
def test_communication_and_company_never_make_a_step_faster(name: str, split: int, tokens: int, batch: int) -> None:
    alone = worker(name, split, communication=False)
    assert not worse(alone.prefill(tokens).ms, worker(name, split).prefill(tokens).ms)
    part = ((min(tokens, CHUNK), 0),)
    assert not worse(alone.step(part, 0, 0).ms, alone.step(part, batch, 1000).ms)


# --- steps -------------------------------------------------------------------


def test_a_breakdown_adds_up() -> None:
    step = worker("Qwen/Qwen3-32B", 4).decode(16, 4096)
    parts = [getattr(step, name) for name in step.__struct_fields__ if name.endswith("_ms")]
    assert sum(parts) == pytest.approx(step.ms)
    assert step.communication_ms > 0
    assert worker("Qwen/Qwen3-32B", 4, communication=False).decode(16, 4096).communication_ms == 0


def test_a_long_prompt_is_taken_in_parts() -> None:
    assert chunks(CHUNK + 5) == [(CHUNK, 0), (5, CHUNK)]
    long = worker("Qwen/Qwen3-32B", 4).prefill(CHUNK + 5)
    assert long.ms > worker("Qwen/Qwen3-32B", 4).prefill(CHUNK).ms


def test_fp8_halves_the_weights_and_is_faster() -> None:
    name = "Qwen/Qwen3-32B"
    assert worker(name, 1, "fp8").decode(1, 1000).ms < 0.7 * worker(name, 1).decode(1, 1000).ms
    assert worker(name, 1, "fp8").prefill(4000).ms < 0.7 * worker(name, 1).prefill(4000).ms


def test_few_tokens_read_few_experts() -> None:
    name = "Qwen/Qwen3-30B-A3B"
    one, many = worker(name, 1).decode(1, 1000), worker(name, 1).decode(64, 1000)
    assert many.experts_ms > 3 * one.experts_ms
    assert one.ms < worker("Qwen/Qwen3-32B", 1).decode(1, 1000).ms / 3
    assert one.extrapolated == ("experts",)


def test_a_window_bounds_what_a_step_reads() -> None:
    gemma = worker("google/gemma-3-27b-it", 1)
    grown = gemma.decode(32, 64_000).attention_ms / gemma.decode(32, 8_000).attention_ms
    assert grown < 8


def test_weights_and_cache_say_how_much_fits() -> None:
    memory = H200.peaks.memory_mib
    assert worker("meta-llama/Llama-3.1-70B", 1).most_sequences(5000, memory) == 0
    two, four = (worker("meta-llama/Llama-3.1-70B", split).most_sequences(5000, memory) for split in (2, 4))
    assert 50 < two < four
    assert worker("Qwen/Qwen3-32B", 1, "fp8").most_sequences(5000, memory) > worker("Qwen/Qwen3-32B", 1).most_sequences(
        5000, memory
    )


# --- under load --------------------------------------------------------------


def test_prompts_make_the_answers_of_others_slower() -> None:
    qwen = worker("Qwen/Qwen3-32B", 4)
    served = full(qwen, 4000, 1000, 64)
    assert served.itl_ms > qwen.decode(64, 4500).ms
    assert served.ttft_ms > qwen.prefill(4000).ms
    # Requests that are in flight, by Little's law.
    assert served.requests_per_second * (served.ttft_ms + 999 * served.itl_ms) / 1000 == pytest.approx(64)


def test_a_worker_with_one_request_is_not_disturbed() -> None:
    qwen = worker("Qwen/Qwen3-32B", 4)
    served = full(qwen, 4000, 1000, 1)
    assert served.ttft_ms == pytest.approx(qwen.prefill(4000).ms)
    light = loaded(qwen, 4000, 1000, 0.001, 100)
    assert light is not None
    assert light.itl_ms == pytest.approx(qwen.decode(1, 4500).ms, rel=0.02)
    assert light.ttft_ms == pytest.approx(qwen.prefill(4000).ms, rel=0.05)


def test_short_answers_are_bound_by_their_prompts() -> None:
    qwen = worker("Qwen/Qwen3-32B", 4)
    served = full(qwen, 4000, 10, 64)
    assert served.requests_per_second == pytest.approx(1000 / qwen.prefill(4000).ms, rel=0.25)
    assert served.ttft_ms > 20 * qwen.prefill(4000).ms


def test_more_load_is_slower_until_it_cannot_be_served() -> None:
    qwen = worker("Qwen/Qwen3-32B", 4)
    found = [loaded(qwen, 4000, 1000, rate, 300) for rate in (0.5, 1, 2, 3)]
    times = [served.itl_ms for served in found if served is not None]
    assert len(times) == 4
    assert times == sorted(times)
    assert loaded(qwen, 4000, 1000, 50, 300) is None
    assert decoding(qwen, 4000, 1000, 500, 300) is None


def test_waiting_grows_with_utilisation_and_falls_with_servers() -> None:
    assert waiting(100, 0.5) == pytest.approx(50, rel=0.05)
    assert waiting(100, 0.9) > 4 * waiting(100, 0.5)
    assert waiting(100, 0.9, 4) < waiting(100, 0.9) / 3
    assert waiting(100, 1.0) == float("inf")


def test_an_estimated_gpu_serves_a_small_model() -> None:
    small = Worker(models.find("Qwen/Qwen3-0.6B"), L4, 1)
    assert 3 < small.decode(1, 1000).ms < 20
