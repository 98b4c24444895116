"""What is asked of the profiler: a model, the traffic, the targets, the hardware.

`of_spec` reads the spec of a DynamoGraphDeploymentRequest and the hardware that was given or discovered.
A request that cannot be answered is an `Unanswerable`, with the field that is wrong and what to write.
This module must not know how configurations are searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from holdfast.profiler.results import Precision

if TYPE_CHECKING:  # predictions start without the kinds
    from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec, Hardware

Backend = Literal["auto", "sglang", "trtllm", "vllm"]


class Unanswerable(Exception):
    """The request is wrong: `field` is its path in the spec, `message` says what to write."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class Machines(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The GPUs to plan for.

    sku        such as ``h200_sxm``
    gpus       how many may be used in all
    per_node   how many are in one node
    memory_mib of one GPU; the table's figure where it is None
    """

    sku: str
    gpus: int
    per_node: int = 8
    memory_mib: float | None = None


class Traffic(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The traffic to plan for: lengths in tokens, and at most one of concurrency and request rate (a second)."""

    isl: int = 4000
    osl: int = 1000
    concurrency: float | None = None
    request_rate: float | None = None


class Targets(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How fast answers must be, in milliseconds: TTFT and ITL, or the whole answer alone."""

    ttft_ms: float | None = 2000.0
    itl_ms: float | None = 30.0
    e2e_ms: float | None = None
    favour: Literal["latency", "throughput"] | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All that the profiler is asked.

    model      a name of the catalogue, or the path of a ``config.json`` or of the directory that has it
    planner    whether a planner will scale the workers: a disaggregated deployment with one worker each
    precision  of the weights; that of the published model where it is None
    """

    model: str
    backend: Backend = "auto"
    machines: Machines
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    targets: Targets = msgspec.field(default_factory=Targets)
    planner: bool = False
    precision: Precision | None = None


def of_spec(spec: DynamoGraphDeploymentRequestSpec, hardware: Hardware, *, model: str = "") -> Request:
    """What a request asks, on hardware that was given or discovered; `model` is a directory that has the model."""
    from holdfast.kinds.nvidia.requests import ServiceLevel, WorkloadShape

    if hardware.gpu_sku is None:
        raise Unanswerable("spec.hardware.gpuSku", "the GPUs are not known; write their SKU")
    if hardware.total_gpus is None:
        raise Unanswerable("spec.hardware.totalGpus", "write how many GPUs may be used")
    workload, sla = spec.workload or WorkloadShape(), spec.sla or ServiceLevel()
    traffic = {"isl": workload.isl, "osl": workload.osl}
    whole = sla.e2e_latency is not None
    limits = {"ttft_ms": sla.ttft, "itl_ms": sla.itl}
    return Request(
        model=model or spec.model,
        backend=spec.backend or "auto",
        machines=Machines(
            sku=hardware.gpu_sku,
            gpus=hardware.total_gpus,
            per_node=hardware.num_gpus_per_node or hardware.total_gpus,
            memory_mib=hardware.vram_mb,
        ),
        traffic=Traffic(
            **{name: value for name, value in traffic.items() if value is not None},
            concurrency=workload.concurrency,
            request_rate=workload.request_rate,
        ),
        targets=Targets(ttft_ms=None, itl_ms=None, e2e_ms=sla.e2e_latency, favour=sla.optimization_type)
        if whole
        else Targets(
            **{name: value for name, value in limits.items() if value is not None}, favour=sla.optimization_type
        ),
        planner=spec.features is not None and spec.features.planner is not None,
    )
