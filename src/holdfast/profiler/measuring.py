"""Measures the operators of the GPU of this machine, as a table for predictions.

It needs torch with CUDA, which is imported when it is used.  Each figure is the median of several replays of a CUDA
graph of many calls, in microseconds a call.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Final

from holdfast.profiler.hardware import Copy, SmallOperator, Table
from holdfast.profiler.models import Architecture

SPLITS: Final = (1, 2, 4, 8)
TOKENS: Final = tuple(2**power for power in range(15))
PROMPTS: Final = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
BATCHES: Final = (1, 4, 16, 64, 128, 256)
CONTEXTS: Final = (512, 2048, 8192, 32768)
_REPLAYS: Final = 5
_CACHE_BYTES: Final = 24 * 2**30
"""KV caches larger than this are not measured."""

Report = Callable[[str], None]


class Unavailable(Exception):
    """There is nothing to measure on: no torch, or no GPU."""


def _torch() -> Any:
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise Unavailable("torch is not installed; install it with CUDA, on the machine with the GPU") from None
    if not torch.cuda.is_available():
        raise Unavailable("torch finds no CUDA device; run this on the machine with the GPU")
    return torch


def shapes(models: Iterable[Architecture]) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
    """The products (n, k) and the attentions (heads, KV heads, head dimension) of `models`, each split evenly."""
    products: dict[tuple[int, int], None] = {}
    attentions: dict[tuple[int, int, int], None] = {}
    for model, split in itertools.product(models, SPLITS):
        if not model.splits(split) or model.kv_lora_rank:
            continue
        heads, kv_heads, width = model.heads // split, max(1, model.kv_heads // split), model.intermediate // split
        attentions[heads, kv_heads, model.head_dim] = None
        products[(heads + 2 * kv_heads) * model.head_dim, model.hidden] = None
        products[model.hidden, heads * model.head_dim] = None
        if width:
            products[2 * width, model.hidden] = None
            products[model.hidden, width] = None
        products[-(-model.vocab // split), model.hidden] = None
    return list(products), list(attentions)


def measure(
    models: Iterable[Architecture], *, tokens: Iterable[int] = TOKENS, report: Report = lambda _: None
) -> Table:
    """The table of this machine's GPU, for the shapes of `models`; `Unavailable` without torch and a GPU."""
    torch = _torch()
    bench = _Bench(torch)
    products, attentions = shapes(models)
    rows = tuple(tokens)
    with torch.inference_mode():
        report(f"{len(products)} products in bf16")
        bf16 = tuple(bench.products(products, rows, "bf16"))
        report(f"{len(products)} products in fp8")
        fp8 = tuple(bench.products(products, [m for m in rows if m >= 16], "fp8")) if bench.has_fp8 else ()
        report(f"{len(attentions)} attentions of prompts")
        prefill = tuple(bench.prefill(attentions))
        report(f"{len(attentions)} attentions of decode steps")
        decode = tuple(bench.decode(attentions))
        report("copies and small operators")
        copies, small = tuple(bench.copies()), tuple(bench.small())
    return Table(
        device=torch.cuda.get_device_name(),
        torch=str(torch.__version__),
        gemm_bf16=bf16,
        gemm_fp8=fp8,
        attention_prefill=prefill,
        attention_decode=decode,
        memory=copies,
        small=small,
    )


Call = Callable[[], Any]


