"""The kinds of inference gangs: the seed's statuses, how they are served, what they refuse and where."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from tests.kinds.structural import crd_problems
from tests.kinds.values import rules_of, value_at, with_value, written

from holdfast.kinds import checks, grove, grove_scheduler
from holdfast.kinds.crds import crd_of
from holdfast.kinds.grove import cliques, groups, sets, sharing
from holdfast.kinds.model import Kind

KINDS = (*grove.KINDS, *grove_scheduler.KINDS)


def podcliqueset(**status: Any) -> dict[str, Any]:
    """A set like the seed's: a frontend that stands alone, prefill and decode that scale."""
    cliques = ("frontend", "prefill", "decode")
    doc: dict[str, Any] = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "my-pcs"},
        "spec": {
            "replicas": 3,
            "template": {
                "cliques": [
                    {"name": name, "spec": {"roleName": name, "replicas": 2, "podSpec": {"containers": []}}}
                    for name in cliques
                ],
                "podCliqueScalingGroups": [{"name": name, "cliqueNames": [name]} for name in cliques[1:]],
            },
        },
    }
    return {**doc, "status": status} if status else doc


# --- the statuses of the seed --------------------------------------------------


def parts(*replicas: int, of: tuple[str, ...]) -> list[str]:
    return [f"my-pcs-{replica}-{name}" for replica in replicas for name in of]


def day(time: str) -> str:
    return f"2025-01-15T{time}Z"


NEW = "xyz789ghi012"
GROUPS = ("prefill", "decode")

STATES: Mapping[str, Mapping[str, Any]] = {
    # name: generation, available and updated replicas, hash, updated parts, replica at work, times
    "1 steady": {
        "observedGeneration": 42, "availableReplicas": 3, "updatedReplicas": 3, "hash": "abc123def456",
        "started": "10:00:00", "ended": "10:15:00",
        "cliques": parts(0, 1, 2, of=("frontend",)), "groups": parts(0, 1, 2, of=GROUPS), "working": None,
    },
    "2 just started": {
        "availableReplicas": 3, "updatedReplicas": 0, "cliques": [], "groups": [], "working": None,
    },
    "3 first replica selected": {
        "availableReplicas": 3, "updatedReplicas": 0, "cliques": [], "groups": [], "working": (0, "11:00:05"),
    },
    "4 first replica partly updated": {
        "availableReplicas": 2, "updatedReplicas": 0,
        "cliques": parts(0, of=("frontend",)), "groups": parts(0, of=("prefill",)), "working": (0, "11:00:05"),
    },
    "5 second replica selected": {
        "availableReplicas": 3, "updatedReplicas": 1,
        "cliques": parts(0, of=("frontend",)), "groups": parts(0, of=GROUPS), "working": (1, "11:05:00"),
    },
    "6 last replica selected": {
        "availableReplicas": 3, "updatedReplicas": 2,
        "cliques": parts(0, 1, of=("frontend",)), "groups": parts(0, 1, of=GROUPS), "working": (2, "11:10:00"),
    },
    "7 completed": {
        "availableReplicas": 3, "updatedReplicas": 3, "ended": "11:15:00",
        "cliques": parts(0, 1, 2, of=("frontend",)), "groups": parts(0, 1, 2, of=GROUPS), "working": None,
    },
}  # fmt: skip


def seed_status(state: Mapping[str, Any]) -> dict[str, Any]:
    """The status block of a state, with the nulls and empty lists that the seed writes out."""
    working = state["working"]
    return {
        "observedGeneration": state.get("observedGeneration", 43),
        "replicas": 3,
        "availableReplicas": state["availableReplicas"],
        "updatedReplicas": state["updatedReplicas"],
        "currentGenerationHash": state.get("hash", NEW),
        "rollingUpdateProgress": {
            "updateStartedAt": day(state.get("started", "11:00:00")),
            "updateEndedAt": day(state["ended"]) if "ended" in state else None,
            "updatedPodCliques": state["cliques"],
            "updatedPodCliqueScalingGroups": state["groups"],
            "currentlyUpdating": working and {"replicaIndex": working[0], "updateStartedAt": day(working[1])},
        },
    }


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item is not None and item != []}
    return value


