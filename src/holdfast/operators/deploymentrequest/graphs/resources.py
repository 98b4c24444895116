"""The kinds that graphs are made of, as resources."""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import Resource
from holdfast.kinds.grove import cliques, groups, sets
from holdfast.kinds.nvidia import adapters, deployments

GRAPHS: Final = Resource.of(deployments.KIND)
ADAPTERS: Final = Resource.of(adapters.KIND)
SETS: Final = Resource.of(sets.KIND)
CLIQUES: Final = Resource.of(cliques.KIND)
GROUPS: Final = Resource.of(groups.KIND)
