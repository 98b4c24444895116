"""ServiceCIDR and IPAddress.  They are stored; Services get their addresses from the server's own range."""

from __future__ import annotations

import ipaddress
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, column, get, joined
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.services import ADDRESS_RULE
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.errors import FieldError

GROUP: Final = "networking.k8s.io"
_RANGE_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_BITS_RULE: Final = "must not have bits set beyond the prefix length"
_ONE_EACH: Final = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def _validate_ranges(obj: Object, old: Object | None) -> list[FieldError]:
    ranges = get(obj, "spec", "cidrs", default=[])
    changes = () if old is None else _range_changes(ranges, get(old, "spec", "cidrs", default=[]))
    return [*_range_problems(ranges), *changes]


def _range_problems(ranges: list[str]) -> Problems:
    yield from checks.required(ranges, "spec.cidrs", detail="at least one CIDR required")
    versions = []
    for place, text in each(ranges, "spec.cidrs"):
        try:
            versions.append(ipaddress.ip_interface(text).version)
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            network = None
        if network is None or "/" not in text:
            yield FieldError.invalid(place, text, detail=_RANGE_RULE)
        elif network != ipaddress.ip_interface(text).network or str(network.network_address) != text.split("/")[0]:
            yield FieldError.invalid(place, text, detail=_BITS_RULE)
    if len(versions) != len(set(versions)) or len(ranges) > 2:
        yield FieldError.invalid("spec.cidrs", ranges, detail=_ONE_EACH)


def _range_changes(ranges: list[str], old: list[str]) -> Problems:
    """A range of the other family may be added; what is there stays."""
    for index, text in enumerate(old):
        new = ranges[index] if index < len(ranges) else ""
        yield from checks.unchanged(new, text, path=f"spec.cidrs[{index}]")


def _validate_address(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_address_problems(obj))
    if old is not None:
        problems += checks.unchanged(obj.get("spec"), old.get("spec"), path="spec.parentRef")
    return problems


def _address_problems(obj: Object) -> Problems:
    name, parent = obj["metadata"].get("name", ""), get(obj, "spec", "parentRef")
    try:
        canonical = str(ipaddress.ip_address(name)) == name
    except ValueError:
        canonical = False
    if name and not canonical:
        yield FieldError.invalid("metadata.name", name, detail=ADDRESS_RULE)
    if parent is None:
        yield FieldError.required("spec.parentRef")
        return
    for part in ("resource", "name"):
        yield from checks.required(parent.get(part), f"spec.parentRef.{part}")


def _parent(obj: Object) -> str:
    parent = get(obj, "spec", "parentRef", default={})
    parts = (parent.get(part) for part in ("group", "resource", "namespace", "name"))
    return "/".join(part for part in parts if part)


SERVICE_CIDR: Final = builtin(
    "ServiceCIDR",
    group=GROUP,
    namespaced=False,
    status=True,
    generation=False,
    columns=(NAME, column("CIDRs", lambda obj: joined(get(obj, "spec", "cidrs", default=()))), AGE),
    validate=_validate_ranges,
)
IP_ADDRESS: Final = builtin(
    "IPAddress",
    group=GROUP,
    plural="ipaddresses",
    namespaced=False,
    short_names=("ip",),
    generation=False,
    columns=(NAME, column("ParentRef", _parent)),
    validate=_validate_address,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (SERVICE_CIDR, IP_ADDRESS)
