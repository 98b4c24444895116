"""The pages of virtual machines describe every reason, phase and code, and their examples are accepted."""

from __future__ import annotations

import re

import yaml
from tests.places import ROOT

from holdfast import kinds
from holdfast.kinds.virtrigaud.clones import ClonePhase
from holdfast.kinds.virtrigaud.images import ImagePhase
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase
from holdfast.kinds.virtrigaud.migrations import MigrationPhase
from holdfast.kinds.virtrigaud.providers import ProviderRuntimePhase
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine import OPERATOR
from holdfast.operators.virtualmachine.reasons import OF_CODE

PAGES = {page.stem: page.read_text() for page in sorted((ROOT / "docs" / "virtualmachines").glob("*.md"))}


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
    assert rows("providers", "`status.runtime.phase`") == [phase.value for phase in ProviderRuntimePhase]


def test_every_code_has_its_reason() -> None:
    documented = re.findall(r"^\| (\w+) \| `(\w+)` \|", PAGES["machines"].split("\n## Errors\n")[1], re.MULTILINE)
    assert documented == [(code.value, reason.value) for code, reason in OF_CODE.items()]


def test_the_examples_are_accepted() -> None:
    for example in re.findall(r"```yaml\n(.*?)```", "\n".join(PAGES.values()), re.DOTALL):
        for document in yaml.safe_load_all(example):
            kinds.decode(document)
