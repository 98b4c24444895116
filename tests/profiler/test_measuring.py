"""Measuring: which shapes are measured, and what is said without a GPU."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from holdfast.profiler import hardware, measuring, models


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
    torch.cuda = ModuleType("cuda")  # type: ignore[attr-defined]
    torch.cuda.is_available = lambda: False
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(measuring, "import_module", importlib.import_module)
    with pytest.raises(measuring.Unavailable, match="no CUDA device"):
        measuring.measure([])