@pytest.mark.parametrize("name", STATES)
def test_a_status_of_the_seed_is_read_whole_and_written_back_without_its_empty_fields(name: str) -> None:
    doc = podcliqueset(**seed_status(STATES[name]))
    read = msgspec.json.decode(msgspec.json.encode(doc), type=grove.PodCliqueSet)
    assert written(read) == without_empty(doc)
    assert checks.decode(sets.KIND, doc) == read


@pytest.mark.parametrize("name", STATES)
def test_a_status_of_the_seed_says_whether_an_update_runs_and_on_which_replica(name: str) -> None:
    state = STATES[name]
    status = msgspec.convert(seed_status(state), sets.PodCliqueSetStatus)
    progress = status.rolling_update_progress
    assert progress is not None
    assert (progress.update_ended_at is None) == ("ended" not in state)
    assert progress.updated_pod_cliques == tuple(state["cliques"])
    assert progress.updated_pod_clique_scaling_groups == tuple(state["groups"])
    updating = progress.currently_updating
    assert (updating and (updating.replica_index, updating.update_started_at)) == (
        state["working"] and (state["working"][0], day(state["working"][1]))
    )


def test_a_zero_is_a_value_and_is_written() -> None:
    status = sets.PodCliqueSetStatus(updated_replicas=0)
    assert written(status) == {"updatedReplicas": 0}


def test_an_update_is_told_by_name_and_by_number_side_by_side() -> None:
    numbers = {
        "updateStartedAt": day("11:00:00"),
        "updatedPodCliquesCount": 1,
        "totalPodCliquesCount": 3,
        "updatedPodCliqueScalingGroupsCount": 2,
        "totalPodCliqueScalingGroupsCount": 6,
        "currentlyUpdating": [{"replicaIndex": 1, "updateStartedAt": day("11:05:00")}],
    }
    status = {**seed_status(STATES["5 second replica selected"]), "updateProgress": numbers}
    read = msgspec.convert(status, sets.PodCliqueSetStatus)
    assert written(read) == without_empty(status)


CONDITION = {
    "type": "MinAvailableBreached",
    "status": "Unknown",
    "lastTransitionTime": day("11:00:00"),
    "reason": "UpdateInProgress",
    "message": "an update runs",
    "observedGeneration": 3,
}
ERROR = {"code": "ERR_SYNC", "description": "no answer", "observedAt": day("11:00:00")}
FLOOR = {"required": 1, "available": 1, "most": 2, "lowest": 1, "lowered": 1}

WHOLE_STATUSES: list[tuple[type[msgspec.Struct], dict[str, Any]]] = [
    (
        cliques.PodCliqueStatus,
        {
            "observedGeneration": 3,
            "replicas": 2,
            "readyReplicas": 1,
            "updatedReplicas": 1,
            "scheduleGatedReplicas": 0,
            "scheduledReplicas": 2,
            "hpaPodSelector": "grove.io/podclique=my-pcs-0-frontend",
            "conditions": [CONDITION],
            "lastErrors": [ERROR],
            "lastScheduled": day("10:00:00"),
            "minAvailableBreachedSince": day("11:00:00"),
            "currentPodCliqueSetGenerationHash": "a",
            "currentPodTemplateHash": "b",
            "updateProgress": {
                "updateStartedAt": day("11:00:00"),
                "updateEndedAt": day("11:15:00"),
                "lastProgressAt": day("11:10:00"),
                "podCliqueSetGenerationHash": "a",
                "podTemplateHash": "b",
                "readyPodsSelectedToUpdate": {"current": "p", "completed": ["q"]},
            },
            "floor": FLOOR,
        },
    ),
    (
        groups.PodCliqueScalingGroupStatus,
        {
            "observedGeneration": 3,
            "replicas": 2,
            "scheduledReplicas": 2,
            "availableReplicas": 1,
            "updatedReplicas": 0,
            "selector": "a=b",
            "conditions": [CONDITION],
            "lastErrors": [ERROR],
            "lastScheduled": day("10:00:00"),
            "minAvailableBreachedSince": day("11:00:00"),
            "currentPodCliqueSetGenerationHash": "a",
            "updateProgress": {
                "updateStartedAt": day("11:00:00"),
                "lastProgressAt": day("11:10:00"),
                "podCliqueSetGenerationHash": "a",
                "updatedPodCliquesCount": 1,
                "totalPodCliquesCount": 2,
                "readyReplicaIndicesSelectedToUpdate": {"current": 1, "completed": [0]},
            },
            "floor": FLOOR,
        },
    ),
    (
        grove_scheduler.PodGangStatus,
        {"phase": "Pending", "conditions": [{**CONDITION, "type": "Initialized"}], "placementScore": 0.5},
    ),
]


