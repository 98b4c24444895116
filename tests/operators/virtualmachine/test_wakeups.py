"""Every object that a controller reads wakes it: it is reconciled again when such an object comes, goes or changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.operators.virtualmachine.migration_stories import migration
from tests.operators.virtualmachine.stories import image, machine, policy, provider, vm_class

from holdfast.client.objects import Object
from holdfast.client.resources import (
    CLAIMS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from holdfast.meta.patches import merge
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.controller import CONTROLLERS
from holdfast.operators.virtualmachine.providers.observe import labels
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    IMAGES,
    MACHINES,
    MIGRATIONS,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SETS,
    SNAPSHOTS,
)
from holdfast.runtime.controllers import Controller
from holdfast.testing.wakeups import Dependency, brought, dependencies, view_of

Wire = dict[str, Any]
NAMED: dict[str, Controller[Any]] = {each.name: each for each in CONTROLLERS}

NOT_AWAITED: dict[tuple[str, Resource], str] = {
    ("vmplacement", IMAGES): "a place does not depend on the image",
    ("vmplacement", NETWORKS): "a place does not depend on networks",
    ("vmplacement", SECRETS): "a place does not depend on first-boot data",
    ("vmclone", IMAGES): "a clone copies disks; one of an image waits for its machine",
    ("vmmigration", IMAGES): "a machine that moves has its disk",
    ("vmmigration", POLICIES): "the machine that a migration makes waits for its policy",
    ("provider", CLASSES): "names are read when machines are adopted, after a health check",
    ("provider", MACHINES): "counted at a health check; the first and the last one have a test of their own",
}
"""What is read on the way, and decides nothing."""

CERTIFICATES = "certificates"
"""The Secret that a Provider names: a change of it wakes the Provider, whose condition Ready wakes the others."""


def stored(resource: Resource, wire: Wire, **metadata: Any) -> Object:
    given = {"namespace": "default", "generation": 1, **wire["metadata"], **metadata}
    if resource is NAMESPACES:
        given.pop("namespace")
    given.setdefault("uid", f"{resource.plural}-{given['name']}")
    return Object.of(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **wire, "metadata": given})


def ready(wire: Wire, **status: Any) -> Wire:
    since = "2030-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": since}
    return {**wire, "status": {"conditions": [condition], **status}}


def named(name: str, **more: Any) -> Wire:
    return {"metadata": {"name": name}, **more}


def secret(name: str) -> Object:
    return stored(SECRETS, named(name, data={"user-data": "eA=="}))


def first_boot(name: str) -> Wire:
    return {"cloudInit": {"secretRef": {"name": name}}}


def owned(resource: Resource, name: str, owner: Object, **more: Any) -> Object:
    reference = {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
    }
    return stored(resource, named(name, **more), ownerReferences=[reference])


def scene() -> list[Object]:
    """One of everything, as far as controllers read it."""
    tls = {"runtime": {"image": "holdfast", "service": {"tls": {"secretRef": {"name": CERTIFICATES}}}}}
    at = {"runtime": {"endpoint": "sim:9443"}}
    sim = stored(PROVIDERS, ready(provider(**tls), **at))
    far = stored(PROVIDERS, ready(provider("far"), runtime={"endpoint": "far:9443"}))
    local = stored(PROVIDERS, provider("local", endpoint="https://local", annotations={names.ADOPT: "true"}))
    selector = {"namespaceSelector": {"matchLabels": {"tier": "one"}}, "topologyKey": "host"}
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, **selector}
    apart = {"antiAffinity": {"vmAntiAffinity": {"requiredDuringScheduling": [term]}}}
    tier = stored(
        SETS, named("tier", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": machine()["spec"]}})
    )
    runtime = names.runtime("default", "local")
    card = {"name": "eth0", "networkRef": {"name": "lan"}}
    wan = {"name": "eth0", "networkRef": {"name": "wan"}}
    asked = {"providerRef": {"name": "old", "namespace": "default"}}
    return [
        sim,
        far,
        local,
        stored(PROVIDERS, ready(provider("old"), runtime={"endpoint": "old:9443"})),
        owned(DEPLOYMENTS, runtime, local),
        owned(SERVICES, runtime, local),
        owned(SECRETS, names.certificate("default", "local"), local, data={}),
        stored(PODS, {**named("local-1"), "spec": {}, "status": {}}, labels=labels(local.key)),
        stored(CLAIMS, named("disks"), labels={names.STORAGE: names.STORAGE_VALUE}),
        stored(CLAIMS, named(names.SHARED_STORAGE)),
        stored(CLAIMS, named("mine")),
        stored(CLAIMS, named("move-storage")),
        secret(CERTIFICATES),
        secret("boot"),
        secret("other-boot"),
        secret("s3"),
        stored(CLASSES, vm_class()),
        stored(CLASSES, vm_class("large")),
        stored(IMAGES, image()),
        stored(NETWORKS, named("lan", spec={"network": {"libvirt": {"networkName": "lan"}}})),
        stored(NETWORKS, named("wan", spec={"network": {"libvirt": {"networkName": "wan"}}})),
        stored(POLICIES, policy("spread", **apart)),
        stored(POLICIES, policy("pack")),
        stored(NAMESPACES, named("default"), labels={"tier": "one"}),
        stored(
            MACHINES,
            machine(networks=[card], userData=first_boot("boot"), placementRef={"name": "spread"}),
        ),
        stored(MACHINES, machine("reverted", snapshot={"revertToRef": {"name": "before"}})),
        stored(MACHINES, ready(machine("db", placementRef={"name": "pack"}), id="vm-1")),
        stored(MACHINES, machine("copy")),
        stored(MACHINES, machine("moved", providerRef={"name": "far"})),
        stored(MACHINES, machine("there", providerRef={"name": "local"})),
        tier,
        stored(MACHINES, machine("tier-0")),
        owned(MACHINES, "tier-1", tier, spec=machine()["spec"]),
        owned(CONTROLLER_REVISIONS, "tier-a", tier, data={"spec": machine()["spec"]}),
        stored(SNAPSHOTS, named("before", spec={"vmRef": {"name": "web"}})),
        stored(SNAPSHOTS, named("after", spec={"vmRef": {"name": "web"}})),
        _clone("copying", {"vmRef": {"name": "web"}}, placementRef={"name": "spread"}),
        _clone("of-snapshot", {"snapshotRef": {"name": "before"}}, placementRef={"name": "pack"}),
        _clone("given", {"vmRef": {"name": "web"}}, classRef={"name": "large"}, networks=[wan]),
        _clone("asked", {"vmRef": {"name": "gone"}}, status=asked),
        _clone(
            "of-image",
            {"imageRef": {"name": "ubuntu"}},
            providerRef={"name": "sim"},
            classRef={"name": "large"},
            boot=first_boot("other-boot"),
        ),
        stored(MIGRATIONS, migration()),
        stored(MIGRATIONS, migration("mine", storage={"type": "pvc", "pvc": {"name": "mine"}})),
        stored(
            MIGRATIONS,
            migration(
                "s3",
                source={"snapshotRef": {"name": "before"}},
                target={"classRef": {"name": "large"}, "networks": [wan], "placementRef": {"name": "pack"}},
                storage={"type": "s3", "s3": {"bucket": "b", "credentialsSecretRef": {"name": "s3"}}},
            ),
        ),
        stored(MIGRATIONS, migration("unknown", source={"vmRef": {"name": "gone"}, "providerRef": {"name": "sim"}})),
    ]


def _clone(name: str, source: Wire, *, status: Wire | None = None, boot: Wire | None = None, **target: Any) -> Object:
    spec: Wire = {"source": source, "target": {"name": f"{name}-copy", **target}}
    if name == "copying":
        spec["target"]["name"] = "copy"
    if boot:
        spec["customization"] = {"userData": boot}
    return stored(CLONES, {**named(name), "spec": spec, **({"status": status} if status else {})})


SCENE = scene()


def awaited() -> Iterator[Dependency]:
    for each in dependencies(CONTROLLERS, SCENE):
        name, other = each.controller.name, each.other
        if (name, other.resource) not in NOT_AWAITED and (other.key.name != CERTIFICATES or name == "provider"):
            yield each


def shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0].plural}/{value[1]}"
    return f"{value.resource.plural}/{value.key.name}" if isinstance(value, Object) else str(value)


@pytest.mark.parametrize("dependency", list(awaited()), ids=str)
def test_an_object_that_comes_or_goes_wakes_those_that_read_it(dependency: Dependency) -> None:
    assert dependency.wakes


NEWER: Wire = {"metadata": {"generation": 2}}
PLACED: Wire = {"status": {"placement": {"phase": "Placed", "policy": "spread", "host": "host-1"}}}


def taken(phase: str = "Ready", **more: Any) -> Wire:
    return {"status": {"phase": phase, "snapshotID": "snap-1", **more}}


@pytest.mark.parametrize(
    ("other", "change", "readers"),
    [
        (
            (PROVIDERS, "sim"),
            {"status": {"conditions": []}},
            "web before copying of-snapshot of-image move placement ubuntu small lan",
        ),
        ((PROVIDERS, "sim"), {"status": {"runtime": {"endpoint": "new:1"}}}, "web before copying move placement"),
        ((PROVIDERS, "sim"), {"status": {"reportedCapabilities": {"supportsSnapshots": True}}}, "web spread small"),
        ((PROVIDERS, "sim"), {"status": {"inventory": {"hosts": ["a"]}}}, "spread"),
        ((PROVIDERS, "sim"), {"status": {"mountedClaims": ["disks"]}}, "move"),
        ((PROVIDERS, "far"), {"status": {"mountedClaims": ["disks"]}}, "move"),
        ((PROVIDERS, "far"), {"status": {"mountedExports": ["server:/export"]}}, "move"),
        ((CLASSES, "small"), NEWER, "web copying of-snapshot move placement"),
        ((CLASSES, "large"), NEWER, "given s3"),
        ((NETWORKS, "lan"), NEWER, "web copying move"),
        ((NETWORKS, "wan"), NEWER, "given s3"),
        ((POLICIES, "spread"), NEWER, "web copying placement pack"),
        ((IMAGES, "ubuntu"), {"status": {"providerStatus": {"sim": {"available": True}}}}, "web"),
        ((SECRETS, "boot"), {"data": {"user-data": "eQ=="}}, "web copying move"),
        ((SECRETS, "other-boot"), {"data": {"user-data": "eQ=="}}, "of-image"),
        ((SECRETS, "s3"), {"data": {"accessKeyID": "eQ=="}}, "s3"),
        ((SECRETS, CERTIFICATES), {"data": {"ca.crt": "eQ=="}}, "sim"),
        ((CLAIMS, "mine"), {"status": {"phase": "Bound"}}, "mine"),
        ((CLAIMS, "move-storage"), {"status": {"phase": "Bound"}}, "move"),
        ((CLAIMS, "disks"), {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, "sim far local"),
        ((PODS, "local-1"), {"status": {"phase": "Running"}}, "local"),
        ((MIGRATIONS, "move"), {"status": {"completionTime": "2030-01-01T00:00:00Z"}}, "sim far"),
        ((MIGRATIONS, "unknown"), {"status": {"artifacts": ["Disk"]}}, "sim far"),
        ((SNAPSHOTS, "before"), taken(), "web reverted after of-snapshot s3"),
        ((SNAPSHOTS, "before"), NEWER, "web reverted of-snapshot s3 placement"),
        ((MACHINES, "web"), {"status": {"id": "vm-9"}}, "before copying of-snapshot move placement"),
        ((MACHINES, "web"), {"status": {"heldFor": "move/1/1"}}, "move"),
        ((MACHINES, "web"), NEWER, "ubuntu small lan spread copying move placement"),
        ((MACHINES, "copy"), {"status": {"phase": "Running"}}, "copying"),
        ((MACHINES, "moved"), {"status": {"phase": "Running"}}, "move"),
        ((MACHINES, "db"), {"metadata": {"labels": {"app": "db"}}}, "pack spread placement"),
        ((MACHINES, "db"), {"status": {"currentResources": {"cpu": 9}}}, "placement"),
        ((MACHINES, "db"), PLACED, "pack placement"),
        ((CLONES, "copying"), PLACED, "placement"),
        ((CLONES, "of-snapshot"), {"status": {"phase": "Ready"}}, "placement"),
        ((NAMESPACES, "default"), {"metadata": {"labels": {"tier": "two"}}}, "spread pack placement"),
    ],
    ids=shown,
)
def test_a_change_that_a_reader_depends_on_wakes_it(other: tuple[Resource, str], change: Wire, readers: str) -> None:
    assert woken(other, change) >= set(readers.split())


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ((PROVIDERS, "sim"), {"status": {"lastHealthCheck": "2030-01-01T00:00:00Z"}}),
        ((CLASSES, "small"), {"status": {"usedByVMs": 7}}),
        ((POLICIES, "spread"), {"status": {"usedByVMs": 7}}),
        ((NETWORKS, "lan"), {"status": {"connectedVMs": 7}}),
        ((IMAGES, "ubuntu"), {"status": {"message": "40 %"}}),
        ((MIGRATIONS, "move"), {"status": {"progress": {"percentage": 40}}}),
        ((CLONES, "copying"), {"status": {"message": "40 %"}}),
        ((SNAPSHOTS, "before"), {"status": {"message": "40 %"}}),
        ((MACHINES, "db"), {"status": {"consoleURL": "vnc://host:1"}}),
        ((NAMESPACES, "default"), {"metadata": {"annotations": {"a": "b"}}}),
    ],
    ids=shown,
)
def test_a_change_that_decides_nothing_wakes_no_other_object(other: tuple[Resource, str], change: Wire) -> None:
    assert woken(other, change) == set()


def woken(other: tuple[Resource, str], change: Wire) -> set[str]:
    """The names of the objects that a change of another one wakes; `placement` is that of the Provider sim."""
    old = next(each for each in SCENE if (each.resource, each.key.name) == other)
    new = Object.of(old.resource, merge.apply(old.wire(), change))
    view = view_of(CONTROLLERS, [*(each for each in SCENE if each is not old), new])
    found = set()
    for controller in CONTROLLERS:
        keys = {
            key
            for each in controller.watches
            if each.resource == old.resource and (each.matters is None or each.matters(old, new))
            for key in (*each.keys(old, view), *each.keys(new, view))
        }
        if controller.resource == old.resource and controller.name == "vmplacement" and controller.matters is not None:
            keys |= {old.key} if controller.matters(old, new) else set()
        found |= {"placement" if controller.name == "vmplacement" else key.name for key in keys}
    return found


@pytest.mark.parametrize("annotation", [{names.ON_DEMAND: "true"}, {}])
def test_the_first_machine_wakes_a_provider_that_starts_on_demand(annotation: Wire) -> None:
    idle = stored(PROVIDERS, provider("idle", annotations=annotation))
    first = stored(MACHINES, machine("first", providerRef={"name": "idle"}))
    view = view_of(CONTROLLERS, [*SCENE, idle, first])
    assert brought(NAMED["provider"], first, view) == ({idle.key} if annotation else set())


def test_the_last_machine_wakes_a_provider_that_is_being_deleted() -> None:
    going = stored(PROVIDERS, provider("going"), deletionTimestamp="2030-01-01T00:00:00Z")
    last = stored(MACHINES, machine("last", providerRef={"name": "going"}))
    assert brought(NAMED["provider"], last, view_of(CONTROLLERS, [*SCENE, going])) == {going.key}