class _Bench:
    """Operators of torch, timed on the GPU."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.has_fp8 = torch.cuda.get_device_capability() >= (8, 9)

    def time(self, build: Callable[[], Call], expected_us: float) -> float | None:
        """Microseconds of one call of what `build` makes, or None where the memory of the GPU does not suffice."""
        try:
            return self._time(build(), max(4, min(200, int(4000 / max(expected_us, 1.0)))))
        except self.torch.cuda.OutOfMemoryError:
            self.torch.cuda.empty_cache()
            return None

    def _time(self, call: Call, calls: int) -> float:
        """From a CUDA graph of enough calls to fill some milliseconds."""
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        graph.replay()
        times = []
        for _ in range(_REPLAYS):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(1000.0 * float(start.elapsed_time(end)) / calls)
        return round(statistics.median(times), 3)

    def _random(self, *shape: int) -> Any:
        return self.torch.randn(*shape, device="cuda", dtype=self.torch.bfloat16)

    # --- products ------------------------------------------------------------

    def products(
        self, products: Iterable[tuple[int, int]], tokens: Iterable[int], precision: str
    ) -> Iterator[tuple[int, int, int, float]]:
        for (n, k), m in itertools.product(products, tuple(tokens)):
            if m * n > 2**31 or (precision == "fp8" and (n % 16 or k % 16)):
                continue
            us = self.time(partial(self._product, m, n, k, precision), 5 + 2 * m * n * k / 5e8)
            if us is not None:
                yield m, n, k, us

    def _product(self, m: int, n: int, k: int, precision: str) -> Call:
        torch = self.torch
        given, weight = self._random(m, k), self._random(n, k)
        if precision == "bf16":
            return lambda: torch.nn.functional.linear(given, weight)
        one = torch.ones((), device="cuda")
        left, right = given.to(torch.float8_e4m3fn), weight.to(torch.float8_e4m3fn).t()
        return lambda: torch._scaled_mm(
            left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    # --- attention -----------------------------------------------------------

    def prefill(self, attentions: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int, float]]:
        for (heads, kv_heads, dim), tokens in itertools.product(attentions, PROMPTS):
            us = self.time(partial(self._causal, heads, kv_heads, dim, tokens), 5 + 2 * heads * dim * tokens**2 / 5e8)
            if us is not None:
                yield heads, kv_heads, dim, tokens, us

    def _causal(self, heads: int, kv_heads: int, dim: int, tokens: int) -> Call:
        attend = self.torch.nn.functional.scaled_dot_product_attention
        query = self._random(1, heads, tokens, dim)
        key, value = self._random(1, kv_heads, tokens, dim), self._random(1, kv_heads, tokens, dim)
        return lambda: attend(query, key, value, is_causal=True, enable_gqa=True)

    def decode(self, attentions: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int, int, float]]:
        for (heads, kv_heads, dim), batch, context in itertools.product(attentions, BATCHES, CONTEXTS):
            size = 4 * kv_heads * dim * batch * context
            if size > _CACHE_BYTES:
                continue
            us = self.time(partial(self._cached, heads, kv_heads, dim, batch, context), 10 + size / 2.5e6)
            if us is not None:
                yield heads, kv_heads, dim, batch, context, us

    def _cached(self, heads: int, kv_heads: int, dim: int, batch: int, context: int) -> Call:
        """The queries of a group are rows of one attention; a cache is read in parts where there are few sequences."""
        torch = self.torch
        attend = torch.nn.functional.scaled_dot_product_attention
        processors, parts = torch.cuda.get_device_properties(0).multi_processor_count, 1
        while parts * 2 * batch * kv_heads <= 2 * processors and context // (parts * 2) >= 128:
            parts *= 2
        query = self._random(batch * parts, kv_heads, heads // kv_heads, dim)
        key = self._random(batch * parts, kv_heads, context // parts, dim)
        value = self._random(batch * parts, kv_heads, context // parts, dim)
        if parts == 1:
            return lambda: attend(query, key, value)
        whole = (batch, parts, kv_heads, heads // kv_heads, dim)
        return lambda: attend(query, key, value).reshape(whole).mean(1)

    # --- small operators -----------------------------------------------------

    def copies(self) -> Iterator[Copy]:
        for size in (2**21, 2**24, 2**27, 2**30, 2**33):
            us = self.time(partial(self._copy, size), 1 + size / 3e6)
            if us is not None:
                yield Copy(op="copy", bytes=size, us=us)

    def _copy(self, size: int) -> Call:
        source = self.torch.zeros(size // 2, device="cuda", dtype=self.torch.uint8)
        target = self.torch.empty_like(source)
        return lambda: target.copy_(source)

    def small(self) -> Iterator[SmallOperator]:
        for rows in (1, 32, 256, 2048, 8192):
            for op, width, build in (("rms_norm", 5120, self._norm), ("silu_mul", 25600, self._gated)):
                us = self.time(partial(build, rows, width), 2 + rows * width / 1e6)
                if us is not None:
                    yield SmallOperator(op=op, rows=rows, width=width, us=us)

    def _norm(self, rows: int, width: int) -> Call:
        given, weight = self._random(rows, width), self._random(width)
        return lambda: self.torch.nn.functional.rms_norm(given, (width,), weight)

    def _gated(self, rows: int, width: int) -> Call:
        """Fused as engines do, where torch can compile on this machine."""
        torch = self.torch
        gate, up = self._random(rows, width), self._random(rows, width)

        def plain(gate: Any, up: Any) -> Any:
            return torch.nn.functional.silu(gate) * up

        fused = torch.compile(plain)
        try:
            fused(gate, up)
        except Exception:
            fused = plain
        return lambda: fused(gate, up)
