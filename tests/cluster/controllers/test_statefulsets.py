"""Stateful sets: one pass at a time, from a world to a decision; then whole stories on an embedded cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.protocols import PatchType
from holdfast.client.resources import CLAIMS, CONTROLLER_REVISIONS, EVENTS, PODS, STATEFUL_SETS
from holdfast.cluster.controllers import revisions
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.controllers.revisions import Revision
from holdfast.cluster.controllers.statefulsets import CONTROLLER, decide, observe
from holdfast.kernel.outcomes import Again, Done
from holdfast.meta import times
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app": "web"}
DATA = {
    "metadata": {"name": "data", "labels": {"tier": "db"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": image}]}}


def stateful_set(*, image: str = "nginx:1", status: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """As the server has it, with its defaults."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "n", "uid": "set", "generation": 1},
        "spec": {
            "serviceName": "web",
            "replicas": 3,
            "selector": {"matchLabels": LABELS},
            "template": template(image),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            **spec,
        },
        "status": {"replicas": 0, **(status or {})},
    }


OWNER = owner_reference(stateful_set())


def revision(image: str, number: int) -> dict[str, Any]:
    (create,) = revisions.plan(stateful_set(image=image), ()).writes
    assert isinstance(create, Create)
    metadata = {**create.manifest["metadata"], "uid": f"revision-{number}"}
    return {**create.manifest, "metadata": metadata, "revision": number}


OLD, NEW = revision("nginx:1", 1), revision("nginx:2", 2)
OLD_NAME, NEW_NAME = OLD["metadata"]["name"], NEW["metadata"]["name"]


def pod(
    ordinal: int,
    *,
    of: str = OLD_NAME,
    phase: str = "Running",
    ready: bool = True,
    since: datetime = NOW - timedelta(hours=1),
    going: bool = False,
    owner: Mapping[str, Any] | None = OWNER,
) -> dict[str, Any]:
    name = f"web-{ordinal}"
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "n",
        "uid": f"pod-{ordinal}",
        "resourceVersion": "5",
        "labels": {
            **LABELS,
            "controller-revision-hash": of,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
        },
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    if going:
        metadata["deletionTimestamp"] = times.format(NOW)
    running = ready and phase == "Running"
    condition = {"type": "Ready", "status": str(running), "lastTransitionTime": times.format(since)}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": [condition]}}


def claim(ordinal: int, *, owners: Iterable[Mapping[str, Any]] = (), going: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"data-web-{ordinal}", "namespace": "n", "uid": f"claim-{ordinal}"}
    if owners:
        metadata["ownerReferences"] = [dict(each) for each in owners]
    if going:
        metadata["deletionTimestamp"] = times.format(NOW)
    return {"metadata": metadata}


def pod_owner(ordinal: int, uid: str = "") -> dict[str, Any]:
    reference = {"name": f"web-{ordinal}", "uid": uid or f"pod-{ordinal}"}
    return owner_reference({"apiVersion": "v1", "kind": "Pod", "metadata": reference})


def view(
    owner: Mapping[str, Any],
    *,
    pods: Iterable[Mapping[str, Any]] = (),
    history: Iterable[Mapping[str, Any]] = (OLD,),
    claims: Iterable[Mapping[str, Any]] = (),
) -> Snapshot:
    return Snapshot(
        [
            (STATEFUL_SETS, owner),
            *((PODS, each) for each in pods),
            *((CONTROLLER_REVISIONS, each) for each in history),
            *((CLAIMS, each) for each in claims),
        ],
        indexes=CONTROLLER.indexes,
    )


def decided(owner: Mapping[str, Any], **others: Any) -> Decision:
    world = observe(view(owner, **others), Key("n", "web"))
    assert world is not None
    return decide(world, NOW)


def asked(decision: Decision) -> list[str]:
    """The writes in short, wave by wave: `+` for what is created, `-` for what is deleted, `~` for what is patched."""
    short = []
    for write in sorted(decision.writes, key=lambda write: write.wave):
        match write:
            case Create(manifest=manifest):
                short.append(f"+{manifest['metadata']['name']}")
            case Delete(key=key):
                short.append(f"-{key.name}")
            case Patch(key=key):
                short.append(f"~{key.name}")
    return short


def created(decision: Decision, name: str) -> Mapping[str, Any]:
    creates = (write.manifest for write in decision.writes if isinstance(write, Create))
    return next(manifest for manifest in creates if manifest["metadata"]["name"] == name)


