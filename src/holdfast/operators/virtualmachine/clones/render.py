"""The VirtualMachine that a VMClone makes."""

from __future__ import annotations

import ipaddress
from typing import Any

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VirtualMachine, VMClone
from holdfast.kinds.virtrigaud.clones import NetworkCustomization, VMCustomization
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import MACHINES
from holdfast.runtime.status import present, wire


def target_machine(obj: Object, clone: VMClone, source: VirtualMachine | None) -> dict[str, Any] | None:
    """The VirtualMachine as it is created, but for the machine that it adopts; None until it is known what it is of.

    It has the UID of the VMClone, by which it is known on the provider until the VirtualMachine exists.
    """
    spec, target = clone.spec, clone.spec.target
    image = spec.source.image_ref or spec.source.template_ref
    if source is None and (image is None or target.provider_ref is None or target.class_ref is None):
        return None
    custom = spec.customization or VMCustomization()
    given = {} if source is None else wire(source.spec)
    kept = {name: given[name] for name in ("providerRef", "classRef", "imageRef", "importedDisk") if name in given}
    own: dict[str, Any] = {
        "providerRef": wire(target.provider_ref) if source is None and target.provider_ref else None,
        "imageRef": wire(image) if image else None,
        "classRef": wire(target.class_ref) if target.class_ref else None,
        "placementRef": wire(target.placement_ref) if target.placement_ref else None,
        "resources": None if target.class_ref else given.get("resources"),
        "disks": [wire(each) for each in target.disks] or given.get("disks"),
        "networks": _networks(clone, given) or None,
        "userData": wire(custom.user_data) if custom.user_data else given.get("userData"),
        "metaData": _meta_data(obj, clone, custom),
        "placement": _placement(clone, given) or None,
        "tags": list(dict.fromkeys((*given.get("tags", ()), *custom.tags))) or None,
        "powerState": "On" if clone.spec.options and clone.spec.options.power_on else "Off",
    }
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {
            "name": target.name,
            "namespace": obj.key.namespace,
            "uid": obj.uid,
            "labels": dict(target.labels),
            "annotations": {
                **target.annotations,
                names.CLONE: obj.key.name,
                names.CLONE_UID: obj.uid,
                names.CLONED_FROM: _origin(clone),
            },
        },
        "spec": {**kept, **present(own)},
    }


def _origin(clone: VMClone) -> str:
    source = clone.spec.source
    for kind, reference in (
        ("VirtualMachine", source.vm_ref),
        ("VMSnapshot", source.snapshot_ref),
        ("VMImage", source.image_ref),
        ("VMImage", source.template_ref),
    ):
        if reference is not None:
            return f"{kind}/{reference.name}"
    return ""


def _networks(clone: VMClone, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The cards of the target, or else those of the source without their addresses, which only one machine may have."""
    cards = [wire(each) for each in clone.spec.target.networks]
    if not cards:
        own = ("ipAddress", "prefix", "gateway", "macAddress")
        cards = [{name: value for name, value in each.items() if name not in own} for each in given.get("networks", ())]
    custom = {each.name: each for each in (clone.spec.customization or VMCustomization()).networks}
    return [{**each, **_card(custom[each["name"]])} if each["name"] in custom else each for each in cards]


def _card(custom: NetworkCustomization) -> dict[str, Any]:
    return present(
        {
            "ipAddress": "" if custom.dhcp else custom.ip_address,
            "prefix": prefix(custom.subnet_mask) if custom.subnet_mask else None,
            "gateway": custom.gateway,
            "dns": ",".join(custom.dns) or None,
            "macAddress": custom.mac_address,
        }
    )


def prefix(mask: str) -> int | None:
    """The length of a network prefix, such as 24, of its mask; None if it is no mask."""
    try:
        return ipaddress.ip_network(f"0.0.0.0/{mask}").prefixlen or None
    except ValueError:
        return None


def _meta_data(obj: Object, clone: VMClone, custom: VMCustomization) -> dict[str, Any] | None:
    """The name of the guest, and an identity of its own, so that cloud-init runs again.

    Without a name of its own the guest is called as the VirtualMachine is, which needs no data.
    """
    if not custom.hostname and not custom.domain:
        return None
    name = custom.hostname or clone.spec.target.name
    full = f"{name}.{custom.domain}" if custom.domain else name
    return {"cloudInit": {"inline": f"instance-id: {obj.uid}\nlocal-hostname: {full}\n"}}


def _placement(clone: VMClone, given: dict[str, Any]) -> dict[str, Any]:
    storage = clone.spec.options.storage if clone.spec.options else None
    chosen = present({"datastore": storage.datastore, "folder": storage.folder}) if storage else {}
    return {**given.get("placement", {}), **chosen}
