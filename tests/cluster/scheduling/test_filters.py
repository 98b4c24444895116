"""Where pods go: every rule that a node can fail, what is preferred, and the messages."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.cluster.fleets import cluster, node, pod

from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster
from holdfast.cluster.scheduling.placing import Placed, Unschedulable, place

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}
SELECT_WEB = {"matchLabels": WEB}


def message(claim: Claim, where: Cluster) -> str:
    placed = place(claim, where)
    assert isinstance(placed, Unschedulable), placed
    return placed.message


def chosen(claim: Claim, where: Cluster) -> str:
    placed = place(claim, where)
    assert isinstance(placed, Placed), placed
    return placed.node


def node_affinity(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    term: dict[str, Any] = {"matchExpressions": list(expressions)} if expressions else {}
    if fields:
        term["matchFields"] = list(fields)
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def near(key: str = HOST, *, kind: str = "podAffinity", **term: Any) -> dict[str, Any]:
    asked = {"topologyKey": key, "labelSelector": SELECT_WEB, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [asked]}}


def apart(key: str = HOST, **term: Any) -> dict[str, Any]:
    return near(key, kind="podAntiAffinity", **term)


def spread(key: str = ZONE, **constraint: Any) -> list[dict[str, Any]]:
    asked = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECT_WEB}
    return [asked | constraint]


def zoned(*zones: str, **how: Any) -> list[Any]:
    return [node(f"node-{number}", labels={ZONE: zone}, **how) for number, zone in enumerate(zones, start=1)]


# --- one node, one rule

TAINTED = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
GPU = {"nvidia.com/gpu": "8"}
LABELLED = {"labels": {"disk": "ssd", "rank": "7"}}
PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


@pytest.mark.parametrize(
    ("how", "asks", "why"),
    [
        pytest.param({}, {}, "", id="asks for nothing"),
        pytest.param({}, {"requests": {"cpu": "4"}}, "", id="all of the cpu"),
        pytest.param({}, {"requests": {"cpu": "4001m"}}, "Insufficient cpu", id="more cpu than there is"),
        pytest.param({}, {"requests": {"nvidia.com/gpu": "1"}}, "Insufficient nvidia.com/gpu", id="no gpus"),
        pytest.param({"extended": GPU}, {"requests": {"nvidia.com/gpu": "8"}}, "", id="all of the gpus"),
        pytest.param({"pods": 0}, {}, "Too many pods", id="a node for no pods"),
        pytest.param({}, {"overhead": {"cpu": "5"}}, "Insufficient cpu", id="overhead counts"),
        pytest.param({"unschedulable": True}, {}, "node(s) were unschedulable", id="cordoned"),
        pytest.param(
            {"unschedulable": True},
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
            "",
            id="cordoned and tolerated",
        ),
        pytest.param({"ready": "Unknown"}, {}, "node(s) were not ready", id="not ready"),
        pytest.param({}, {"nodeName": "node-1"}, "", id="its own node"),
        pytest.param({}, {"nodeName": "other"}, "node(s) didn't match the requested node name", id="another node"),
        pytest.param(TAINTED, {}, "node(s) had untolerated taint {gpu: yes}", id="tainted"),
        pytest.param(TAINTED, {"tolerations": [{"operator": "Exists"}]}, "", id="tolerates all"),
        pytest.param(TAINTED, {"tolerations": [{"key": "gpu", "value": "yes"}]}, "", id="tolerates it"),
        pytest.param(
            TAINTED,
            {"tolerations": [{"key": "gpu", "value": "no"}]},
            "node(s) had untolerated taint {gpu: yes}",
            id="tolerates another value",
        ),
        pytest.param(
            TAINTED,
            {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]},
            "node(s) had untolerated taint {gpu: yes}",
            id="tolerates another effect",
        ),
        pytest.param(LABELLED, {"nodeSelector": {"disk": "ssd"}}, "", id="selected"),
        pytest.param(
            LABELLED,
            {"nodeSelector": {"disk": "hdd"}},
            "node(s) didn't match Pod's node affinity/selector",
            id="not selected",
        ),
    ],
)
def test_a_node_is_refused_for_the_first_rule_that_it_fails(
    how: dict[str, Any], asks: dict[str, Any], why: str
) -> None:
    placed = place(pod(**asks), cluster([node("node-1", **how)]))
    assert placed == (Unschedulable(1, {why: 1}) if why else Placed("node-1"))


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}, True),
        ({"key": "disk", "operator": "In", "values": ["hdd"]}, False),
        ({"key": "disk", "operator": "NotIn", "values": ["hdd"]}, True),
        ({"key": "absent", "operator": "NotIn", "values": ["x"]}, True),
        ({"key": "disk", "operator": "Exists"}, True),
        ({"key": "absent", "operator": "Exists"}, False),
        ({"key": "absent", "operator": "DoesNotExist"}, True),
        ({"key": "rank", "operator": "Gt", "values": ["6"]}, True),
        ({"key": "rank", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "rank", "operator": "Lt", "values": ["8"]}, True),
        ({"key": "disk", "operator": "Lt", "values": ["8"]}, False),
    ],
)
def test_node_affinity_knows_every_operator(expression: dict[str, Any], fits: bool) -> None:
    placed = place(pod(affinity=node_affinity(expression)), cluster([node("node-1", **LABELLED)]))
    assert isinstance(placed, Placed) is fits


def test_node_affinity_can_name_a_node_by_its_field() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    assert chosen(pod(affinity=node_affinity(fields=(field,))), cluster([node("node-1"), node("node-2")])) == "node-2"


def test_a_node_term_that_asks_for_nothing_is_met_by_no_node() -> None:
    assert "affinity/selector" in message(pod(affinity=node_affinity()), cluster([node("node-1")]))


# --- what a pod uses


def container(cpu: str, **how: Any) -> dict[str, Any]:
    return {"name": f"c{cpu}", "resources": {"requests": {"cpu": cpu}}, **how}


@pytest.mark.parametrize(
    ("inits", "containers", "millis"),
    [
        pytest.param([], [container("1"), container("500m")], 1500, id="containers add up"),
        pytest.param([container("3")], [container("1")], 3000, id="the largest init container counts alone"),
        pytest.param([container("1", restartPolicy="Always")], [container("1")], 2000, id="sidecars stay"),
        pytest.param(
            [container("1", restartPolicy="Always"), container("3")],
            [container("1")],
            4000,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            [container("3"), container("1", restartPolicy="Always")],
            [container("1")],
            3000,
            id="and not beside those after it",
        ),
    ],
)
def test_a_pod_needs_the_most_that_it_uses_at_any_time(
    inits: list[dict[str, Any]], containers: list[dict[str, Any]], millis: int
) -> None:
    assert pod(initContainers=inits, containers=containers).needs.requests == (("cpu", millis),)


def test_what_pods_have_taken_is_not_free_until_they_go() -> None:
    world = cluster([node("node-1")], {"node-1": [pod("a", requests={"cpu": "3"})]})
    wants = pod("b", requests={"cpu": "2"})
    assert message(wants, world) == "0/1 nodes are available: 1 Insufficient cpu."
    world.remove(pod("a").key)
    assert chosen(wants, world) == "node-1"


def test_what_is_on_a_node_counts_even_if_the_node_is_seen_last() -> None:
    world = cluster(placed={"node-1": [pod("a", requests={"cpu": "3"})]})
    world.put_node(node("node-1"))
    assert "Insufficient cpu" in message(pod("b", requests={"cpu": "2"}), world)


@pytest.mark.parametrize(
    ("taken", "wanted", "fits"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, False),
        ({"containerPort": 80}, {"containerPort": 80}, True),
    ],
)
def test_a_port_of_the_node_is_had_once(taken: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    first, second = (
        pod(name, containers=[{"name": "c", "ports": [port]}]) for name, port in (("a", taken), ("b", wanted))
    )
    placed = place(second, cluster([node("node-1")], {"node-1": [first]}))
    assert isinstance(placed, Placed) is fits


# --- pods near and apart


def test_pods_that_want_to_be_near_go_where_their_like_are() -> None:
    world = cluster(zoned("a", "a", "b"), {"node-3": [pod("w", labels=WEB)]})
    assert chosen(pod(affinity=near(ZONE)), world) == "node-3"
    assert chosen(pod(affinity=near(HOST)), world) == "node-3"


def test_the_first_of_pods_that_want_to_be_near_their_like_goes_anywhere() -> None:
    world = cluster(zoned("a", "b"))
    assert chosen(pod(labels=WEB, affinity=near(ZONE)), world) == "node-1"
    assert message(pod(affinity=near(ZONE)), world).endswith("2 node(s) didn't match pod affinity rules.")


def test_pods_that_want_to_be_apart_are() -> None:
    world = cluster(zoned("a", "a", "b"), {"node-1": [pod("w", labels=WEB)]})
    assert chosen(pod(affinity=apart(ZONE)), world) == "node-3"
    assert chosen(pod(affinity=apart(HOST)), world) == "node-2"


def test_a_pod_that_wants_to_be_apart_keeps_others_away() -> None:
    loner = pod("loner", affinity=apart(HOST))
    world = cluster(zoned("a"), {"node-1": [loner]})
    assert message(pod(labels=WEB), world).endswith("1 node(s) didn't satisfy existing pods anti-affinity rules.")
    assert chosen(pod(labels={"app": "other"}), world) == "node-1"
    world.remove(loner.key)
    assert chosen(pod(labels=WEB), world) == "node-1"


@pytest.mark.parametrize(
    ("term", "reaches"),
    [
        ({}, False),
        ({"namespaces": ["shop"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "shop"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "bank"}}}, False),
    ],
)
def test_terms_mean_the_pods_own_namespace_unless_they_say_otherwise(term: dict[str, Any], reaches: bool) -> None:
    world = cluster([node("node-1")], {"node-1": [pod("w", namespace="shop", labels=WEB)]})
    world.put_namespace("shop", {"team": "shop"})
    world.put_namespace("default", {})
    placed = place(pod(affinity=apart(HOST, **term)), world)
    assert isinstance(placed, Unschedulable) is reaches


def test_match_label_keys_keep_revisions_out_of_each_others_way() -> None:
    old, new = {"app": "web", "rev": "1"}, {"app": "web", "rev": "2"}
    world = cluster([node("node-1")], {"node-1": [pod("old", labels=old)]})
    assert isinstance(place(pod(labels=new, affinity=apart(HOST)), world), Unschedulable)
    assert isinstance(place(pod(labels=new, affinity=apart(HOST, matchLabelKeys=["rev"])), world), Placed)


# --- spread


def webs(*names: str) -> list[Claim]:
    return [pod(name, labels=WEB) for name in names]


def test_a_spread_lets_pods_go_only_where_it_stays_even() -> None:
    world = cluster(zoned("a", "b"), {"node-1": webs("w1")})
    assert chosen(pod(labels=WEB, topologySpreadConstraints=spread()), world) == "node-2"
    world = cluster(zoned("a", "b", unschedulable=False), {"node-1": webs("w1", "w2"), "node-2": webs("w3", "w4")})
    assert chosen(pod(labels=WEB, topologySpreadConstraints=spread()), world) == "node-1"


def test_a_spread_that_has_no_even_place_says_so() -> None:
    nodes = [node("node-1", labels={ZONE: "a"}), node("node-2", labels={ZONE: "b"}, cpu="0"), node("node-3")]
    world = cluster(nodes, {"node-1": webs("w1")})
    claim = pod(labels=WEB, requests={"cpu": "1"}, topologySpreadConstraints=spread())
    assert message(claim, world) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) didn't match pod topology spread constraints (missing required label)."
    )


@pytest.mark.parametrize(
    ("constraint", "fits"),
    [
        ({"maxSkew": 1}, True),
        ({"maxSkew": 1, "minDomains": 2}, False),
        ({"maxSkew": 2, "minDomains": 2}, True),
    ],
)
def test_fewer_places_than_asked_for_count_as_empty_ones(constraint: dict[str, Any], fits: bool) -> None:
    world = cluster(zoned("a"), {"node-1": webs("w1")})
    placed = place(pod(labels=WEB, topologySpreadConstraints=spread(**constraint)), world)
    assert isinstance(placed, Placed) is fits


def test_pods_on_their_way_out_do_not_count_for_a_spread() -> None:
    leaving = pod("w1", labels=WEB, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    world = cluster(zoned("a", "b"), {"node-1": [leaving], "node-2": webs("w2")})
    assert chosen(pod(labels=WEB, topologySpreadConstraints=spread()), world) == "node-1"


@pytest.mark.parametrize(("policy", "fits"), [("Honor", True), ("Ignore", False)])
def test_nodes_that_the_pod_does_not_select_count_only_if_it_says_so(policy: str, fits: bool) -> None:
    world = cluster(zoned("a", "b"), {"node-1": webs("w1")})
    constraints = spread(nodeAffinityPolicy=policy)
    claim = pod(labels=WEB, nodeSelector={ZONE: "a"}, topologySpreadConstraints=constraints)
    assert isinstance(place(claim, world), Placed) is fits


def test_a_spread_that_is_only_preferred_may_be_broken() -> None:
    world = cluster(zoned("a", "b"), {"node-1": webs("w1")})
    preferred = spread(whenUnsatisfiable="ScheduleAnyway")
    assert chosen(pod(labels=WEB, topologySpreadConstraints=preferred), world) == "node-2"
    claim = pod(labels=WEB, nodeSelector={ZONE: "a"}, topologySpreadConstraints=preferred)
    assert chosen(claim, world) == "node-1"


# --- preferences


def prefer_nodes(label: str, value: str, weight: int = 1) -> dict[str, Any]:
    preference = {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}
    return {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": preference}]
        }
    }


def prefer_pods(kind: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": SELECT_WEB}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]}}


@pytest.mark.parametrize(
    ("claim", "best"),
    [
        pytest.param(pod(), "node-2", id="the emptiest node"),
        pytest.param(pod(affinity=prefer_nodes(ZONE, "a")), "node-1", id="the node that is preferred"),
        pytest.param(pod(affinity=prefer_pods("podAffinity")), "node-1", id="near pods that are preferred"),
        pytest.param(pod(affinity=prefer_pods("podAntiAffinity")), "node-2", id="apart from pods that are not"),
        pytest.param(pod(owner="rs"), "node-1", id="where fewest of its siblings are"),
    ],
)
def test_the_best_node_is_chosen(claim: Claim, best: str) -> None:
    busy = pod("w", labels=WEB, requests={"cpu": "1"})
    siblings = [pod(f"s{number}", owner="rs") for number in range(3)]
    world = cluster(zoned("a", "b", "b"), {"node-1": [busy], "node-2": siblings[:1], "node-3": siblings[1:]})
    assert chosen(claim, world) == best


def test_a_taint_that_is_only_a_wish_is_avoided_where_possible() -> None:
    preferred = [{"key": "old", "effect": "PreferNoSchedule"}]
    world = cluster([node("node-1", taints=preferred), node("node-2")], {"node-2": [pod("x", requests={"cpu": "3"})]})
    assert chosen(pod(), world) == "node-2"
    assert chosen(pod(requests={"cpu": "2"}), world) == "node-1"


def test_among_equals_the_first_by_name_is_chosen() -> None:
    assert chosen(pod(), cluster([node("b"), node("a"), node("c")])) == "a"


# --- messages


def test_reasons_are_counted_and_told_as_kubernetes_does() -> None:
    nodes = [
        node("a", cpu="1", memory="1Gi"),
        node("b", cpu="1"),
        node("c", taints=[{"key": "k", "effect": "NoSchedule"}]),
        node("d", unschedulable=True),
    ]
    assert message(pod(requests={"cpu": "2", "memory": "2Gi"}), cluster(nodes)) == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint {k: }, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_a_cluster_without_nodes_says_that() -> None:
    assert message(pod(), cluster()) == "no nodes available to schedule pods"


# --- bookkeeping


def test_a_trial_leaves_nothing_behind() -> None:
    world = cluster([node("node-1")], {"node-1": webs("w1")})
    claim = pod("w2", labels=WEB, requests={"cpu": "4"}, affinity=apart(ZONE))
    before = (world.freed, world.changed)
    with world.trial() as trial:
        trial.put(claim, "node-1")
        assert "Insufficient cpu" in message(pod(requests={"cpu": "1"}), world)
    assert (world.freed, world.changed) == before
    assert world.place_of(claim.key) is None
    assert chosen(pod(requests={"cpu": "4"}), world) == "node-1"


def test_counts_are_the_same_whether_kept_or_counted_anew() -> None:
    kept = cluster(zoned("a", "b", "c"))
    claim = pod(labels=WEB, topologySpreadConstraints=spread())
    place(claim, kept)  # from here on the group is counted all the time
    for number in range(30):
        kept.put(pod(f"w{number}", labels=WEB if number % 3 else {}), f"node-{number % 3 + 1}")
    for number in range(0, 30, 4):
        kept.remove(pod(f"w{number}").key)
    group = kept.spread_group(claim.needs.spreads[0], claim)
    anew = cluster(zoned("a", "b", "c"), {f"node-{n + 1}": [] for n in range(3)})
    for number in range(30):
        if number % 4:
            anew.put(pod(f"w{number}", labels=WEB if number % 3 else {}), f"node-{number % 3 + 1}")
    assert dict(kept.tally(group)) == dict(anew.tally(group))


def test_the_time_to_place_pods_grows_with_their_number() -> None:
    def seconds(pods: int) -> float:
        world = cluster([node(f"node-{number}", cpu="64", pods=250) for number in range(20)])
        claims = [pod(f"p{number}", labels=WEB, owner="rs", requests={"cpu": "100m"}) for number in range(pods)]
        began = time.process_time()
        for claim in claims:
            world.put(claim, chosen(claim, world))
        took = time.process_time() - began
        assert max(host.pods for host in world.hosts) == pods / 20
        return took

    few, many = (min(seconds(pods) for _ in range(3)) for pods in (500, 2000))
    # Four times is linear, sixteen times is quadratic.
    assert many <= 8 * few


@pytest.mark.parametrize(
    ("runtime", "best"),
    [("process", "machine"), ("", "node-1"), ("kata", "node-1")],
    ids=["process", "none", "another"],
)
def test_processes_run_on_the_node_for_them_and_nothing_else_does(runtime: str, best: str) -> None:
    world = cluster([node("machine", labels={"holdfast.dev/runtime": "process"}), node("node-1")])
    assert chosen(pod("a", runtimeClassName=runtime), world) == best


def test_a_process_has_no_place_where_no_node_runs_processes() -> None:
    wants = pod("a", runtimeClassName="process")
    assert message(wants, cluster([node("node-1")])) == (
        "0/1 nodes are available: 1 node(s) run pods of another runtime."
    )
