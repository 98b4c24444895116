"""The kinds that inference gangs are made of, as resources."""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import Resource
from holdfast.kinds.grove import cliques, groups, sets
from holdfast.kinds.grove_scheduler import POD_GANG

SETS: Final = Resource.of(sets.KIND)
CLIQUES: Final = Resource.of(cliques.KIND)
GROUPS: Final = Resource.of(groups.KIND)
GANGS: Final = Resource.of(POD_GANG)