def patched(decision: Decision, name: str) -> Patch:
    return next(write for write in decision.writes if isinstance(write, Patch) and write.key.name == name)


ROLLING: dict[str, Any] = {"status": {"currentRevision": OLD_NAME}, "image": "nginx:2"}
"""A set whose template has changed from nginx:1 to nginx:2."""


# --- coming up


def test_there_is_nothing_to_do_about_a_set_that_does_not_exist() -> None:
    assert observe(Snapshot(indexes=CONTROLLER.indexes), Key("n", "web")) is None


def test_a_new_set_gets_a_revision_and_its_first_pod_and_says_so() -> None:
    decision = decided(stateful_set(), history=())
    assert asked(decision) == [f"+{OLD_NAME}", "+web-0"]
    assert [(notice.type, notice.reason, notice.message) for notice in decision.notices] == [
        ("Normal", "SuccessfulCreate", "create Pod web-0 in StatefulSet web successful")
    ]
    assert decision.status == {
        "observedGeneration": 1,
        "replicas": 0,
        "availableReplicas": 0,
        "currentRevision": OLD_NAME,
        "updateRevision": OLD_NAME,
        "collisionCount": 0,
    }


def test_a_replica_is_known_by_its_name_host_name_and_labels() -> None:
    made = created(decided(stateful_set()), "web-0")
    assert made["metadata"] == {
        "name": "web-0",
        "generateName": "web-",
        "namespace": "n",
        "labels": {
            "app": "web",
            "controller-revision-hash": OLD_NAME,
            "statefulset.kubernetes.io/pod-name": "web-0",
            "apps.kubernetes.io/pod-index": "0",
        },
        "ownerReferences": [OWNER],
    }
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-0", "web")


@pytest.mark.parametrize(
    ("policy", "pods", "writes"),
    [
        pytest.param("OrderedReady", [], ["+web-0"], id="ordered: the first comes first"),
        pytest.param("OrderedReady", [pod(0, phase="Pending")], [], id="ordered: one that is pending is waited for"),
        pytest.param("OrderedReady", [pod(0, ready=False)], [], id="ordered: one that is not ready is waited for"),
        pytest.param("OrderedReady", [pod(0)], ["+web-1"], id="ordered: one that is ready lets the next begin"),
        pytest.param("OrderedReady", [pod(0, going=True)], [], id="ordered: one that is going is waited for"),
        pytest.param("OrderedReady", [pod(1), pod(2)], ["+web-0"], id="ordered: a gap is filled"),
        pytest.param("OrderedReady", [pod(0), pod(1), pod(2)], [], id="ordered: all are there"),
        pytest.param("OrderedReady", [pod(0, phase="Failed")], ["-web-0"], id="ordered: one that failed makes way"),
        pytest.param(
            "OrderedReady", [pod(0, phase="Succeeded")], ["-web-0"], id="ordered: so does one that ended well"
        ),
        pytest.param("OrderedReady", [pod(0, phase="Failed", going=True)], [], id="ordered: and is waited for"),
        pytest.param("Parallel", [], ["+web-0", "+web-1", "+web-2"], id="parallel: all at once"),
        pytest.param("Parallel", [pod(0, ready=False)], ["+web-1", "+web-2"], id="parallel: no replica waits"),
        pytest.param("Parallel", [pod(0, phase="Failed"), pod(1)], ["-web-0", "+web-2"], id="parallel: replacing too"),
        pytest.param("Parallel", [pod(0, going=True), pod(1), pod(2)], [], id="parallel: a place is empty first"),
    ],
)
def test_replicas_come_up(policy: str, pods: list[dict[str, Any]], writes: list[str]) -> None:
    assert asked(decided(stateful_set(podManagementPolicy=policy), pods=pods)) == writes


def test_a_replica_counts_for_the_next_only_when_it_has_been_ready_for_long_enough() -> None:
    owner = stateful_set(minReadySeconds=30)
    early = decided(owner, pods=[pod(0, since=NOW - timedelta(seconds=10))])
    assert asked(early) == []
    assert early.outcome == Again(timedelta(seconds=20), "web-0 becomes available")
    assert early.status is not None
    assert (early.status["readyReplicas"], early.status["availableReplicas"]) == (1, 0)
    late = decided(owner, pods=[pod(0, since=NOW - timedelta(seconds=30))])
    assert asked(late) == ["+web-1"]
    assert late.outcome == Done()


