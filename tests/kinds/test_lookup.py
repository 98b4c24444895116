"""Finding a kind by what an object or a person says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from holdfast import kinds
from holdfast.kinds import _names

DESIGNED = {
    "grove.io/v1alpha1": {"PodCliqueSet", "PodClique", "PodCliqueScalingGroup"},
    "scheduler.grove.io/v1alpha1": {"PodGang"},
    "rustfs.com/v1alpha1": {"Tenant"},
    "infra.virtrigaud.io/v1beta1": {
        "VirtualMachine",
        "Provider",
        "VMMigration",
        "VMSet",
        "VMPlacementPolicy",
        "VMSnapshot",
        "VMClass",
        "VMImage",
        "VMClone",
        "VMNetworkAttachment",
    },
    "cloudless.io/v1": {"Workload"},
    "nvidia.com/v1beta1": {
        "DynamoGraphDeploymentRequest",
        "DynamoGraphDeployment",
        "DynamoGraphDeploymentScalingAdapter",
    },
    "nvidia.com/v1alpha1": {"DynamoModel"},
}


def test_all_kinds_of_the_five_systems_are_there_and_no_others() -> None:
    found: dict[str, set[str]] = {}
    for kind in kinds.ALL:
        found.setdefault(kind.api_version, set()).add(kind.name)
    assert found == DESIGNED


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_a_kind_is_found_by_each_of_its_names(kind: kinds.Kind) -> None:
    assert kinds.find(kind.api_version, kind.name) is kind
    for name in (kind.name, kind.name.lower(), kind.plural, kind.plural.upper(), kind.crd_name, *kind.short_names):
        assert kinds.by_name(name) is kind


def test_no_two_kinds_share_a_name() -> None:
    shared = Counter(name for kind in kinds.ALL for name in _names(kind))
    assert [name for name, count in shared.items() if count > 1] == []


def test_importing_the_package_declares_no_kind_before_one_is_asked_for() -> None:
    script = (
        "import sys; from holdfast import kinds; kinds.find('cloudless.io/v1', 'Workload'); "
        "print(*(module for module in kinds._MODULES.values() if 'holdfast.kinds' + module in sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, text=True).stdout
    assert loaded.split() == [".cloudless"]


def test_what_is_not_there_is_not_found() -> None:
    assert kinds.find("cloudless.io/v2", "Workload") is None
    assert kinds.by_name("pod") is None


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        (
            {"apiVersion": "cloudless/v1", "kind": "Workload"},
            "apiVersion: 'cloudless/v1': a Kubernetes API group needs a dot; write cloudless.io/v1",
        ),
        (
            {"apiVersion": "cloudless.io/v2", "kind": "Workload"},
            "apiVersion: Workload is not in cloudless.io/v2; write cloudless.io/v1",
        ),
        ({"kind": "Workload"}, "apiVersion: is required; write cloudless.io/v1"),
        ({"apiVersion": "cloudless.io/v1", "kind": "Wrokload"}, "kind: 'Wrokload' is not a known kind; write Workload"),
        (
            {"apiVersion": "cloudless.io/v1", "kind": "workloads"},
            "kind: 'workloads' is not a known kind; write Workload",
        ),
        ({"apiVersion": "nvidia.com/v1beta1", "kind": "dgdr"}, "write DynamoGraphDeploymentRequest"),
        ({"apiVersion": "v1", "kind": "Pod"}, "kind: 'Pod' is not a known kind; known kinds: PodCliqueSet, "),
        ({"apiVersion": "cloudless.io/v1"}, "kind: is required; write one of PodCliqueSet, "),
        ([], "$: a document must be a mapping, not list; begin with apiVersion:"),
        (None, "$: a document must be a mapping, not NoneType; begin with apiVersion:"),
    ],
)
def test_a_document_of_no_known_kind_is_told_what_to_write(doc: Any, said: str) -> None:
    with pytest.raises(kinds.UnknownKind) as refused:
        kinds.decode(doc)
    assert said in str(refused.value)
