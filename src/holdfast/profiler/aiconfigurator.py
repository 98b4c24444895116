"""aiconfigurator as another source of predictions, for those who have it installed.

It runs in a process of its own, with a deadline, because it takes some twenty seconds and 300 MB.  It returns points
that miss their targets without saying so, so every point is compared with the targets here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from holdfast.profiler.explanations import described
from holdfast.profiler.request import Request, Unanswerable
from holdfast.profiler.results import Engine, Point, Result
from holdfast.profiler.search import RUNNERS_UP, pareto
from holdfast.profiler.targets import meets

VERSION: Final = "0.12.0"
DEADLINE: Final = 300.0
"""Seconds."""

SYSTEMS: Final = {
    "gb200_sxm": "gb200",
    "gb300": "gb300",
    "b300_sxm": "b300_sxm",
    "b200_sxm": "b200_sxm",
    "h200_sxm": "h200_sxm",
    "h100_sxm": "h100_sxm",
    "a100_sxm": "a100_sxm",
    "l40s": "l40s",
    "rtx_pro_6000": "rtx_pro_6000_server",
}
"""What aiconfigurator calls the SKUs that it has data of."""

_PROGRAM: Final = """
import json, sys
import aiconfigurator.cli as aic
answer = aic.cli_default(**json.load(sys.stdin))
rows = {name: frame.to_dict("records") for name, frame in answer.best_configs.items()}
json.dump(rows, sys.stdout, default=str)
"""

Run = Callable[[bytes], tuple[int, bytes, bytes]]
"""Runs the program with its input: exit code, output and errors."""


def _run(given: bytes) -> tuple[int, bytes, bytes]:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], input=given, capture_output=True, timeout=DEADLINE, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, b"", f"it did not answer within {DEADLINE:g} s".encode()
    return done.returncode, done.stdout, done.stderr


def search(request: Request, *, run: Run = _run) -> Result:
    """The answer of aiconfigurator to `request`, for a load of its own choice."""
    traffic, targets, machines = request.traffic, request.targets, request.machines
    system = SYSTEMS.get(machines.sku)
    if system is None:
        raise Unanswerable("spec.hardware.gpuSku", f"aiconfigurator has no data of {machines.sku}; it has {_known()}")
    if targets.e2e_ms is not None or traffic.request_rate is not None or traffic.concurrency is not None:
        raise Unanswerable("spec.sla.e2eLatency", "aiconfigurator answers for ttft and itl alone; leave out the others")
    backend: Literal["sglang", "trtllm", "vllm"] = "vllm" if request.backend == "auto" else request.backend
    asked = {
        "model_path": request.model,
        "total_gpus": machines.gpus,
        "system": system,
        "backend": backend,
        "isl": traffic.isl,
        "osl": traffic.osl,
        "ttft": targets.ttft_ms or 1e6,
        "tpot": targets.itl_ms or 1e6,
    }
    code, output, errors = run(msgspec.json.encode(asked))
    if code:
        raise Unanswerable("--engine", _failure(errors))
    rows = _rows(output)
    points = [point for row in rows if (point := _point(row, request)) is not None]
    good = sorted((point for point in points if point.sla_met), key=lambda point: -point.tokens_per_second)
    front = pareto(points)
    if not good:
        remedy = f"aiconfigurator found no configuration of {len(points)} that meets the targets"
        closest = min(points, key=lambda point: point.itl_ms, default=None)
        return Result(
            backend=backend, chosen=None, closest=closest, pareto=front, remedy=remedy, considered=len(points)
        )
    return Result(
        backend=backend,
        chosen=good[0],
        runners_up=tuple(good[1 : 1 + RUNNERS_UP]),
        pareto=front,
        why=f"{described(good[0])}: the most tokens a second of those that aiconfigurator {VERSION} predicts",
        considered=len(points),
    )


def _known() -> str:
    return ", ".join(SYSTEMS)


def _failure(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines() or ["no message"]
    if "No module named 'aiconfigurator'" in lines[-1]:
        return f"aiconfigurator is not installed; pip install 'holdfast[aiconfigurator]' (version {VERSION})"
    return f"aiconfigurator failed: {lines[-1]}"


def _rows(output: bytes) -> list[Mapping[str, Any]]:
    # What it logs comes before the answer, which is the last line.
    lines = output.strip().splitlines() or [b""]
    try:
        found = msgspec.json.decode(lines[-1], type=dict[str, list[dict[str, Any]]])
    except msgspec.MsgspecError as error:
        raise Unanswerable("--engine", f"aiconfigurator answered in an unknown form: {error}") from None
    return [row for rows in found.values() for row in rows]


def _number(row: Mapping[str, Any], *names: str) -> float | None:
    for name in names:
        try:
            return float(row[name])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _engine(row: Mapping[str, Any], prefix: str, role: Literal["worker", "prefill", "decode"]) -> Engine | None:
    split, batch = _number(row, f"{prefix}tp"), _number(row, f"{prefix}bs")
    if split is None or batch is None:
        return None
    replicas = _number(row, f"{prefix}workers") or 1.0
    return Engine(role=role, tensor_parallel=int(split), replicas=int(replicas), batch=max(1, int(batch)))


def _point(row: Mapping[str, Any], request: Request) -> Point | None:
    engines: Sequence[Engine | None] = [_engine(row, "", "worker")]
    if "(p)tp" in row:
        engines = [_engine(row, "(p)", "prefill"), _engine(row, "(d)", "decode")]
    ttft, itl = _number(row, "ttft"), _number(row, "tpot", "itl")
    rate = _number(row, "seq/s", "request_rate")
    known = [engine for engine in engines if engine is not None]
    if ttft is None or itl is None or itl <= 0 or len(known) != len(engines):
        return None
    used = sum(engine.gpus for engine in known)
    times = max(1, request.machines.gpus // used)
    per_gpu = _number(row, "tokens/s/gpu")
    tokens = per_gpu * used * times if per_gpu is not None else (rate or 0.0) * request.traffic.osl * times
    return Point(
        engines=tuple(msgspec.structs.replace(engine, replicas=engine.replicas * times) for engine in known),
        ttft_ms=ttft,
        itl_ms=itl,
        requests_per_second=tokens / request.traffic.osl,
        tokens_per_second=tokens,
        tokens_per_second_per_gpu=tokens / (used * times),
        tokens_per_second_per_user=1000 / itl,
        sla_met=meets(ttft, itl, request),
    )
