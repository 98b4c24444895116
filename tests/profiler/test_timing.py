"""Single operators: measured rows are kept, other shapes lie between them, and times never fall with size."""

from __future__ import annotations

import itertools
import math
import statistics

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.profiler import hardware
from holdfast.profiler.hardware import Hardware, Table
from holdfast.profiler.results import Precision
from holdfast.profiler.timing import Timing, rising

H200 = hardware.find("h200_sxm")
TIMING = Timing(H200)
assert H200.table is not None
TABLE: Table = H200.table
CACHE = H200.peaks.cache_mib * 2**20

sizes = st.integers(1, 40_000)
widths = st.integers(64, 60_000)


def fell(smaller: float, larger: float) -> bool:
    return larger < smaller * (1 - 1e-9)


def without(n: int, k: int) -> Timing:
    rows = tuple(row for row in TABLE.gemm_bf16 if row[1:3] != (n, k))
    return Timing(msgspec.structs.replace(H200, table=msgspec.structs.replace(TABLE, gemm_bf16=rows)))


def test_a_product_that_does_not_fit_the_cache_takes_what_was_measured() -> None:
    errors = [
        abs(TIMING.gemm(m, n, k).us / us - 1) for m, n, k, us in TABLE.gemm_bf16 if 2 * n * k > 1.5 * CACHE and m >= 4
    ]
    assert statistics.median(errors) < 0.005
    assert max(errors) < 0.12


def test_a_weight_that_fits_the_cache_is_slower_in_a_model_than_when_it_was_measured_alone() -> None:
    measured = next(us for m, n, k, us in TABLE.gemm_bf16 if (m, n, k) == (8, 4096, 4096))
    assert measured * 1.1 < TIMING.gemm(8, 4096, 4096).us < measured * 1.6


def test_a_shape_is_predicted_from_the_others_by_what_bounds_it() -> None:
    small: list[float] = []
    large: list[float] = []
    for n, k in [(6144, 4096), (28672, 4096), (4096, 14336), (10240, 5120), (5120, 12800), (7168, 8192), (8192, 7168)]:
        blind = without(n, k)
        for m, *shape, _ in TABLE.gemm_bf16:
            if shape == [n, k]:
                error = abs(blind.gemm(m, n, k).us / TIMING.gemm(m, n, k).us - 1)
                (small if m <= 64 else large).append(error)
    assert statistics.median(small) < 0.04
    assert statistics.median(large) < 0.06
    assert max(small + large) < 0.25


def test_attention_takes_what_was_measured() -> None:
    prefill = [
        abs(TIMING.attention_prefill(heads, dim, tokens).us / us - 1)
        for heads, _, dim, tokens, us in TABLE.attention_prefill
    ]
    decode = [
        abs(TIMING.attention_decode(heads, kv, dim, batch, context).us / us - 1)
        for heads, kv, dim, batch, context, us in TABLE.attention_decode
    ]
    assert statistics.median(prefill) < 0.02
    assert max(prefill) < 0.1
    assert statistics.median(decode) < 0.02
    assert max(decode) < 0.15


@settings(max_examples=200, deadline=None)
@given(sizes, sizes, widths, widths, st.sampled_from(["bf16", "fp8"]))
def test_more_tokens_never_make_a_product_faster(one: int, other: int, n: int, k: int, precision: Precision) -> None:
    low, high = sorted((one, other))
    assert not fell(TIMING.gemm(low, n, k, precision).us, TIMING.gemm(high, n, k, precision).us)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 128), st.sampled_from([64, 96, 128, 256]), sizes, sizes)
def test_longer_prompts_never_make_attention_faster(heads: int, dim: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert not fell(TIMING.attention_prefill(heads, dim, low).us, TIMING.attention_prefill(heads, dim, high).us)


@settings(max_examples=400, deadline=None)
@given(
    st.integers(1, 64),
    st.integers(1, 512),
    st.integers(1, 512),
    st.integers(1, 100_000),
    st.integers(1, 100_000),
)
def test_more_sequences_and_longer_contexts_never_make_attention_faster(
    kv_heads: int, one: int, other: int, near: int, far: int
) -> None:
    (few, many), (short, long) = sorted((one, other)), sorted((near, far))
    fast = TIMING.attention_decode(kv_heads * 4, kv_heads, 128, few, short).us
    assert not fell(fast, TIMING.attention_decode(kv_heads * 4, kv_heads, 128, many, short).us)
    assert not fell(fast, TIMING.attention_decode(kv_heads * 4, kv_heads, 128, few, long).us)


def test_what_lies_beyond_the_table_is_marked() -> None:
    assert not TIMING.gemm(128, 6144, 4096).extrapolated
    assert not TIMING.gemm(128, 6000, 4000).extrapolated
    assert TIMING.gemm(20_000, 6144, 4096).extrapolated
    assert TIMING.gemm(128, 1_000_000, 4096).extrapolated
    assert TIMING.attention_prefill(32, 256, 1024).extrapolated
    assert TIMING.attention_prefill(256, 128, 1024).extrapolated
    assert TIMING.attention_decode(32, 8, 256, 4, 1024).extrapolated
    assert TIMING.attention_decode(40, 40, 128, 4, 1024).extrapolated
    assert not TIMING.attention_decode(20, 5, 128, 4, 1024).extrapolated


def test_a_roofline_is_not_marked_as_extrapolated_but_as_estimated() -> None:
    gpu: Hardware = hardware.find("a100_sxm")
    assert gpu.estimated
    assert not Timing(gpu).gemm(128, 6144, 4096).extrapolated


def test_a_faster_gpu_is_estimated_to_be_faster() -> None:
    times = [Timing(hardware.find(sku)).gemm(4096, 8192, 8192).us for sku in ("t4", "l4", "a100_sxm", "b200_sxm")]
    assert times == sorted(times, reverse=True)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40))
def test_rising_never_falls_and_keeps_the_mean(values: list[float]) -> None:
    made = rising(values)
    assert all(low <= high + 1e-9 for low, high in itertools.pairwise(made))
    assert math.isclose(sum(made), sum(values), abs_tol=1e-6)


@pytest.mark.parametrize("sku", hardware.PEAKS)
def test_every_sku_has_a_roofline(sku: str) -> None:
    timing = Timing(Hardware(sku=sku, peaks=hardware.PEAKS[sku]))
    for time in (timing.gemm(1, 4096, 4096), timing.attention_prefill(32, 128, 512), timing.all_reduce(1e6, 8)):
        assert 0 < time.us < 1e6
