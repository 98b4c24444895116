"""How long single operators take on a GPU.

Each operator has a roofline: a start, and then what bounds it (arithmetic, or bytes from memory), at the rates that
the GPU sustains.  A measured table corrects it: the logarithm of measured over roofline varies slowly with the shape,
so it is interpolated, between rows of the same shape and, weighted by distance, of other shapes.  Where a table ends,
the last correction is kept and the answer is marked as extrapolated.  Times never fall when an operator grows.
This module must not know any model.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from holdfast.profiler.hardware import Hardware, Table
from holdfast.profiler.results import Precision

# What a Hopper GPU sustains of its published peaks, from the measured table; used for GPUs that were not measured.
_COMPUTE: Final = 0.68
_BANDWIDTH: Final = 0.917
_ATTENTION_COMPUTE: Final = 0.63
_DECODE_BANDWIDTH: Final = 0.575

_START: Final = 5.5
"""Microseconds of a product whose weights are not in the cache, beyond its roofline."""
_COLD: Final = 0.55
"""The share of the difference between memory and cache by which a row of a weight that fits the cache is raised."""
_ATTENTION_START: Final = 5.5
_ATTENTION_PATH: Final = 0.0125
"""Microseconds a token along the longest chain of a causal attention, for heads of 128."""
_DECODE_START: Final = 9.5
_SMALL_START: Final = 1.3
_SCATTERED: Final = 0.7
"""The share of the bandwidth that rotary embeddings and residuals reach."""
_SHARPNESS: Final = 4.0
"""How sharply a product turns from bound by memory to bound by arithmetic."""
_PER_OCTAVE: Final = 4
"""Points of a curve between a size and its double."""


class Time(NamedTuple):
    """Microseconds of one call, and whether it lies beyond what was measured."""

    us: float
    extrapolated: bool = False


class _Curve(NamedTuple):
    """A function of one size, as points with logarithmic coordinates."""

    xs: Sequence[float]
    ys: Sequence[float]

    def at(self, x: float) -> float:
        """The value at `x`, held constant beyond both ends."""
        if x <= self.xs[0]:
            return self.ys[0]
        if x >= self.xs[-1]:
            return self.ys[-1]
        right = bisect_right(self.xs, x)
        left = right - 1
        share = (x - self.xs[left]) / (self.xs[right] - self.xs[left])
        return self.ys[left] + share * (self.ys[right] - self.ys[left])


def rising(ys: Sequence[float]) -> list[float]:
    """The isotonic regression of `ys`: never falling, and as near to them as that allows."""
    blocks: list[tuple[float, int]] = []
    for y in ys:
        mean, size = y, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    return [mean for mean, size in blocks for _ in range(size)]


def _rising_grid(grid: list[list[float]]) -> list[list[float]]:
    """`grid` between the lowest one above it and the highest one below it that never fall along rows and columns."""
    above, below = [list(row) for row in grid], [list(row) for row in grid]
    height, width = len(grid), len(grid[0])
    for i in range(height):
        for j in range(width):
            above[i][j] = max(above[i][j], above[i - 1][j] if i else -math.inf, above[i][j - 1] if j else -math.inf)
    for i in reversed(range(height)):
        for j in reversed(range(width)):
            down = below[i + 1][j] if i + 1 < height else math.inf
            right = below[i][j + 1] if j + 1 < width else math.inf
            below[i][j] = min(below[i][j], down, right)
    return [[(up + down) / 2 for up, down in zip(*rows, strict=True)] for rows in zip(above, below, strict=True)]


def _soft_max(left: float, right: float, sharpness: float) -> float:
    high, low = max(left, right), min(left, right)
    return float(high * (1 + (low / high) ** sharpness) ** (1 / sharpness)) if high else 0.0


def _octaves(low: float, high: float) -> list[float]:
    """Logarithms from `low` to `high`, evenly."""
    steps = max(1, round(math.log2(high / low) * _PER_OCTAVE))
    return [math.log(low) + step * (math.log(high) - math.log(low)) / steps for step in range(steps + 1)]


_DECODE_BATCHES: Final = [math.log(2) * step / 2 for step in range(19)]
"""Logarithms of batches from 1 to 512."""
_DECODE_CONTEXTS: Final = [math.log(2) * (6 + step / 2) for step in range(23)]
"""Logarithms of contexts from 64 to 131,072 tokens."""


class Timing:
    """The operators of one GPU."""

    def __init__(self, hardware: Hardware) -> None:
        peaks = hardware.peaks
        self.hardware = hardware
        self.bandwidth = peaks.bandwidth * 1e6 * _BANDWIDTH  # bytes a microsecond
        self.flops: Mapping[Precision, float] = {
            "bf16": peaks.bf16 * 1e6 * _COMPUTE,  # operations a microsecond
            "fp8": (peaks.fp8 or peaks.bf16) * 1e6 * _COMPUTE,
        }
        self._attention_flops = peaks.bf16 * 1e6 * _ATTENTION_COMPUTE
        self._decode_bandwidth = peaks.bandwidth * 1e6 * _DECODE_BANDWIDTH
        self._gemms: Mapping[Precision, Mapping[tuple[int, int], _Curve]] = {"bf16": {}, "fp8": {}}
        self._prefills: Mapping[int, _Curve] = {}
        self._decodes: Mapping[int, Mapping[int, _Curve]] = {}
        self._smalls: Mapping[str, _Curve] = {}
        if hardware.table is not None:
            self._learn(hardware.table)
        self._gemm_curve = lru_cache(maxsize=4096)(self._gemm_curve_of)
        self._prefill_curve = lru_cache(maxsize=512)(self._prefill_curve_of)
        self._decode_curve = lru_cache(maxsize=2048)(self._decode_curve_of)

    # --- what the table says -------------------------------------------------

    def _learn(self, table: Table) -> None:
        self._gemms = {"bf16": self._products(table.gemm_bf16, "bf16"), "fp8": self._products(table.gemm_fp8, "fp8")}
        prefills: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for heads, _, dim, tokens, us in table.attention_prefill:
            prefills[heads].append((math.log(tokens), math.log(us / self._prefill_roof(heads, dim, tokens))))
        self._prefills = {heads: _averaged(points) for heads, points in sorted(prefills.items())}
        decodes: dict[int, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        for _, kv_heads, dim, batch, context, us in table.attention_decode:
            size = _decode_bytes(kv_heads, dim, batch, context)
            decodes[kv_heads][batch].append((math.log(size), math.log(us / self._decode_roof(size))))
        self._decodes = {
            kv_heads: {batch: _averaged(points) for batch, points in sorted(batches.items())}
            for kv_heads, batches in sorted(decodes.items())
        }
        smalls: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for small in table.small:
            size = small.rows * small.width * (6 if small.op == "silu_mul" else 4)
            smalls[small.op].append((math.log(size), math.log(small.us / self._small_roof(size))))
        self._smalls = {op: _averaged(points) for op, points in smalls.items()}

    def _products(
        self, rows: Sequence[tuple[int, int, int, float]], precision: Precision
    ) -> Mapping[tuple[int, int], _Curve]:
        """Corrections of each shape over the tokens.

        A weight that fits into the cache was read from it again and again when the row was measured.  In a model every
        layer has its own, so such a row is raised towards what reading it from memory takes.
        """
        shapes: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
        for m, n, k, us in rows:
            cold = max(us, _START + n * k * _width(precision) / self.bandwidth)
            raised = us + _COLD * (cold - us)
            shapes[n, k].append((math.log(m), math.log(raised / self._gemm_roof(m, n, k, precision))))
        return {shape: _averaged(points) for shape, points in shapes.items()}

    # --- rooflines -----------------------------------------------------------

    def _gemm_roof(self, m: float, n: int, k: int, precision: Precision) -> float:
        width = _width(precision)
        arithmetic = 2.0 * m * n * k / self.flops[precision]
        memory = ((n * k + m * k) * width + 2 * m * n) / self.bandwidth
        return _START + _soft_max(arithmetic, memory, _SHARPNESS)

    def _prefill_roof(self, heads: int, dim: int, tokens: float) -> float:
        arithmetic = 2.0 * heads * dim * tokens * tokens / self._attention_flops
        return _ATTENTION_START + _soft_max(arithmetic, _ATTENTION_PATH * tokens * dim / 128, 1.2)

    def _decode_roof(self, size: float) -> float:
        return _DECODE_START + size / self._decode_bandwidth

    def _small_roof(self, size: float) -> float:
        return _SMALL_START + size / self.bandwidth

    # --- operators -----------------------------------------------------------

    def gemm(self, m: float, n: int, k: int, precision: Precision = "bf16") -> Time:
        """`m` tokens times a weight of `n` x `k`."""
        if m <= 0:
            return Time(0.0)
        curve, extrapolated = self._gemm_curve(n, k, precision)
        return _read(curve, m, lambda size: self._gemm_roof(size, n, k, precision), extrapolated)

    def _gemm_curve_of(self, n: int, k: int, precision: Precision) -> tuple[_Curve, bool]:
        rows = self._gemms[precision]
        xs = _octaves(1, 16384)
        if (measured := rows.get((n, k))) is not None:
            weights, curves, beyond = [1.0], [measured], False
        else:
            weights, curves = [], []
            for (rows_n, rows_k), curve in rows.items():
                across, along = math.log(n / rows_n), math.log(k / rows_k)
                distance = across**2 + along**2 + 0.5 * (across + along) ** 2
                weights.append((distance + 1e-3) ** -1.5)
                curves.append(curve)
            beyond = bool(rows) and not (
                min(shape[0] for shape in rows) / 2 <= n <= max(shape[0] for shape in rows) * 2
                and min(shape[1] for shape in rows) / 2 <= k <= max(shape[1] for shape in rows) * 2
            )
        ys = []
        for x in xs:
            correction = sum(w * curve.at(x) for w, curve in zip(weights, curves, strict=True)) / (sum(weights) or 1.0)
            ys.append(math.log(self._gemm_roof(math.exp(x), n, k, precision)) + correction)
        return _Curve(xs, rising(ys)), beyond

    def grouped_gemm(self, m: float, n: int, k: int, groups: float, bytes_each: float, precision: Precision) -> Time:
        """`m` tokens in all, over the weights (`n` x `k`) of `groups` experts; from the roofline alone."""
        if m <= 0:
            return Time(0.0)
        arithmetic = 2.0 * m * n * k / (self.flops[precision] * 0.8)
        memory = (groups * n * k * bytes_each + 2.0 * m * (n + k)) / self.bandwidth
        return Time(_START + _soft_max(arithmetic, memory, _SHARPNESS), self.hardware.table is not None)

    def attention_prefill(self, heads: int, dim: int, tokens: float, past: float = 0.0) -> Time:
        """Causal attention of `tokens` over themselves and `past` tokens before them."""
        if tokens <= 0:
            return Time(0.0)
        curve, beyond = self._prefill_curve(heads, dim)
        if past:
            whole, before = self.attention_prefill(heads, dim, past + tokens), self.attention_prefill(heads, dim, past)
            alone = self.attention_prefill(heads, dim, tokens)
            return Time(max(alone.us, whole.us - before.us), whole.extrapolated)
        return _read(curve, tokens, lambda size: self._prefill_roof(heads, dim, size), beyond)

    def _prefill_curve_of(self, heads: int, dim: int) -> tuple[_Curve, bool]:
        xs = _octaves(1, 32768)
        corrections = _between(self._prefills, heads)
        ys = [
            math.log(self._prefill_roof(heads, dim, math.exp(x))) + sum(w * curve.at(x) for w, curve in corrections)
            for x in xs
        ]
        beyond = bool(self._prefills) and (dim != 128 or not min(self._prefills) <= heads <= max(self._prefills))
        return _Curve(xs, rising(ys)), beyond

    def attention_decode(self, heads: int, kv_heads: int, dim: int, batch: float, context: float) -> Time:
        """One new token of each of `batch` sequences over a cache of `context` tokens."""
        if batch <= 0 or context <= 0:
            return Time(0.0)
        rows, columns = _DECODE_BATCHES, _DECODE_CONTEXTS
        x, y = min(math.log(batch), rows[-1]), min(max(math.log(context), columns[0]), columns[-1])
        grid = self._decode_curve(kv_heads, dim)
        row = min(max(1, bisect_right(rows, x)), len(rows) - 1)
        share = max(0.0, (x - rows[row - 1]) / (rows[row] - rows[row - 1]))
        low, high = _Curve(columns, grid[row - 1]).at(y), _Curve(columns, grid[row]).at(y)
        us = math.exp(low + share * (high - low))
        inside = _decode_bytes(kv_heads, dim, math.exp(x), math.exp(y))
        if (size := _decode_bytes(kv_heads, dim, batch, context)) > inside * 1.001:
            us *= self._decode_roof(size) / self._decode_roof(inside)
        # Many queries for each head of the cache are bound by arithmetic.
        arithmetic = 4.0 * heads * dim * batch * context / self._attention_flops
        known = not self._decodes or (dim == 128 and min(self._decodes) <= kv_heads <= max(self._decodes))
        return Time(max(us, arithmetic), not known or (bool(self._decodes) and size > inside * 1.001))

    def _decode_curve_of(self, kv_heads: int, dim: int) -> list[list[float]]:
        """Logarithms of times, by batch and context, that rise along both."""
        measured = sorted({float(size) for batches in self._decodes.values() for size in batches})
        corrections: dict[float, list[tuple[float, _Curve]]] = {}
        for batch in measured:
            parts = {heads: batches[int(batch)] for heads, batches in self._decodes.items() if int(batch) in batches}
            corrections[batch] = _between(parts, kv_heads)
        grid = []
        for row in _DECODE_BATCHES:
            near = _neighbours(measured, math.exp(row)) if measured else []
            times = []
            for column in _DECODE_CONTEXTS:
                size = _decode_bytes(kv_heads, dim, math.exp(row), math.exp(column))
                correction = sum(
                    share * weight * curve.at(math.log(size))
                    for share, batch in near
                    for weight, curve in corrections[batch]
                )
                times.append(math.log(self._decode_roof(size)) + correction)
            grid.append(times)
        return _rising_grid(grid)

    def elementwise(self, op: str, size: float) -> Time:
        """A small operator such as rms_norm or silu_mul that reads and writes `size` bytes in all."""
        if size <= 0:
            return Time(0.0)
        curve = self._smalls.get(op) or self._smalls.get("silu_mul")
        return Time(self._small_roof(size) * math.exp(curve.at(math.log(size)) if curve else 0.0))

    def traffic(self, size: float) -> Time:
        """A small operator that is fused with its neighbours: its bytes alone, at the rate of scattered access."""
        return Time(size / (self.bandwidth * _SCATTERED))

    def all_reduce(self, size: float, gpus: int) -> Time:
        """The sum of `size` bytes over `gpus` of one node: latency, and two passes over the links."""
        if gpus <= 1:
            return Time(0.0)
        link = self.hardware.peaks.link * 1e3 * 0.75  # bytes a microsecond that a ring sustains
        return Time(6.0 + 1.5 * math.log2(gpus) + 2.0 * (gpus - 1) / gpus * size / link)


@lru_cache(maxsize=8)
def of(hardware: Hardware) -> Timing:
    """The operators of a GPU; what was computed of them is kept."""
    return Timing(hardware)


def _width(precision: Precision) -> int:
    return 2 if precision == "bf16" else 1


def _decode_bytes(kv_heads: int, dim: int, batch: float, context: float) -> float:
    return 4.0 * kv_heads * dim * batch * context


def _averaged(points: Sequence[tuple[float, float]]) -> _Curve:
    """A curve through `points`, with the mean of those at the same place."""
    places: dict[float, list[float]] = defaultdict(list)
    for x, y in points:
        places[x].append(y)
    ordered = sorted(places)
    return _Curve(ordered, [sum(places[x]) / len(places[x]) for x in ordered])


def _neighbours(sizes: Sequence[float], size: float) -> list[tuple[float, float]]:
    """The measured sizes around `size`, with weights by logarithmic distance."""
    if size <= sizes[0]:
        return [(1.0, sizes[0])]
    if size >= sizes[-1]:
        return [(1.0, sizes[-1])]
    right = bisect_right(sizes, size)
    low, high = sizes[right - 1], sizes[right]
    share = math.log(size / low) / math.log(high / low)
    return [(1 - share, low), (share, high)] if share else [(1.0, low)]


def _between(curves: Mapping[int, _Curve], size: int) -> list[tuple[float, _Curve]]:
    if not curves:
        return []
    return [(weight, curves[int(near)]) for weight, near in _neighbours([float(key) for key in sorted(curves)], size)]


def _read(curve: _Curve, size: float, roof: Callable[[float], float], extrapolated: bool) -> Time:
    """The time at `size`; beyond the curve's end it grows as the roofline does."""
    x = math.log(size)
    us = math.exp(curve.at(x))
    if x > curve.xs[-1]:
        last = math.exp(curve.xs[-1])
        return Time(us * roof(size) / roof(last), True)
    return Time(us, extrapolated)
