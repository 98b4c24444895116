"""The resources of virtual machines."""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import Resource
from holdfast.kinds import virtrigaud as kinds

MACHINES: Final = Resource.of(kinds.machines.KIND)
PROVIDERS: Final = Resource.of(kinds.providers.KIND)
CLASSES: Final = Resource.of(kinds.classes.KIND)
IMAGES: Final = Resource.of(kinds.images.KIND)
NETWORKS: Final = Resource.of(kinds.networks.KIND)
SNAPSHOTS: Final = Resource.of(kinds.snapshots.KIND)
SETS: Final = Resource.of(kinds.sets.KIND)
CLONES: Final = Resource.of(kinds.clones.KIND)
MIGRATIONS: Final = Resource.of(kinds.migrations.KIND)
POLICIES: Final = Resource.of(kinds.placement.KIND)
