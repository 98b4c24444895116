"""Which revision is rolled out: what is wanted, what was rejected, what is known, and what configuration says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.operators.workload import stages
from tests.operators.workload.worlds import (
    NOW,
    Placed,
    Wire,
    ago,
    code,
    condition,
    config,
    decided,
    deeds,
    image_of,
    metadata,
    pod,
    pods,
    record,
    revision,
    said,
    seen,
    status,
    template,
    web,
)

from holdfast.client.resources import CONTROLLER_REVISIONS, DEFINITIONS
from holdfast.kernel.outcomes import Permanent
from holdfast.kinds import crds
from holdfast.kinds.cloudless import KINDS
from holdfast.meta.objects import Key
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.decide import decide, explain
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.plan import outlook
from holdfast.operators.workload.render import REVISION, WORKLOAD, controller_revision
from holdfast.operators.workload.revisions import choose
from holdfast.runtime.decisions import Create
from holdfast.testing.clusters import Cluster
from holdfast.testing.snapshots import Snapshot
from holdfast.views.plans import PlanView

SURGE = {"minAvailable": 3, "maxSurge": 1}
HISTORY = [record("web:1", 1), record("web:2", 2), record("web:3", 3)]


def rejected(image: str, to: str = "") -> dict[str, str]:
    name = revision(image) + (f":{revision(to)}" if to else "")
    return {"holdfast.dev/rejected-revision": name}


# --- revisions


@pytest.mark.parametrize(
    ("workload", "target", "stable"),
    [
        pytest.param(web("web:1"), "web:1", None, id="new"),
        pytest.param(web("web:2", status=said("web:1")), "web:2", "web:1", id="an update"),
        pytest.param(web("web:1", status=said("web:1")), "web:1", None, id="rolled out"),
        pytest.param(web("web:3", status=said("web:1", rolling="web:2")), "web:3", "web:1", id="another one midway"),
        pytest.param(web("web:1", status=said("web:1", rolling="web:2")), "web:1", None, id="a revert midway"),
        pytest.param(web("web:2", status=said(rolling="web:1")), "web:2", None, id="the first one never completed"),
        pytest.param(
            web("web:2", status=said("web:1", rolling="web:2"), annotations=rejected("web:2")),
            "web:1",
            None,
            id="an update that was rejected",
        ),
        pytest.param(
            web("web:3", status=said("web:1", rolling="web:2"), annotations=rejected("web:2")),
            "web:3",
            "web:1",
            id="the next one is not",
        ),
        pytest.param(
            web("web:3", status=said("web:3"), annotations=rejected("web:3")),
            "web:2",
            "web:3",
            id="what was complete is undone to the one before",
        ),
        pytest.param(
            web("web:3", status=said("web:3"), annotations=rejected("web:3", to="web:1")),
            "web:1",
            "web:3",
            id="or to a certain one",
        ),
        pytest.param(
            web("web:3", status=said("web:3"), annotations=rejected("web:3", to="web:9")),
            "web:2",
            "web:3",
            id="if that is known",
        ),
        pytest.param(
            web("web:3", status=said("web:2", rolling="web:2"), annotations=rejected("web:3")),
            "web:2",
            None,
            id="the undo is done, and stays",
        ),
        pytest.param(
            web("web:1", status=said("web:1"), annotations=rejected("web:1")),
            "web:1",
            None,
            id="there is nothing to return to",
        ),
        pytest.param(
            web("web:3", status=said("web:3"), annotations={"holdfast.dev/rejected-revision": ""}),
            "web:3",
            None,
            id="retried",
        ),
    ],
)
def test_the_revision_that_is_rolled_out(workload: Wire, target: str, stable: str | None) -> None:
    chosen = choose(seen(workload, HISTORY))
    found = None if chosen.stable is None else image_of(chosen.stable.revision)
    assert (image_of(chosen.target.revision), found) == (target, stable)
    assert image_of(chosen.wanted) == workload["spec"]["image"]


def test_a_restart_after_an_undo_accepts_nothing_that_was_undone() -> None:
    """Undone from web:2 to web:1, restarted, and web:2 applied again: it needs its approvals, or a retry."""
    stamp = "2030-01-01T11:00:00Z"
    restarted = msgspec.structs.replace(template("web:1"), restarted_at=stamp)
    kept = controller_revision(web(), restarted, number=4)
    kept["metadata"] |= metadata("web-restarted-4")
    workload = web(
        "web:2",
        status={"currentRevision": restarted.revision, "updateRevision": restarted.revision},
        annotations={**rejected("web:2", to="web:1"), "holdfast.dev/restarted-at": stamp},
    )
    chosen = choose(seen(workload, HISTORY[:2], (CONTROLLER_REVISIONS, kept)))
    assert chosen.target == restarted
    assert (chosen.wanted, chosen.settled) == (revision("web:2"), True)


def test_a_restart_that_was_rejected_rejects_neither_the_revision_nor_the_next_restart() -> None:
    failed = msgspec.structs.replace(template("web:1"), restarted_at="2030-01-01T11:00:00Z")
    kept = controller_revision(web(), failed, number=2)
    kept["metadata"] |= metadata("web-restarted-2")
    there = [HISTORY[0], (CONTROLLER_REVISIONS, kept)]
    refused = {"holdfast.dev/rejected-revision": failed.revision}
    assert choose(seen(web("web:1", status=said("web:1"), annotations=refused), there)).rejected is False
    for stamp, is_rejected in (("2030-01-01T11:00:00Z", True), ("2030-01-01T11:30:00Z", False)):
        again = web("web:1", status=said("web:1"), annotations={**refused, "holdfast.dev/restarted-at": stamp})
        assert choose(seen(again, there)).rejected is is_rejected


def test_the_record_of_a_rejected_revision_is_kept_beyond_the_history_limit() -> None:
    workload = web(
        "web:3", status=said("web:3"), rollout={"revisionHistoryLimit": 0}, annotations=rejected("web:2", to="web:3")
    )
    assert deeds(decided(workload, HISTORY, pods("web:3", 4))) == ["forget web:1"]


def test_a_rejected_revision_says_so_and_is_not_complete() -> None:
    workload = web("web:2", status=said("web:1"), annotations=rejected("web:2"))
    decision = decided(workload, HISTORY[:2], pods("web:1", 4))
    says = status(decision)
    assert (deeds(decision), code(decision), says["phase"]) == ([], "RevisionRejected", "Failed")
    assert condition(decision, "Completed") == "False RevisionRejected"
    assert (says["rejectedRevision"], says["currentRevision"]) == (revision("web:2"), revision("web:1"))


def test_the_plan_of_a_rejected_revision_says_why_nothing_is_rolled_out() -> None:
    workload = web("web:2", status=said("web:1"), annotations=rejected("web:2"))
    world = Snapshot([(WORKLOADS, workload), *HISTORY[:2], *pods("web:1", 4)], indexes=CONTROLLERS[0].indexes)
    plan = outlook(world, Key("default", "web"), NOW)
    assert isinstance(plan, PlanView)
    (warning,) = plan.warnings
    assert (warning.code, plan.rows) == ("RevisionRejected", ())
    assert f"revision {revision('web:2')} of the spec was rejected" in warning.message


@pytest.mark.parametrize(
    "rollout",
    [
        {"pauseDuration": "1h", **SURGE},
        {"partition": 2, **SURGE},
        {"paused": True, **SURGE},
        {"strategy": "Canary", "canary": {"steps": [{"weight": 25, "manual": True}]}, **SURGE},
    ],
)
def test_what_is_returned_to_has_been_tried_out_so_no_gate_is_closed(rollout: dict[str, Any]) -> None:
    workload = web("web:2", status=said("web:1", rolling="web:2"), annotations=rejected("web:2"), rollout=rollout)
    decision = decided(workload, HISTORY[:2], pods("web:1", 3, ready=ago(seconds=1)), pods("web:2", 2))
    assert deeds(decision) == ["stop web2-0"]


def test_a_revert_midway_passes_its_gates_too() -> None:
    rollout = {"strategy": "Canary", "canary": {"steps": [{"weight": 25, "manual": True}]}, **SURGE}
    workload = web("web:1", status=said("web:1", rolling="web:2"), rollout=rollout)
    decision = decided(workload, HISTORY[:2], pods("web:1", 3), pods("web:2", 1))
    assert deeds(decision) == ["renumber web:1 to 3", "start 1 of web:1"]


def test_a_rejected_revision_keeps_its_number() -> None:
    workload = web("web:2", status=said("web:1", rolling="web:2"), annotations=rejected("web:2"))
    assert deeds(decided(workload, HISTORY[:2], pods("web:1", 4))) == []


def test_replicas_of_a_revision_midway_go_before_those_of_the_stable_one() -> None:
    workload = web("web:3", status=said("web:1", rolling="web:3"), rollout={"minAvailable": 3, "maxSurge": 0})
    there = [*pods("web:1", 2), *pods("web:2", 2)]
    assert deeds(decided(workload, HISTORY, there)) == ["stop web2-0"]


@pytest.mark.parametrize(
    ("limit", "forgotten"),
    [(None, []), (2, []), (1, ["forget web:1"]), (0, ["forget web:1", "forget web:2"])],
)
def test_the_history_is_as_long_as_it_should_be(limit: int | None, forgotten: list[str]) -> None:
    rollout = {} if limit is None else {"revisionHistoryLimit": limit}
    workload = web("web:3", status=said("web:3"), rollout=rollout)
    assert deeds(decided(workload, HISTORY, pods("web:3", 4))) == forgotten


def test_nothing_is_forgotten_that_something_still_runs() -> None:
    workload = web("web:3", status=said("web:2", rolling="web:3"), rollout={"revisionHistoryLimit": 0, **SURGE})
    there = [*pods("web:2", 3), pod("last", "web:1", going=True)]
    assert deeds(decided(workload, HISTORY, there)) == ["start 2 of web:3"]


def test_a_restart_makes_a_revision_of_the_same_spec() -> None:
    workload = web(status=said("web:1"), annotations={"holdfast.dev/restarted-at": "2030-01-01T11:00:00Z"})
    made, *_ = decided(workload, HISTORY[:1], pods("web:1", 4)).writes
    assert isinstance(made, Create)
    assert made.manifest["data"]["restartedAt"] == "2030-01-01T11:00:00Z"
    assert made.manifest["data"]["spec"] == template("web:1").spec


def test_a_default_that_the_api_learned_later_is_no_new_revision() -> None:
    """The record was made before ports had a protocol by default."""
    spec: dict[str, Any] = {"ports": [{"containerPort": 80}]}
    early = msgspec.structs.replace(template("web:1", **spec), spec={"image": "web:1", **spec})
    resource, recorded = record("web:1")
    recorded["data"] = msgspec.to_builtins(early)
    kept = {"currentRevision": early.revision, "updateRevision": early.revision}
    there = [pod(f"p{n}", labels={WORKLOAD: "web", REVISION: early.revision}) for n in range(4)]
    decision = decided(web(status=kept, **spec), (resource, recorded), there)
    assert (deeds(decision), code(decision)) == ([], "Completed")


def test_two_records_of_one_revision_are_one() -> None:
    twice = [record("web:1", 1), record("web:1", 2)]
    decision = decided(web(status=said("web:1")), twice, pods("web:1", 4))
    assert (deeds(decision), code(decision)) == ([], "Completed")


def test_records_of_others_are_not_ours() -> None:
    resource, recorded = record("web:1")
    recorded["metadata"]["ownerReferences"][0]["controller"] = False
    assert resource == CONTROLLER_REVISIONS
    assert deeds(decided(web(replicas=0), (resource, recorded))) == ["record web:1 as 1"]


# --- a status that was lost


@pytest.mark.parametrize(
    ("image", "there", "target", "stable"),
    [
        pytest.param("web:2", [*pods("web:1", 3), *pods("web:2", 1)], "web:2", "web:1", id="what serves was complete"),
        pytest.param("web:3", [*pods("web:1", 1), *pods("web:2", 3)], "web:3", "web:2", id="what most serve with"),
        pytest.param("web:2", [*pods("web:2", 4)], "web:2", None, id="all run what is wanted"),
        pytest.param("web:2", [*pods("web:1", 4, ready=False)], "web:2", None, id="nothing serves"),
    ],
)
def test_a_lost_status_is_read_from_the_world(image: str, there: list[Placed], target: str, stable: str | None) -> None:
    world = seen(web(image), HISTORY, there)
    chosen = choose(world)
    found = None if chosen.stable is None else image_of(chosen.stable.revision)
    assert (image_of(chosen.target.revision), found) == (target, stable)


def test_a_record_that_was_deleted_is_written_again() -> None:
    decision = decided(web(status=said("web:1")), pods("web:1", 4))
    assert (deeds(decision), code(decision)) == (["record web:1 as 1"], "Completed")


def test_what_cannot_be_brought_back_comes_new() -> None:
    """The stable revision's record is gone: its replicas stay, and what is lost of them is of the new revision."""
    workload = web("web:2", status=said("web:1", rolling="web:2"), rollout={"paused": True, **SURGE})
    assert deeds(decided(workload, record("web:2", 2), pods("web:1", 3))) == ["start 1 of web:2"]


