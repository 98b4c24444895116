"""Measures the operators of the GPU of this machine, as a table for predictions.

It needs torch with CUDA, which is imported when it is used.  Each figure is the median of several replays of a CUDA
graph of many calls, in microseconds a call.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator
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
        torch=torch.__version__,
        gemm_bf16=bf16,
        gemm_fp8=fp8,
        attention_prefill=prefill,
        attention_decode=decode,
        memory=copies,
        small=small,
    )


class _Bench:
    """Operators of torch, timed on the GPU."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.has_fp8 = torch.cuda.get_device_capability() >= (8, 9)

    def time(self, call: Callable[[], Any], expected_us: float = 20.0) -> float:
        """Microseconds of one call, from a CUDA graph of enough calls to fill some milliseconds."""
        torch = self.torch
        calls = max(4, min(200, int(4000 / max(expected_us, 1.0))))
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

    def products(
        self, products: Iterable[tuple[int, int]], tokens: Iterable[int], precision: str
    ) -> Iterator[tuple[int, int, int, float]]:
        rows = tuple(tokens)
        for n, k in products:
            for m in rows:
                if m * n <= 2**31 and (precision == "bf16" or (n % 16 == 0 and k % 16 == 0)):
                    yield m, n, k, self.time(self._product(m, n, k, precision), 5 + 2 * m * n * k / 5e8)

    def _product(self, m: int, n: int, k: int, precision: str) -> Callable[[], Any]:
        torch = self.torch
        given, weight = self._random(m, k), self._random(n, k)
        if precision == "bf16":
            return lambda: torch.nn.functional.linear(given, weight)
        one = torch.ones((), device="cuda")
        left, right = given.to(torch.float8_e4m3fn), weight.to(torch.float8_e4m3fn).t()
        return lambda: torch._scaled_mm(
            left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    def prefill(self, attentions: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int, float]]:
        attend = self.torch.nn.functional.scaled_dot_product_attention
        for heads, kv_heads, dim in attentions:
            for tokens in PROMPTS:
                query = self._random(1, heads, tokens, dim)
                key, value = self._random(1, kv_heads, tokens, dim), self._random(1, kv_heads, tokens, dim)

                def call(query: Any = query, key: Any = key, value: Any = value) -> Any:
                    return attend(query, key, value, is_causal=True, enable_gqa=True)

                yield heads, kv_heads, dim, tokens, self.time(call, 5 + 2 * heads * dim * tokens**2 / 5e8)

    def decode(self, attentions: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int, int, int, float]]:
        """The queries of a group are rows of one attention; a cache is read in parts where there are few sequences."""
        torch = self.torch
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        attend = torch.nn.functional.scaled_dot_product_attention
        for heads, kv_heads, dim in attentions:
            group = heads // kv_heads
            for batch, context in itertools.product(BATCHES, CONTEXTS):
                size = 4 * kv_heads * dim * batch * context
                if size > _CACHE_BYTES:
                    continue
                parts = 1
                while parts * 2 * batch * kv_heads <= 2 * processors and context // (parts * 2) >= 128:
                    parts *= 2
                query = self._random(batch * parts, kv_heads, group, dim)
                key = self._random(batch * parts, kv_heads, context // parts, dim)
                value = self._random(batch * parts, kv_heads, context // parts, dim)

                def call(query: Any = query, key: Any = key, value: Any = value, parts: int = parts) -> Any:
                    answer = attend(query, key, value)
                    return answer.view(-1, parts, *answer.shape[1:]).mean(1) if parts > 1 else answer

                yield heads, kv_heads, dim, batch, context, self.time(call, 10 + size / 2.5e6)

    def copies(self) -> Iterator[Copy]:
        torch = self.torch
        for size in (2**21, 2**24, 2**27, 2**30, 2**33):
            source = torch.empty(size // 2, device="cuda", dtype=torch.uint8)
            target = torch.empty_like(source)

            def call(source: Any = source, target: Any = target) -> Any:
                return target.copy_(source)

            yield Copy(op="copy", bytes=size, us=self.time(call, 1 + size / 3e6))

    def small(self) -> Iterator[SmallOperator]:
        torch = self.torch
        functional = torch.nn.functional
        for rows in (1, 32, 256, 2048, 8192):
            given, weight = self._random(rows, 5120), self._random(5120)

            def norm(given: Any = given, weight: Any = weight) -> Any:
                return functional.rms_norm(given, (5120,), weight)

            yield SmallOperator(op="rms_norm", rows=rows, width=5120, us=self.time(norm, 3 + rows / 200))
            gate, up = self._random(rows, 25600), self._random(rows, 25600)
            fused = torch.compile(lambda gate, up: functional.silu(gate) * up)

            def gated(gate: Any = gate, up: Any = up, fused: Any = fused) -> Any:
                return fused(gate, up)

            yield SmallOperator(op="silu_mul", rows=rows, width=25600, us=self.time(gated, 2 + rows / 30))
