"""aiconfigurator: what it is asked, and that its answers are compared with the targets."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast.profiler import aiconfigurator
from holdfast.profiler.request import Machines, Request, Targets, Traffic, Unanswerable

REQUEST = Request(model="Qwen/Qwen3-32B", machines=Machines(sku="gb200_sxm", gpus=8))
ROWS: dict[str, list[dict[str, Any]]] = {
    "agg": [
        {"tp": 4, "bs": 96, "ttft": 300.0, "tpot": 28.0, "tokens/s/gpu": 890.0, "seq/s": 3.5},
        {"tp": 2, "bs": 64, "ttft": 300.0, "tpot": 35.9, "tokens/s/gpu": 990.0, "seq/s": 3.5},
    ],
    "disagg": [
        {
            "(p)tp": 1,
            "(p)bs": 1,
            "(p)workers": 4,
            "(d)tp": 4,
            "(d)bs": 224,
            "(d)workers": 1,
            "ttft": 778.0,
            "tpot": 28.6,
            "tokens/s/gpu": 902.0,
        },
    ],
}


def answering(rows: Any, code: int = 0, errors: bytes = b"") -> aiconfigurator.Run:
    return lambda given: (code, b"a line of a log\n" + json.dumps(rows).encode(), errors)


def test_it_is_asked_by_its_own_names() -> None:
    asked: list[dict[str, Any]] = []

    def run(given: bytes) -> tuple[int, bytes, bytes]:
        asked.append(json.loads(given))
        return 0, json.dumps(ROWS).encode(), b""

    aiconfigurator.search(REQUEST, run=run)
    assert asked[0]["system"] == "gb200"
    assert (asked[0]["ttft"], asked[0]["tpot"]) == (2000, 30)


def test_the_best_point_within_the_targets_is_chosen() -> None:
    result = aiconfigurator.search(REQUEST, run=answering(ROWS))
    assert result.chosen is not None
    assert [(engine.role, engine.tensor_parallel, engine.replicas) for engine in result.chosen.engines] == [
        ("prefill", 1, 4),
        ("decode", 4, 1),
    ]
    assert [point.itl_ms for point in result.runners_up] == [28.0]
    assert result.considered == 3


def test_a_point_that_misses_the_targets_is_not_believed() -> None:
    request = msgspec.structs.replace(REQUEST, targets=Targets(itl_ms=1))
    result = aiconfigurator.search(request, run=answering(ROWS))
    assert result.chosen is None
    assert result.closest is not None
    assert result.closest.itl_ms == 28.0
    assert "meets the targets" in result.remedy


@pytest.mark.parametrize(
    ("request_", "run", "complaint"),
    [
        (msgspec.structs.replace(REQUEST, machines=Machines(sku="t4", gpus=1)), answering(ROWS), "no data of t4"),
        (msgspec.structs.replace(REQUEST, traffic=Traffic(request_rate=1)), answering(ROWS), "ttft and itl alone"),
        (REQUEST, answering(ROWS, 1, b"NoFeasibleConfigError: none"), "failed: NoFeasibleConfigError"),
        (REQUEST, answering(ROWS, 1, b"No module named 'aiconfigurator'"), "is not installed; pip install"),
        (REQUEST, answering([1]), "unknown form"),
    ],
)
def test_what_it_cannot_answer_is_said(request_: Request, run: aiconfigurator.Run, complaint: str) -> None:
    with pytest.raises(Unanswerable, match=complaint):
        aiconfigurator.search(request_, run=run)
