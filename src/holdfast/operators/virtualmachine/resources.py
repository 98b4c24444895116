"""The resources of virtual machines."""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import Resource
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

MACHINES: Final = Resource.of(machines.KIND)
PROVIDERS: Final = Resource.of(providers.KIND)
CLASSES: Final = Resource.of(classes.KIND)
IMAGES: Final = Resource.of(images.KIND)
NETWORKS: Final = Resource.of(networks.KIND)
SNAPSHOTS: Final = Resource.of(snapshots.KIND)
SETS: Final = Resource.of(sets.KIND)
CLONES: Final = Resource.of(clones.KIND)
MIGRATIONS: Final = Resource.of(migrations.KIND)
POLICIES: Final = Resource.of(placement.KIND)
