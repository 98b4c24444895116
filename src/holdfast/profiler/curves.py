"""What a planner scales by: how the time of a prefill grows with its length, and of a decode step with the cache.

Pure; the figures are those of the performance model.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.profiler.performance import Worker

_POINTS: Final = 16


class PrefillCurve(msgspec.Struct, frozen=True, kw_only=True):
    """By the length of a prompt: the time to its first token, and tokens a second for each GPU."""

    isl: tuple[int, ...]
    ttft_ms: tuple[float, ...]
    tokens_per_second_per_gpu: tuple[float, ...]


class DecodeCurve(msgspec.Struct, frozen=True, kw_only=True):
    """By the share of the KV cache that is used and by the context: the time of a step, and tokens a second a GPU."""

    kv_usage: tuple[float, ...]
    context: tuple[int, ...]
    itl_ms: tuple[float, ...]
    tokens_per_second_per_gpu: tuple[float, ...]
    max_kv_tokens: int


def prefill(worker: Worker, longest: int) -> PrefillCurve:
    """Prompts of up to `longest` tokens."""
    lengths = tuple(sorted({max(1, longest * number // _POINTS) for number in range(1, _POINTS + 1)}))
    times = tuple(worker.prefill(tokens).ms for tokens in lengths)
    rates = [1000 * isl / ms / worker.tensor_parallel for isl, ms in zip(lengths, times, strict=True)]
    return PrefillCurve(isl=lengths, ttft_ms=times, tokens_per_second_per_gpu=tuple(rates))


def decode(worker: Worker, longest: int, memory_mib: float) -> DecodeCurve:
    """Contexts of up to `longest` tokens, with more and more sequences."""
    room = int(worker.free_bytes(memory_mib) / worker.architecture.kv_bytes(worker.tensor_parallel))
    rows: list[tuple[float, int, float, float]] = []
    for context in sorted({max(1, longest * number // 4) for number in range(1, 5)}):
        most = max(1, room // context)
        for batch in sorted({max(1, most * number // 8) for number in range(1, 9)} | {1}):
            ms = worker.decode(batch, context).ms
            rows.append((batch * context / max(1, room), context, ms, 1000 * batch / ms / worker.tensor_parallel))
    usage, contexts, times, rates = zip(*rows, strict=True)
    return DecodeCurve(
        kv_usage=usage, context=contexts, itl_ms=times, tokens_per_second_per_gpu=rates, max_kv_tokens=room
    )