def test_ordinals_begin_where_the_set_says() -> None:
    owner = stateful_set(replicas=2, ordinals={"start": 5})
    assert asked(decided(owner, pods=[pod(5)])) == ["+web-6"]
    assert asked(decided(owner, pods=[pod(0), pod(5), pod(6)])) == ["-web-0"]


# --- going


@pytest.mark.parametrize(
    ("policy", "pods", "writes"),
    [
        pytest.param("OrderedReady", [pod(0), pod(1), pod(2)], ["-web-2"], id="ordered: the highest goes first"),
        pytest.param("OrderedReady", [pod(0), pod(1), pod(2, going=True)], [], id="ordered: one at a time"),
        pytest.param("OrderedReady", [pod(0, ready=False), pod(1), pod(2)], [], id="ordered: not while one is ill"),
        pytest.param("OrderedReady", [pod(0), pod(1, ready=False), pod(2)], ["-web-2"], id="ordered: a well one above"),
        pytest.param("OrderedReady", [pod(0), pod(1, ready=False)], ["-web-1"], id="ordered: the ill one itself"),
        pytest.param(
            "OrderedReady", [pod(0), pod(1, ready=False), pod(2, ready=False)], [], id="ordered: two ill ones"
        ),
        pytest.param("Parallel", [pod(0, ready=False), pod(1), pod(2)], ["-web-2", "-web-1"], id="parallel: at once"),
        pytest.param("Parallel", [pod(0), pod(1), pod(2, going=True)], ["-web-1"], id="parallel: no replica waits"),
    ],
)
def test_replicas_that_are_too_many_go(policy: str, pods: list[dict[str, Any]], writes: list[str]) -> None:
    decision = decided(stateful_set(replicas=1, podManagementPolicy=policy), pods=pods)
    assert asked(decision) == writes
    stopped = [notice.message for notice in decision.notices]
    assert stopped == [f"delete Pod {name[1:]} in StatefulSet web successful" for name in writes]


def test_a_set_that_is_being_deleted_changes_nothing() -> None:
    owner = stateful_set(image="nginx:2")
    owner["metadata"]["deletionTimestamp"] = times.format(NOW)
    decision = decided(owner, pods=[pod(0), pod(1, owner=None)])
    assert decision.writes == ()
    assert decision.status is not None
    assert decision.status["replicas"] == 1


# --- updating


@pytest.mark.parametrize(
    ("strategy", "pods", "writes"),
    [
        pytest.param({}, [pod(0), pod(1), pod(2)], ["-web-2"], id="the highest goes first"),
        pytest.param({}, [pod(0), pod(1)], ["+web-2"], id="and comes back at the new revision"),
        pytest.param({}, [pod(0), pod(1), pod(2, of=NEW_NAME, ready=False)], [], id="it is waited for"),
        pytest.param({}, [pod(0), pod(1), pod(2, of=NEW_NAME)], ["-web-1"], id="then the next"),
        pytest.param({}, [pod(0), pod(1, ready=False), pod(2)], [], id="an ill one holds the update"),
        pytest.param({"partition": 2}, [pod(0), pod(1), pod(2)], ["-web-2"], id="above the partition"),
        pytest.param({"partition": 2}, [pod(0), pod(1), pod(2, of=NEW_NAME)], [], id="and not below it"),
        pytest.param({"partition": 9}, [pod(0), pod(1), pod(2)], [], id="a partition beyond all holds all"),
        pytest.param({"maxUnavailable": 2}, [pod(0), pod(1), pod(2)], ["-web-2", "-web-1"], id="two at a time"),
        pytest.param({"maxUnavailable": "10%"}, [pod(0), pod(1), pod(2)], ["-web-2"], id="at least one at a time"),
    ],
)
def test_an_update_stops_old_replicas_from_the_top(
    strategy: dict[str, Any], pods: list[dict[str, Any]], writes: list[str]
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, **strategy}}
    owner = stateful_set(updateStrategy=rolling, **ROLLING)
    assert asked(decided(owner, pods=pods, history=(OLD, NEW))) == writes


