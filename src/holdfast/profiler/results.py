"""What the profiler found: points with their predictions, the choice, and why.

These are the values that travel: from the profiling Job through a ConfigMap to the status of a request, and to
the plots.  This module must not know how they are computed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Precision = Literal["bf16", "fp8"]

SubPhase = Literal[
    "Initializing",
    "SweepingPrefill",
    "SweepingDecode",
    "SelectingConfig",
    "BuildingCurves",
    "GeneratingDGD",
    "Done",
]
"""The phases of a profiling run, in their order."""


class Engine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Workers of one role: `replicas` of them, each over `tensor_parallel` GPUs, with up to `batch` sequences."""

    role: Literal["worker", "prefill", "decode"]
    tensor_parallel: int
    replicas: int
    batch: int
    precision: Precision = "bf16"
    nodes: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor_parallel * self.replicas


class Point(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One configuration, and what is predicted of it.

    tokens_per_second          output tokens of the whole deployment
    tokens_per_second_per_gpu  over the GPUs that it uses
    tokens_per_second_per_user what one reader sees: 1000 / itl
    estimated                  whether the hardware's figures are estimates (a roofline) and not measured
    measured                   whether the figures were measured on a deployment and not predicted
    extrapolated               parts whose shapes or sizes lie beyond the measured tables
    """

    engines: tuple[Engine, ...]
    ttft_ms: float
    itl_ms: float
    requests_per_second: float
    tokens_per_second: float
    tokens_per_second_per_gpu: float
    tokens_per_second_per_user: float
    sla_met: bool
    estimated: bool = False
    measured: bool = False
    extrapolated: tuple[str, ...] = ()

    @property
    def disaggregated(self) -> bool:
        return len(self.engines) == 2

    @property
    def gpus(self) -> int:
        return sum(engine.gpus for engine in self.engines)


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer to a request.

    chosen      the best point that meets the targets; None where none does
    closest     the point that comes nearest to the targets, where none meets them
    runners_up  the next best five
    pareto      the front of tokens a second for a user against tokens a second for a GPU
    why         why this point was chosen, in one sentence, with figures
    remedy      what would have to change where nothing meets the targets
    considered  how many points were computed
    """

    backend: Literal["sglang", "trtllm", "vllm"]
    chosen: Point | None
    closest: Point | None = None
    runners_up: tuple[Point, ...] = ()
    pareto: tuple[Point, ...] = ()
    why: str = ""
    remedy: str = ""
    considered: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How far a profiling run is: `done` of `total` candidates of a phase."""

    phase: SubPhase
    message: str = ""
    done: int = 0
    total: int = 0


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of the output ConfigMap, which the profiling Job writes and the operator reads.

    The names of the keys are upstream's, but ``progress`` and ``result.json``, which are ours.
    `final_config` is a YAML stream: ConfigMaps, then the DynamoGraphDeployment.  `heartbeat` is when the Job last
    reported.
    """

    phase: str = ""
    message: str = ""
    progress: str = ""
    profiler_status: Literal["running", "success", "failed"] = "running"
    profiler_error: str = ""
    final_config: str = msgspec.field(default="", name="final_config.yaml")
    result: str = msgspec.field(default="", name="result.json")
    heartbeat: str = ""
