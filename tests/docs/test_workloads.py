"""The page of Workloads tells every reason, phase, condition and field, and its examples are Workloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.places import ROOT

from holdfast import kinds
from holdfast.kernel.floors import FloorReason
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.preview import Phase
from holdfast.kinds import crds
from holdfast.kinds.cloudless import Workload
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.render import RESTARTED_AT
from holdfast.operators.workload.revisions import PROMOTED, REJECTED
from holdfast.operators.workload.validate import rollout_spec
from holdfast.runtime.controllers import PAUSED

PAGE = (ROOT / "docs" / "workloads.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> dict[str, str]:
    """The table below a heading row, by its first column."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `([A-Za-z]\w+)` \| (.+) \|$", table, re.MULTILINE))


def test_every_reason_is_documented_with_its_own_meaning() -> None:
    assert rows("Code") == {reason.value: reason.meaning for reason in (*WorkloadReason, *FloorReason, *PodReason)}


def test_every_phase_is_documented() -> None:
    assert rows("Phase").keys() == {phase.value for phase in Phase}


def test_every_condition_is_documented() -> None:
    types = {
        "Available",
        "Progressing",
        "Completed",
        "Paused",
        "Blocked",
        "Degraded",
        "FloorHeld",
        "FloorLowered",
        "FloorNotGuaranteed",
    }
    assert rows("Condition").keys() == types


def fields(*path: str) -> Iterator[str]:
    schema: dict[str, Any] = crds.schema_of(Workload)
    for name in path:
        schema = schema["properties"][name]
    yield from schema["properties"]


@pytest.mark.parametrize(
    ("path", "apart"),
    [
        (("spec",), set()),
        (("spec", "rollout"), set()),
        (("spec", "rollout", "blueGreen"), set()),
        (("status",), {"conditions", "observedGeneration", "selector"}),
        (("status", "rollout"), set()),
        (("status", "limits"), set()),
    ],
)
def test_every_field_is_documented(path: tuple[str, ...], apart: set[str]) -> None:
    named = {name for code in re.findall(r"`([^`\n]+)`", PAGE) for name in re.findall(r"\w+", code)}
    assert set(fields(*path)) - named - apart == set()


@pytest.mark.parametrize("annotation", [REJECTED, PROMOTED, RESTARTED_AT, PAUSED])
def test_every_annotation_that_people_set_is_documented(annotation: str) -> None:
    assert f"`{annotation}:" in PAGE


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_workloads_that_can_be_had(example: str) -> None:
    found = kinds.decode(yaml.safe_load(example))
    assert isinstance(found, Workload)
    rollout_spec(found)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4
