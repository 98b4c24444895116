"""The scheduler of machines: every rule by itself, and against brute force on small worlds."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud.machines import PlacementStatus
from holdfast.kinds.virtrigaud.placement import VMPlacementPolicySpec
from holdfast.meta.objects import Key
from holdfast.meta.sizes import GIB
from holdfast.operators.virtualmachine.connections import Target
from holdfast.operators.virtualmachine.placement import choices as choosing
from holdfast.operators.virtualmachine.placement.observe import Unplaced
from holdfast.operators.virtualmachine.placement.observe import World as Placing
from holdfast.operators.virtualmachine.placement.schedule import Choice, grouped, natural, resident, schedule
from holdfast.operators.virtualmachine.placement.validate import problems_of
from holdfast.operators.virtualmachine.placement.world import Policy, Request, Resident, World
from holdfast.operators.virtualmachine.resources import MACHINES, PROVIDERS
from holdfast.providers.contract import Datastore, Gpu, Host, Inventory, Placement, ResourcePool, Taint


def spec(**given: Any) -> VMPlacementPolicySpec:
    return msgspec.convert(given, VMPlacementPolicySpec)


def policy(name: str = "p", **given: Any) -> Policy:
    return Policy(key=Key("default", name), spec=spec(**given))


def request(name: str = "new", **more: Any) -> Request:
    return Request(key=Key("default", name), **more)


def host(name: str, **more: Any) -> Host:
    return Host(name=name, **{"cpus": 8, "memory_mib": 16384, **more})


def on(name: str, host: str, **more: Any) -> Resident:
    return Resident(key=Key("default", name), host=host, **more)


def world(*hosts: Host, residents: tuple[Resident, ...] = (), **more: Any) -> World:
    policies = more.pop("policies", {})
    namespaces = more.pop("namespaces", {})
    return World(
        inventory=Inventory(hosts=hosts, **more), residents=residents, policies=policies, namespaces=namespaces
    )


def chosen(choice: Choice) -> str:
    return "" if choice.placement is None else choice.placement.host


def why(choice: Choice) -> dict[str, str]:
    return {each.host: each.reason for each in choice.refused}


A, B = host("a", cluster="c1", zone="z1"), host("b", cluster="c2", zone="z2")
OTHERS = ({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "host"},)

REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], Host, str]] = [
    ("a host in maintenance", {}, {}, host("x", maintenance=True), "in maintenance"),
    (
        "too little memory",
        {},
        {"memory_mib": 2048},
        host("x", memory_mib_used=15000),
        "1384 MiB of memory free, 2048 needed",
    ),
    (
        "too few processors",
        {},
        {"cpus": 4},
        host("x", cpu_overcommit=2, cpus_used=14),
        "2 virtual CPUs free, 4 needed",
    ),
    (
        "too few GPUs",
        {},
        {"gpus": 2, "gpu_type": "a100"},
        host("x", gpus=(Gpu(type="a100", count=1), Gpu(type="t4", count=4))),
        "1 a100 GPUs free, 2 needed",
    ),
    ("hard hosts", {"hard": {"hosts": ["y"]}}, {}, host("x"), "not among spec.hard.hosts (y)"),
    (
        "hard clusters where there is none",
        {"hard": {"clusters": ["c"]}},
        {},
        host("x"),
        "no cluster, and spec.hard.clusters is c",
    ),
    ("hard zones", {"hard": {"zones": ["y"]}}, {}, host("x", zone="z"), "zone z is not among spec.hard.zones (y)"),
    (
        "hard regions",
        {"hard": {"regions": ["y"]}},
        {},
        host("x", region="r"),
        "region r is not among spec.hard.regions (y)",
    ),
    ("excluded hosts", {"hard": {"excludedHosts": ["x"]}}, {}, host("x"), "among spec.hard.excludedHosts"),
    (
        "excluded clusters",
        {"hard": {"excludedClusters": ["c"]}},
        {},
        host("x", cluster="c"),
        "cluster c is among spec.hard.excludedClusters",
    ),
    ("networks", {"hard": {"networks": ["dmz"]}}, {}, host("x", networks=("lan",)), "network dmz is missing"),
    (
        "node selector",
        {"hard": {"nodeSelector": {"disk": "ssd"}}},
        {},
        host("x", labels={"disk": "hdd"}),
        "label disk=ssd is missing",
    ),
    (
        "taints",
        {},
        {},
        host("x", taints=(Taint(key="gpu", value="yes"),)),
        "taint gpu=yes:NoSchedule is not tolerated",
    ),
    (
        "free processors",
        {"resourceConstraints": {"minCPUPerHost": 4}},
        {},
        host("x", cpus_used=5),
        "3 CPUs free, minCPUPerHost is 4",
    ),
    (
        "free memory",
        {"resourceConstraints": {"minMemoryPerHost": "8Gi"}},
        {},
        host("x", memory_mib_used=10000),
        "6384 MiB of memory free, minMemoryPerHost is 8192 MiB",
    ),
    (
        "use of processors",
        {"resourceConstraints": {"maxCPUUtilization": 50}},
        {"cpus": 2},
        host("x", cpus_used=3),
        "62 % of the CPUs would be in use, maxCPUUtilization is 50 %",
    ),
    (
        "use of memory",
        {"resourceConstraints": {"maxMemoryUtilization": 50}},
        {"memory_mib": 8192},
        host("x", memory_mib_used=8192),
        "100 % of the memory would be in use, maxMemoryUtilization is 50 %",
    ),
    (
        "features",
        {"resourceConstraints": {"requiredFeatures": ["avx512"]}},
        {},
        host("x"),
        "feature avx512 is missing",
    ),
    (
        "secure boot",
        {"securityConstraints": {"requireSecureBoot": True}},
        {},
        host("x"),
        "feature secure-boot is missing",
    ),
    ("TPM", {"securityConstraints": {"requireTPM": True}}, {}, host("x"), "feature tpm is missing"),
    ("NUMA", {"securityConstraints": {"requireNUMATopology": True}}, {}, host("x"), "feature numa is missing"),
    (
        "encryption",
        {"securityConstraints": {"requireEncryptedStorage": True}},
        {},
        host("x"),
        "no encrypted datastore",
    ),
    (
        "allowed groups",
        {"securityConstraints": {"allowedSecurityGroups": ["web"]}},
        {},
        host("x", security_groups=("db",)),
        "in none of the security groups web",
    ),
    (
        "denied groups",
        {"securityConstraints": {"deniedSecurityGroups": ["db"]}},
        {},
        host("x", security_groups=("db",)),
        "in security group db, which is denied",
    ),
    (
        "isolation",
        {"securityConstraints": {"isolationLevel": "strict"}},
        {},
        host("x", isolation="basic"),
        "isolationLevel is basic, strict needed",
    ),
    (
        "trust",
        {"securityConstraints": {"trustLevel": "trusted"}},
        {},
        host("x"),
        "trustLevel is untrusted, trusted needed",
    ),
    (
        "its own host",
        {},
        {"pinned": Placement(host="y")},
        host("x"),
        "not among spec.placement.host of the machine (y)",
    ),
    (
        "a host on which creation failed",
        {},
        {"avoided": frozenset({"x"})},
        host("x"),
        "the provider could not create the machine there",
    ),
]


@pytest.mark.parametrize(
    ("rules", "asked", "there", "reason"), [pytest.param(*each[1:], id=each[0]) for each in REFUSED]
)
def test_a_host_is_refused_with_its_reason(
    rules: dict[str, Any], asked: dict[str, Any], there: Host, reason: str
) -> None:
    choice = schedule(policy(**rules), request(**asked), world(there))
    assert choice.placement is None
    assert why(choice) == {"x": reason}


def test_all_reasons_of_a_host_are_given() -> None:
    choice = schedule(policy(hard={"hosts": ["y"]}), request(), world(host("x", maintenance=True)))
    assert why(choice) == {"x": "in maintenance; not among spec.hard.hosts (y)"}


def test_the_chosen_host_comes_with_its_cluster_datastore_folder_and_pool() -> None:
    there = world(
        host("a", cluster="c1", zone="z1", datastores=("d1", "d2")),
        datastores=(
            Datastore(name="d1", total_bytes=10 * GIB, free_bytes=GIB),
            Datastore(name="d2", free_bytes=2 * GIB),
        ),
        folders=("prod", "dev"),
        resource_pools=(ResourcePool(name="gold", cluster="c1"), ResourcePool(name="silver", cluster="c2")),
    )
    given = policy(hard={"folders": ["dev", "prod"], "resourcePools": ["gold", "silver"]}, soft={"folders": ["prod"]})
    choice = schedule(given, request(), there)
    assert choice.placement == Placement(host="a", cluster="c1", datastore="d2", folder="prod", resource_pool="gold")
    assert choice.zone == "z1"
    nowhere = schedule(policy(hard={"folders": ["test"]}), request(), there)
    assert why(nowhere) == {"a": "none of the folders test there"}


def test_a_full_datastore_is_not_chosen_and_disks_of_machines_in_flight_count() -> None:
    stores = (
        Datastore(name="d1", total_bytes=10 * GIB, free_bytes=9 * GIB),
        Datastore(name="d2", total_bytes=10 * GIB, free_bytes=6 * GIB),
    )
    there = world(host("a", datastores=("d1", "d2")), datastores=stores)
    asked = request(disk_bytes=5 * GIB)
    first = schedule(policy(), asked, there)
    assert first.placement is not None
    assert first.placement.datastore == "d1"
    after = there.with_resident(resident(policy(), asked, first.placement))
    second = schedule(policy(), request("two", disk_bytes=5 * GIB), after)
    assert second.placement is not None
    assert second.placement.datastore == "d2"
    full = after.with_resident(resident(policy(), request("two", disk_bytes=5 * GIB), second.placement))
    assert why(schedule(policy(), request("three", disk_bytes=5 * GIB), full)) == {
        "a": "datastore d1 has 4.0 GiB free, 5.0 GiB needed; datastore d2 has 1.0 GiB free, 5.0 GiB needed"
    }


def test_machines_in_flight_count_and_those_that_the_provider_counts_are_not_counted_twice() -> None:
    flying = on("x", "a", memory_mib=12000, counted=False)
    assert chosen(schedule(policy(), request(memory_mib=8192), world(host("a"), residents=(flying,)))) == ""
    seen = on("x", "a", memory_mib=12000, counted=True)
    assert chosen(schedule(policy(), request(memory_mib=8192), world(host("a"), residents=(seen,)))) == "a"


def test_of_several_datastores_the_reasons_of_the_closest_are_given() -> None:
    rules = {"securityConstraints": {"requireEncryptedStorage": True}, "hard": {"zones": ["z"]}}
    there = world(
        host("a", datastores=("open", "safe")),
        datastores=(Datastore(name="open"), Datastore(name="safe", encrypted=True)),
    )
    assert why(schedule(policy(**rules), request(), there)) == {"a": "no zone, and spec.hard.zones is z"}


def test_tolerated_taints_do_not_keep_machines_off_and_soft_taints_lower_the_score() -> None:
    tainted = host("a", taints=(Taint(key="gpu", value="yes"),))
    for toleration in ({"key": "gpu", "value": "yes"}, {"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}):
        assert chosen(schedule(policy(hard={"tolerations": [toleration]}), request(), world(tainted))) == "a"
    assert (
        chosen(schedule(policy(hard={"tolerations": [{"key": "gpu", "value": "no"}]}), request(), world(tainted))) == ""
    )
    soft = host("a", taints=(Taint(key="old", effect="PreferNoSchedule"),))
    choice = schedule(policy(), request(), world(soft, host("b", memory_mib_used=8000)))
    assert chosen(choice) == "b"
    assert set(choice.scores) == {"a", "b"}


def test_soft_constraints_choose_among_possible_hosts_and_say_what_is_not_met() -> None:
    choice = schedule(policy(soft={"zones": ["z2"], "excludedClusters": ["c1"]}), request(), world(A, B))
    assert chosen(choice) == "b"
    assert choice.unmet == ()
    none = schedule(policy(soft={"zones": ["z9"]}), request(), world(A, B))
    assert none.unmet == ("zone z1 is not among spec.soft.zones (z9)",)


def test_free_capacity_decides_where_no_preference_does() -> None:
    assert chosen(schedule(policy(), request(), world(host("a", memory_mib_used=4096), host("b")))) == "b"
    assert chosen(schedule(policy(), request(), world(host("h10"), host("h9")))) == "h9"


def test_the_weight_of_a_policy_says_how_much_preferences_count() -> None:
    there = world(host("a", zone="z1", memory_mib_used=12000, cpus_used=7), host("b", zone="z2"))
    assert chosen(schedule(policy(soft={"zones": ["z1"]}, weight=90), request(), there)) == "a"
    assert chosen(schedule(policy(soft={"zones": ["z1"]}, weight=10), request(), there)) == "b"


def test_at_most_so_many_machines_of_a_policy_are_on_one_host() -> None:
    rules = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict", "maxVMsPerHost": 2}}}
    ours = Key("default", "p")
    there = world(A, B, residents=(on("1", "a", policy=ours), on("2", "a", policy=ours), on("3", "b")))
    choice = schedule(policy(**rules), request(), there)
    assert chosen(choice) == "b"
    assert why(choice) == {"a": "2 machines of the policy there, spec.antiAffinity.hostAntiAffinity allows 2"}


@pytest.mark.parametrize(("what", "limit"), [("cluster", "maxVMsPerCluster"), ("zone", "maxVMsPerZone")])
def test_clusters_and_zones_have_limits_too(what: str, limit: str) -> None:
    rules = {"antiAffinity": {f"{what}AntiAffinity": {"enabled": True, "scope": "strict", limit: 1}}}
    there = world(A, B, residents=(on("1", "a", policy=Key("default", "p")),))
    assert chosen(schedule(policy(**rules), request(), there)) == "b"


def test_datastores_have_limits_too() -> None:
    rules = {"antiAffinity": {"datastoreAntiAffinity": {"enabled": True, "scope": "strict"}}}
    store = Datastore(name="d1", total_bytes=GIB, free_bytes=GIB)
    there = world(
        host("a", datastores=("d1", "d2")),
        residents=(on("1", "a", datastore="d1", policy=Key("default", "p")),),
        datastores=(store, msgspec.structs.replace(store, name="d2", free_bytes=1)),
    )
    choice = schedule(policy(**rules), request(), there)
    assert choice.placement is not None
    assert choice.placement.datastore == "d2"


def test_preferred_scopes_spread_evenly_and_refuse_nothing() -> None:
    rules = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "preferred"}}}
    there, found = world(host("a"), host("b"), host("c")), []
    for n in range(7):
        choice = schedule(policy(**rules), request(str(n)), there)
        assert choice.placement is not None
        found.append(choice.placement.host)
        there = there.with_resident(resident(policy(**rules), request(str(n)), choice.placement))
    assert sorted(map(found.count, "abc")) == [2, 2, 3]


def test_rules_that_are_not_enabled_do_nothing() -> None:
    rules = {
        "antiAffinity": {"hostAntiAffinity": {"enabled": False, "scope": "strict"}},
        "affinity": {"hostAffinity": {"enabled": False, "scope": "strict", "preferredHosts": ["b"]}},
    }
    there = world(A, residents=(on("1", "a", policy=Key("default", "p")),))
    assert chosen(schedule(policy(**rules), request(), there)) == "a"


def test_machines_gather_where_the_first_one_is() -> None:
    rules = {"affinity": {"clusterAffinity": {"enabled": True, "scope": "strict"}}}
    assert chosen(schedule(policy(**rules), request(), world(A, B))) == "a"
    there = world(A, B, residents=(on("1", "b", policy=Key("default", "p")),))
    choice = schedule(policy(**rules), request(), there)
    assert chosen(choice) == "b"
    assert why(choice) == {"a": "no machine of the policy in cluster c1, as spec.affinity.clusterAffinity asks for"}


def test_preferred_hosts_are_required_by_a_strict_scope_alone() -> None:
    strict = {"affinity": {"hostAffinity": {"enabled": True, "scope": "strict", "preferredHosts": ["b"]}}}
    assert chosen(schedule(policy(**strict), request(), world(A))) == ""
    loose = {"affinity": {"hostAffinity": {"enabled": True, "preferredHosts": ["b"]}}}
    assert chosen(schedule(policy(**loose), request(), world(A))) == "a"
    assert chosen(schedule(policy(**loose), request(), world(A, B))) == "b"


def test_machines_of_one_application_gather_and_those_of_others_keep_away() -> None:
    there = world(A, B, residents=(on("1", "a", labels={"app": "db"}), on("2", "b", labels={"app": "web"})))
    apart = {"antiAffinity": {"applicationAntiAffinity": {"enabled": True, "scope": "strict"}}}
    together = {"affinity": {"applicationAffinity": {"enabled": True, "scope": "strict"}}}
    for rules in (apart, together):
        assert chosen(schedule(policy(**rules), request(labels={"app": "web"}), there)) == "b"
    assert why(schedule(policy(**apart), request(labels={"app": "web"}), there)) == {
        "a": "1 is there, which spec.antiAffinity.applicationAntiAffinity forbids"
    }


def test_required_terms_keep_machines_apart_in_any_topology() -> None:
    for key, hosts in (("host", (A, B)), ("topology.kubernetes.io/zone", (A, B)), ("rack", (_in("1"), _in("2")))):
        term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": key}
        rules = {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [term]}}}
        there = world(*hosts, residents=(on("db-0", hosts[0].name, labels={"app": "db"}),))
        assert chosen(schedule(policy(**rules), request(), there)) == hosts[1].name


def _in(rack: str) -> Host:
    return host(f"h{rack}", labels={"rack": rack})


def test_required_affinity_follows_others_and_lets_the_first_of_its_own_kind_start() -> None:
    term = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}], "topologyKey": "zone"}
    rules = {"affinity": {"vmAffinity": {"requiredDuringScheduling": [term]}}}
    there = world(A, B, residents=(on("db-0", "b", labels={"app": "db"}),))
    assert chosen(schedule(policy(**rules), request(), there)) == "b"
    assert chosen(schedule(policy(**rules), request(), world(A, B))) == ""
    assert chosen(schedule(policy(**rules), request(labels={"app": "db"}), world(A, B))) == "a"
    bare = schedule(policy(**rules), request(), world(host("x"), residents=there.residents))
    assert "no zone" in why(bare)["x"]


def test_preferred_terms_count_by_their_weights() -> None:
    def term(app: str, weight: int) -> dict[str, Any]:
        chosen = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "host"}
        return {"weight": weight, "vmAffinityTerm": chosen}

    there = world(A, B, residents=(on("1", "a", labels={"app": "db"}), on("2", "b", labels={"app": "cache"})))
    for strong, expected in (("db", "a"), ("cache", "b")):
        terms = [term("db", 90 if strong == "db" else 10), term("cache", 90 if strong == "cache" else 10)]
        rules = {"affinity": {"vmAffinity": {"preferredDuringScheduling": terms}}}
        assert chosen(schedule(policy(**rules), request(), there)) == expected
        rules = {"antiAffinity": {"vmAntiAffinity": {"preferredDuringScheduling": terms}}}
        assert chosen(schedule(policy(**rules), request(), there)) != expected


def test_terms_reach_the_namespaces_that_they_name_or_select() -> None:
    db = Resident(key=Key("data", "db-0"), host="a", labels={"app": "db"})
    there = world(A, B, residents=(db,), namespaces={"data": {"team": "store"}, "default": {}})
    for more, free in (
        ({}, True),
        ({"namespaces": ["data"]}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "store"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "other"}}}, True),
        ({"namespaceSelector": {}}, False),
    ):
        rules = {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [{**OTHERS[0], **more}]}}}
        assert ("a" in schedule(policy(**rules), request(), there).scores) is free


def test_a_rule_of_another_policy_binds_unless_ones_own_priority_is_higher() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "host"}
    theirs = spec(priority=10, antiAffinity={"vmAntiAffinity": {"requiredDuringScheduling": [term]}})
    key = Key("default", "db")
    there = world(A, residents=(on("db-0", "a", policy=key),), policies={key: theirs})
    asked = request(labels={"app": "web"})
    refused = schedule(policy(priority=10), asked, there)
    assert chosen(refused) == ""
    assert "requiredDuringScheduling[0] of policy db forbids" in why(refused)["a"]
    assert chosen(schedule(policy(priority=11), asked, there)) == "a"
    assert chosen(schedule(policy(), request(), there)) == "a"


def test_hard_constraints_are_passed_on_to_a_provider_that_reports_no_hosts() -> None:
    rules = {
        "hard": {
            "hosts": ["h0", "h1"], "excludedHosts": ["h0"], "clusters": ["c"], "datastores": ["d"],
            "folders": ["f"], "resourcePools": ["p"],
        }
    }  # fmt: skip
    choice = schedule(policy(**rules), request(pinned=Placement(cluster="own")), world())
    assert choice.blind
    assert choice.placement == Placement(host="h1", cluster="own", datastore="d", folder="f", resource_pool="p")
    assert schedule(policy(), request(), world()).placement == Placement()


def test_reasons_are_grouped_and_names_sort_by_their_numbers() -> None:
    hosts = [host(f"h{n}", maintenance=True) for n in (10, 2, 1)]
    assert grouped(schedule(policy(), request(), world(*hosts)).refused) == "h1, h2, h10: in maintenance"
    assert sorted(["h10", "h2", "a", "h"], key=natural) == ["a", "h", "h2", "h10"]


# --- against brute force

HOSTS, CLUSTERS, ZONES, APPS = ("h0", "h1", "h2", "h3"), ("c0", "c1"), ("z0", "z1"), ("web", "db")
names = st.lists(st.sampled_from(HOSTS), unique=True, max_size=2).map(tuple)

hosts_of = st.lists(
    st.builds(
        dict,
        cluster=st.sampled_from(CLUSTERS),
        zone=st.sampled_from(ZONES),
        memory_mib=st.sampled_from((0, 1024, 4096)),
        memory_mib_used=st.sampled_from((0, 512, 1024)),
        maintenance=st.booleans(),
        features=st.sampled_from(((), ("tpm",), ("tpm", "ssd"))),
        datastores=st.sampled_from((("d0",), ("d0", "d1"), ())),
    ),
    min_size=1,
    max_size=4,
)

machines_of = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(APPS), st.booleans(), st.booleans()), max_size=5
)

strictly = st.sampled_from(("strict", "preferred", None))
policies_of = st.fixed_dictionaries(
    {},
    optional={
        "hard": st.fixed_dictionaries(
            {},
            optional={
                "hosts": names,
                "excludedHosts": names,
                "zones": st.sampled_from((("z0",), ("z1",))),
                "clusters": st.sampled_from((("c0",), ("c0", "c1"))),
                "datastores": st.sampled_from((("d0",), ("d1",))),
            },
        ),
        "soft": st.fixed_dictionaries({}, optional={"zones": st.just(("z0",)), "hosts": names}),
        "hostAnti": st.tuples(strictly, st.sampled_from((None, 1, 2))),
        "zoneAnti": st.tuples(strictly, st.sampled_from((None, 2))),
        "apart": st.tuples(st.sampled_from(APPS), st.sampled_from(("host", "zone", "cluster"))),
        "together": st.tuples(st.sampled_from(APPS), st.sampled_from(("host", "zone"))),
        "tpm": st.booleans(),
    },
)


def built(given: dict[str, Any]) -> dict[str, Any]:
    """The policy in the words of the API."""
    made: dict[str, Any] = {key: given[key] for key in ("hard", "soft") if key in given}
    apart: dict[str, Any] = {}
    for key, what in (("hostAnti", "Host"), ("zoneAnti", "Zone")):
        if key in given:
            scope, most = given[key]
            rule = {"enabled": True, "scope": scope, f"maxVMsPer{what}": most}
            apart[f"{what.lower()}AntiAffinity"] = {name: value for name, value in rule.items() if value is not None}
    if "apart" in given:
        apart["vmAntiAffinity"] = {"requiredDuringScheduling": [_term(*given["apart"])]}
    if apart:
        made["antiAffinity"] = apart
    if "together" in given:
        made["affinity"] = {"vmAffinity": {"requiredDuringScheduling": [_term(*given["together"])]}}
    if given.get("tpm"):
        made["securityConstraints"] = {"requireTPM": True}
    return made


def _term(app: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def possible(given: dict[str, Any], there: World, asked: Request) -> set[tuple[str, str]]:
    """The hosts and datastores that are allowed, by the meaning of each rule and nothing else."""
    found = set()
    by_name = {each.name: each for each in there.inventory.hosts}
    hard = given.get("hard", {})
    apps = {each.key.name: each.labels["app"] for each in there.residents}

    def part(key: str, name: str) -> str:
        each = by_name[name]
        return {"host": each.name, "zone": each.zone, "cluster": each.cluster}[key]

    placed = [(each.key.name, each.host, each.policy is not None) for each in there.residents if each.host in by_name]
    for each in there.inventory.hosts:
        for store in each.datastores or ("",):
            flying = sum(one.memory_mib for one in there.residents if one.host == each.name and not one.counted)
            free = each.memory_mib - each.memory_mib_used - flying
            checks = [
                not each.maintenance,
                each.memory_mib == 0 or free >= asked.memory_mib,
                not hard.get("hosts") or each.name in hard["hosts"],
                each.name not in hard.get("excludedHosts", ()),
                not hard.get("zones") or each.zone in hard["zones"],
                not hard.get("clusters") or each.cluster in hard["clusters"],
                not hard.get("datastores") or store in hard["datastores"],
                not given.get("tpm") or "tpm" in each.features,
            ]
            for key, what in (("hostAnti", "host"), ("zoneAnti", "zone")):
                if key in given and given[key][0] == "strict":
                    mine = [name for name, host, ours in placed if ours and part(what, host) == part(what, each.name)]
                    checks.append(len(mine) < (given[key][1] or 1))
            if "apart" in given:
                app, key = given["apart"]
                checks.append(
                    not any(apps[name] == app and part(key, host) == part(key, each.name) for name, host, _ in placed)
                )
            if "together" in given:
                app, key = given["together"]
                beside = [host for name, host, _ in placed if apps[name] == app]
                first = not beside and asked.labels["app"] == app
                checks.append(first or any(part(key, host) == part(key, each.name) for host in beside))
            if all(checks):
                found.add((each.name, store))
    return found


@settings(max_examples=300, deadline=None, derandomize=True)
@given(given_hosts=hosts_of, machines=machines_of, rules=policies_of, app=st.sampled_from(APPS))
def test_the_scheduler_chooses_what_brute_force_allows(
    given_hosts: list[dict[str, Any]],
    machines: list[tuple[str, str, bool, bool]],
    rules: dict[str, Any],
    app: str,
) -> None:
    key = Key("default", "p")
    hosts = [host(name, **each) for name, each in zip(HOSTS, given_hosts, strict=False)]
    residents = tuple(
        Resident(
            key=Key("default", f"m{n}"), host=on_host, labels={"app": label}, policy=key if ours else None,
            memory_mib=512, counted=counted,
        )
        for n, (on_host, label, ours, counted) in enumerate(machines)
    )  # fmt: skip
    there = world(*hosts, residents=residents)
    asked = request(labels={"app": app}, memory_mib=512)
    choice = schedule(policy(**built(rules)), asked, there)
    allowed = possible(rules, there, asked)
    assert set(choice.scores) == {name for name, _ in allowed}
    assert {each.host for each in choice.refused} == {each.name for each in hosts} - set(choice.scores)
    assert all(each.reason for each in choice.refused)
    assert (choice.placement is None) == (not allowed)
    if choice.placement is not None:
        assert (choice.placement.host, choice.placement.datastore) in allowed
        assert choice.score == max(choice.scores.values())
        assert all(0 <= score <= 100 for score in choice.scores.values())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(given_hosts=hosts_of, rules=policies_of, order=st.permutations(range(4)))
def test_the_order_in_which_hosts_are_reported_does_not_matter(
    given_hosts: list[dict[str, Any]], rules: dict[str, Any], order: list[int]
) -> None:
    hosts = [host(name, **each) for name, each in zip(HOSTS, given_hosts, strict=False)]
    shuffled = [hosts[n] for n in order if n < len(hosts)]
    asked, given = request(labels={"app": "web"}), policy(**built(rules))
    assert schedule(given, asked, world(*hosts)) == schedule(given, asked, world(*shuffled))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(number=st.integers(1, 5), most=st.integers(1, 3), machines=st.integers(1, 12))
def test_machines_that_are_placed_one_after_the_other_never_break_a_strict_limit(
    number: int, most: int, machines: int
) -> None:
    rules = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict", "maxVMsPerHost": most}}}
    there = world(*(host(f"h{n}") for n in range(number)))
    found = []
    for n in range(machines):
        choice = schedule(policy(**rules), request(str(n), memory_mib=1), there)
        if choice.placement is None:
            break
        found.append(choice.placement.host)
        there = there.with_resident(resident(policy(**rules), request(str(n), memory_mib=1), choice.placement))
    assert len(found) == min(machines, number * most)
    assert all(found.count(name) <= most for name in found)


# --- what the schema does not find

CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"hard": {"hosts": ["a"], "excludedHosts": ["a"]}}, "spec.hard.excludedHosts[0]"),
    ({"soft": {"clusters": ["a"], "excludedClusters": ["a"]}}, "spec.soft.excludedClusters[0]"),
    ({"hard": {"datastores": ["a"], "excludedDatastores": ["b", "a"]}}, "spec.hard.excludedDatastores[1]"),
    ({"hard": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}}, "spec.hard.tolerations[0].value"),
    ({"hard": {"tolerations": [{"value": "b"}]}}, "spec.hard.tolerations[0].key"),
    (
        {"affinity": {"vmAffinity": {"requiredDuringScheduling": [{"topologyKey": "host"}]}}},
        "spec.affinity.vmAffinity.requiredDuringScheduling[0]",
    ),
    (
        {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [{**OTHERS[0], "topologyKey": ""}]}}},
        "spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[0].topologyKey",
    ),
    (
        {
            "affinity": {"vmAffinity": {"requiredDuringScheduling": OTHERS}},
            "antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": OTHERS}},
        },
        "spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[0]",
    ),
    (
        {
            "affinity": {"hostAffinity": {"enabled": True, "scope": "strict"}},
            "antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict"}},
        },
        "spec.antiAffinity.hostAntiAffinity",
    ),
    (
        {
            "hard": {"excludedHosts": ["a"]},
            "affinity": {"hostAffinity": {"enabled": True, "scope": "strict", "preferredHosts": ["a"]}},
        },
        "spec.affinity.hostAffinity.preferredHosts",
    ),
    (
        {"securityConstraints": {"allowedSecurityGroups": ["a"], "deniedSecurityGroups": ["a"]}},
        "spec.securityConstraints.deniedSecurityGroups[0]",
    ),
    (
        {
            "affinity": {
                "vmAffinity": {
                    "requiredDuringScheduling": [
                        {
                            "topologyKey": "host",
                            "labelSelector": {
                                "matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]
                            },
                        }
                    ]
                }
            }
        },
        "spec.affinity.vmAffinity.requiredDuringScheduling[0]",
    ),
]


@pytest.mark.parametrize(("given", "path"), CONTRADICTIONS, ids=[each[1] for each in CONTRADICTIONS])
def test_a_policy_that_contradicts_itself_is_refused_with_the_path(given: dict[str, Any], path: str) -> None:
    assert [each.path for each in problems_of(spec(**given))] == [path]


def test_combinations_of_everything_that_is_valid_have_no_problems() -> None:
    for scopes in itertools.product(("strict", "preferred"), repeat=2):
        given = spec(
            hard={"hosts": ["a"], "excludedHosts": ["b"]},
            affinity={"zoneAffinity": {"enabled": True, "scope": scopes[0], "preferredZones": ["z"]}},
            antiAffinity={"hostAntiAffinity": {"enabled": True, "scope": scopes[1]}},
        )
        assert problems_of(given) == ()


# --- many machines in one pass


def many(number: int, *hosts: Host, **rules: Any) -> Placing:
    def unplaced(n: int) -> Unplaced:
        wire = {"metadata": {"name": f"m{n}", "namespace": "default", "uid": str(n)}, "spec": {}}
        return Unplaced(
            object=Object.of(MACHINES, {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, **wire}),
            before=PlacementStatus(),
            policy=policy(**rules),
            policy_generation=1,
            request=request(f"m{n}"),
        )

    wire = {
        "apiVersion": PROVIDERS.api_version,
        "kind": PROVIDERS.kind,
        "metadata": {"name": "p", "namespace": "default"},
    }
    return Placing(
        provider=Object.of(PROVIDERS, wire),
        target=Target(provider=Key("default", "p"), address="p:1"),
        unplaced=tuple(unplaced(n) for n in range(number)),
        inventory=Inventory(hosts=hosts),
    )


def test_machines_that_ask_for_the_same_and_fit_nowhere_are_compared_with_the_hosts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    monkeypatch.setattr(choosing, "schedule", lambda *given: compared.append(given) or schedule(*given))
    rules = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict"}}}
    found = list(choosing.choices(many(60, host("a"), host("b"), **rules)))
    assert [chosen(each.choice) for each in found] == ["a", "b", *[""] * 58]
    assert [each.of.request.key.name for each in found] == [f"m{n}" for n in range(60)]
    assert len(compared) == 3


def test_one_pass_places_so_many_machines_and_the_next_one_goes_on() -> None:
    found = list(choosing.choices(many(choosing.MOST + 20, host("a", memory_mib=0))))
    assert len(found) == choosing.MOST