# --- configuration

FROM: dict[str, Any] = {"envFrom": [{"configMapRef": {"name": "app"}}]}


def names(*others: Placed, **spec: Any) -> tuple[str, tuple[str, ...]]:
    world = seen(web(**spec), *others)
    chosen = choose(world)
    return chosen.wanted, chosen.missing


def test_a_changed_config_map_is_a_new_revision() -> None:
    first, _ = names(config("app", level="info"), **FROM)
    assert first != names(config("app", level="debug"), **FROM)[0]
    assert first == names(config("app", level="info", uid="another"), **FROM)[0]


def test_a_changed_secret_is_a_new_revision_and_its_fingerprint_does_not_reveal_it() -> None:
    spec = {"volumes": [{"name": "key", "source": "secret", "mountPath": "/key"}]}
    first, _ = names(config("key", secret=True, pin="MTIzNA=="), **spec)
    assert first != names(config("key", secret=True, pin="MTIzNQ=="), **spec)[0]
    assert first != names(config("key", secret=True, uid="another", pin="MTIzNA=="), **spec)[0]


@pytest.mark.parametrize(
    "spec",
    [
        {"envFrom": [{"configMapRef": {"name": "app"}, "partOfRevision": False}]},
        {"volumes": [{"name": "app", "source": "configMap", "mountPath": "/app", "partOfRevision": False}]},
    ],
)
def test_a_reference_may_be_no_part_of_the_revision(spec: dict[str, Any]) -> None:
    assert names(config("app", level="info"), **spec) == names(**spec)


