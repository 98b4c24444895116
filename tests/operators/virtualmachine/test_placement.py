"""Machines with a VMPlacementPolicy: where they are created, what they wait for, and what the status says of it."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.operators.virtualmachine import migration_stories as migrations
from tests.operators.virtualmachine.stories import (
    CLASSES,
    CLONES,
    MACHINES,
    MIGRATIONS,
    POLICIES,
    PROVIDERS,
    SETS,
    Fault,
    Hypervisors,
    Wire,
    answer,
    because,
    condition,
    created,
    machine,
    play_story,
    policy,
    prepare,
    provider,
    reaches,
    status_of,
    vm_class,
)
from tests.operators.virtualmachine.test_clones import clone

from holdfast.client.resources import EVENTS
from holdfast.providers.contract import Code, Datastore, Gpu, Host, ResourcePool, Taint
from holdfast.providers.simulated import CAPABILITIES, World
from holdfast.testing.clusters import Cluster

STRICT: Wire = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "scope": "strict"}}}
REF: Wire = {"placementRef": {"name": "spread"}}


def hosts(number: int = 3, **more: Any) -> Hypervisors:
    return Hypervisors(world=World.of(hosts=number, clusters=2, **more))


async def events(cluster: Cluster, name: str, reason: str) -> list[str]:
    found = await cluster.list(EVENTS)
    return [each["message"] for each in found if (each["involvedObject"]["name"], each["reason"]) == (name, reason)]


async def policy_says(cluster: Cluster, holds: Any, name: str = "spread", *, within: float = 60) -> Wire:
    """Wait until the status of a policy is as it should be."""

    async def check() -> bool:
        return bool(holds(await status_of(cluster, name, POLICIES)))

    await cluster.until(check, within=within)
    return await status_of(cluster, name, POLICIES)


# --- where machines are created


def test_a_machine_is_created_where_its_policy_chooses_and_says_why() -> None:
    hypervisors = hosts()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"zones": ["zone-b"]}, soft={"clusters": ["cluster-7"]}))
        status = await created(cluster, **REF)
        placed = status["placement"]
        assert (placed["host"], placed["cluster"], placed["datastore"], placed["zone"]) == (
            "host-1", "cluster-1", "datastore-1", "zone-b",
        )  # fmt: skip
        assert (placed["phase"], placed["policy"], placed["candidates"]) == ("Placed", "spread", 1)
        assert placed["refused"] == [
            {"host": "host-0", "reason": "zone zone-a is not among spec.hard.zones (zone-b)"},
            {"host": "host-2", "reason": "zone zone-c is not among spec.hard.zones (zone-b)"},
        ]
        assert placed["unmet"] == ["cluster cluster-1 is not among spec.soft.clusters (cluster-7)"]
        (listed,) = await hypervisors.at().machines()
        assert listed.host == "host-1"
        (said,) = await events(cluster, "web", "Placed")
        assert said.startswith("VMPlacementPolicy spread: host-1 has the best score")
        assert "refused: host-0: zone zone-a is not among spec.hard.zones (zone-b)" in said

    play_story(story, hypervisors)


def test_folders_pools_gpus_and_taints_count() -> None:
    there = World(
        hosts=(
            Host(name="plain", cluster="c", cpus=64, memory_mib=65536, datastores=("d",)),
            Host(
                name="gpu", cluster="c", cpus=64, memory_mib=65536, datastores=("d",), gpus=(Gpu(type="t4", count=2),)
            ),
            Host(
                name="kept",
                cluster="c",
                cpus=64,
                memory_mib=65536,
                gpus=(Gpu(type="t4", count=8),),
                taints=(Taint(key="team", value="ml"),),
            ),
        ),
        datastores=(Datastore(name="d", total_bytes=1 << 40, free_bytes=1 << 40),),
        folders=("prod",),
        resource_pools=(ResourcePool(name="gold", cluster="c"),),
    )

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"folders": ["prod"], "resourcePools": ["gold"]}))
        gpu = {"resources": {"gpu": {"count": 2, "type": "t4"}}}
        placed = (await created(cluster, **REF, **gpu))["placement"]
        assert (placed["host"], placed["folder"], placed["resourcePool"]) == ("gpu", "prod", "gold")
        await cluster.create(MACHINES, machine("second", **REF, **gpu))
        status = await because(cluster, "Unplaceable", "second")
        said = condition(status, "Ready")["message"]
        assert "gpu, plain: 0 t4 GPUs free, 2 needed" in said
        assert "kept: taint team=ml:NoSchedule is not tolerated" in said

    play_story(story, Hypervisors(world=there))


def test_what_the_machine_itself_asks_for_is_a_hard_constraint_too() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(soft={"hosts": ["host-0"]}))
        placed = (await created(cluster, **REF, placement={"cluster": "cluster-1"}))["placement"]
        assert placed["host"] == "host-1"

    play_story(story, hosts())


def test_machines_that_are_created_at_the_same_time_are_spread_and_several_are_placed_at_once() -> None:
    hypervisors = hosts(12)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(**STRICT))
        before = len(hypervisors.at().calls)
        for n in range(12):
            await cluster.create(MACHINES, machine(f"web-{n}", **REF))
        for n in range(12):
            await reaches(cluster, "Running", f"web-{n}")
        assert len({each.host for each in await hypervisors.at().machines()}) == 12
        asked = [call for call, _ in hypervisors.at().calls[before:] if call == "inventory"]
        assert len(asked) <= 6, "one look at the hosts places several machines"

    play_story(story, hypervisors)


def test_the_machines_of_a_set_are_spread_also_while_it_is_updated() -> None:
    hypervisors = hosts(6)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(**STRICT))
        template = {"metadata": {"labels": {"app": "web"}}, "spec": machine(**REF)["spec"]}
        update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "podManagementPolicy": "Parallel"}}
        spec = {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "updateStrategy": update}
        await cluster.create(SETS, {"metadata": {"name": "web"}, "spec": {**spec, "template": template}})

        async def is_rolled_out(updated: str) -> bool:
            found = (await status_of(cluster, "web", SETS)).get("updateStatus") or {}
            machines = await cluster.list(MACHINES)
            tagged = [each for each in machines if (each["spec"].get("tags") or [""])[0] == updated]
            ready = [each for each in tagged if answer(each.get("status") or {}, "Ready")[0] == "True"]
            return len(ready) == len(machines) == 5 and found.get("phase") in (None, "Completed")

        await cluster.until(lambda: is_rolled_out(""), within=600)
        await cluster.patch(SETS, "web", {"spec": {"template": {"spec": {"tags": ["new"]}}}})
        await cluster.until(lambda: is_rolled_out("new"), within=600)
        listed = await hypervisors.at().machines()
        assert len(listed) == len({each.host for each in listed}) == 5
        await cluster.patch(SETS, "web", {"spec": {"replicas": 7}})

        async def says_why() -> bool:
            said = condition(await status_of(cluster, "web", SETS), "Ready")["message"]
            return "; no host is possible for web-6: see status.placement of the machine" in said

        await cluster.until(says_why)

    play_story(story, hypervisors)


# --- clones


def test_clones_are_made_where_the_policy_of_their_target_chooses() -> None:
    hypervisors = hosts(3)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(**STRICT))
        await created(cluster, **REF)
        for n in range(3):
            await cluster.create(CLONES, clone(f"c{n}", target={"name": f"copy-{n}", **REF}))

        async def are_settled() -> bool:
            found = [await status_of(cluster, f"c{n}", CLONES) for n in range(3)]
            return sorted(each.get("phase", "") for each in found) == ["Pending", "Ready", "Ready"]

        await cluster.until(are_settled, within=900)
        listed = await hypervisors.at().machines()
        assert len(listed) == len({each.host for each in listed}) == 3
        found = {n: await status_of(cluster, f"c{n}", CLONES) for n in range(3)}
        waits = next(n for n, each in found.items() if each["phase"] == "Pending")
        assert answer(found[waits], "Ready") == ("False", "Unplaceable")
        assert "host-0, host-1, host-2: 1 machine of the policy there" in found[waits]["message"]
        assert all(each["placement"]["phase"] == "Placed" for n, each in found.items() if n != waits)
        await cluster.delete(MACHINES, f"copy-{(waits + 1) % 3}")
        await cluster.until(lambda: cluster.find(MACHINES, f"copy-{waits}"), within=900)

    play_story(story, hypervisors)


def test_a_clone_waits_for_its_policy() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone("c", target={"name": "copy", **REF}))
        await cluster.settle()
        found = await status_of(cluster, "c", CLONES)
        assert found["message"].startswith("VMPlacementPolicy spread does not exist")
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-2"]}))
        await cluster.until(lambda: cluster.find(MACHINES, "copy"), within=900)
        assert (await reaches(cluster, "Stopped", "copy"))["placement"]["host"] == "host-2"

    play_story(story, hosts(3))


# --- machines that fit nowhere


def test_a_machine_that_fits_nowhere_waits_names_every_host_and_goes_on_when_there_is_room() -> None:
    hypervisors = hosts(2)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(**STRICT))
        await created(cluster, "one", **REF)
        await created(cluster, "two", **REF)
        await cluster.create(MACHINES, machine("three", **REF))
        status = await because(cluster, "Unplaceable", "three")
        said = condition(status, "Ready")["message"]
        rule = "spec.antiAffinity.hostAntiAffinity allows 1"
        assert f"none of 2 hosts is possible: host-0, host-1: 1 machine of the policy there, {rule}" in said
        assert "free capacity, add hosts, or relax the VMPlacementPolicy" in said
        assert status["phase"] == "Pending"
        assert [each["host"] for each in status["placement"]["refused"]] == ["host-0", "host-1"]
        assert len(await events(cluster, "three", "Unplaceable")) == 1
        found = await policy_says(cluster, lambda it: (it.get("placementStats") or {}).get("failedPlacements"))
        assert found["placementStats"]["successfulPlacements"] == 2
        assert found["placementStats"]["constraintViolations"] == 1
        await cluster.delete(MACHINES, "one")
        await reaches(cluster, "Running", "three")
        assert (await status_of(cluster, "three"))["placement"]["phase"] == "Placed"

    play_story(story, hypervisors)


def test_a_machine_that_fits_nowhere_is_tried_again_when_a_host_is_added() -> None:
    hypervisors = hosts(1)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(**STRICT))
        await created(cluster, "one", **REF)
        await cluster.create(MACHINES, machine("two", **REF))
        await because(cluster, "Unplaceable", "two")
        there = hypervisors.at()
        asked = len([call for call, _ in there.calls if call == "inventory"])
        there.world = World.of(hosts=2, clusters=2)
        await reaches(cluster, "Running", "two", within=120)
        # Each health check asks once, and so does each try: none is repeated sooner than that.
        assert len([call for call, _ in there.calls if call == "inventory"]) - asked <= 4

    play_story(story, hypervisors)


def test_a_machine_that_fits_nowhere_is_tried_again_when_its_policy_is_changed() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-9"]}))
        await cluster.create(MACHINES, machine(**REF))
        await because(cluster, "Unplaceable")
        await cluster.patch(POLICIES, "spread", {"spec": {"hard": {"hosts": ["host-2"]}}})
        assert (await reaches(cluster, "Running", within=5))["placement"]["host"] == "host-2"

    play_story(story, hosts())


def test_a_machine_waits_for_a_policy_that_does_not_exist_and_for_one_that_is_not_valid() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(MACHINES, machine(**REF))
        status = await because(cluster, "WaitingForDependencies")
        assert status["message"].startswith("VMPlacementPolicy spread does not exist")
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-0"], "excludedHosts": ["host-0"]}))

        async def is_invalid() -> bool:
            return "is not valid: spec.hard.excludedHosts[0]" in (await status_of(cluster))["message"]

        await cluster.until(is_invalid)
        found = await policy_says(cluster, lambda it: answer(it, "Validated")[0] == "False")
        assert answer(found, "Ready") == ("False", "PolicyInvalid")
        await cluster.patch(POLICIES, "spread", {"spec": {"hard": {"excludedHosts": None}}})
        assert (await reaches(cluster, "Running"))["placement"]["host"] == "host-0"

    play_story(story, hosts())


def test_a_policy_that_is_not_valid_does_not_keep_machines_of_others_from_their_place() -> None:
    wrong = {"topologyKey": "host", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy("broken"))
        await created(cluster, "other", placementRef={"name": "broken"})
        apart = {"vmAntiAffinity": {"requiredDuringScheduling": [wrong]}}
        await cluster.patch(POLICIES, "broken", {"spec": {"antiAffinity": apart}})
        await cluster.create(POLICIES, policy(**STRICT))
        await created(cluster, **REF)
        found = await policy_says(cluster, lambda it: answer(it, "Ready")[0] == "False", "broken")
        assert answer(found, "Validated") == ("False", "PolicyInvalid")

    play_story(story, hosts())


def test_a_policy_and_a_class_may_come_after_the_machine() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(MACHINES, machine(**REF))
        await cluster.create(POLICIES, policy(**STRICT))
        await prepare(cluster)
        await reaches(cluster, "Running")

    play_story(story, hosts())


# --- machines that the provider refuses


def test_a_machine_that_the_provider_refuses_on_one_host_is_placed_on_another_one() -> None:
    refusal = Fault(call="create", times=1, code=Code.QUOTA, message="host-0 is full")

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(soft={"hosts": ["host-0"]}))
        status = await created(cluster, **REF)
        assert status["placement"]["host"] != "host-0"
        assert status["placement"]["failedHosts"] == ["host-0"]
        refused = {each["host"]: each["reason"] for each in status["placement"]["refused"]}
        assert refused["host-0"] == "the provider could not create the machine there"

    play_story(story, Hypervisors(world=World.of(hosts=3), faults=(refusal,)))


def test_a_machine_with_one_possible_host_is_tried_there_again_after_a_while() -> None:
    refusal = Fault(call="create", times=2, code=Code.QUOTA, message="host-0 is full")
    hypervisors = Hypervisors(world=World.of(hosts=3), faults=(refusal,))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-0"]}))
        status = await created(cluster, **REF)
        assert status["placement"]["host"] == "host-0"
        assert len([call for call, _ in hypervisors.at().calls if call == "create"]) == 3

    play_story(story, hypervisors)


def test_a_provider_that_fails_for_a_while_does_not_move_a_machine() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(soft={"hosts": ["host-0"]}))
        status = await created(cluster, **REF)
        assert status["placement"]["host"] == "host-0"
        assert "failedHosts" not in status["placement"]

    play_story(story, Hypervisors(world=World.of(hosts=3), faults=(Fault(call="create", times=2),)))


def test_a_machine_that_was_deleted_by_others_comes_back_on_another_host_if_its_own_takes_none() -> None:
    hypervisors = hosts(3)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(soft={"hosts": ["host-0"]}))
        status = await created(cluster, **REF)
        there = hypervisors.at()
        there.set_maintenance("host-0", True)
        there.remove(status["id"])

        async def is_back() -> bool:
            return bool(await there.machines()) and answer(await status_of(cluster), "Ready")[0] == "True"

        await cluster.until(is_back, within=600)
        (listed,) = await there.machines()
        assert listed.host == (await status_of(cluster))["placement"]["host"] != "host-0"

    play_story(story, hypervisors)


def test_a_machine_that_is_migrated_is_placed_by_the_policy_of_the_target() -> None:
    pair = migrations.Pair(world=World.of(hosts=3, clusters=1))

    async def story(cluster: Cluster) -> None:
        await migrations.prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-2"]}))
        await created(cluster)
        await cluster.create(MIGRATIONS, migrations.migration(target=REF))
        await migrations.in_phase(cluster, "Ready")
        (listed,) = await pair.target.machines()
        assert listed.host == "host-2"
        assert (await status_of(cluster, "moved"))["placement"]["phase"] == "Placed"

    play_story(story, pair)


# --- providers that report nothing


def test_hard_constraints_are_passed_on_to_a_provider_without_an_inventory() -> None:
    able = msgspec.structs.replace(CAPABILITIES, inventory=False)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(POLICIES, policy(hard={"hosts": ["host-2"], "clusters": ["cluster-0"]}, **STRICT))
        placed = (await created(cluster, **REF))["placement"]
        assert (placed["host"], placed["cluster"]) == ("host-2", "cluster-0")
        assert "the provider reports no hosts" in placed["reason"]
        found = await policy_says(cluster, lambda it: answer(it, "Supported")[0] == "False")
        assert answer(found, "Supported") == ("False", "PolicyUnsupported")
        assert answer(found, "Ready") == ("False", "PolicyUnsupported")
        result = found["validationResults"]["sim"]
        assert result["valid"] is False
        assert result["supportedFeatures"] == ["hard.clusters", "hard.hosts"]
        assert result["unsupportedFeatures"] == ["antiAffinity.hostAntiAffinity"]

    play_story(story, Hypervisors(world=World.of(hosts=3, clusters=1), capabilities=able))


# --- the policy


def test_a_policy_reports_its_machines_its_providers_and_statistics() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        given = policy(priority=7, **STRICT)
        await cluster.create(POLICIES, given)
        for name in ("one", "two"):
            await created(cluster, name, **REF)
        found = await policy_says(cluster, lambda it: len(it.get("usedByVMs", ())) == 2 and "placementStats" in it)
        assert found["usedByVMs"] == [{"name": "one"}, {"name": "two"}]
        stats = found["placementStats"]
        assert {name: stats[name] for name in ("totalPlacements", "successfulPlacements", "failedPlacements")} == {
            "totalPlacements": 2,
            "successfulPlacements": 2,
            "failedPlacements": 0,
        }
        assert stats["constraintViolations"] == 0
        assert stats["placementDistribution"] == {"host-0": 1, "host-1": 1}
        assert stats["averagePlacementTime"].endswith("s")
        assert stats["lastPlacementTime"] == max(
            [(await status_of(cluster, each))["placement"]["lastScheduledTime"] for each in ("one", "two")]
        )
        result = found["validationResults"]["sim"]
        assert (result["valid"], result["message"]) == (True, "the provider can follow the policy")
        assert result["supportedFeatures"] == ["antiAffinity.hostAntiAffinity"]
        assert result["lastValidated"]
        assert {each["type"]: each["status"] for each in found["conditions"]} == {
            "Ready": "True",
            "Validated": "True",
            "Conflicts": "False",
            "Supported": "True",
        }
        assert found["observedGeneration"] == 1
        await cluster.delete(MACHINES, "one")
        await policy_says(cluster, lambda it: it["usedByVMs"] == [{"name": "two"}])

    play_story(story, hosts())


def test_a_policy_whose_places_do_not_exist_says_so_until_they_do() -> None:
    hypervisors = hosts(2)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        rules = {"hard": {"zones": ["zone-c", "zone-d"], "hosts": ["host-0", "host-2"]}}
        await cluster.create(POLICIES, policy(**rules))
        await cluster.create(MACHINES, machine(**REF))
        found = await policy_says(cluster, lambda it: answer(it, "Validated")[0] == "False")
        assert answer(found, "Ready") == ("False", "PolicyImpossible")
        result = found["validationResults"]["sim"]
        assert result["errors"] == ["spec.hard.zones: it has no zone-c, zone-d; it has zone-a, zone-b"]
        assert result["warnings"] == ["spec.hard.hosts: it has no host-2; it has host-0, host-1"]
        hypervisors.at().world = World.of(hosts=3, clusters=2)
        await policy_says(cluster, lambda it: answer(it, "Ready")[0] == "True", within=120)
        assert (await reaches(cluster, "Running"))["placement"]["host"] == "host-2"

    play_story(story, hypervisors)


def test_policies_that_contradict_each_other_are_named_to_both() -> None:
    def term(app: str) -> Wire:
        return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "host"}

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        with_db = {"affinity": {"vmAffinity": {"requiredDuringScheduling": [term("db")]}}}
        without_web = {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [term("web")]}}}
        await cluster.create(POLICIES, policy("web", **with_db))
        await cluster.create(POLICIES, policy("db", **without_web))
        await created(cluster, "db", labels={"app": "db"}, placementRef={"name": "db"})
        await cluster.create(MACHINES, machine("web", labels={"app": "web"}, placementRef={"name": "web"}))
        status = await because(cluster, "Unplaceable")
        assert "of policy db forbids" in condition(status, "Ready")["message"]
        for name, other in (("web", "db"), ("db", "web")):
            found = await policy_says(cluster, lambda it: answer(it, "Conflicts")[0] == "True", name)
            (conflict,) = found["conflictingPolicies"]
            assert (conflict["policyName"], conflict["conflictType"], conflict["severity"]) == (
                other, "affinity", "critical",
            )  # fmt: skip
            assert "in the same host" in conflict["description"]
            assert "spec.priority" in conflict["resolutionSuggestion"]
            assert answer(found, "Ready") == ("False", "PolicyConflicts")
        await cluster.patch(POLICIES, "web", {"spec": {"priority": 10}})
        assert (await reaches(cluster, "Running"))["placement"]["host"]
        await cluster.patch(POLICIES, "db", {"spec": {"antiAffinity": None}})
        for name in ("web", "db"):
            await policy_says(cluster, lambda it: answer(it, "Conflicts")[0] == "False", name)

    play_story(story, hosts())


def test_machines_of_the_policy_with_the_higher_priority_are_placed_first() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(POLICIES, policy("low", priority=1, hard={"hosts": ["host-0"]}, **STRICT))
        await cluster.create(POLICIES, policy("high", priority=9, hard={"hosts": ["host-0"]}, **STRICT))
        for n in range(3):
            await cluster.create(MACHINES, machine(f"low-{n}", placementRef={"name": "low"}))
        await cluster.create(MACHINES, machine("urgent", placementRef={"name": "high"}))
        await cluster.create(CLASSES, vm_class(memory="300Gi"))
        await furnished_but_class(cluster)
        await reaches(cluster, "Running", "urgent")
        for n in range(3):
            await because(cluster, "Unplaceable", f"low-{n}")

    play_story(story, Hypervisors(world=World.of(hosts=1, memory_gib=512)))


async def furnished_but_class(cluster: Cluster) -> None:
    from tests.operators.virtualmachine.stories import IMAGES, image

    await cluster.create(IMAGES, image())
    await cluster.create(PROVIDERS, provider())


def test_the_places_of_a_provider_are_in_its_status() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        found = (await status_of(cluster, "sim", PROVIDERS))["inventory"]
        assert found["hosts"] == ["host-0", "host-1", "host-2"]
        assert found["zones"] == ["zone-a", "zone-b", "zone-c"]
        assert found["features"] == ["secure-boot", "tpm"]

    play_story(story, hosts())