@pytest.mark.parametrize(("model", "status"), WHOLE_STATUSES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_status_with_every_field_survives_a_round_trip(model: type[msgspec.Struct], status: dict[str, Any]) -> None:
    assert written(msgspec.convert(status, model)) == status
    assert {field.encode_name for field in msgspec.structs.fields(model)} == set(status)


def test_a_podgang_spells_podgroups_in_lower_case() -> None:
    spec = {
        "podgroups": [{"name": "a", "podReferences": [{"namespace": "n", "name": "p"}], "minReplicas": 1}],
        "topologyConstraint": {"packConstraint": {"required": "rack", "preferred": "host"}},
        "topologyConstraintGroupConfigs": [{"name": "g", "podGroupNames": ["a"]}],
        "priorityClassName": "high",
    }
    assert written(msgspec.convert(spec, grove_scheduler.PodGangSpec)) == spec


# --- how they are served -------------------------------------------------------

SERVED = [
    (
        sets.KIND, "podcliquesets.grove.io", "pcs", ".status.hpaPodSelector",
        "Replicas Available Updated PCLQs-Updated PCLQs-Total PCSGs-Updated PCSGs-Total Reason Age",
    ),
    (
        cliques.KIND, "podcliques.grove.io", "pclq", ".status.hpaPodSelector",
        "MinAvail Replicas Ready Scheduled Updated Gated MinBreached Reason Age",
    ),
    (
        groups.KIND, "podcliquescalinggroups.grove.io", "pcsg", ".status.selector",
        "MinAvail Replicas Available Scheduled Updated PCLQs-Updated PCLQs-Total MinBreached Reason Age",
    ),
    (grove_scheduler.POD_GANG, "podgangs.scheduler.grove.io", "pg", None, "Phase Age"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "short", "selector", "columns"), SERVED, ids=[row[2] for row in SERVED])
def test_a_kind_has_the_names_columns_and_scale_that_people_know(
    kind: Kind, name: str, short: str, selector: str | None, columns: str
) -> None:
    assert (kind.crd_name, kind.short_names, kind.version) == (name, (short,), "v1alpha1")
    assert [column.name for column in kind.columns] == columns.split()
    assert (kind.scale and kind.scale.selector) == selector


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_api_server_would_take_the_definition(kind: Kind) -> None:
    assert crd_problems(crd_of(kind)) == []


ENUMS: list[tuple[type[StrEnum], str]] = [
    (sets.UpdateStrategyType, "RollingRecreate OnDelete"),
    (
        sets.CliqueStartupType,
        "CliqueStartupTypeAnyOrder CliqueStartupTypeInOrder CliqueStartupTypeExplicit",
    ),
    (sharing.SharingScope, "AllReplicas PerReplica"),
    (grove_scheduler.PodGangPhase, "Pending Starting Running"),
]


@pytest.mark.parametrize(("enum", "members"), ENUMS, ids=lambda value: getattr(value, "__name__", ""))
def test_an_enum_has_exactly_the_members_that_people_know(enum: type[StrEnum], members: str) -> None:
    assert [member.value for member in enum] == members.split()


DEFAULTS = [
    ("spec.replicas", 0),
    ("spec.updateStrategy.type", "RollingRecreate"),
    ("spec.template.cliqueStartupType", "CliqueStartupTypeAnyOrder"),
    ("spec.template.terminationDelay", "4h"),
    ("spec.template.headlessServiceConfig.publishNotReadyAddresses", True),
    ("spec.template.cliques.0.spec.replicas", 1),
    ("spec.template.podCliqueScalingGroups.0.replicas", 1),
    ("spec.template.podCliqueScalingGroups.0.minAvailable", 1),
]


@pytest.mark.parametrize(("path", "expected"), DEFAULTS)
def test_an_api_server_fills_in_the_default(path: str, expected: Any) -> None:
    doc = podcliqueset()
    doc["spec"].pop("replicas")
    doc["spec"]["updateStrategy"] = {}
    doc["spec"]["template"]["cliques"][0]["spec"].pop("replicas")
    assert value_at(checks.defaulted(sets.KIND, doc), path) == expected


# --- what they refuse, and where -----------------------------------------------

CLIQUE = "spec.template.cliques.0"
GROUP = "spec.template.podCliqueScalingGroups.0"

REFUSED = [
    ("spec.replicas", -1),
    ("spec.updateStrategy.type", "Recreate"),
    ("spec.updateStrategy.rollingUpdate.maxSurge", -1),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", "half"),
    ("spec.updateStrategy.rollingUpdate.minReadySeconds", -1),
    ("spec.template.cliques", []),
    ("spec.template.cliqueStartupType", "InOrder"),
    ("spec.template.terminationDelay", "soon"),
    (f"{CLIQUE}.name", "Frontend"),
    (f"{CLIQUE}.name", "f" * 45),
    (f"{CLIQUE}.labels.app", "not a label"),
    (f"{CLIQUE}.spec.roleName", ""),
    (f"{CLIQUE}.spec.replicas", 0),
    (f"{CLIQUE}.spec.minAvailable", 0),
    (f"{CLIQUE}.spec.startsAfter", ["prefill", "prefill"]),
    (f"{CLIQUE}.spec.autoScalingConfig.maxReplicas", 0),
    (f"{CLIQUE}.spec.podSpec.schedulerName", 1),
    (f"{CLIQUE}.topologyConstraint.packDomain", "Rack"),
    (f"{CLIQUE}.spec.autoScaling", {}),
    (f"{GROUP}.replicas", 0),
    (f"{GROUP}.minAvailable", 0),
    (f"{GROUP}.cliqueNames", "prefill"),
    ("spec.template.resourceSharing", [{"name": "gpu", "scope": "Some"}]),
    ("spec.template.resourceClaimTemplates", [{"name": "g", "templateSpec": {"spec": {"devices": {"requests": []}}}}]),
]


@pytest.mark.parametrize(("path", "value"), REFUSED)
def test_a_value_out_of_bounds_is_refused_at_its_path(path: str, value: Any) -> None:
    found = checks.problems(sets.KIND, with_value(podcliqueset(), path, value))
    where = path.replace(".0", "[0]")
    assert any(problem.path.startswith(where) for problem in found), found


@pytest.mark.parametrize("kind", [cliques.KIND, groups.KIND], ids=lambda kind: kind.name)
def test_an_object_may_idle_at_zero_replicas_though_a_template_may_not(kind: Kind) -> None:
    spec = {"replicas": 0, "roleName": "r", "podSpec": {}} if kind is cliques.KIND else {"cliqueNames": ["a"]}
    doc = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": spec}
    assert checks.problems(kind, with_value(doc, "spec.replicas", 0)) == ()


def test_a_podclique_may_wait_for_more_podcliques_than_a_template_has_cliques() -> None:
    waits = [f"my-pcs-0-prefill-{index}-leader" for index in range(500)]
    spec = {"roleName": "r", "podSpec": {}, "startsAfter": waits}
    assert msgspec.convert(spec, cliques.PodCliqueSpec).starts_after == tuple(waits)


def test_a_pod_spec_is_kept_as_it_was_written() -> None:
    claim = {"metadata": {"labels": {"a": "b"}}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    pod = {
        "containers": [
            {
                "name": "c",
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                "env": [{"name": "A", "value": ""}],
                "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "16Gi", "cpu": "0.5"}},
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
            }
        ],
        "nodeSelector": {"node-role.kubernetes.io/gpu": ""},
        "schedulerName": "kai-scheduler",
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}],
    }
    doc = with_value(podcliqueset(), f"{CLIQUE}.spec.podSpec", pod)
    read = checks.decode(sets.KIND, doc)
    assert isinstance(read, grove.PodCliqueSet)
    assert read.spec.template.cliques[0].spec.pod_spec == pod


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("nodeSelecter", {"a": "b"}, "did you mean nodeSelector"),
        ("containers", [{"name": "c", "imagePullpolicy": "Always"}], "did you mean imagePullPolicy"),
        ("containers", [{"name": "c", "resources": {"requests": {"memory": "16 GiB"}}}], "16 GiB"),
        ("initContainers", ["busybox"], "initContainers[0]"),
        ("containers", [{"name": "c"}, {"name": "c"}], "containers[1]"),
        ("terminationGracePeriodSeconds", "30s", "terminationGracePeriodSeconds"),
    ],
)
def test_a_pod_spec_that_no_pod_can_have_is_refused_when_it_is_applied(path: str, value: Any, says: str) -> None:
    doc = with_value(podcliqueset(), f"{CLIQUE}.spec.podSpec.{path}", value)
    assert says in "; ".join(map(str, checks.problems(sets.KIND, doc)))