def test_what_is_optional_is_never_missing() -> None:
    spec = {"envFrom": [{"configMapRef": {"name": "app", "optional": True}}]}
    without, missing = names(**spec)
    assert missing == ()
    assert names(config("app", level="info"), **spec)[0] != without


def test_one_object_that_is_needed_and_optional_is_needed() -> None:
    twice = [{"configMapRef": {"name": "app"}}, {"configMapRef": {"name": "app", "optional": True}}]
    assert names(envFrom=twice)[1] == ("ConfigMap/app",)


def test_the_first_replicas_wait_for_their_configuration_by_themselves() -> None:
    decision = decided(web(**FROM))
    assert [write.split()[0] for write in deeds(decision)] == ["record", "start"]
    assert condition(decision, "Degraded") == "True ConfigurationMissing"


def test_a_new_revision_whose_configuration_is_missing_is_not_rolled_out() -> None:
    workload = web("web:2", status=said("web:1"), rollout=SURGE, **FROM)
    decision = decided(workload, HISTORY[:1], pods("web:1", 4))
    assert (deeds(decision), code(decision)) == ([], "ConfigurationMissing")
    assert condition(decision, "Blocked") == "True ConfigurationMissing"
    message = next(each["message"] for each in status(decision)["conditions"] if each["type"] == "Blocked")
    assert message == (
        "ConfigMap/app not found, so the new revision cannot be rolled out; "
        "create what is missing, or remove the reference from the spec"
    )
    assert deeds(decided(workload, HISTORY[:1], pods("web:1", 3))) == ["start 1 of web:1"]


