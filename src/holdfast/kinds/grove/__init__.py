"""Inference gangs: the kinds of ``grove.io/v1alpha1``.

A PodCliqueSet (`sets`) is what people write; for each of its replicas the
operator writes PodCliques (`cliques`: pods of one role) and
PodCliqueScalingGroups (`groups`: roles that scale together).  The package says
what the objects look like and what an API server can refuse by itself; it must
not know how they are operated.
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.grove import cliques, groups, sets
from holdfast.kinds.grove.cliques import PodClique
from holdfast.kinds.grove.components import GROUP, VERSION
from holdfast.kinds.grove.groups import PodCliqueScalingGroup
from holdfast.kinds.grove.sets import PodCliqueSet
from holdfast.kinds.model import Kind

KINDS: Final[tuple[Kind, ...]] = (sets.KIND, cliques.KIND, groups.KIND)

__all__ = ["GROUP", "KINDS", "VERSION", "PodClique", "PodCliqueScalingGroup", "PodCliqueSet"]
