"""A profiling Job: what it is asked, and the output that it leads to.

The Job reads `Asked` from the output ConfigMap and writes an `Output` there.  Pure but for the model that it may read
from a directory; the command that carries it out is in the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec, Hardware
from holdfast.profiler import manifests
from holdfast.profiler.request import Request, Unanswerable, of_spec
from holdfast.profiler.results import Output, Progress, Result
from holdfast.profiler.search import search

ASKED: Final = "request.json"
"""The key of the output ConfigMap that has what is asked."""

Report: TypeAlias = Callable[[Progress], None]
Search: TypeAlias = Callable[["Asked", Request, Report], Result]
"""How configurations are found: predicted, or measured."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a profiling Job is asked.

    deployment  the name of the deployment to write
    """

    name: str
    namespace: str
    uid: str = ""
    attempt: str = ""
    deployment: str
    spec: DynamoGraphDeploymentRequestSpec
    hardware: Hardware

    @property
    def thorough(self) -> bool:
        return self.spec.search_strategy == "thorough"


def rapid(asked: Asked, request: Request, report: Report) -> Result:
    """Search by prediction alone."""
    return search(request, report=report)


def profile(asked: Asked, *, report: Report, search: Search = rapid, model_dir: Path | None = None) -> Output:
    """The output of a Job that succeeds; raises `Unanswerable`."""
    stored = model_dir if model_dir is not None and (model_dir / "config.json").is_file() else None
    request = of_spec(asked.spec, asked.hardware, model=str(stored or ""))
    result = search(asked, request, report)
    found = msgspec.json.encode(result).decode()
    if result.chosen is None:
        return Output(phase="Done", message=result.remedy, profiler_status="success", result=found)
    report(Progress(phase="GeneratingDGD", message="writing the deployment"))
    made = manifests.deployment(
        request, result, name=asked.deployment, spec=asked.spec, namespace=asked.namespace or None
    )
    return Output(
        phase="Done", message=result.why, profiler_status="success", result=found, final_config=documents(made)
    )


def failed(error: Exception, *, phase: str) -> Output:
    """The output of a Job that fails."""
    said = str(error) if isinstance(error, Unanswerable) else f"{type(error).__name__}: {error}"
    return Output(phase=phase, profiler_status="failed", profiler_error=said)


def reported(progress: Progress) -> Output:
    """The output while the Job runs."""
    counted = f"{progress.done} of {progress.total}" if progress.total else ""
    return Output(phase=progress.phase, message=progress.message, progress=counted)


_Plain: Any = type(
    "_Plain",
    (yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper,),
    {"ignore_aliases": lambda self, data: True},
)
"""Writes values in full, wherever they are repeated."""


def documents(made: Iterable[Any]) -> str:
    """Objects as a YAML stream."""
    return yaml.dump_all(made, Dumper=_Plain, sort_keys=False)
