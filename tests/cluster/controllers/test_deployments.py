"""Deployments: one pass at a time from a world to a decision, and then whole rollouts on the embedded server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.cluster.rollouts import (
    GOING,
    LABELS,
    NOW,
    carried_through,
    deployment,
    new_deployment,
    pod,
    replica_set,
    rolled_out,
    says,
    to_image,
)

from holdfast.client.objects import Object
from holdfast.client.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS
from holdfast.cluster.controllers import replicasets
from holdfast.cluster.controllers.deployments.controller import (
    CONTROLLER,
    adopters,
    decide,
    explain,
    observe,
    waiting_for,
)
from holdfast.cluster.controllers.deployments.revisions import DESIRED, HISTORY, MAXIMUM, REVISION, name_of_new
from holdfast.cluster.controllers.replica_types import Deployment
from holdfast.kernel.outcomes import Again, Done, Retry
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

KEY = Key("default", "web")
BOTH = (CONTROLLER, replicasets.CONTROLLER)
STAMP = "2030-01-01T12:00:00Z"
EARLIER = "2030-01-01T11:00:00Z"
RECREATE: dict[str, Any] = {"strategy": {"type": "Recreate"}}


def old(
    name: str, replicas: int, *, revision: int, available: int | None = None, image: str = "", **how: Any
) -> dict[str, Any]:
    """A ReplicaSet of the Deployment ``web`` of four, with as many pods as it wants."""
    marks = {REVISION: str(revision), DESIRED: "4", MAXIMUM: "5"} | how.pop("annotations", {})
    created = f"2030-01-01T0{revision}:00:00Z"
    counts = {"replicas": replicas, "availableReplicas": replicas if available is None else available}
    return replica_set(
        name,
        replicas=replicas,
        image=image or f"nginx:{revision}",
        owner=deployment(),
        meta={"annotations": marks, "creationTimestamp": created, **how.pop("meta", {})},
        status={**counts, "terminatingReplicas": 0, "observedGeneration": 1, **how.pop("status", {})},
        **how,
    )


def decided(wire: dict[str, Any], *sets: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> Decision:
    view = Snapshot([(DEPLOYMENTS, wire), *((REPLICA_SETS, each) for each in sets), *((PODS, each) for each in pods)])
    world = observe(view, KEY)
    assert world is not None
    return decide(world, NOW)


def numbered(revision: int, **how: Any) -> dict[str, Any]:
    """The Deployment as it is once its revision is written on it."""
    meta = {"annotations": {REVISION: str(revision), **how.pop("annotations", {})}, **how.pop("meta", {})}
    return deployment(image=how.pop("image", f"nginx:{revision}"), meta=meta, **how)


def sizes(decision: Decision) -> dict[str, int]:
    return {
        write.key.name: write.patch["spec"]["replicas"]
        for write in decision.writes
        if isinstance(write, Patch) and "replicas" in write.patch.get("spec", {})
    }


def created(decision: Decision) -> dict[str, Any]:
    (made,) = [dict(write.manifest) for write in decision.writes if isinstance(write, Create)]
    return made


def messages(decision: Decision) -> list[str]:
    return [notice.message for notice in decision.notices]


def condition(decision: Decision, type: str) -> dict[str, Any] | None:
    assert decision.status is not None
    return next((each for each in decision.status.get("conditions", ()) if each["type"] == type), None)


def progressing(status: str, reason: str, *, updated: str = EARLIER, since: str = EARLIER) -> dict[str, Any]:
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": "said before",
        "lastUpdateTime": updated,
        "lastTransitionTime": since,
    }


# --- the first ReplicaSet


def test_a_template_without_a_replica_set_gets_one_with_all_that_it_needs() -> None:
    wire = deployment(minReadySeconds=5, meta={"annotations": {"team": "blue", "kubernetes.io/change-cause": "first"}})
    decision = decided(wire)
    made = created(decision)
    digest = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{digest}"
    assert made["metadata"]["labels"] == {**LABELS, "pod-template-hash": digest}
    assert made["metadata"]["annotations"] == {
        "team": "blue",
        "kubernetes.io/change-cause": "first",
        REVISION: "1",
        DESIRED: "4",
        MAXIMUM: "5",
    }
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    assert made["spec"]["replicas"] == 4
    assert made["spec"]["minReadySeconds"] == 5
    assert made["spec"]["selector"] == {"matchLabels": {**LABELS, "pod-template-hash": digest}}
    assert made["spec"]["template"]["metadata"]["labels"] == {**LABELS, "pod-template-hash": digest}
    assert messages(decision) == [f"Scaled up replica set web-{digest} from 0 to 4"]


def test_the_first_status_says_that_the_rollout_began_and_that_nothing_is_available() -> None:
    decision = decided(deployment())
    assert decision.status is not None
    name = created(decision)["metadata"]["name"]
    assert decision.status == {
        "observedGeneration": 1,
        "unavailableReplicas": 4,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "lastUpdateTime": STAMP,
                "lastTransitionTime": STAMP,
                "reason": "NewReplicaSetCreated",
                "message": f'Created new replica set "{name}"',
            },
            {
                "type": "Available",
                "status": "False",
                "lastUpdateTime": STAMP,
                "lastTransitionTime": STAMP,
                "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability.",
            },
        ],
    }
    assert isinstance(decision.outcome, Again)
    assert decision.outcome.after == timedelta(seconds=601)


def test_annotations_that_are_about_the_deployment_itself_are_not_copied() -> None:
    kept = {"kubectl.kubernetes.io/last-applied-configuration": "{}", REVISION: "9", DESIRED: "9"}
    made = created(decided(deployment(meta={"annotations": kept})))
    assert made["metadata"]["annotations"] == {REVISION: "1", DESIRED: "4", MAXIMUM: "5"}


def test_the_revision_is_written_on_the_deployment_in_a_pass_of_its_own() -> None:
    decision = decided(deployment(), old("web-1", 4, revision=1))
    (write,) = decision.writes
    assert isinstance(write, Patch)
    assert (write.resource, write.patch) == (DEPLOYMENTS, {"metadata": {"annotations": {REVISION: "1"}}})
    assert decision.status is None


def test_a_deployment_that_comes_to_existing_pods_says_that_it_found_them() -> None:
    found = condition(decided(numbered(1), old("web-1", 3, revision=1, annotations={DESIRED: "4"})), "Progressing")
    assert found is not None
    # Something is available that was not known before, so the rollout has got on already.
    assert found["reason"] == "ReplicaSetUpdated"
    still = decided(numbered(1), old("web-1", 4, revision=1, status={"replicas": 0, "availableReplicas": 0}))
    assert condition(still, "Progressing") == {
        **progressing("True", "FoundNewReplicaSet", updated=STAMP, since=STAMP),
        "message": 'Found new replica set "web-1"',
    }


def test_equal_templates_are_one_revision_however_they_are_written() -> None:
    spoken = deployment(meta={"annotations": {REVISION: "1"}})
    spoken["spec"]["template"]["spec"]["volumes"] = []
    spoken["spec"]["template"]["metadata"]["creationTimestamp"] = None
    assert not any(isinstance(write, Create) for write in decided(spoken, old("web-1", 4, revision=1)).writes)


def test_the_order_of_containers_is_part_of_a_template() -> None:
    one, two = deployment(), deployment()
    two["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "x"})
    one["spec"]["template"]["spec"]["containers"].insert(0, {"name": "side", "image": "x"})
    names = {name_of_new(Deployment.of(Object.of(DEPLOYMENTS, each))) for each in (one, two)}
    assert len(names) == 2


def test_a_name_that_is_taken_is_counted_and_avoided() -> None:
    wire = deployment(status={"observedGeneration": 1})
    name = name_of_new(Deployment.of(Object.of(DEPLOYMENTS, wire)))
    foreign = replica_set(name, meta={"labels": {"app": "other"}}, selector={"matchLabels": {"app": "other"}})
    decision = decided(wire, foreign)
    assert decision.writes == ()
    assert decision.status == {"observedGeneration": 1, "collisionCount": 1}
    after = created(decided(deployment(status=decision.status), foreign))
    assert after["metadata"]["name"] != name


def test_a_replica_set_that_cannot_be_made_is_told_of_and_nothing_else_changes() -> None:
    def explained(*sets: dict[str, Any]) -> Mapping[str, Any] | None:
        wire = numbered(1, image="nginx:2", status={"replicas": 4})
        world = observe(Snapshot([(DEPLOYMENTS, wire), *((REPLICA_SETS, each) for each in sets)]), KEY)
        assert world is not None
        return explain(world, Retry("Forbidden", "exceeded quota"), NOW)

    status = explained(old("web-1", 4, revision=1))
    assert status is not None
    (said,) = status["conditions"]
    assert status == {"replicas": 4, "conditions": [said]}
    assert (said["status"], said["reason"]) == ("False", "ReplicaSetCreateError")
    assert said["message"].endswith("exceeded quota")
    assert explained(old("web-1", 4, revision=1), old("web-2", 1, revision=2)) is None


# --- rolling


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "size"),
    [(4, "25%", "25%", 1), (10, "25%", "25%", 3), (3, "25%", "25%", 1), (4, 0, 1, 0), (4, "100%", 0, 4), (1, 0, 0, 0)],
)
def test_the_new_replica_set_begins_with_the_surge_rounded_up(
    replicas: int, surge: int | str, unavailable: int | str, size: int
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    wire = numbered(1, image="nginx:2", replicas=replicas, strategy=rolling)
    running = old("web-1", replicas, revision=1, annotations={DESIRED: str(replicas)})
    made = created(decided(wire, running))
    assert made["spec"]["replicas"] == size
    assert made["metadata"]["annotations"][REVISION] == "2"


@pytest.mark.parametrize(
    ("why", "new", "before", "after"),
    [
        ("the first pass also stops what may be missing", None, {"web-1": (4, 4)}, {"web-1": 3}),
        ("it grows before the old shrink", (1, 1), {"web-1": (3, 3)}, {"web-2": 2}),
        ("old ones shrink by what is available above the least", (2, 2), {"web-1": (3, 3)}, {"web-1": 1}),
        ("nothing moves while the new pods start", (2, 0), {"web-1": (3, 3)}, {}),
        ("old pods that do not serve go first, and free", (2, 0), {"web-1": (3, 1)}, {}),
        (
            "old pods that do not serve go first, as there is room",
            (1, 0),
            {"web-0": (2, 0), "web-1": (2, 2)},
            {"web-0": 1},
        ),
        ("the oldest goes first", (2, 2), {"web-0": (1, 1), "web-1": (2, 2)}, {"web-0": 0, "web-1": 1}),
        ("all are replaced in the end", (4, 4), {"web-1": (1, 1)}, {"web-1": 0}),
    ],
)
def test_a_rolling_update_moves_within_its_bounds(
    why: str, new: tuple[int, int] | None, before: dict[str, tuple[int, int]], after: dict[str, int]
) -> None:
    sets = [old(name, size, revision=int(name[-1]), available=ok) for name, (size, ok) in before.items()]
    if new is not None:
        sets.append(old("web-2", new[0], revision=2, available=new[1]))
    decision = decided(numbered(2), *sets)
    if new is None:
        # The number of the revision waits for the ReplicaSet.
        assert created(decision)["spec"]["replicas"] == 1
    assert sizes(decision) == after, why


def test_one_replica_set_that_shrinks_twice_in_a_pass_is_written_once_and_told_twice() -> None:
    sets = old("web-1", 4, revision=1, available=3), old("web-2", 1, revision=2, available=1)
    decision = decided(numbered(2), *sets)
    assert sizes(decision) == {"web-1": 2}
    assert messages(decision) == [
        "Scaled down replica set web-1 from 4 to 3",
        "Scaled down replica set web-1 from 3 to 2",
    ]


def test_sizes_hold_for_the_pods_that_were_counted_and_keep_a_record_of_the_whole() -> None:
    sets = old("web-1", 4, revision=1, annotations={MAXIMUM: "9"}), old("web-2", 1, revision=2)
    (write,) = decided(numbered(2), *sets).writes
    assert isinstance(write, Patch)
    assert (write.uid, write.version) == ("uid-web-1", "7")
    assert write.patch == {"metadata": {"annotations": {MAXIMUM: "5"}}, "spec": {"replicas": 2}}


def test_a_template_that_returns_makes_its_old_replica_set_the_newest() -> None:
    sets = old("web-1", 0, revision=1), old("web-2", 4, revision=2)
    wire = deployment(image="nginx:1", meta={"annotations": {REVISION: "2"}})
    renumbered, noted = decided(wire, *sets).writes
    assert isinstance(renumbered, Patch)
    assert renumbered.patch == {"metadata": {"annotations": {REVISION: "3", HISTORY: "1"}}}
    assert isinstance(noted, Patch)
    assert noted.patch == {"metadata": {"annotations": {REVISION: "3"}}}


def test_a_history_of_numbers_forgets_the_oldest() -> None:
    long = ",".join(str(number) for number in range(1000, 1400))
    sets = old("web-1", 0, revision=1, annotations={HISTORY: long}), old("web-2", 4, revision=2)
    wire = deployment(image="nginx:1", meta={"annotations": {REVISION: "2"}})
    renumbered = decided(wire, *sets).writes[0]
    assert isinstance(renumbered, Patch)
    history = renumbered.patch["metadata"]["annotations"][HISTORY]
    assert history.startswith("1001,")
    assert history.endswith(",1399,1")


def test_a_changed_wait_for_availability_reaches_the_new_replica_set_without_a_rollout() -> None:
    (write,) = decided(numbered(1, minReadySeconds=7), old("web-1", 4, revision=1)).writes
    assert isinstance(write, Patch)
    assert write.patch == {"spec": {"minReadySeconds": 7}}


# --- another number of replicas


@pytest.mark.parametrize(
    ("why", "replicas", "sets", "after"),
    [
        ("the only one follows", 6, {"web-2": (4, 4)}, {"web-2": 6}),
        ("also to nothing", 0, {"web-2": (4, 4)}, {"web-2": 0}),
        ("a rollout grows in proportion", 8, {"web-1": (3, 3), "web-2": (2, 0)}, {"web-1": 6, "web-2": 4}),
        ("and shrinks in proportion", 2, {"web-1": (3, 3), "web-2": (2, 0)}, {"web-1": 2, "web-2": 1}),
        ("to nothing at once", 0, {"web-1": (3, 3), "web-2": (2, 0)}, {"web-1": 0, "web-2": 0}),
        (
            "a rollout within its bounds goes on",
            4,
            {"web-1": (4, 4), "web-2": (1, 1)},
            {"web-1": 2},
        ),
    ],
)
def test_a_changed_number_of_replicas_is_shared(
    why: str, replicas: int, sets: dict[str, tuple[int, int]], after: dict[str, int]
) -> None:
    made = [old(name, size, revision=int(name[-1]), available=ok) for name, (size, ok) in sets.items()]
    decision = decided(numbered(2, replicas=replicas), *made)
    assert sizes(decision) == after, why


def test_a_change_in_proportion_records_the_new_whole_on_every_replica_set() -> None:
    sets = old("web-1", 3, revision=1), old("web-2", 2, revision=2, available=0)
    writes = decided(numbered(2, replicas=8), *sets).writes
    marks = [write.patch["metadata"]["annotations"] for write in writes if isinstance(write, Patch)]
    assert marks == [{DESIRED: "8", MAXIMUM: "10"}] * 2


def test_a_replica_set_that_has_the_right_size_already_only_records_it() -> None:
    (write,) = decided(numbered(1, replicas=5), old("web-1", 5, revision=1)).writes
    assert isinstance(write, Patch)
    assert write.patch == {"metadata": {"annotations": {DESIRED: "5", MAXIMUM: "7"}}}


def test_scaling_a_complete_deployment_is_no_rollout() -> None:
    done = progressing("True", "NewReplicaSetAvailable")
    before = {"replicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "conditions": [done]}
    wire = numbered(1, replicas=6, status=before)
    decision = decided(wire, old("web-1", 4, revision=1))
    assert condition(decision, "Progressing") == done
    assert decision.status is not None
    assert decision.status["unavailableReplicas"] == 2


# --- pauses


def test_a_paused_deployment_begins_no_rollout_and_says_so() -> None:
    decision = decided(numbered(1, image="nginx:2", paused=True), old("web-1", 4, revision=1))
    assert decision.writes == ()
    paused = condition(decision, "Progressing")
    assert paused is not None
    assert (paused["status"], paused["reason"], paused["message"]) == (
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    )
    assert decision.outcome == Done()


def test_a_paused_deployment_still_follows_its_number_of_replicas() -> None:
    decision = decided(numbered(1, image="nginx:2", paused=True, replicas=6), old("web-1", 4, revision=1))
    assert sizes(decision) == {"web-1": 6}


def test_a_deployment_that_goes_on_starts_its_deadline_anew() -> None:
    paused = progressing("Unknown", "DeploymentPaused")
    status = {"replicas": 4, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2, "conditions": [paused]}
    sets = old("web-1", 3, revision=1, status={"replicas": 2}), old("web-2", 2, revision=2, available=0)
    resumed = condition(decided(numbered(2, status=status), *sets), "Progressing")
    assert resumed is not None
    assert (resumed["reason"], resumed["lastUpdateTime"]) == ("ReplicaSetUpdated", STAMP)
    quiet = dict(status, availableReplicas=9, readyReplicas=9, updatedReplicas=9, replicas=9)
    still = condition(decided(numbered(2, status=quiet), *sets), "Progressing")
    assert still is not None
    assert still["reason"] == "DeploymentResumed"


def test_without_a_deadline_nothing_is_said_of_progress() -> None:
    status = {"conditions": [progressing("True", "ReplicaSetUpdated")]}
    wire = numbered(1, status=status, progressDeadlineSeconds=2**31 - 1)
    assert condition(decided(wire, old("web-1", 4, revision=1)), "Progressing") is None


# --- progress and its deadline

STUCK = {"replicas": 5, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3}


def stuck(updated: str, *, reason: str = "ReplicaSetUpdated", deadline: int = 600) -> Decision:
    status = {**STUCK, "conditions": [progressing("True", reason, updated=updated)]}
    sets = (
        old("web-1", 3, revision=1, status={"readyReplicas": 3}),
        old("web-2", 2, revision=2, available=0),
    )
    return decided(numbered(2, status=status, progressDeadlineSeconds=deadline), *sets)


def test_a_rollout_that_stands_still_is_looked_at_again_at_its_deadline() -> None:
    decision = stuck("2030-01-01T11:55:00Z")
    assert isinstance(decision.outcome, Again)
    assert decision.outcome.after == timedelta(seconds=301)
    assert condition(decision, "Progressing") == progressing(
        "True", "ReplicaSetUpdated", updated="2030-01-01T11:55:00Z"
    )


def test_a_rollout_that_stood_still_for_too_long_has_failed() -> None:
    decision = stuck("2030-01-01T11:49:59Z")
    failed = condition(decision, "Progressing")
    assert failed == {
        **progressing("False", "ProgressDeadlineExceeded", updated=STAMP, since=STAMP),
        "message": 'ReplicaSet "web-2" has timed out progressing.',
    }
    assert decision.outcome == Done()


def test_progress_renews_the_condition_and_keeps_since_when_it_holds() -> None:
    status = {**STUCK, "readyReplicas": 2, "conditions": [progressing("True", "ReplicaSetUpdated")]}
    sets = (
        old("web-1", 3, revision=1, status={"readyReplicas": 3}),
        old("web-2", 2, revision=2, available=0),
    )
    assert condition(decided(numbered(2, status=status), *sets), "Progressing") == {
        **progressing("True", "ReplicaSetUpdated", updated=STAMP),
        "message": 'ReplicaSet "web-2" is progressing.',
    }


def test_a_rollout_that_failed_and_gets_on_is_in_time_again() -> None:
    failed = progressing("False", "ProgressDeadlineExceeded")
    sets = (old("web-2", 4, revision=2, status={"readyReplicas": 4}),)
    after = condition(decided(numbered(2, status={**STUCK, "conditions": [failed]}), *sets), "Progressing")
    assert after is not None
    assert (after["status"], after["reason"]) == ("True", "NewReplicaSetAvailable")


def test_a_condition_that_changes_goes_to_the_end_and_one_that_does_not_stays() -> None:
    unavailable = {**progressing("False", "MinimumReplicasUnavailable"), "type": "Available"}
    status = {**STUCK, "conditions": [unavailable, progressing("True", "ReplicaSetUpdated")]}
    decision = decided(numbered(2, status=status), old("web-2", 4, revision=2, status={"readyReplicas": 4}))
    assert decision.status is not None
    said = [(each["type"], each["status"], each["reason"]) for each in decision.status["conditions"]]
    assert said == [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]


def test_a_replica_set_that_cannot_have_its_pods_is_spoken_for_by_its_deployment() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    failure["lastTransitionTime"] = EARLIER
    broken = old("web-2", 4, revision=2, available=0, status={"conditions": [failure]})
    decision = decided(numbered(2), broken)
    assert condition(decision, "ReplicaFailure") == {**failure, "lastUpdateTime": EARLIER}
    healed = numbered(2, status={"conditions": [failure]})
    assert condition(decided(healed, old("web-2", 4, revision=2)), "ReplicaFailure") is None


def test_pods_on_their_way_out_are_counted_once_every_replica_set_has_counted_its_own() -> None:
    known = old("web-1", 3, revision=1, status={"terminatingReplicas": 2})
    decision = decided(numbered(2), known, old("web-2", 2, revision=2, available=0))
    assert decision.status is not None
    assert decision.status["terminatingReplicas"] == 2
    unknown = old("web-2", 2, revision=2, available=0, status={"terminatingReplicas": None})
    decision = decided(numbered(2), known, unknown)
    assert decision.status is not None
    assert "terminatingReplicas" not in decision.status


# --- recreating


def test_to_recreate_means_to_stop_all_that_is_old_first() -> None:
    decision = decided(numbered(1, image="nginx:2", **RECREATE), old("web-1", 4, revision=1))
    assert sizes(decision) == {"web-1": 0}
    assert not any(isinstance(write, Create) for write in decision.writes)


@pytest.mark.parametrize(
    ("why", "counted", "pods", "begins"),
    [
        ("its ReplicaSet still counts pods", 1, (), False),
        ("an old pod is on its way out", 0, ({"meta": GOING},), False),
        ("the phase of an old pod is unknown", 0, ({"phase": "Unknown"},), False),
        ("what is left has ended", 0, ({"phase": "Failed"}, {"phase": "Succeeded"}), True),
        ("nothing is left", 0, (), True),
    ],
)
def test_nothing_new_begins_before_the_old_pods_are_gone(
    why: str, counted: int, pods: tuple[dict[str, Any], ...], begins: bool
) -> None:
    gone = old("web-1", 0, revision=1, status={"replicas": counted})
    left = tuple(pod(f"p{number}", owner=gone, **how) for number, how in enumerate(pods))
    decision = decided(numbered(1, image="nginx:2", **RECREATE), gone, pods=left)
    assert any(isinstance(write, Create) for write in decision.writes) is begins, why
    if begins:
        assert created(decision)["spec"]["replicas"] == 4
        assert created(decision)["metadata"]["annotations"][MAXIMUM] == "4"


def test_a_replica_set_that_is_used_again_gets_all_its_pods_at_once() -> None:
    sets = old("web-2", 0, revision=2, image="nginx:1"), old("web-1", 0, revision=1, image="nginx:2")
    decision = decided(deployment(image="nginx:1", meta={"annotations": {REVISION: "2"}}, **RECREATE), *sets)
    assert sizes(decision) == {"web-2": 4}


def test_pods_matter_only_to_deployments_that_recreate() -> None:
    owned = old("web-1", 4, revision=1)
    seen = Object.of(PODS, pod("p", owner=owned))
    for wire, keys in ((deployment(**RECREATE), [KEY]), (deployment(), [])):
        view = Snapshot([(DEPLOYMENTS, wire), (REPLICA_SETS, owned)])
        assert list(waiting_for(seen, view)) == keys


# --- history


def test_a_complete_rollout_drops_the_oldest_revisions_beyond_the_limit() -> None:
    complete = {"replicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "observedGeneration": 1}
    sets = [old(f"web-{number}", 0, revision=number) for number in range(1, 6)]
    sets[0]["status"]["replicas"] = 1  # still has a pod
    wire = numbered(6, status=complete, revisionHistoryLimit=2)
    decision = decided(wire, *sets, old("web-6", 4, revision=6))
    gone = [write.key.name for write in decision.writes if isinstance(write, Delete)]
    assert gone == ["web-2", "web-3"]


def test_a_rollout_under_way_drops_nothing() -> None:
    sets = [old(f"web-{number}", 0, revision=number) for number in range(1, 6)]
    wire = numbered(6, revisionHistoryLimit=0)
    decision = decided(wire, *sets, old("web-6", 4, revision=6, available=1))
    assert not any(isinstance(write, Delete) for write in decision.writes)


# --- whose they are


def test_a_deployment_that_is_being_deleted_only_counts() -> None:
    decision = decided(deployment(meta=GOING, image="nginx:2"), old("web-1", 4, revision=1))
    assert decision.writes == ()
    assert decision.status is not None
    assert decision.status["availableReplicas"] == 4


def test_an_orphan_with_the_template_is_adopted_and_becomes_the_new_replica_set() -> None:
    orphan = replica_set("legacy", replicas=4)
    decision = decided(deployment(), orphan)
    adopted, renumbered, noted = (write for write in decision.writes if isinstance(write, Patch))
    assert adopted.patch["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert renumbered.patch == {"metadata": {"annotations": {REVISION: "1"}}}
    assert noted.resource == DEPLOYMENTS


def test_an_orphan_brings_the_deployments_that_select_it() -> None:
    view = Snapshot(
        [(DEPLOYMENTS, deployment()), (DEPLOYMENTS, deployment("other", selector={"matchLabels": {"a": "b"}}))]
    )
    assert list(adopters(Object.of(REPLICA_SETS, replica_set("legacy")), view)) == [KEY]
    assert list(adopters(Object.of(REPLICA_SETS, old("web-1", 1, revision=1)), view)) == []


# --- on the embedded server


def test_a_rolling_update_keeps_enough_pods_available_and_ends_with_one_replica_set_in_use() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEPLOYMENTS, new_deployment())
        await says(cluster, DEPLOYMENTS, "web", replicas=4)
        await carried_through(cluster, "nginx:1")
        await to_image(cluster, "nginx:2")
        assert min(await carried_through(cluster, "nginx:2")) >= 3
        await cluster.settle()
        done = await cluster.get(DEPLOYMENTS, "web")
        assert done["metadata"]["annotations"][REVISION] == "2"
        assert [each["reason"] for each in done["status"]["conditions"]] == [
            "MinimumReplicasAvailable",
            "NewReplicaSetAvailable",
        ]
        sets = {each["metadata"]["annotations"][REVISION]: each for each in await cluster.list(REPLICA_SETS)}
        assert {number: each["spec"]["replicas"] for number, each in sets.items()} == {"1": 0, "2": 4}
        events = [each["message"] for each in await cluster.list(EVENTS) if each["reason"] == "ScalingReplicaSet"]
        assert f"Scaled up replica set {sets['1']['metadata']['name']} from 0 to 4" in events

    play(story, controllers=BOTH)


def test_an_undone_rollout_is_a_new_revision_of_the_old_replica_set() -> None:
    async def story(cluster: Cluster) -> None:
        await rolled_out(cluster)
        await to_image(cluster, "nginx:1")
        await carried_through(cluster, "nginx:1", replicas=1)
        await cluster.settle()
        sets = await cluster.list(REPLICA_SETS)
        revisions = {each["spec"]["template"]["spec"]["containers"][0]["image"]: each for each in sets}
        assert len(sets) == 2
        assert revisions["nginx:1"]["metadata"]["annotations"][REVISION] == "3"
        assert revisions["nginx:1"]["metadata"]["annotations"][HISTORY] == "1"
        assert (await cluster.get(DEPLOYMENTS, "web"))["metadata"]["annotations"][REVISION] == "3"

    play(story, controllers=BOTH)


def test_recreating_never_runs_old_and_new_pods_together() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEPLOYMENTS, new_deployment(replicas=2, strategy={"type": "Recreate"}))
        await says(cluster, DEPLOYMENTS, "web", replicas=2)
        for each in await cluster.list(PODS):
            # A finalizer holds the pod, as a node does while its containers end.
            await cluster.patch(PODS, each["metadata"]["name"], {"metadata": {"finalizers": ["example.com/slow"]}})
        await cluster.report_all()
        await says(cluster, DEPLOYMENTS, "web", availableReplicas=2)
        await to_image(cluster, "nginx:2")
        now = await says(cluster, DEPLOYMENTS, "web", observedGeneration=2, terminatingReplicas=2, replicas=None)
        assert len(await cluster.list(REPLICA_SETS)) == 1
        assert now["status"].get("updatedReplicas") is None
        for each in await cluster.list(PODS):
            await cluster.patch(PODS, each["metadata"]["name"], {"metadata": {"finalizers": None}})
        await says(cluster, DEPLOYMENTS, "web", updatedReplicas=2, terminatingReplicas=0)
        images = {each["spec"]["containers"][0]["image"] for each in await cluster.list(PODS)}
        assert images == {"nginx:2"}

    play(story, controllers=BOTH)


def test_a_rollout_that_does_not_get_on_fails_at_its_deadline_without_any_event() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(DEPLOYMENTS, new_deployment(progressDeadlineSeconds=60))
        await cluster.advance(50)

        async def reason() -> str:
            conditions = (await cluster.get(DEPLOYMENTS, "web"))["status"]["conditions"]
            return next(str(each["reason"]) for each in conditions if each["type"] == "Progressing")

        assert await reason() == "ReplicaSetUpdated"
        await cluster.advance(15)
        assert await reason() == "ProgressDeadlineExceeded"
        await cluster.report_all()
        await cluster.settle()
        assert await reason() == "NewReplicaSetAvailable"

    play(story, controllers=BOTH)
