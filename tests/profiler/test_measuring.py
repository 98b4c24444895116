"""Measuring: which shapes are measured, and what is said without a GPU."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from holdfast.profiler import hardware, measuring, models
from holdfast.profiler.timing import Timing


def test_the_shapes_of_the_packaged_table_are_those_of_its_models() -> None:
    table = hardware.find("h200_sxm").table
    assert table is not None
    names = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B")
    products, attentions = measuring.shapes(models.find(name) for name in names)
    assert {row[1:3] for row in table.gemm_bf16} == set(products)
    assert {row[:3] for row in table.attention_prefill} == set(attentions)


def test_without_torch_or_a_gpu_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(measuring, "import_module", absent)
    with pytest.raises(measuring.Unavailable, match="torch is not installed"):
        measuring.measure([])
    torch = ModuleType("torch")
    vars(torch)["cuda"] = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(measuring, "import_module", importlib.import_module)
    with pytest.raises(measuring.Unavailable, match="no CUDA device"):
        measuring.measure([])


class Version(str):
    """A text of a class of its own, as torch has it, which JSON encoders refuse."""


class FakeTorch(MagicMock):
    """As much of torch as is called; a product of more than ten million weights does not fit its GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.__version__ = Version("2.11.0")
        self.cuda.is_available.return_value = True
        self.cuda.get_device_capability.return_value = (9, 0)
        self.cuda.get_device_name.return_value = "Fake GPU"
        self.cuda.get_device_properties.return_value.multi_processor_count = 132
        self.cuda.OutOfMemoryError = MemoryError
        self.cuda.Event.side_effect = lambda **_: MagicMock(elapsed_time=lambda _end: 2.0)
        self.randn = self._randn

    def _randn(self, *shape: int, **_: Any) -> Any:
        if math.prod(shape) > 10_000_000 and len(shape) == 2:
            raise MemoryError
        return MagicMock(shape=shape)

    def _get_child_mock(self, /, **kw: Any) -> MagicMock:
        return MagicMock(**kw)


def test_a_measured_table_has_every_operator_and_can_be_predicted_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch = FakeTorch()
    monkeypatch.setattr(measuring, "import_module", lambda name: torch)
    for sizes in ("PROMPTS", "BATCHES", "CONTEXTS"):
        monkeypatch.setattr(measuring, sizes, getattr(measuring, sizes)[-2:])
    said: list[str] = []
    table = measuring.measure([models.find("Qwen/Qwen3-0.6B")], tokens=(1, 16, 4096), report=said.append)
    assert len(said) == 5
    assert {row[0] for row in table.gemm_bf16} == {1, 16, 4096}
    assert {row[0] for row in table.gemm_fp8} == {16, 4096}
    assert (1, 6144, 1024) in {row[:3] for row in table.gemm_bf16}
    assert all(n * k <= 10_000_000 for _, n, k, _ in table.gemm_bf16)
    assert {row[:3] for row in table.attention_decode} == {row[:3] for row in table.attention_prefill}
    assert {small.op for small in table.small} == {"rms_norm", "silu_mul"}
    path = tmp_path / "table.json"
    path.write_bytes(msgspec.json.encode(table))
    timing = Timing(hardware.find("l40s", table=path))
    assert timing.gemm(16, 6144, 1024).us > 0
