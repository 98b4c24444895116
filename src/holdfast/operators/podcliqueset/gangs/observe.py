"""The world of one PodGang: the PodCliques that belong to it, and their pods.

A PodGang exists while PodCliques name it in their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel import conditions
from holdfast.kinds.grove.templates import ScalingGroupTemplate
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.podcliqueset import labels, names, render
from holdfast.operators.podcliqueset.cliques.pods import Pod
from holdfast.operators.podcliqueset.part_status import Clique
from holdfast.operators.podcliqueset.part_status import Group as ScalingGroup
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.operators.podcliqueset.templates import Layout, replicas
from holdfast.operators.podcliqueset.turns import layout_of
from holdfast.runtime.controllers import SOON, View, Watch
from holdfast.runtime.status import prior_conditions, stored_status

INITIALIZED: Final = "Initialized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The pods of one PodClique in a gang.

    clique    the name of the PodClique
    minimum   how many are scheduled together or not at all
    replicas  how many should exist
    pods      those that exist
    """

    clique: str
    minimum: int
    replicas: int
    pods: tuple[Pod, ...] = ()

    def wire(self) -> dict[str, Any]:
        references = [{"namespace": pod.metadata.namespace, "name": pod.name} for pod in self.pods]
        return {"name": self.clique, "podReferences": references, "minReplicas": self.minimum}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the PodGang as it was read, if it exists
    wanted      the PodGang as it should be, without its pods; None if it should not exist
    groups      the groups of pods that should be in it
    base_lacks  what the base gang of a scaled PodGang still waits for; empty where it waits for nothing
    """

    object: Object | None
    wanted: dict[str, Any] | None = None
    groups: tuple[Group, ...] = ()
    base_lacks: str = ""


def observe(view: View, key: Key) -> World | None:
    """The world of a PodGang, also of one that does not exist yet."""
    obj = view.get(GANGS, key)
    if obj is not None and obj.deleting:
        return None
    chosen = labels.selector({labels.GANG: key.name})
    named_by = next(
        (each for each in view.list(CLIQUES, namespace=key.namespace, labels=chosen) if not each.deleting), None
    )
    source = obj or named_by
    layout = None if source is None else layout_of(view, source)
    if source is None or layout is None:
        return None
    marks = source.meta.labels
    index = labels.index(marks, labels.SET_INDEX)
    if index is None or not (named_by is not None or _is_wanted(view, layout, marks, index)):
        return World(object=obj)
    place = labels.index(marks, labels.GROUP_INDEX) if labels.BASE_GANG in marks else None
    group = next(
        (each for each in layout.groups if names.group(layout.name, index, each.name) == marks.get(labels.GROUP)), None
    )
    if place is None or group is None:
        wanted, base = render.base_gang(layout, index), None
    else:
        wanted = render.scaled_gang(layout, group, index=index, group_index=place)
        base = Key(key.namespace, names.replica(layout.name, index))
    owner = view.get(SETS, Key(key.namespace, layout.name))
    assert owner is not None, "its layout was read from it"
    wanted["metadata"]["ownerReferences"] = [owner_reference(owner.head())]
    return World(
        object=obj,
        wanted=wanted,
        groups=tuple(_groups(view, key.namespace, _expected(layout, index, group, place))),
        base_lacks="" if base is None else _lacks(view, base),
    )


def _is_wanted(view: View, layout: Layout, marks: Mapping[str, str], index: int) -> bool:
    """Whether a PodGang should exist though none of its PodCliques does: they are being recreated."""
    if index >= layout.replicas:
        return False
    place, group = labels.index(marks, labels.GROUP_INDEX), marks.get(labels.GROUP)
    if labels.BASE_GANG not in marks or place is None or group is None:
        return True
    found = view.get(GROUPS, Key(layout.namespace, group))
    return found is not None and place < ScalingGroup.of(found).spec.replicas


def _groups(view: View, namespace: str, expected: Iterable[tuple[str, int, int]]) -> Iterator[Group]:
    """The groups of pods of a PodGang, in the order of the template."""
    for name, least, begins_with in expected:
        found = view.get(CLIQUES, Key(namespace, name))
        if found is None or found.deleting:
            yield Group(clique=name, minimum=least, replicas=begins_with)
            continue
        clique = Clique.of(found)
        pods = sorted((Pod.of(pod) for pod in view.owned(PODS, found.uid)), key=lambda pod: pod.name)
        yield Group(
            clique=name,
            minimum=min(clique.spec.min_available, clique.spec.replicas),
            replicas=clique.spec.replicas,
            pods=tuple(pod for pod in pods if pod.active),
        )


def _expected(
    layout: Layout, index: int, group: ScalingGroupTemplate | None, place: int | None
) -> Iterator[tuple[str, int, int]]:
    """The PodCliques of a PodGang with minAvailable and replicas: of the base gang, or of one replica of a group."""
    if place is None:
        for clique in layout.standalone:
            yield names.clique(layout.name, index, clique.name), layout.minimum(clique), replicas(clique)
    for each in layout.groups if place is None else filter(None, (group,)):
        group_name = names.group(layout.name, index, each.name)
        for one in range(layout.minimum(each)) if place is None else (place,):
            for clique in layout.members(each):
                yield names.member(group_name, one, clique.name), layout.minimum(clique), replicas(clique)


def _lacks(view: View, base: Key) -> str:
    """The PodCliques of a base gang with fewer scheduled pods than minAvailable."""
    chosen = labels.selector({labels.GANG: base.name})
    cliques = [Clique.of(each) for each in view.list(CLIQUES, namespace=base.namespace, labels=chosen)]
    lacking = [clique.name for clique in cliques if _is_lacking(clique)]
    if not cliques:
        return f"PodGang {base.name} has no PodCliques yet"
    return f"PodGang {base.name} has too few scheduled pods of {', '.join(lacking[:3])}" if lacking else ""


def _is_lacking(clique: Clique) -> bool:
    return (clique.status.scheduled_replicas or 0) < min(clique.spec.min_available, clique.spec.replicas)


# --- which PodGangs a change concerns


def _of_pod(pod: Object, view: View) -> Iterable[Key]:
    """The PodGang of a pod; of one that has ended or is being deleted, or whose PodClique is, nothing is read."""
    gang = pod.meta.labels.get(labels.GANG)
    read = gang and Pod.of(pod).active and _clique_of(pod, view) is not None
    return (Key(pod.meta.namespace, gang),) if gang and read else ()


def _clique_of(pod: Object, view: View) -> Object | None:
    """The PodClique that controls a pod, if it is there to stay."""
    owner = pod.controller
    found = None if owner is None else view.get(CLIQUES, Key(pod.meta.namespace, owner.name))
    return None if found is None or owner is None or found.deleting or found.uid != owner.uid else found


def _completes(old: Object | None, new: Object | None, view: View) -> bool:
    """Whether a new pod may be listed at once: not while a PodClique without a scheduled pod is being created.

    All other changes of pods change only what the PodGang reports.
    """
    clique = None if new is None else _clique_of(new, view)
    if clique is None or (old is not None and _marks(old) == _marks(new)):
        return False
    pods = [pod for pod in map(Pod.of, view.owned(PODS, clique.uid)) if pod.active]
    size = Clique.of(clique).spec
    return len(pods) >= min(size.min_available, size.replicas) or any(pod.scheduled for pod in pods)


def _marks(pod: Object | None) -> tuple[object, ...]:
    return () if pod is None else (pod.meta.labels, pod.meta.owner_references)


def _of_clique(clique: Object, view: View) -> Iterable[Key]:
    """The PodGang of a PodClique, and the scaled PodGangs that wait for it."""
    gang = clique.meta.labels.get(labels.GANG)
    if not gang:
        return ()
    chosen = labels.selector({labels.BASE_GANG: gang})
    waiting = view.list(GANGS, namespace=clique.meta.namespace, labels=chosen)
    return (Key(clique.meta.namespace, gang), *(each.key for each in waiting))


def _read_of_pod(obj: Object) -> tuple[object, ...]:
    """What a PodGang reads of a pod: whether it is ready is not part of it."""
    pod = Pod.of(obj)
    return obj.meta.labels, obj.meta.owner_references, pod.active, pod.gated, pod.scheduled


def matters(old: Object, new: Object) -> bool:
    """Whether a change of a PodGang itself is worth a pass: not what the scheduler, or the last pass, reports."""
    return _read(old) != _read(new)


def _read(gang: Object) -> tuple[object, ...]:
    meta = gang.meta
    spec = meta.generation, meta.labels, meta.annotations, meta.owner_references, gang.deleting
    return *spec, bool(stored_status(gang).get("phase")), conditions.find(prior_conditions(gang), INITIALIZED) is None


def _read_of_clique(obj: Object) -> tuple[object, ...]:
    """What PodGangs read of a PodClique: of its status, only whether enough of its pods are scheduled."""
    clique = Clique.of(obj)
    return obj.meta.generation, obj.meta.labels, obj.deleting, _is_lacking(clique)


PODS_OF_GANG: Final = Watch(
    resource=PODS,
    keys=_of_pod,
    matters=lambda old, new: _read_of_pod(old) != _read_of_pod(new),
    within=SOON,
    urgent=_completes,
)
CLIQUES_OF_GANG: Final = Watch(
    resource=CLIQUES, keys=_of_clique, matters=lambda old, new: _read_of_clique(old) != _read_of_clique(new)
)
