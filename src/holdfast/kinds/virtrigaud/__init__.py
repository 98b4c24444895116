"""The kinds of ``infra.virtrigaud.io/v1beta1``: virtual machines, their providers, images, networks and operations.

One module for each kind, and a few for what kinds share: names and references
(`references`), disks and cards (`devices`), first-boot data and hooks
(`guests`), label selectors (`selectors`), retries (`operations`).
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.model import Kind
from holdfast.kinds.virtrigaud import (
    classes,
    clones,
    images,
    machines,
    migrations,
    networks,
    placement,
    providers,
    sets,
    snapshots,
)
from holdfast.kinds.virtrigaud.classes import VMClass
from holdfast.kinds.virtrigaud.clones import VMClone
from holdfast.kinds.virtrigaud.images import VMImage
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.kinds.virtrigaud.migrations import VMMigration
from holdfast.kinds.virtrigaud.networks import VMNetworkAttachment
from holdfast.kinds.virtrigaud.placement import VMPlacementPolicy
from holdfast.kinds.virtrigaud.providers import Provider
from holdfast.kinds.virtrigaud.sets import VMSet
from holdfast.kinds.virtrigaud.snapshots import VMSnapshot

KINDS: Final[tuple[Kind, ...]] = (
    machines.KIND,
    providers.KIND,
    migrations.KIND,
    sets.KIND,
    placement.KIND,
    snapshots.KIND,
    classes.KIND,
    images.KIND,
    clones.KIND,
    networks.KIND,
)
"""Every kind of the group, in the order in which they are listed."""

__all__ = [
    "KINDS",
    "Provider",
    "VMClass",
    "VMClone",
    "VMImage",
    "VMMigration",
    "VMNetworkAttachment",
    "VMPlacementPolicy",
    "VMSet",
    "VMSnapshot",
    "VirtualMachine",
]