@pytest.mark.parametrize(("partition", "expected"), [(0, NEW_NAME), (1, OLD_NAME)])
def test_a_replica_that_is_made_again_has_the_revision_of_its_side_of_the_partition(
    partition: int, expected: str
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    decision = decided(stateful_set(updateStrategy=rolling, **ROLLING), pods=[pod(1), pod(2)], history=(OLD, NEW))
    made = created(decision, "web-0")
    assert made["metadata"]["labels"]["controller-revision-hash"] == expected
    image = "nginx:1" if expected == OLD_NAME else "nginx:2"
    assert made["spec"]["containers"][0]["image"] == image


def test_on_delete_waits_for_a_deletion_and_creates_the_new_revision() -> None:
    owner = stateful_set(updateStrategy={"type": "OnDelete"}, **ROLLING)
    assert asked(decided(owner, pods=[pod(0), pod(1), pod(2)], history=(OLD, NEW))) == []
    made = created(decided(owner, pods=[pod(1), pod(2)], history=(OLD, NEW)), "web-0")
    assert made["metadata"]["labels"]["controller-revision-hash"] == NEW_NAME


@pytest.mark.parametrize(
    ("pods", "counts"),
    [
        pytest.param(
            [pod(0), pod(1), pod(2)], (3, 3, 2, None, OLD_NAME), id="the one that is being stopped is not current"
        ),
        pytest.param([pod(0), pod(1), pod(2, going=True)], (3, 3, 2, None, OLD_NAME), id="while it goes"),
        pytest.param([pod(0), pod(1)], (2, 2, 2, None, OLD_NAME), id="when it is gone"),
        pytest.param([pod(0), pod(1), pod(2, of=NEW_NAME, ready=False)], (3, 2, 2, 1, OLD_NAME), id="when it is new"),
        pytest.param(
            [pod(0, of=NEW_NAME, ready=False), pod(1, of=NEW_NAME), pod(2, of=NEW_NAME)],
            (3, 2, None, 3, OLD_NAME),
            id="until the last is ready",
        ),
        pytest.param(
            [pod(0, of=NEW_NAME), pod(1, of=NEW_NAME), pod(2, of=NEW_NAME)],
            (3, 3, 3, 3, NEW_NAME),
            id="then it is over",
        ),
    ],
)
def test_the_status_counts_replicas_as_an_update_proceeds(
    pods: list[dict[str, Any]], counts: tuple[int, int, int | None, int | None, str]
) -> None:
    status = decided(stateful_set(**ROLLING), pods=pods, history=(OLD, NEW)).status
    assert status is not None
    fields = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "currentRevision")
    assert tuple(status.get(field) for field in fields) == counts
    assert status["updateRevision"] == NEW_NAME


# --- whose pods


def test_a_pod_that_fits_is_adopted_and_one_that_does_not_is_let_go() -> None:
    unselected = pod(1)
    unselected["metadata"]["labels"] = {"app": "other"}
    decision = decided(stateful_set(replicas=1), pods=[pod(0, owner=None), unselected])
    assert asked(decision) == ["~web-0", "~web-1"]
    assert patched(decision, "web-0").patch == {"metadata": {"ownerReferences": [OWNER]}}
    assert patched(decision, "web-1").patch == {"metadata": {"ownerReferences": None}}
    assert decision.status is not None
    assert decision.status["replicas"] == 1


def test_a_pod_of_another_owner_is_left_alone() -> None:
    other = {**OWNER, "uid": "another"}
    assert asked(decided(stateful_set(replicas=1), pods=[pod(0), pod(1, owner=other)])) == []


def test_a_replica_gets_back_the_labels_that_name_it() -> None:
    nameless = pod(0)
    nameless["metadata"]["labels"].pop("statefulset.kubernetes.io/pod-name")
    decision = decided(stateful_set(replicas=1), pods=[nameless])
    assert asked(decision) == ["~web-0"]
    assert [notice.reason for notice in decision.notices] == ["SuccessfulUpdate"]


def test_the_keys_of_an_orphan_and_of_a_claim_are_those_of_the_sets_that_they_may_belong_to() -> None:
    held = view(stateful_set(), pods=[pod(0, owner=None)], claims=[claim(0)])
    orphans, claims = (watch.keys for watch in CONTROLLER.watches)
    for resource, keys in ((PODS, orphans), (CLAIMS, claims)):
        (each,) = held.list(resource)
        assert list(keys(each, held)) == [Key("n", "web")]


# --- volumes


def test_claims_are_made_before_the_pod_that_mounts_them() -> None:
    decision = decided(stateful_set(volumeClaimTemplates=[DATA]))
    assert asked(decision) == ["+data-web-0", "+web-0"]
    assert created(decision, "data-web-0")["metadata"] == {
        "name": "data-web-0",
        "namespace": "n",
        "labels": {"tier": "db", "app": "web"},
    }
    volumes = created(decision, "web-0")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
    assert [notice.message for notice in decision.notices] == [
        "create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "create Pod web-0 in StatefulSet web successful",
    ]


