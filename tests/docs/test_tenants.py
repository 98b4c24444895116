"""The page of Tenants describes every state, reason, condition and policy, and its examples are Tenants."""

from __future__ import annotations

import re

import msgspec
import pytest
import yaml
from tests.places import ROOT

from holdfast.kernel.floors import FloorReason
from holdfast.kernel.pod_problems import REMEDIES, PodReason
from holdfast.kinds import checks
from holdfast.kinds.model import FloorStatus
from holdfast.kinds.rustfs import KINDS
from holdfast.kinds.rustfs.pools import PoolLifecycleState, PoolState
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy, Rollout
from holdfast.operators.tenant.pools import TRANSITIONS
from holdfast.operators.tenant.reasons import NEXT, TenantReason
from holdfast.operators.tenant.render import RESTARTED_AT
from holdfast.operators.tenant.security import ACKNOWLEDGED

PAGE = (ROOT / "docs" / "tenants.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def first_column(heading: str) -> list[str]:
    """What the rows of a table are about."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    cells = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_every_state_of_a_pool_is_described() -> None:
    assert sorted(first_column("State")) == sorted(state.value for state in PoolState)


def test_every_state_of_a_pool_that_leaves_is_described() -> None:
    assert first_column("`lifecycleState`") == [state.value for state in PoolLifecycleState]


def test_every_policy_is_described() -> None:
    assert sorted(first_column("Policy")) == sorted(policy.value for policy in PodDeletionPolicy)


def test_the_conditions_are_described_in_their_order() -> None:
    assert first_column("Condition") == [
        "Ready", "Reconciling", "Degraded", "SpecValid", "CredentialsReady", "RpcAuthReady", "KmsReady", "TlsReady",
        "PoolsReady", "WorkloadsReady", "ProvisioningReady", "FloorHeld", "FloorLowered", "NotSupportedYet",
    ]  # fmt: skip


def test_every_reason_is_described_with_its_meaning_and_what_to_do() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", PAGE.split("| Reason |", 1)[1], re.MULTILINE)
    assert rows == [(reason.value, reason.meaning, NEXT.get(reason, "—")) for reason in TenantReason]


def test_the_transitions_are_the_ones_that_are_tested() -> None:
    first = " or ".join(f"`{state}`" for state in TRANSITIONS.start)
    assert f"a pool begins as {first}:" in PAGE
    rows = [
        f"| `{state}` | {', '.join(f'`{next}`' for next in sorted(following))} |"
        for state, following in TRANSITIONS.table.items()
    ]
    assert "\n".join(("| From | To |", "|---|---|", *rows, "")) in PAGE


def test_every_field_of_the_rollout_section_and_of_a_floor_is_described() -> None:
    assert first_column("Field of `spec.rollout`") == [each.encode_name for each in msgspec.structs.fields(Rollout)]
    assert first_column("Field") == [each.encode_name for each in msgspec.structs.fields(FloorStatus)]


def test_every_reason_of_a_floor_is_described() -> None:
    assert first_column("Reason of `FloorHeld`") == [reason.value for reason in FloorReason]


def test_every_problem_of_a_server_that_does_not_pass_is_described() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|$", PAGE.split("| Reason of a server |", 1)[1], re.MULTILINE)
    described = [(reason.value, reason.meaning) for reason in PodReason if reason in REMEDIES]
    assert rows[: len(described)] == described


def test_annotations_are_spelled_as_they_are_read() -> None:
    assert RESTARTED_AT in PAGE
    assert ACKNOWLEDGED in PAGE


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_tenants(example: str) -> None:
    assert checks.problems(KINDS[0], yaml.safe_load(example)) == ()
