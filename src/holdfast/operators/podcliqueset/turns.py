"""Turns: which replica of a PodCliqueSet is being updated, as its PodCliques and scaling groups read it.

The set writes the replica that it selected into its status, and the controllers of the
parts act on that alone.  A set whose controller does not run starts no update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.client.objects import Object, Undecodable
from holdfast.client.resources import Resource
from holdfast.kinds.grove.progress import currently_updating_replica, is_rolling_update_in_progress
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.resources import SETS
from holdfast.operators.podcliqueset.templates import Layout, read
from holdfast.runtime.controllers import View, Watch


@dataclass(frozen=True, slots=True)
class Turn:
    """What a set says to the parts of one of its replicas.

    generation  the generation hash that the set has recorded as wanted
    on_delete   pods are replaced when the user deletes them
    selected    the replica is being updated
    """

    generation: str
    on_delete: bool
    selected: bool


def turn_of(layout: Layout, index: int | None) -> Turn:
    """The turn of replica `index` of a set."""
    status = layout.set.status
    updating = currently_updating_replica(layout.set) if is_rolling_update_in_progress(layout.set) else None
    return Turn(
        generation=(status.current_generation_hash or "") if status is not None else "",
        on_delete=layout.on_delete,
        selected=not layout.on_delete and updating is not None and updating == index,
    )


def layout_of(view: View, part: Object) -> Layout | None:
    """The set that the labels of a part name; None where it does not exist or is being deleted."""
    name = part.meta.labels.get(labels.PART_OF)
    found = None if not name else view.get(SETS, Key(part.meta.namespace, name))
    return None if found is None or found.deleting else read(found)


def on_changed_set(resource: Resource) -> Watch:
    """Reconcile the parts of a set when it changed in a way that they read (`_said`).

    All of them when its spec changed or an update begins, then those of the replica that is being updated.
    """

    def keys(obj: Object, view: View) -> Iterable[Key]:
        try:
            layout = read(obj)
        except Undecodable:
            return ()
        status, updating = layout.set.status, currently_updating_replica(layout.set)
        respecified = status is None or status.observed_generation != obj.meta.generation
        running = is_rolling_update_in_progress(layout.set)
        if respecified or layout.on_delete or (running and updating is None):
            marks = labels.of_set(layout.name)
        elif running and updating is not None:
            marks = labels.of_replica(layout.name, updating)
        else:
            return ()
        found = view.list(resource, namespace=obj.meta.namespace, labels=labels.selector(marks))
        return [each.key for each in found]

    return Watch(resource=SETS, keys=keys, matters=lambda old, new: _said(old) != _said(new))


def _said(obj: Object) -> tuple[object, ...]:
    """What the parts of a set read of it: its spec, its labels, and whose turn it is; not the rest of its status."""
    meta, layout = obj.meta, read(obj)
    status = layout.set.status
    return (
        meta.generation,
        meta.labels,
        meta.annotations,
        obj.deleting,
        layout.minimums,
        (None, None) if status is None else (status.current_generation_hash, status.observed_generation),
        is_rolling_update_in_progress(layout.set),
        currently_updating_replica(layout.set),
    )
