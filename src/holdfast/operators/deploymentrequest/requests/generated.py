"""What the profiler has written, as the status has it: the choice, the figures, and the deployment.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from holdfast.kinds.nvidia import deployments
from holdfast.kinds.nvidia.requests import (
    DynamoGraphDeploymentRequest,
    ProfilingCandidate,
    ProfilingProgress,
    ProfilingResults,
)
from holdfast.operators.deploymentrequest.requests import names
from holdfast.profiler.results import Output, Point, Result

CANDIDATES: Final = 6
"""How many configurations a status lists: the choice, and the next best five."""

FRONT: Final = 24
"""How many points of the front a status lists."""

_COUNTED: Final = re.compile(r"(\d{1,9}) of (\d{1,9})")


class Unusable(Exception):
    """The output has nothing that can be deployed; the message says what is wrong with it."""


def progress(text: str) -> ProfilingProgress | None:
    """How far a phase is, as the profiler writes it: ``3 of 7``."""
    counted = _COUNTED.fullmatch(text.strip())
    return None if counted is None else ProfilingProgress(done=int(counted[1]), total=int(counted[2]))


def results(request: DynamoGraphDeploymentRequest, output: Output) -> ProfilingResults:
    """The results of a profiler that succeeded; without a configuration where none meets the targets."""
    result = _result(output)
    best = None if result is None else result.chosen or result.closest
    config = None if result is not None and result.chosen is None else _manifest(request, output)
    if result is None or best is None:
        return ProfilingResults(selected_config=config)
    return ProfilingResults(
        selected_config=config,
        predicted_ttft=_figure(best.ttft_ms),
        predicted_itl=_figure(best.itl_ms),
        sla_met=best.sla_met,
        why=result.why or None,
        remedy=result.remedy or None,
        estimated=best.estimated or None,
        measured=best.measured or None,
        considered=result.considered or None,
        candidates=tuple(_candidate(point) for point in (best, *result.runners_up)[:CANDIDATES]),
        pareto=tuple(msgspec.to_builtins(_candidate(point)) for point in result.pareto[:FRONT]),
    )


def _result(output: Output) -> Result | None:
    if not output.result:
        return None
    try:
        return msgspec.json.decode(output.result, type=Result)
    except msgspec.MsgspecError as error:
        raise Unusable(f"its key result.json cannot be read: {error}") from None


def _candidate(point: Point) -> ProfilingCandidate:
    return ProfilingCandidate(
        config={"engines": msgspec.to_builtins(point.engines)},
        predicted_ttft=_figure(point.ttft_ms),
        predicted_itl=_figure(point.itl_ms),
        total_gpus=point.gpus,
        tokens_per_second_per_gpu=_figure(point.tokens_per_second_per_gpu),
        tokens_per_second_per_user=_figure(point.tokens_per_second_per_user),
        sla_met=point.sla_met,
    )


def _figure(value: float) -> float:
    """A figure for people, to three places."""
    return round(value, 3)


# --- the deployment


def _manifest(request: DynamoGraphDeploymentRequest, output: Output) -> dict[str, Any]:
    """The deployment as it is applied: with its name, and what the request overrides."""
    found = [each for each in documents(output) if each.get("kind") == deployments.KIND.name]
    if len(found) != 1:
        raise Unusable(
            f"its key final_config.yaml has {len(found)} objects of kind {deployments.KIND.name}; it must have one"
        )
    overrides = request.spec.overrides.dgd if request.spec.overrides is not None else None
    manifest = overlaid(found[0], overrides or {})
    if not isinstance(manifest.get("spec"), dict):
        raise Unusable("its deployment has no spec")
    metadata = {
        key: value
        for key, value in (manifest.get("metadata") or {}).items()
        if key in ("labels", "annotations") and isinstance(value, dict)
    }
    return {
        "apiVersion": found[0].get("apiVersion") or f"{deployments.KIND.group}/{deployments.KIND.version}",
        "kind": deployments.KIND.name,
        "metadata": {**metadata, "name": names.deployment(request)},
        "spec": manifest["spec"],
    }


def config_maps(output: Output) -> tuple[dict[str, Any], ...]:
    """The ConfigMaps that belong to the deployment."""
    try:
        found = [each for each in documents(output) if each.get("kind") == "ConfigMap"]
    except Unusable:
        return ()
    return tuple(each for each in found if isinstance((each.get("metadata") or {}).get("name"), str))


def documents(output: Output) -> Iterator[dict[str, Any]]:
    """The objects of the output.  Aliases are refused: a short text could be a huge object with them."""
    text = output.final_config
    try:
        if any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, Loader=yaml.CSafeLoader)):
            raise Unusable("its key final_config.yaml has aliases; write the values")
        for each in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if isinstance(each, dict):
                yield each
    except yaml.YAMLError as error:
        raise Unusable(f"its key final_config.yaml is not YAML: {' '.join(str(error).split())}") from None


def overlaid(base: Any, over: Any) -> Any:
    """A value with another laid over it: objects by their members, lists of named items by their names.

    >>> overlaid({"a": 1, "b": [{"name": "x", "n": 1}]}, {"b": [{"name": "x", "n": 2}]})
    {'a': 1, 'b': [{'name': 'x', 'n': 2}]}
    """
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        kept = {key: overlaid(value, over[key]) if key in over else value for key, value in base.items()}
        return kept | {key: value for key, value in over.items() if key not in base}
    if _is_named(base) and _is_named(over):
        by_name = {each["name"]: each for each in over}
        kept_items = [overlaid(each, by_name.pop(each["name"], {})) for each in base]
        return [*kept_items, *by_name.values()]
    return over


def _is_named(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in value)
    )
