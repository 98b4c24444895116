"""Endpoints and EndpointSlices: which pods are behind a service, and how little changes when one of them does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.cluster.rollouts import GOING, LABELS, NOW, metadata, pod

from holdfast.client.objects import Object
from holdfast.client.resources import ENDPOINTS, NODES, PODS, SERVICES, SLICES
from holdfast.cluster.controllers import endpoints, slices
from holdfast.cluster.controllers.backends import BY_SELECTOR, services_of
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import NOTHING, Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look
from holdfast.testing.snapshots import Snapshot

KEY = Key("default", "web")
READY = "2030-01-01T11:00:00Z"
HTTP = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}
CREATED = "2030-01-01T10:00:00Z"
TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"


def service(*, labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata("web", labels=dict(labels or {}), creationTimestamp=CREATED),
        "spec": {"selector": LABELS, "ports": [HTTP], "type": "ClusterIP", "clusterIP": "10.96.0.1", **spec},
    }


HEADLESS: dict[str, Any] = {"clusterIP": "None"}


def backend(number: int, *, ready: bool = True, status: Mapping[str, Any] | None = None, **how: Any) -> dict[str, Any]:
    ip = f"10.0.0.{number}"
    addresses = {"podIP": ip, "podIPs": [{"ip": ip}]}
    return pod(f"web-{number:03}", ready=READY if ready else None, status={**addresses, **(status or {})}, **how)


def view(wire: dict[str, Any] | None, *pods: dict[str, Any]) -> Snapshot:
    made = Snapshot([(PODS, each) for each in pods], indexes=[BY_SELECTOR])
    if wire is not None:
        made.put(SERVICES, wire)
    return made


# --- Endpoints


def listed(wire: dict[str, Any], *pods: dict[str, Any], held: dict[str, Any] | None = None) -> Decision:
    seen = view(wire, *pods)
    if held is not None:
        seen.put(ENDPOINTS, held)
    world = endpoints.observe(seen, KEY)
    assert world is not None
    return endpoints.decide(world, NOW)


def made(decision: Decision) -> dict[str, Any]:
    """What is created, as the server would have it."""
    (write,) = decision.writes
    assert isinstance(write, Create)
    manifest = dict(write.manifest)
    return {**manifest, "metadata": {**manifest["metadata"], "uid": "uid-made", "resourceVersion": "7"}}


def address(number: int, **more: Any) -> dict[str, Any]:
    name = f"web-{number:03}"
    reference = {"kind": "Pod", "namespace": "default", "name": name, "uid": f"uid-{name}"}
    return {"ip": f"10.0.0.{number}", "nodeName": "n1", "targetRef": reference, **more}


def test_addresses_are_sorted_into_those_that_serve_and_those_that_do_not() -> None:
    found = made(listed(service(labels={"team": "blue"}), backend(2), backend(1), backend(3, ready=False)))
    assert found["subsets"] == [
        {
            "addresses": [address(1), address(2)],
            "notReadyAddresses": [address(3)],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
    ]
    assert found["metadata"]["labels"] == {"team": "blue", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert found["metadata"]["annotations"] == {TRIGGERED: READY}


@pytest.mark.parametrize(
    ("why", "spec", "how", "side"),
    [
        ("it is ready", {}, {}, "addresses"),
        ("it is not ready", {}, {"ready": False}, "notReadyAddresses"),
        ("all are wanted", {"publishNotReadyAddresses": True}, {"ready": False}, "addresses"),
        ("it is on its way out", {}, {"meta": GOING}, None),
        ("all are wanted, to the end", {"publishNotReadyAddresses": True}, {"meta": GOING}, "addresses"),
        ("it has ended", {"publishNotReadyAddresses": True}, {"phase": "Failed"}, None),
        ("it has no address", {}, {"status": {"podIP": "", "podIPs": []}}, None),
        ("its address is of another family", {"ipFamilies": ["IPv6"]}, {}, None),
        ("it has no port of that name", {"ports": [{**HTTP, "targetPort": "web"}]}, {}, None),
        ("no port is needed", {"ports": [], **HEADLESS}, {}, "addresses"),
        ("it is not selected", {"selector": {"app": "other"}}, {}, None),
        ("everything is selected", {"selector": {}}, {}, "addresses"),
    ],
)
def test_where_a_pod_is_listed(why: str, spec: dict[str, Any], how: dict[str, Any], side: str | None) -> None:
    subsets = made(listed(service(**spec), backend(1, **how))).get("subsets", [])
    assert [key for subset in subsets for key in subset if key != "ports"] == ([side] if side else []), why


def test_a_port_by_name_may_differ_from_pod_to_pod() -> None:
    def container(number: int) -> dict[str, Any]:
        return {"containers": [{"name": "main", "ports": [{"name": "web", "containerPort": number}]}]}

    wire = service(ports=[{**HTTP, "targetPort": "web", "appProtocol": "h2c"}])
    found = made(listed(wire, backend(1, spec=container(9090)), backend(2, spec=container(8080))))
    assert [(each["ports"][0]["port"], each["addresses"][0]["ip"]) for each in found["subsets"]] == [
        (8080, "10.0.0.2"),
        (9090, "10.0.0.1"),
    ]
    assert found["subsets"][0]["ports"][0]["appProtocol"] == "h2c"


def test_a_sidecar_may_have_the_port() -> None:
    sidecar = {"name": "proxy", "restartPolicy": "Always", "ports": [{"name": "web", "containerPort": 15001}]}
    wire = service(ports=[{**HTTP, "targetPort": "web"}])
    found = made(listed(wire, backend(1, spec={"initContainers": [sidecar]})))
    assert found["subsets"][0]["ports"][0]["port"] == 15001


def test_a_headless_service_says_so_and_knows_pods_by_their_host_names() -> None:
    known = {"hostname": "web-0", "subdomain": "web"}
    other = {"hostname": "web-1", "subdomain": "elsewhere"}
    found = made(listed(service(ports=[], **HEADLESS), backend(1, spec=known), backend(2, spec=other)))
    assert found["subsets"] == [{"addresses": [address(1, hostname="web-0"), address(2)]}]
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


def test_what_is_as_it_should_be_is_not_written() -> None:
    held = made(listed(service(), backend(1)))
    assert listed(service(), backend(1), held=held) == NOTHING


def test_a_change_of_pods_or_labels_is_one_patch() -> None:
    held = made(listed(service(labels={"old": "1"}), backend(1)))
    (write,) = listed(service(labels={"new": "2"}), backend(1), backend(2), held=held).writes
    assert isinstance(write, Patch)
    assert (write.uid, write.version) == ("uid-made", "7")
    assert write.patch["metadata"]["labels"] == {"new": "2", "old": None}
    assert len(write.patch["subsets"][0]["addresses"]) == 2


def test_more_addresses_than_one_object_may_have_are_left_out_and_it_says_so() -> None:
    pods = [backend(number, ready=number > 100) for number in range(1, 1102)]
    found = made(listed(service(), *pods))
    (subset,) = found["subsets"]
    assert len(subset["addresses"]) == 1000
    assert "notReadyAddresses" not in subset
    assert found["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"] == "truncated"
    (write,) = listed(service(), backend(101), held=found).writes
    assert isinstance(write, Patch)
    assert write.patch["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"] is None


def test_endpoints_go_with_their_service_unless_another_client_wrote_them() -> None:
    seen = view(None)
    seen.put(ENDPOINTS, made(listed(service())))
    world = endpoints.observe(seen, KEY)
    assert world is not None
    (write,) = endpoints.decide(world, NOW).writes
    assert isinstance(write, Delete)
    assert write.key == KEY
    seen.put(ENDPOINTS, {"metadata": metadata("web")})
    world = endpoints.observe(seen, KEY)
    assert world is not None
    assert endpoints.decide(world, NOW) == NOTHING


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName"}])
def test_a_service_without_a_selector_is_left_to_others(spec: dict[str, Any]) -> None:
    assert endpoints.observe(view(service(**spec)), KEY) is None
    assert slices.observe(view(service(**spec)), KEY) is None


def test_a_pod_brings_the_services_that_select_it() -> None:
    seen = view(service())
    seen.put(SERVICES, {**service(selector={"app": "web", "tier": "front"}), "metadata": metadata("front")})
    seen.put(SERVICES, {**service(selector={}), "metadata": metadata("all")})
    seen.put(SERVICES, {**service(selector=None), "metadata": metadata("none")})
    assert sorted(key.name for key in services_of(Object.of(PODS, backend(1)), seen)) == ["all", "web"]


# --- EndpointSlices


def sliced(
    wire: dict[str, Any],
    *pods: dict[str, Any],
    held: tuple[dict[str, Any], ...] = (),
    nodes: Mapping[str, str] | None = None,
) -> Decision:
    seen = view(wire, *pods)
    for each in held:
        seen.put(SLICES, each)
    for name, zone in (nodes or {}).items():
        seen.put(NODES, {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}})
    world = slices.observe(seen, KEY)
    assert world is not None
    return slices.decide(world, NOW)


def kept(wire: dict[str, Any], *pods: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The slices that are made for the pods, as the server would have them."""
    manifests = [dict(write.manifest) for write in sliced(wire, *pods).writes if isinstance(write, Create)]
    return tuple(
        {**each, "metadata": {**each["metadata"], "uid": f"uid-{each['metadata']['name']}", "resourceVersion": "7"}}
        for each in manifests
    )


