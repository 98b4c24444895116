"""What the schemas of virtual machines cannot say is refused on admission, with its path and what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operators.virtualmachine.stories import image, machine, policy, provider, vm_class
from tests.places import ROOT

from holdfast import kinds
from holdfast.apiserver.server import Server
from holdfast.cli.operator import installing
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.resources import Resource
from holdfast.kinds import virtrigaud
from holdfast.meta.errors import Invalid
from holdfast.operators.admission import Admission
from holdfast.operators.operator import load

EXAMPLES = sorted((ROOT / "examples" / "virtualmachines").glob("*.yaml"))
SHARED = ROOT.parent / "shared" / "manifests" / "virtrigaud"
UPSTREAM = sorted(SHARED.glob("*.yaml"))
Wire = dict[str, Any]


def played(story: Callable[[ApiClient], Awaitable[None]]) -> None:
    """A story on an embedded server that reviews objects as `holdfast up` does."""

    async def run() -> None:
        server = await Server.open(None, admission=Admission(load()))
        client = ApiClient(InProcess(server.handle, server.identity.admin_token))
        try:
            await installing.install(client, virtrigaud.KINDS)
            await story(client)
        finally:
            await client.close()
            await server.close()

    asyncio.run(run())


def placed(kind: str, wire: Wire) -> tuple[Resource, Wire]:
    found = kinds.find(virtrigaud.machines.KIND.api_version, kind)
    assert found is not None
    metadata = {"namespace": "default", **wire["metadata"]}
    return Resource.of(found), {"apiVersion": found.api_version, "kind": kind, **wire, "metadata": metadata}


def network(**spec: Any) -> Wire:
    return {"metadata": {"name": "net"}, "spec": {"network": {}, **spec}}


def snapshot(**spec: Any) -> Wire:
    return {"metadata": {"name": "snap"}, "spec": {"vmRef": {"name": "web"}, **spec}}


def clone(source: Wire | None = None, target: Wire | None = None, **spec: Any) -> Wire:
    source, target = source or {"vmRef": {"name": "web"}}, {"name": "copy", **(target or {})}
    return {"metadata": {"name": "clone"}, "spec": {"source": source, "target": target, **spec}}


def vm_set(
    labels: Wire | None = None, rolling: Wire | None = None, of_machine: Wire | None = None, **spec: Any
) -> Wire:
    template = {"metadata": {"labels": labels or {"app": "web"}}, "spec": machine(**(of_machine or {}))["spec"]}
    strategy = {"updateStrategy": {"rollingUpdate": rolling}} if rolling else {}
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template, **strategy, **spec}}


LONG = "9999999h"
CARD = {"name": "a", "ipAddress": "10.0.0.5", "prefix": 24}

REFUSED: list[tuple[str, Wire, str]] = [
    ("VirtualMachine", machine(networks=[CARD, {**CARD, "name": "b"}]), "spec.networks[1].ipAddress: 10.0.0.5 is also"),
    (
        "VirtualMachine",
        machine(networks=[{**CARD, "gateway": "10.0.1.1"}]),
        "spec.networks[0].gateway: 10.0.1.1 is not",
    ),
    ("VirtualMachine", machine(networks=[{**CARD, "dns": "10.0.0.2,dns"}]), "spec.networks[0].dns: 'dns' is not an IP"),
    (
        "VirtualMachine",
        machine(reconfigure={"restart": "InWindow", "windows": [{"start": "02:00", "duration": "200h"}]}),
        "spec.reconfigure.windows[0].duration: a window is open for more than 0s and at most 168h",
    ),
    (
        "VirtualMachine",
        machine(lifecycle={"gracefulShutdownTimeout": LONG}),
        "spec.lifecycle.gracefulShutdownTimeout: '9999999h' is out of range",
    ),
    ("VMSet", vm_set(labels={"app": "db"}), "spec.selector: app=web does not match the labels of the template"),
    (
        "VMSet",
        vm_set(labels={"app": "web", "virtrigaud.io/vmset": "x"}),
        "spec.template.metadata.labels: the controller sets the label virtrigaud.io/vmset",
    ),
    ("VMSet", vm_set(labels={"app": "web", "a b": "c"}), "spec.template.metadata.labels: a b: 'c' is not a label"),
    ("VMSet", vm_set(rolling={"maxSurge": 0, "maxUnavailable": 0}), "spec.updateStrategy.rollingUpdate.maxSurge: "),
    ("VMSet", vm_set(rolling={"maxUnavailable": "120%"}), "rollingUpdate.maxUnavailable: 120% is more than all"),
    ("VMSet", vm_set(rolling={"maxSurge": 0}, minAvailable="100%"), "spec.minAvailable: with minAvailable 100% and"),
    (
        "VMSet",
        vm_set(of_machine={"networks": [{**CARD, "dns": "x"}]}),
        "spec.template.spec.networks[0].dns: 'x' is not an IP address",
    ),
    ("VMSnapshot", snapshot(retentionPolicy={"maxAge": "a month"}), "spec.retentionPolicy.maxAge: 'a month' is not a"),
    ("VMSnapshot", snapshot(retentionPolicy={"gracePeriod": "-1h"}), "spec.retentionPolicy.gracePeriod: '-1h' is neg"),
    ("VMSnapshot", snapshot(schedule={"cronSpec": "61 * * * *"}), "spec.schedule.cronSpec: "),
    ("VMSnapshot", snapshot(schedule={"timezone": "Mars/Base"}), "spec.schedule.timezone: there is no time zone"),
    ("VMClone", clone(target={"name": "web"}), "spec.target.name: web is the name of the source"),
    ("VMClone", clone({"imageRef": {"name": "ubuntu"}}), "spec.target: a clone of an image needs providerRef and"),
    (
        "VMClone",
        clone(
            {"imageRef": {"name": "u"}},
            {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}},
            options={"type": "LinkedClone"},
        ),
        "spec.options.type: a clone of an image is a FullClone",
    ),
    ("VMClone", clone(options={"timeout": LONG}), "spec.options.timeout: '9999999h' is out of range"),
    (
        "VMClone",
        clone(customization={"networks": [{"name": "a", "subnetMask": "255.0.255.0"}]}),
        "spec.customization.networks[0].subnetMask: 255.0.255.0 is not a mask",
    ),
    (
        "VMClone",
        clone(customization={"guestCommands": [{"command": "date"}]}),
        "spec.customization.guestCommands: commands run in a guest that runs; set spec.options.powerOn to true",
    ),
    (
        "Provider",
        provider(type="vsphere", endpoint="qemu:///system"),
        "spec.endpoint: qemu:///system is an endpoint of",
    ),
    ("Provider", provider(healthCheck={"interval": "0s"}), "spec.healthCheck.interval: 0s is not more than 0s"),
    ("Provider", provider(healthCheck={"timeout": LONG}), "spec.healthCheck.timeout: '9999999h' is out of range"),
    (
        "Provider",
        provider(connectionPooling={"maxConnections": 2, "maxIdleConnections": 3}),
        "spec.connectionPooling.maxIdleConnections: 3 idle connections are more than maxConnections, 2",
    ),
    (
        "Provider",
        provider(annotations={"virtrigaud.io/adopt-filter": '{"namePattern": "["}'}),
        "metadata.annotations[virtrigaud.io/adopt-filter]: it does not say which machines to adopt: namePattern",
    ),
    ("VMClass", vm_class(memory="1Mi"), "spec.memory: 1Mi is less than 64Mi"),
    ("VMClass", vm_class(securityProfile={"secureBoot": True}), "spec.securityProfile.secureBoot: secure boot needs"),
    (
        "VMClass",
        vm_class(resourceLimits={"cpuLimit": 1000, "cpuReservation": 2000}),
        "spec.resourceLimits.cpuReservation: 2000 MHz is more than cpuLimit, 1000 MHz",
    ),
    (
        "VMClass",
        vm_class(resourceLimits={"memoryLimit": "1Gi", "memoryReservation": "2Gi"}),
        "spec.resourceLimits.memoryReservation: 2Gi is more than memoryLimit, 1Gi",
    ),
    ("VMImage", image(prepare={"timeout": LONG}), "spec.prepare.timeout: '9999999h' is out of range"),
    (
        "VMImage",
        image(
            source={
                "http": {
                    "url": "https://a/b",
                    "headers": {"authorization": "x"},
                    "authentication": {"bearer": {"secretRef": {"name": "s"}}},
                }
            }
        ),
        "spec.source.http.headers.authorization: the header contradicts spec.source.http.authentication.bearer",
    ),
    (
        "VMNetworkAttachment",
        network(network={"vsphere": {"vlan": {"type": "trunk"}}}),
        "spec.network.vsphere.vlan.trunkVlanIDs: type trunk needs trunkVlanIDs",
    ),
    (
        "VMNetworkAttachment",
        network(network={"vsphere": {"trafficShaping": {"averageBandwidth": 9000, "peakBandwidth": 1000}}}),
        "spec.network.vsphere.trafficShaping.peakBandwidth: 1000 bits a second at most is less",
    ),
    (
        "VMNetworkAttachment",
        network(ipAllocation={"type": "Static", "staticConfig": {"address": "10.0.0.5/24", "gateway": "10.0.1.1"}}),
        "spec.ipAllocation.staticConfig.gateway: 10.0.1.1 is not in 10.0.0.0/24",
    ),
    (
        "VMNetworkAttachment",
        network(ipAllocation={"dnsConfig": {"servers": ["10.0.0.2", "dns"]}}),
        "spec.ipAllocation.dnsConfig.servers[1]: 'dns' is not an IP address",
    ),
    (
        "VMNetworkAttachment",
        network(
            security={
                "firewall": {"rules": [{"name": "a", "action": "ACCEPT", "direction": "in", "ports": {"start": 22}}]}
            }
        ),
        "spec.security.firewall.rules[0].ports: ports need protocol tcp or udp, and not all",
    ),
    (
        "VMNetworkAttachment",
        network(security={"isolation": {"allowedNetworks": ["10.0.0.0/8"], "deniedNetworks": ["10.0.0.0/8", "x"]}}),
        "spec.security.isolation.deniedNetworks[0]: 10.0.0.0/8 is allowed and denied",
    ),
    (
        "VMPlacementPolicy",
        policy(hard={"hosts": ["a"], "excludedHosts": ["a"]}),
        "spec.hard.excludedHosts[0]: a is included by hosts and excluded; remove it from one of the lists",
    ),
    (
        "VMPlacementPolicy",
        policy(affinity={"vmAffinity": {"requiredDuringScheduling": [{"topologyKey": "host"}]}}),
        "spec.affinity.vmAffinity.requiredDuringScheduling[0]: the term has neither labelSelector nor",
    ),
]


def test_what_a_schema_cannot_say_is_refused_with_its_path() -> None:
    async def story(client: ApiClient) -> None:
        for kind, wire, said in REFUSED:
            resource, manifest = placed(kind, wire)
            with pytest.raises(Invalid) as refused:
                await client.create(resource, manifest)
            assert said in refused.value.message, kind

    played(story)


def test_every_kind_has_a_review() -> None:
    reviewed = {kind.name for kind in Admission(load()).reviewed_kinds}
    assert {kind.name for kind in virtrigaud.KINDS} <= reviewed
    assert {kind for kind, _, _ in REFUSED} <= reviewed


def test_an_object_that_was_stored_with_a_problem_can_still_be_changed() -> None:
    resource, manifest = placed("VMClass", vm_class(memory="1Mi"))
    admission = Admission(load())
    assert admission.refusal(manifest) is not None
    assert admission.refusal({**manifest, "spec": {**manifest["spec"], "cpu": 4}}, manifest) is None
    assert resource.plural == "vmclasses"


@pytest.mark.parametrize("path", [*EXAMPLES, *UPSTREAM], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_and_the_manifests_of_virtrigaud_have_no_problems(path: Path) -> None:
    admission = Admission(load())
    documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
    assert [admission.problems(each) for each in documents] == [()] * len(documents)
