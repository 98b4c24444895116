"""What the commands of ``holdfast profile`` have in common: the GPU, and errors of the profiler as bad input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, InputError
from holdfast.profiler import hardware
from holdfast.profiler.hardware import Hardware
from holdfast.profiler.request import Unanswerable

OPTIONS: Final[Mapping[str, str]] = {
    "spec.model": "MODEL",
    "spec.workload.isl": "--isl",
    "spec.workload.osl": "--osl",
    "spec.workload.concurrency": "--concurrency",
    "spec.workload.requestRate": "--rate",
    "spec.sla.ttft": "--ttft",
    "spec.sla.itl": "--itl",
    "spec.sla.e2eLatency": "--e2e",
    "spec.hardware.totalGpus": "--gpus",
    "spec.hardware.numGpusPerNode": "--per-node",
    "spec.hardware.vramMb": "--memory-mib",
    "spec.hardware.gpuSku": "--gpu",
    "precision": "--precision",
}
"""The option of each field of a request."""

precision = click.option(
    "--precision", type=click.Choice(["bf16", "fp8"]), help="Precision of the weights; the published one by default."
)
table = click.option(
    "--table",
    type=PathType(),
    help="Operators that `holdfast profile measure` measured on such a GPU.",
)


@contextmanager
def complaints() -> Iterator[None]:
    """A request that cannot be answered is bad input: its option, and what to write."""
    try:
        yield
    except Unanswerable as error:
        raise InputError(Complaint(path=OPTIONS.get(error.field, error.field), message=error.message)) from None


def gpu(sku: str, path: Path | None) -> Hardware:
    return hardware.find(sku, table=path)


def figures(value: Any) -> Any:
    """`value` with its figures rounded to what they are worth."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: figures(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [figures(item) for item in value]
    return value
