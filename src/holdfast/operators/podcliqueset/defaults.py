"""The defaults that are written into a PodCliqueSet when it is created."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.kinds.grove.sets import PodCliqueSet
from holdfast.operators.operator import Filled
from holdfast.operators.podcliqueset.templates import replicas


def defaults(new: PodCliqueSet, old: PodCliqueSet | None) -> Iterator[Filled]:
    """minAvailable of each clique: its replicas when the set is created; then what the set has.

    It is immutable, so an update that leaves it out keeps it.  A set that was created without it has it in its status
    only, and stays so.
    """
    before = {} if old is None else {each.name: each for each in old.spec.template.cliques}
    for index, clique in enumerate(new.spec.template.cliques):
        if clique.spec.min_available is None:
            known = before.get(clique.name)
            value = replicas(clique) if old is None else None if known is None else known.spec.min_available
            if value is not None:
                yield Filled(("spec", "template", "cliques", index, "spec", "minAvailable"), value)
