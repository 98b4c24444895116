"""GPUs: their published peaks, and tables of operators that were measured on them.

`find` gives the hardware of a SKU.  Where a measured table is in the package or given by the user, times come from it;
otherwise they are estimates from the published peaks, and every answer says so.  This module must not know any model.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from holdfast.profiler.request import Unanswerable


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """What the vendor publishes of a GPU.

    memory_mib  memory of one GPU
    bandwidth   of that memory, in TB/s
    bf16, fp8   dense products, in TFLOP/s; a GPU without fp8 has None, one without bf16 the figure of fp16
    link        between two GPUs of a node, in GB/s and one direction
    cache_mib   last-level cache
    """

    memory_mib: int
    bandwidth: float
    bf16: float
    fp8: float | None
    link: float
    cache_mib: int


def _peaks(gib: float, bandwidth: float, bf16: float, fp8: float | None, link: float, cache_mib: int) -> Peaks:
    return Peaks(memory_mib=int(gib * 1024), bandwidth=bandwidth, bf16=bf16, fp8=fp8, link=link, cache_mib=cache_mib)


PEAKS: Final = {
    "gb300": _peaks(277, 8.0, 2500, 5000, 900, 126),
    "gb200_sxm": _peaks(185, 8.0, 2500, 5000, 900, 126),
    "gb10": _peaks(119, 0.273, 125, 250, 25, 24),
    "b300_sxm": _peaks(268, 8.0, 2250, 4500, 900, 126),
    "b200_sxm": _peaks(178, 8.0, 2250, 4500, 900, 126),
    "h200_sxm": _peaks(140, 4.8, 989, 1979, 450, 50),
    "h100_sxm": _peaks(79.6, 3.35, 989, 1979, 450, 50),
    "h100_pcie": _peaks(79.6, 2.0, 756, 1513, 64, 50),
    "a100_sxm": _peaks(80, 2.039, 312, None, 300, 40),
    "a100_pcie": _peaks(80, 1.935, 312, None, 32, 40),
    "a30": _peaks(24, 0.933, 165, None, 32, 24),
    "l40s": _peaks(45, 0.864, 362, 733, 32, 96),
    "l40": _peaks(45, 0.864, 181, 362, 32, 96),
    "l4": _peaks(22.5, 0.3, 121, 242, 32, 48),
    "rtx_pro_6000": _peaks(95.6, 1.597, 503, 1007, 64, 128),
    "v100_sxm": _peaks(32, 0.9, 125, None, 150, 6),
    "v100_pcie": _peaks(32, 0.9, 112, None, 16, 6),
    "t4": _peaks(15, 0.32, 65, None, 16, 4),
    "mi200": _peaks(128, 3.277, 362, None, 200, 16),
    "mi300": _peaks(192, 5.3, 1307, 2615, 448, 256),
}
"""Published peaks by SKU, as ``spec.hardware.gpuSku`` spells them; memory is what a driver offers."""


class Copy(msgspec.Struct, frozen=True):
    op: str
    bytes: int
    us: float


class SmallOperator(msgspec.Struct, frozen=True):
    op: str
    rows: int
    width: int
    us: float


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Operators that were measured on one GPU, in microseconds a call; ``holdfast profile measure`` writes it.

    gemm_*             m tokens, n outputs, k inputs, us
    attention_prefill  q heads, kv heads, head dim, tokens, us
    attention_decode   q heads, kv heads, head dim, batch, context, us
    """

    device: str
    unit: str = "microseconds"
    torch: str = ""
    gemm_bf16: tuple[tuple[int, int, int, float], ...]
    gemm_fp8: tuple[tuple[int, int, int, float], ...] = ()
    attention_prefill: tuple[tuple[int, int, int, int, float], ...] = ()
    attention_decode: tuple[tuple[int, int, int, int, int, float], ...] = ()
    memory: tuple[Copy, ...] = ()
    small: tuple[SmallOperator, ...] = ()


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU to plan for: its peaks, and what was measured on it; `table` is None where all is estimated."""

    sku: str
    peaks: Peaks
    table: Table | None = None

    @property
    def estimated(self) -> bool:
        return self.table is None


MEASURED: Final = ("h200_sxm",)
"""The SKUs whose tables are in the package."""


def find(sku: str, *, table: Path | None = None) -> Hardware:
    """The hardware of `sku`, with the table of the package or of a file; `Unanswerable` where it is not known."""
    known = sku.strip().lower().replace("-", "_")
    if known not in PEAKS:
        near = difflib.get_close_matches(known, PEAKS, n=3, cutoff=0.3)
        hint = f"write {' or '.join(near)}" if near else f"known are {', '.join(PEAKS)}"
        raise Unanswerable("spec.hardware.gpuSku", f"the GPU {sku!r} is not known; {hint}")
    if table is not None:
        return Hardware(sku=known, peaks=PEAKS[known], table=read(table))
    return _packaged(known)


@cache
def _packaged(sku: str) -> Hardware:
    if sku not in MEASURED:
        return Hardware(sku=sku, peaks=PEAKS[sku])
    text = resources.files("holdfast.profiler").joinpath(f"data/{sku}.json").read_bytes()
    return Hardware(sku=sku, peaks=PEAKS[sku], table=msgspec.json.decode(text, type=Table))


def read(path: Path) -> Table:
    """A table that ``holdfast profile measure`` wrote."""
    try:
        table = msgspec.json.decode(path.read_bytes(), type=Table)
    except OSError as error:
        raise Unanswerable("--table", f"{path} cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise Unanswerable("--table", f"{path} is not a table of operators: {error}") from None
    rows = (*table.gemm_bf16, *table.gemm_fp8, *table.attention_prefill, *table.attention_decode)
    if not table.gemm_bf16 or table.unit != "microseconds" or any(value <= 0 for row in rows for value in row):
        raise Unanswerable("--table", f"{path} must have rows gemm_bf16, all figures positive, in microseconds")
    return table