def test_a_claim_that_is_there_is_used_again() -> None:
    assert asked(decided(stateful_set(volumeClaimTemplates=[DATA]), claims=[claim(0)])) == ["+web-0"]


def test_a_claim_that_was_lost_is_made_again_while_its_pod_is_pending() -> None:
    owner = stateful_set(volumeClaimTemplates=[DATA])
    assert asked(decided(owner, pods=[pod(0, phase="Pending")])) == ["+data-web-0"]


def test_a_pod_is_not_made_while_its_claim_is_being_deleted() -> None:
    decision = decided(stateful_set(volumeClaimTemplates=[DATA]), claims=[claim(0, going=True)])
    assert asked(decision) == []
    (notice,) = decision.notices
    assert (notice.type, notice.reason) == ("Warning", "FailedCreate")
    assert notice.message == "create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"


@pytest.mark.parametrize(
    ("deleted", "scaled", "owners"),
    [
        pytest.param("Retain", "Retain", {0: None, 1: None}, id="retain: no owner"),
        pytest.param("Delete", "Retain", {0: "set", 1: "set"}, id="deleted with the set: the set's"),
        pytest.param("Retain", "Delete", {0: None, 1: "pod-1"}, id="scaled in: the pod's that leaves"),
        pytest.param("Delete", "Delete", {0: "set", 1: "pod-1"}, id="both: the set's or the leaving pod's"),
    ],
)
def test_claims_belong_to_whom_the_retention_policy_says(
    deleted: str, scaled: str, owners: dict[int, str | None]
) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    owner = stateful_set(replicas=1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    references = {"set": OWNER, "pod-1": pod_owner(1)}
    held = {"pods": [pod(0), pod(1)]}
    decision = decided(owner, **held, claims=[claim(0), claim(1)])
    for ordinal, uid in owners.items():
        if uid is None:
            assert f"~data-web-{ordinal}" not in asked(decision)
        else:
            wanted = {"metadata": {"ownerReferences": [references[uid]]}}
            assert patched(decision, f"data-web-{ordinal}").patch == wanted
    assert asked(decision)[-1] == "-web-1"
    right = [claim(ordinal, owners=[references[uid]] if uid else ()) for ordinal, uid in owners.items()]
    assert asked(decided(owner, **held, claims=right)) == ["-web-1"]


def test_a_new_claim_belongs_to_the_set_at_once_if_it_is_to_go_with_it() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    decision = decided(stateful_set(volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy))
    assert created(decision, "data-web-0")["metadata"]["ownerReferences"] == [OWNER]


def test_a_pod_waits_for_the_claim_of_its_predecessor_to_go() -> None:
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    owner = stateful_set(volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    assert asked(decided(owner, claims=[claim(0, owners=[pod_owner(0, "earlier")])])) == []


def test_a_claim_with_another_controller_is_not_adopted() -> None:
    other = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "x", "controller": True}
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    owner = stateful_set(replicas=1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    assert asked(decided(owner, pods=[pod(0)], claims=[claim(0, owners=[other])])) == []


def test_a_revision_name_that_another_owner_has_is_avoided() -> None:
    theirs = {**OLD, "metadata": {**OLD["metadata"], "ownerReferences": [{**OWNER, "uid": "daemon"}]}}
    decision = decided(stateful_set(), history=(theirs,))
    assert decision.status is not None
    assert decision.status["collisionCount"] == 1
    assert decision.status["updateRevision"] != OLD_NAME


def test_revisions_decode_as_the_server_keeps_them() -> None:
    (held,) = view(stateful_set()).list(CONTROLLER_REVISIONS)
    assert Revision.of(held).template == template("nginx:1")


# --- stories


def manifest(**spec: Any) -> dict[str, Any]:
    given = {"serviceName": "web", "replicas": 3, "selector": {"matchLabels": LABELS}, "template": template("nginx:1")}
    return {"metadata": {"name": "web"}, "spec": {**given, **spec}}


async def images(cluster: Cluster) -> dict[str, str]:
    pods = await cluster.list(PODS)
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in pods}


async def ready(cluster: Cluster, turns: int = 8) -> list[str]:
    """Have pods become ready one after the other until nothing moves, and say which were new."""
    seen: list[str] = []
    for _ in range(turns):
        await cluster.settle()
        for pod in await cluster.list(PODS):
            if pod["status"]["phase"] == "Pending":
                seen.append(pod["metadata"]["name"])
                await cluster.report(pod["metadata"]["name"])
    await cluster.settle()
    return seen


async def change_image(cluster: Cluster, image: str) -> None:
    await cluster.patch(STATEFUL_SETS, "web", {"spec": {"template": template(image)}})


async def status(cluster: Cluster) -> dict[str, Any]:
    await cluster.settle()
    said: dict[str, Any] = (await cluster.get(STATEFUL_SETS, "web"))["status"]
    return said


def test_a_set_comes_up_is_updated_from_the_top_and_goes_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(STATEFUL_SETS, manifest())
        assert await ready(cluster) == ["web-0", "web-1", "web-2"]
        first = await status(cluster)
        await change_image(cluster, "nginx:2")
        assert await ready(cluster) == ["web-2", "web-1", "web-0"]
        second = await status(cluster)
        assert second["currentRevision"] == second["updateRevision"] != first["currentRevision"]
        assert set((await images(cluster)).values()) == {"nginx:2"}

        old = await cluster.get(CONTROLLER_REVISIONS, first["currentRevision"])
        undo = old["data"]  # what `kubectl rollout undo` sends
        await cluster.client.patch(STATEFUL_SETS, Key("default", "web"), undo, type=PatchType.STRATEGIC)
        assert await ready(cluster) == ["web-2", "web-1", "web-0"]
        assert (await status(cluster))["currentRevision"] == first["currentRevision"]
        kept = await cluster.list(CONTROLLER_REVISIONS)
        assert {each["metadata"]["name"]: each["revision"] for each in kept} == {
            first["currentRevision"]: 3,
            second["currentRevision"]: 2,
        }
        messages = {event["message"] for event in await cluster.list(EVENTS)}
        assert "create Pod web-2 in StatefulSet web successful" in messages
        assert "delete Pod web-2 in StatefulSet web successful" in messages

    play(story, controllers=[CONTROLLER])


def test_a_broken_pod_holds_even_the_update_that_repairs_it_until_it_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(STATEFUL_SETS, manifest())
        await ready(cluster)
        await change_image(cluster, "broken")
        await cluster.settle()
        assert await images(cluster) == {"web-0": "nginx:1", "web-1": "nginx:1", "web-2": "broken"}
        await change_image(cluster, "nginx:1")
        await cluster.advance(60)
        assert (await images(cluster))["web-2"] == "broken"
        await cluster.delete(PODS, "web-2")
        await ready(cluster)
        assert set((await images(cluster)).values()) == {"nginx:1"}

    play(story, controllers=[CONTROLLER])


def test_claims_outlive_scaling_in_only_if_they_are_retained() -> None:
    async def story(cluster: Cluster) -> None:
        policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
        given = {"volumeClaimTemplates": [DATA], "persistentVolumeClaimRetentionPolicy": policy}
        await cluster.create(STATEFUL_SETS, manifest(**given))
        await ready(cluster)
        assert len(await cluster.list(CLAIMS)) == 3
        await cluster.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
        await cluster.advance(5)
        assert [each["metadata"]["name"] for each in await cluster.list(PODS)] == ["web-0"]
        left = [each for each in await cluster.list(CLAIMS) if "deletionTimestamp" not in each["metadata"]]
        assert [each["metadata"]["name"] for each in left] == ["data-web-0"]

    play(story, controllers=[CONTROLLER], components=[GarbageCollector()])


def test_the_next_replica_comes_when_the_one_before_has_been_ready_for_long_enough() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(STATEFUL_SETS, manifest(minReadySeconds=30))
        await cluster.settle()
        await cluster.report("web-0")
        await cluster.advance(29)
        assert list(await images(cluster)) == ["web-0"]
        await cluster.advance(2)
        assert list(await images(cluster)) == ["web-0", "web-1"]

    play(story, controllers=[CONTROLLER])


def test_a_manager_that_is_killed_again_and_again_makes_no_pod_twice() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(STATEFUL_SETS, manifest())
        for _ in range(6):
            await cluster.restart()
            await ready(cluster, turns=1)
        await change_image(cluster, "nginx:2")
        for _ in range(8):
            await cluster.restart()
            await ready(cluster, turns=1)
        said = await status(cluster)
        assert (said["readyReplicas"], said["updatedReplicas"], said["currentReplicas"]) == (3, 3, 3)
        assert len(await cluster.list(CONTROLLER_REVISIONS)) == 2

    play(story, controllers=[CONTROLLER])
