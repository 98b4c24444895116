"""What a PodCliqueSet asks of its parts at a moment: which generation, and whether it is their turn.

The turn is a fact that the set keeps in its status; its parts act on it and on nothing
else, so a set whose controller is away begins nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.kinds.grove.sets import PodCliqueSet, RollingUpdateProgress
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS, SETS
from holdfast.operators.podcliqueset.templates import Layout, read
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True)
class Mandate:
    """
    generation  the generation hash that the set has come to want
    on_delete   pods are replaced when somebody deletes them
    selected    the replica that the part belongs to is being updated
    """

    generation: str
    on_delete: bool
    selected: bool


def mandate(layout: Layout, index: int | None) -> Mandate:
    """What a set asks of the parts of its replica `index`."""
    status = layout.set.status
    current = running(layout.set)
    turn = None if current is None or current.currently_updating is None else current.currently_updating.replica_index
    return Mandate(
        generation=(status.current_generation_hash or "") if status is not None else "",
        on_delete=layout.on_delete,
        selected=not layout.on_delete and turn is not None and turn == index,
    )


def running(pod_clique_set: PodCliqueSet) -> RollingUpdateProgress | None:
    """The update that is going on, if one is."""
    progress = None if pod_clique_set.status is None else pod_clique_set.status.rolling_update_progress
    return progress if progress is not None and progress.update_ended_at is None else None


def layout_of(view: View, part: Object) -> Layout | None:
    """The set that a part belongs to, by its labels; None where it is gone."""
    name = part.meta.labels.get(labels.PART_OF)
    found = None if not name else view.get(SETS, Key(part.meta.namespace, name))
    return None if found is None or found.deleting else read(found)


# --- whose turn may have come when a set changes


def cliques_concerned(obj: Object, view: View) -> Iterable[Key]:
    return _concerned(obj, view, CLIQUES)


def groups_concerned(obj: Object, view: View) -> Iterable[Key]:
    return _concerned(obj, view, GROUPS)


def _concerned(obj: Object, view: View, resource: Resource) -> Iterable[Key]:
    """All parts when an update begins, and then those of the replica that is being updated."""
    layout = read(obj)
    current = running(layout.set)
    if layout.on_delete or (current is not None and current.currently_updating is None):
        marks = labels.of_set(layout.name)
    elif current is not None and current.currently_updating is not None:
        marks = labels.of_replica(layout.name, current.currently_updating.replica_index)
    else:
        return ()
    found = view.list(resource, namespace=obj.meta.namespace, labels=labels.selector(marks))
    return [each.key for each in found]
