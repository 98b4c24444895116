"""The page of virtual machines describes every reason, phase and code, and its examples are accepted."""

from __future__ import annotations

import re

import yaml
from tests.places import ROOT

from holdfast import kinds
from holdfast.kinds.virtrigaud.clones import ClonePhase
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase
from holdfast.kinds.virtrigaud.providers import ProviderRuntimePhase
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.operators.virtualmachine import OPERATOR
from holdfast.operators.virtualmachine.reasons import OF_CODE

PAGE = (ROOT / "docs" / "virtualmachines.md").read_text()


def rows(heading: str) -> list[str]:
    """The first column of a table."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)


def test_every_reason_is_documented_with_its_own_meaning() -> None:
    documented = set(re.findall(r"^\| `([A-Z]\w+)` \| (.+) \|$", PAGE.split("\n## Reasons\n")[1], re.MULTILINE))
    assert documented == {(reason.value, reason.meaning) for family in OPERATOR.reasons for reason in family}


def test_every_phase_is_described() -> None:
    assert rows("Phase") == [phase.value for phase in VirtualMachinePhase]
    assert rows("`status.phase`") == [phase.value for phase in SnapshotPhase]
    assert rows("Phase of a VMClone") == [phase.value for phase in ClonePhase]
    assert rows("`status.runtime.phase`") == [phase.value for phase in ProviderRuntimePhase]


def test_every_code_has_its_reason() -> None:
    documented = re.findall(r"^\| (\w+) \| `(\w+)` \|", PAGE.split("\n## Errors\n")[1], re.MULTILINE)
    assert documented == [(code.value, reason.value) for code, reason in OF_CODE.items()]


def test_the_examples_are_accepted() -> None:
    for example in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
        for document in yaml.safe_load_all(example):
            kinds.decode(document)