def test_a_configuration_that_vanishes_midway_stops_the_rollout_where_it_is() -> None:
    workload = web("web:2", status=said("web:1", rolling="web:2"), rollout=SURGE, **FROM)
    there = [*pods("web:1", 3), *pods("web:2", 1)]
    decision = decided(workload, HISTORY[:2], there)
    assert (deeds(decision), code(decision)) == ([], "ConfigurationMissing")
    assert status(decision)["updateRevision"] == revision("web:2")


# --- what cannot be


def test_a_spec_that_no_fleet_can_have_is_reported_in_the_status() -> None:
    kept = {**said("web:1"), "readyReplicas": 4, "phase": "Completed"}
    world = seen(web(status=kept, rollout={"maxSurge": 0, "maxUnavailable": 0}))
    with pytest.raises(Permanent, match=r"spec\.rollout\.maxSurge") as refused:
        decide(world, NOW)
    says = explain(world, refused.value, NOW)
    assert (says["phase"], says["readyReplicas"], says["observedGeneration"]) == ("Failed", 4, 3)
    assert condition(says, "Blocked") == "True InvalidSpec"
    assert condition(says, "Progressing") == "False InvalidSpec"


def test_a_workload_that_cannot_be_read_is_reported_in_its_status_and_works_again_when_it_is_corrected() -> None:
    """An older definition may have let in what the types of this release refuse."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = crds.crd_of(KINDS[0])
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything

    async def story(cluster: Cluster) -> None:
        await cluster.patch(
            DEFINITIONS, "workloads.cloudless.io", {"spec": {"versions": definition["spec"]["versions"]}}
        )
        await cluster.create(WORKLOADS, stages.workload(replicas=2, env="many"))
        says = await stages.reaches(cluster, "Failed")
        assert condition(says, "Blocked") == "True InvalidSpec"
        assert condition(says, "Progressing") == "False InvalidSpec"
        assert "$.spec.env" in next(each["message"] for each in says["conditions"] if each["type"] == "Blocked")
        await stages.change(cluster, env={"A": "1"})
        says = await stages.reaches(cluster, "Completed")
        assert (says["readyReplicas"], condition(says, "Blocked")) == (2, "False NotBlocked")

    stages.operated(story)