# --- what only a rule can say --------------------------------------------------


RULES = [
    ("", "names of the set and of a clique together"),
    ("", "names of the set, of a scaling group and of a clique"),
    (".spec.template", "each clique needs a roleName of its own"),
    (".spec.template", "startsAfter may name only other cliques"),
    (".spec.template", "the same schedulerName"),
    (".spec.template", "cliqueNames may name only cliques of this template"),
    (".spec.template", "one scaling group only"),
    (".spec.template", "no autoScalingConfig or rollingUpdate of its own"),
    (".spec.template", "a filter may name only cliques and scaling groups"),
    (".spec.template", "set namespace only for ResourceClaimTemplate objects"),
    (".spec.template", "must name the same topology"),
    (".spec.template", "cliques can be neither added nor removed"),
    (".spec.template", "the order of cliques is immutable"),
    (".spec.template", "scaling groups can be neither added nor removed"),
    (".spec.template", "cliqueStartupType is immutable"),
    (".spec.template", "resourceClaimTemplates is immutable"),
    (".spec.template", "resourceSharing is immutable"),
    (".spec.template", "topologyConstraint can be neither added nor removed"),
    (".spec.template.terminationDelay", "longer than 0s"),
    (".spec.template.cliques[]", "resourceSharing is immutable"),
    (".spec.template.cliques[].spec", "replicas must be 0 or at least minAvailable"),
    (".spec.template.cliques[].spec", "nodeName must not be set"),
    (".spec.template.cliques[].spec", "topologySpreadConstraints must not be set"),
    (".spec.template.cliques[].spec", "maxReplicas must be at least replicas"),
    (".spec.template.cliques[].spec", "minReplicas must be at least minAvailable"),
    (".spec.template.cliques[].spec", "roleName is immutable"),
    (".spec.template.cliques[].spec", "minAvailable is immutable"),
    (".spec.template.cliques[].spec", "startsAfter is immutable"),
    (".spec.template.cliques[].spec", "podSpec.schedulerName is immutable"),
    (".spec.template.cliques[].spec.autoScalingConfig", "maxReplicas must be at least minReplicas"),
    (".spec.template.cliques[].rollingUpdate", "maxSurge must be above 0"),
    (".spec.template.cliques[].topologyConstraint", "packDomain is no longer accepted"),
    (".spec.template.cliques[].topologyConstraint", "domains of a topologyConstraint are immutable"),
    (".spec.template.cliques[].topologyConstraint.pack", "required or preferred"),
    (".spec.template.podCliqueScalingGroups[]", "minAvailable must be at most replicas"),
    (".spec.template.podCliqueScalingGroups[]", "minReplicas must be at least minAvailable"),
    (".spec.template.podCliqueScalingGroups[]", "must not name a clique twice"),
    (".spec.template.podCliqueScalingGroups[]", "cliqueNames is immutable"),
    (".spec.template.podCliqueScalingGroups[]", "minAvailable is immutable"),
    (".spec.template.resourceSharing[].filter", "names at least one child"),
]


@pytest.mark.parametrize(("path", "message"), RULES)
def test_a_rule_stands_where_it_can_see_what_it_judges(path: str, message: str) -> None:
    assert any(at == path and message in text for at, text in rules_of(sets.KIND))


@pytest.mark.parametrize("kind", [cliques.KIND, groups.KIND], ids=lambda kind: kind.name)
def test_scaling_below_the_minimum_but_not_to_zero_is_refused(kind: Kind) -> None:
    assert (".spec", "replicas must be 0 or at least minAvailable") in rules_of(kind)
