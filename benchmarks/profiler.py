"""The profiler: how long `holdfast profile` takes from its start to its answer, and how much memory it needs."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.sizes import sized
from benchmarks.tables import Line, show

SEARCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "32B, 8 GPUs": ("Qwen/Qwen3-32B", "--gpus", "8"),
    "no answer": ("Qwen/Qwen3-32B", "--gpus", "8", "--itl", "1"),
    "671B, 512": ("deepseek-ai/DeepSeek-R1", "--gpus", "512"),
}
_ROUNDS: Final = sized(5, 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """One search: seconds of the whole command, megabytes at its peak, and the configurations that it computed."""

    seconds: float
    megabytes: float
    considered: int


def measure(*args: str) -> Measured:
    times, considered = [], 0
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        command = [sys.executable, "-m", "holdfast", "profile", *args, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - start)
        considered = json.loads(done.stdout)["considered"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Measured(statistics.median(times), peak, considered)


def report() -> None:
    lines: list[Line[Measured]] = [
        Line("Start to answer", "s", lambda measured: measured.seconds, "< 2 s"),
        Line("Memory at its peak", "MB", lambda measured: measured.megabytes, "< 150 MB"),
        Line("Configurations", "", lambda measured: float(measured.considered)),
    ]
    show("The profiler", lines, {name: measure(*args) for name, args in SEARCHES.items()})