def test_a_slice_has_the_pods_with_their_state_and_belongs_to_its_service() -> None:
    spec = {"hostname": "web-0", "subdomain": "web"}
    (found,) = kept(service(labels={"team": "blue"}), backend(2, ready=False), backend(1, spec=spec))
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert found["endpoints"] == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": address(1)["targetRef"],
            "hostname": "web-0",
            "nodeName": "n1",
        },
        {
            "addresses": ["10.0.0.2"],
            "conditions": {"ready": False, "serving": False, "terminating": False},
            "targetRef": address(2)["targetRef"],
            "nodeName": "n1",
        },
    ]
    meta = found["metadata"]
    assert meta["labels"] == {
        "team": "blue",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert meta["annotations"] == {TRIGGERED: READY}
    assert meta["generateName"] == "web-"
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "name": "web",
            "uid": "uid-web",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


@pytest.mark.parametrize(
    ("why", "published", "ready", "going", "conditions"),
    [
        ("it serves", False, True, False, (True, True, False)),
        ("it does not", False, False, False, (False, False, False)),
        ("it serves to the end", False, True, True, (False, True, True)),
        ("all are wanted", True, False, False, (True, False, False)),
        ("all are wanted, to the end", True, True, True, (True, True, True)),
    ],
)
def test_a_slice_says_of_each_pod_whether_it_is_ready_serves_and_ends(
    why: str, published: bool, ready: bool, going: bool, conditions: tuple[bool, bool, bool]
) -> None:
    wire = service(publishNotReadyAddresses=published)
    (found,) = kept(wire, backend(1, ready=ready, meta=GOING if going else {}))
    (one,) = found["endpoints"]
    assert tuple(one["conditions"].values()) == conditions, why


def test_a_slice_tells_the_zone_of_the_node() -> None:
    (write,) = sliced(service(), backend(1), nodes={"n1": "eu-1", "n2": "eu-2"}).writes
    assert isinstance(write, Create)
    assert write.manifest["endpoints"][0]["zone"] == "eu-1"


def test_a_service_without_pods_has_one_empty_slice_for_each_family() -> None:
    found = kept(service(ipFamilies=["IPv4", "IPv6"]))
    assert [(each["addressType"], each["endpoints"], each["ports"]) for each in found] == [
        ("IPv4", [], []),
        ("IPv6", [], []),
    ]
    assert sliced(service(ipFamilies=["IPv4", "IPv6"]), held=found) == Decision()


def test_an_empty_slice_is_filled_and_emptied_again_instead_of_being_replaced() -> None:
    (empty,) = kept(service())
    (filling,) = sliced(service(), backend(1), held=(empty,)).writes
    assert isinstance(filling, Patch)
    assert [each["addresses"] for each in filling.patch["endpoints"]] == [["10.0.0.1"]]
    assert filling.patch["ports"][0]["port"] == 8080
    (emptying,) = sliced(service(), held=kept(service(), backend(1))).writes
    assert isinstance(emptying, Patch)
    assert (emptying.patch["endpoints"], emptying.patch["ports"]) == ([], [])


def test_what_is_as_it_should_be_is_not_sliced_anew() -> None:
    pods = [backend(number) for number in range(1, 4)]
    assert sliced(service(), *pods, held=kept(service(), *pods)) == Decision()


def test_a_hundred_pods_fill_a_slice_and_one_more_begins_another() -> None:
    found = kept(service(), *(backend(number) for number in range(1, 102)))
    assert [len(each["endpoints"]) for each in found] == [100, 1]


def test_a_change_of_one_pod_is_a_change_of_one_slice() -> None:
    pods = [backend(number) for number in range(1, 151)]
    held = kept(service(), *pods)
    (write,) = sliced(service(), *pods[1:], held=held).writes
    assert isinstance(write, Patch)
    assert len(write.patch["endpoints"]) == 99
    (write,) = sliced(service(), *pods, backend(151), held=held).writes
    assert isinstance(write, Patch)
    assert len(write.patch["endpoints"]) == 51


def test_new_pods_fill_what_is_changed_anyway() -> None:
    pods = [backend(number) for number in range(1, 151)]
    held = kept(service(), *pods)
    (write,) = sliced(service(), *pods[1:], backend(151), held=held).writes
    assert isinstance(write, Patch)
    assert len(write.patch["endpoints"]) == 100


def test_slices_that_are_not_needed_are_deleted() -> None:
    pods = [backend(number) for number in range(1, 151)]
    held = kept(service(), *pods)
    (write,) = sliced(service(), *pods[:100], held=held).writes
    assert isinstance(write, Delete)
    assert write.uid == held[1]["metadata"]["uid"]


def test_slices_of_a_family_that_the_service_no_longer_has_go() -> None:
    held = kept(service(ipFamilies=["IPv4", "IPv6"]))
    (write,) = sliced(service(), held=held).writes
    assert isinstance(write, Delete)


def test_labels_of_the_service_reach_its_slices() -> None:
    held = kept(service(labels={"old": "1"}), backend(1))
    (write,) = sliced(service(labels={"new": "2"}), backend(1), held=held).writes
    assert isinstance(write, Patch)
    assert write.patch["metadata"]["labels"] == {"new": "2", "old": None}


# --- on the embedded server

BOTH = (endpoints.CONTROLLER, slices.CONTROLLER)


async def _served(cluster: Cluster) -> None:
    await cluster.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}})
    containers = [{"name": "main", "image": "nginx:1"}]
    for number in (1, 2):
        name = f"web-{number}"
        await cluster.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": {"containers": containers}})
        addresses = {"podIP": f"10.0.0.{number}", "podIPs": [{"ip": f"10.0.0.{number}"}]}
        await cluster.patch(PODS, name, {"status": addresses}, subresource="status")
        await cluster.report(name, ready=number == 1)

    async def listed() -> bool:
        found = (await cluster.find(ENDPOINTS, "web") or {}).get("subsets", [])
        sides = [(len(each.get("addresses", ())), len(each.get("notReadyAddresses", ()))) for each in found]
        held = [each.get("endpoints") or [] for each in await cluster.list(SLICES)]
        ready = [[one["conditions"]["ready"] for one in each] for each in held]
        return sides == [(1, 1)] and ready == [[True, False]]

    await cluster.until(listed)


def test_endpoints_of_a_service_that_goes_go_too() -> None:
    async def story(cluster: Cluster) -> None:
        await _served(cluster)
        await cluster.delete(SERVICES, "web")
        await cluster.settle()
        assert await cluster.list(ENDPOINTS) == []

    play(story, controllers=BOTH)


# How often a slice changed on the way may differ.
SCENARIO = Scenario(
    name="a service",
    controllers=BOTH,
    story=_served,
    patience=30,
    deleted=(SERVICES, "web"),
    ignored=frozenset({"generation"}),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_deletion_leaves_nothing_behind() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))
