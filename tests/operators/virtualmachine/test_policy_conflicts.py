"""How two policies contradict each other, and what is said of it to each of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kinds.virtrigaud.placement import PolicyConflict, VMPlacementPolicySpec
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.policies.conflicts import Member, conflicts


def member(name: str, **given: Any) -> Member:
    """A policy with one machine, whose label app is the name of the policy."""
    spec = msgspec.convert(given, VMPlacementPolicySpec)
    return Member(Key("default", name), spec, ((Key("default", f"{name}-0"), {"app": name}),))


def found(own: Member, *others: Member) -> list[PolicyConflict]:
    return list(conflicts(own, others, {}))


def term(app: str, key: str = "host") -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def beside(app: str, key: str = "host") -> dict[str, Any]:
    return {"vmAffinity": {"requiredDuringScheduling": [term(app, key)]}}


def apart(app: str, key: str = "host") -> dict[str, Any]:
    return {"vmAntiAffinity": {"requiredDuringScheduling": [term(app, key)]}}


def liked(app: str) -> dict[str, Any]:
    return {"vmAffinity": {"preferredDuringScheduling": [{"weight": 1, "vmAffinityTerm": term(app)}]}}


FILLED = {"hard": {"clusters": ["c"]}, "resourceConstraints": {"maxCPUUtilization": 50}}

CONFLICTS: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("affinity", {"affinity": beside("b")}, {"antiAffinity": apart("a")}, "critical", "keeps a-0 apart"),
    (
        "affinity",
        {"affinity": beside("b"), "priority": 3},
        {"antiAffinity": apart("a")},
        "high",
        "wants b-0 in the same host",
    ),
    ("soft", {"affinity": liked("b")}, {"antiAffinity": apart("a")}, "low", "preferredDuringScheduling[0]"),
    (
        "hard",
        {"affinity": beside("b", "zone"), "hard": {"zones": ["z1"]}},
        {"hard": {"zones": ["z2"]}},
        "critical",
        "spec.hard.zones of the two have none in common",
    ),
    (
        "security",
        {"affinity": beside("b"), "securityConstraints": {"allowedSecurityGroups": ["x"]}},
        {"securityConstraints": {"allowedSecurityGroups": ["y"]}},
        "high",
        "security groups have none in common",
    ),
    ("resource", FILLED, {"hard": {"clusters": ["c", "d"]}}, "medium", "fill c without a limit"),
]


@pytest.mark.parametrize(("kind", "own", "other", "severity", "said"), CONFLICTS)
def test_a_conflict_is_named_with_what_to_do(
    kind: str, own: dict[str, Any], other: dict[str, Any], severity: str, said: str
) -> None:
    (conflict,) = found(member("a", **own), member("b", **other))
    assert (conflict.policy_name, conflict.conflict_type, conflict.severity) == ("b", kind, severity)
    assert said in (conflict.description or "")
    assert conflict.resolution_suggestion


@pytest.mark.parametrize(("kind", "own", "other"), [each[:3] for each in CONFLICTS if each[0] != "resource"])
def test_a_conflict_is_named_to_the_other_policy_too(kind: str, own: dict[str, Any], other: dict[str, Any]) -> None:
    (conflict,) = found(member("b", **other), member("a", **own))
    assert (conflict.policy_name, conflict.conflict_type) == ("a", kind)
    assert "this policy" in (conflict.description or "") or kind in ("hard", "security")


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ({}, {}),
        ({"affinity": beside("b")}, {"antiAffinity": apart("c")}),
        ({"affinity": beside("b", "zone")}, {"antiAffinity": apart("a", "host")}),
        ({"affinity": beside("b"), "hard": {"zones": ["z1"]}}, {"hard": {"zones": ["z1", "z2"]}}),
        (FILLED, {"hard": {"clusters": ["d"]}}),
        (FILLED, FILLED),
        ({"hard": {"hosts": ["h"], "excludedHosts": ["h"]}, "affinity": beside("b")}, {"antiAffinity": apart("a")}),
    ],
    ids=["nothing", "other machines", "other topologies", "places in common", "other hosts", "equal limits", "invalid"],
)
def test_policies_that_do_not_meet_do_not_contradict_each_other(own: dict[str, Any], other: dict[str, Any]) -> None:
    assert found(member("a", **own), member("b", **other)) == []


def test_policies_without_machines_do_not_contradict_each_other() -> None:
    own, other = member("a", affinity=beside("b")), member("b", antiAffinity=apart("a"))
    assert found(own, Member(other.key, other.spec)) == []
    assert found(Member(own.key, own.spec), other) == []


def test_each_kind_of_conflict_is_named_once_for_each_policy() -> None:
    twice = {"vmAffinity": {"requiredDuringScheduling": [term("b"), term("b", "zone")]}}
    forbids = {"vmAntiAffinity": {"requiredDuringScheduling": [term("a"), term("a", "zone")]}}
    own = member("a", affinity=twice)
    others = [member("b", antiAffinity=forbids), Member(Key("default", "c"), member("b", antiAffinity=forbids).spec)]
    assert [each.policy_name for each in found(own, *others)] == ["b"]
