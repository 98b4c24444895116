"""The pages of virtual machines describe every reason, phase and code, and their examples are accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.places import ROOT

from holdfast import kinds
from holdfast.kinds import crds, virtrigaud
from holdfast.kinds.model import Kind
from holdfast.kinds.virtrigaud.clones import ClonePhase
from holdfast.kinds.virtrigaud.images import ImagePhase
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase
from holdfast.kinds.virtrigaud.migrations import MigrationPhase
from holdfast.kinds.virtrigaud.networks import NetworkAttachmentPhase
from holdfast.kinds.virtrigaud.providers import ProviderRuntimePhase
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine import OPERATOR
from holdfast.operators.virtualmachine.reasons import OF_CODE

PAGES = {page.stem: page.read_text() for page in sorted((ROOT / "docs" / "virtualmachines").glob("*.md"))}


PAGES_OF: dict[str, Kind] = {
    "machines": virtrigaud.machines.KIND,
    "sets": virtrigaud.sets.KIND,
    "snapshots": virtrigaud.snapshots.KIND,
    "clones": virtrigaud.clones.KIND,
    "migrations": virtrigaud.migrations.KIND,
    "providers": virtrigaud.providers.KIND,
    "classes": virtrigaud.classes.KIND,
    "images": virtrigaud.images.KIND,
    "networks": virtrigaud.networks.KIND,
    "placementpolicies": virtrigaud.placement.KIND,
}
"""The pages with a table of every field."""


def field_rows(kind: Kind, part: str) -> list[str]:
    """The table of the fields of a spec, two levels of it, or of a status, from the schema."""
    schema = crds.schema_of(kind.model)["properties"][part]
    return [f"| `{path}` | {said} |" for path, said in _fields(schema, 2 if part == "spec" else 1)]


def _fields(schema: dict[str, Any], levels: int) -> Iterator[tuple[str, str]]:
    for name, inner in schema.get("properties", {}).items():
        default = inner.get("default")
        shown = (
            "" if default is None else f" Default: `{str(default).lower() if default in (True, False) else default}`."
        )
        is_list = inner.get("type") == "array"
        path = f"{name}[]" if is_list else name
        yield path, inner.get("description", "") + shown
        if levels > 1:
            for below, said in _fields(inner.get("items", {}) if is_list else inner, levels - 1):
                yield f"{path}.{below}", said


@pytest.mark.parametrize("page", PAGES_OF)
def test_every_field_is_described_as_the_schema_does(page: str) -> None:
    for title, part in (("Fields", "spec"), ("Status", "status")):
        table = PAGES[page].split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
        written = [line for line in table.splitlines() if line.startswith("| `")][1:]
        assert written == field_rows(PAGES_OF[page], part)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_begins_with_an_example_before_its_tables(page: str) -> None:
    text = PAGES[page]
    assert page == "index" or text.index("```yaml") < text.index("\n| "), "the shortest example comes first"


def rows(page: str, heading: str) -> list[str]:
    """The first column of a table."""
    table = PAGES[page].split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)


def test_every_reason_is_documented_with_its_own_meaning() -> None:
    tables = [text.split("\n## Reasons\n")[1] for text in PAGES.values() if "\n## Reasons\n" in text]
    documented = set(re.findall(r"^\| `([A-Z]\w+)` \| (.+) \|$", "\n".join(tables), re.MULTILINE))
    assert documented == {(reason.value, reason.meaning) for family in OPERATOR.reasons for reason in family}


def test_every_phase_is_described() -> None:
    assert rows("machines", "Phase") == [phase.value for phase in VirtualMachinePhase]
    assert rows("snapshots", "Phase") == [phase.value for phase in SnapshotPhase]
    assert rows("clones", "Phase") == [phase.value for phase in ClonePhase]
    assert rows("images", "Phase") == [phase.value for phase in ImagePhase]
    assert rows("migrations", "Phase") == [phase.value for phase in MigrationPhase]
    assert rows("networks", "Phase") == [phase.value for phase in NetworkAttachmentPhase]
    assert rows("providers", "`status.runtime.phase`") == [phase.value for phase in ProviderRuntimePhase]


def test_every_code_has_its_reason() -> None:
    documented = re.findall(r"^\| (\w+) \| `(\w+)` \|", PAGES["machines"].split("\n## Errors\n")[1], re.MULTILINE)
    assert documented == [(code.value, reason.value) for code, reason in OF_CODE.items()]


def test_the_examples_are_accepted() -> None:
    for example in re.findall(r"```yaml\n(.*?)```", "\n".join(PAGES.values()), re.DOTALL):
        for document in yaml.safe_load_all(example):
            kinds.decode(document)
