"""Claims and the volumes that meet them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.client.resources import CLAIMS, EVENTS, PODS, VOLUMES, Resource
from holdfast.cluster.controllers import claim_types, claims
from holdfast.cluster.controllers.claims import PROTECTION
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = Key("default", "data")
CONTROLLERS = claims.controllers("/volumes")
(OF_CLAIMS, OF_VOLUMES) = CONTROLLERS
Objects = list[tuple[Resource, dict[str, Any]]]


def claim(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    meta = {"name": "data", "namespace": "default", "uid": "c1", "resourceVersion": "3"}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": meta, "spec": asked, "status": {"phase": "Pending"}}


def volume(
    name: str, size: str = "1Gi", *, ref: dict[str, str] | None = None, ours: bool = False, **spec: Any
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "uid": name, "resourceVersion": "5"}
    if ours:
        meta["annotations"] = {claim_types.PROVISIONED_BY: claim_types.PROVISIONER}
    have = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
    return {"metadata": meta, "spec": have if ref is None else have | {"claimRef": ref}}


OURS = {"namespace": "default", "name": "data", "uid": "c1"}
ANYONES = {"namespace": "default", "name": "data"}
OTHERS = {"namespace": "default", "name": "other", "uid": "c2"}


def storage_class(name: str, provisioner: str = claim_types.PROVISIONER, *, default: bool = False) -> dict[str, Any]:
    meta = {"name": name, "annotations": {claim_types.IS_DEFAULT: "true"}} if default else {"name": name}
    return {"metadata": meta, "provisioner": provisioner, "reclaimPolicy": "Retain"}


def decided(wanted: dict[str, Any], *others: tuple[Resource, dict[str, Any]]) -> Decision:
    world = claims.observe(Snapshot([(CLAIMS, wanted), *others], indexes=OF_CLAIMS.indexes), KEY)
    assert world is not None
    return OF_CLAIMS.decide(world, NOW)


def wrote(decision: Decision) -> list[tuple[str, Any]]:
    """What is written: what it does, and to what."""
    said: list[tuple[str, Any]] = []
    for write in sorted(decision.writes, key=lambda write: write.wave):
        match write:
            case Create(manifest=manifest):
                said.append(("make", manifest["metadata"]["name"]))
            case Patch(resource=resource, key=key, patch=patch) if resource == VOLUMES and "claimRef" in patch["spec"]:
                said.append(("take", key.name))
            case Patch(resource=resource, patch=patch) if resource == CLAIMS:
                said.append(("name", patch["spec"]["volumeName"]))
            case Patch(key=key, patch=patch):
                said.append(("grow", (key.name, patch["spec"]["capacity"]["storage"])))
            case Delete(key=key):
                said.append(("delete", key.name))
    return said


MADE = [("make", "pvc-c1"), ("name", "pvc-c1")]


@pytest.mark.parametrize(
    ("wanted", "others", "writes"),
    [
        pytest.param(claim(), [], MADE, id="a volume is made"),
        pytest.param(claim(storageClassName="fast"), [], MADE, id="for a class that does not exist too"),
        pytest.param(
            claim(storageClassName="fast"),
            [(claim_types.CLASSES, storage_class("fast"))],
            MADE,
            id="and for one of ours",
        ),
        pytest.param(
            claim(storageClassName="fast"),
            [(claim_types.CLASSES, storage_class("fast", "ebs.csi.aws.com"))],
            [],
            id="but not for one of another provisioner",
        ),
        pytest.param(
            claim(),
            [(claim_types.CLASSES, storage_class("gp3", "ebs.csi.aws.com", default=True))],
            [],
            id="nor by default",
        ),
        pytest.param(claim(storageClassName=""), [], [], id="nor for a claim that wants none"),
        pytest.param(
            claim(storageClassName=""),
            [(VOLUMES, volume("v1"))],
            [("take", "v1"), ("name", "v1")],
            id="a free one is taken",
        ),
        pytest.param(
            claim("2Gi"),
            [(VOLUMES, volume(name, size)) for name, size in (("a", "1Gi"), ("b", "8Gi"), ("c", "4Gi"))],
            [("take", "c"), ("name", "c")],
            id="the smallest that is large enough",
        ),
        pytest.param(claim(storageClassName="fast"), [(VOLUMES, volume("v1"))], MADE, id="one of another class is not"),
        pytest.param(
            claim(accessModes=["ReadWriteMany"]), [(VOLUMES, volume("v1"))], MADE, id="nor one that cannot do it"
        ),
        pytest.param(claim(), [(VOLUMES, volume("v1", volumeMode="Block"))], MADE, id="nor one of another mode"),
        pytest.param(
            claim(selector={"matchLabels": {"tier": "gold"}}), [(VOLUMES, volume("v1"))], MADE, id="nor one unselected"
        ),
        pytest.param(claim(), [(VOLUMES, volume("v1", ref=OTHERS))], MADE, id="nor one of another claim"),
        pytest.param(
            claim(),
            [(VOLUMES, volume("pvc-c1", ref=OURS))],
            [("name", "pvc-c1")],
            id="one that was made is not made twice",
        ),
        pytest.param(
            claim(),
            [(VOLUMES, volume("v1", ref=ANYONES))],
            [("take", "v1"), ("name", "v1")],
            id="one kept for its name",
        ),
        pytest.param(
            claim(volumeName="v1"), [(VOLUMES, volume("v1"))], [("take", "v1")], id="one that the claim names"
        ),
        pytest.param(claim(volumeName="v1"), [], [], id="one that does not exist is waited for"),
        pytest.param(
            claim("3Gi", volumeName="v1"),
            [(VOLUMES, volume("v1", "1Gi", ref=OURS, ours=True))],
            [("grow", ("v1", "3Gi"))],
            id="ours grow",
        ),
        pytest.param(
            claim("3Gi", volumeName="v1"), [(VOLUMES, volume("v1", "1Gi", ref=OURS))], [], id="others' do not"
        ),
    ],
)
def test_how_a_claim_is_met(wanted: dict[str, Any], others: Objects, writes: list[Any]) -> None:
    assert wrote(decided(wanted, *others)) == writes


@pytest.mark.parametrize(
    ("wanted", "others", "status", "events"),
    [
        pytest.param(
            claim(volumeName="v1"),
            [(VOLUMES, volume("v1", "2Gi", ref=OURS))],
            {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
            [],
            id="it has its volume",
        ),
        pytest.param(claim(volumeName="v1"), [], {"phase": "Pending"}, [], id="it names one that does not exist"),
        pytest.param(
            claim(volumeName="v1"),
            [(VOLUMES, volume("v1", ref=OTHERS))],
            {"phase": "Pending"},
            [("FailedBinding", 'volume "v1" already bound to a different claim.')],
            id="it names one of another claim",
        ),
        pytest.param(
            claim(storageClassName=""),
            [],
            {"phase": "Pending"},
            [("FailedBinding", "no persistent volumes available for this claim and no storage class is set")],
            id="it waits for another provisioner",
        ),
    ],
)
def test_what_a_claim_says(wanted: dict[str, Any], others: Objects, status: Any, events: list[tuple[str, str]]) -> None:
    decision = decided(wanted, *others)
    assert decision.status == status
    assert [(notice.reason, notice.message) for notice in decision.notices] == events


def test_a_claim_that_lost_its_volume_says_so() -> None:
    wanted = claim(volumeName="v1")
    wanted["metadata"]["annotations"] = claims.BOUND_BY_US
    decision = decided(wanted)
    assert decision.status == {"phase": "Lost"}
    assert [notice.reason for notice in decision.notices] == ["ClaimLost"]


def test_a_claim_of_another_provisioner_waits_for_it() -> None:
    fast = (claim_types.CLASSES, storage_class("fast", "ebs.csi.aws.com"))
    (notice,) = decided(claim(storageClassName="fast"), fast).notices
    assert notice.reason == "ExternalProvisioning"
    assert "'ebs.csi.aws.com'" in notice.message


def test_the_volume_that_is_made() -> None:
    (made, _) = decided(claim("5Gi"), (claim_types.CLASSES, storage_class("slow", default=True))).writes
    assert isinstance(made, Create)
    assert made.manifest == {
        "metadata": {"name": "pvc-c1", "annotations": {claim_types.PROVISIONED_BY: claim_types.PROVISIONER}},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **OURS},
            "hostPath": {"path": "/volumes/pvc-c1", "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "slow",
            "volumeMode": "Filesystem",
        },
    }


def pod(*, node: str = "n1", phase: str = "Running", of: str = "data") -> dict[str, Any]:
    spec = {"nodeName": node, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": of}}, {"name": "w"}]}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": {"phase": phase}}


DELETE: dict[str, Any] = {"ours": True, "persistentVolumeReclaimPolicy": "Delete"}


@pytest.mark.parametrize(
    ("others", "goes", "writes"),
    [
        pytest.param([(PODS, pod())], False, [], id="a pod uses it"),
        pytest.param([(PODS, pod(phase="Succeeded"))], True, [], id="a pod that has ended does not"),
        pytest.param([(PODS, pod(node=""))], True, [], id="nor one that is not placed"),
        pytest.param([(PODS, pod(of="other"))], True, [], id="nor one that uses another"),
        pytest.param([(VOLUMES, volume("v", ref=OURS, **DELETE))], True, [("delete", "v")], id="its volume goes too"),
        pytest.param([(VOLUMES, volume("v", ref=OURS))], True, [], id="one that is retained does not"),
        pytest.param([(VOLUMES, volume("v", ref=ANYONES, **DELETE))], True, [], id="nor one that it never had"),
    ],
)
def test_when_a_claim_goes(others: Objects, goes: bool, writes: list[Any]) -> None:
    world = claims.observe(Snapshot([(CLAIMS, claim()), *others], indexes=OF_CLAIMS.indexes), KEY)
    assert world is not None
    decision = claims.cleanup(world, NOW)
    assert (decision.finalized, wrote(decision)) == (goes, writes)


@pytest.mark.parametrize(
    ("ref", "present", "phase"),
    [
        pytest.param(None, [], "Available", id="it has no claim"),
        pytest.param(ANYONES, [claim()], "Available", id="it is kept for a name"),
        pytest.param(OURS, [claim()], "Bound", id="it has a claim"),
        pytest.param(OURS | {"uid": "earlier"}, [claim()], "Released", id="it was an earlier one's"),
        pytest.param(OURS, [], "Released", id="its claim is gone"),
    ],
)
def test_what_a_volume_says(ref: Any, present: list[Any], phase: str) -> None:
    view = Snapshot([(VOLUMES, volume("v", ref=ref)), *((CLAIMS, each) for each in present)])
    world = claims.observe_volume(view, Key("", "v"))
    assert world is not None
    assert claims.decide_volume(world, NOW).status == {"phase": phase}


# --- on a cluster


def manifest(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": "data"}, "spec": asked}


def test_a_claim_is_bound_grows_is_protected_and_goes_with_its_volume() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(claim_types.CLASSES, claim_types.STANDARD)
        uid = (await cluster.create(CLAIMS, manifest()))["metadata"]["uid"]
        await cluster.settle()
        bound = await cluster.get(CLAIMS, "data")
        assert bound["spec"]["volumeName"] == f"pvc-{uid}"
        assert bound["spec"]["storageClassName"] == "standard", "the class that it has got is said"
        assert bound["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
        }
        assert bound["metadata"]["finalizers"] == [PROTECTION]
        assert (await cluster.get(VOLUMES, f"pvc-{uid}"))["status"]["phase"] == "Bound"

        await cluster.patch(CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
        await cluster.settle()
        assert (await cluster.get(CLAIMS, "data"))["status"]["capacity"] == {"storage": "2Gi"}

        mounted = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}], "nodeName": "n1"}
        spec = {"containers": [{"name": "c", "image": "i"}], **mounted}
        await cluster.create(PODS, {"metadata": {"name": "web"}, "spec": spec})
        await cluster.settle()
        await cluster.delete(CLAIMS, "data")
        await cluster.settle()
        assert "deletionTimestamp" in (await cluster.get(CLAIMS, "data"))["metadata"]
        await cluster.delete(PODS, "web", grace_seconds=0)
        await cluster.settle()
        assert await cluster.find(CLAIMS, "data") is None
        assert await cluster.list(VOLUMES) == []

    play(story, controllers=CONTROLLERS)


def test_a_claim_that_waits_is_bound_as_soon_as_there_is_a_volume() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CLAIMS, manifest(storageClassName=""))
        await cluster.settle()
        assert (await cluster.get(CLAIMS, "data"))["status"] == {"phase": "Pending"}
        assert [each["reason"] for each in await cluster.list(EVENTS)] == ["FailedBinding"]
        made = volume("v1", "4Gi")
        await cluster.create(VOLUMES, {"metadata": {"name": "v1"}, "spec": made["spec"]})
        await cluster.settle()
        assert (await cluster.get(CLAIMS, "data"))["status"]["capacity"] == {"storage": "4Gi"}
        await cluster.delete(CLAIMS, "data")
        await cluster.settle()
        assert (await cluster.get(VOLUMES, "v1"))["status"]["phase"] == "Released"

    play(story, controllers=CONTROLLERS)
