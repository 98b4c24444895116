"""The world of one PodCliqueSet: its replicas, each with its PodCliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.client.objects import Object
from holdfast.kinds.grove.sets import PodCliqueSetStatus
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import hashes, labels
from holdfast.operators.podcliqueset.part_status import Clique, Group, Part
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS, SETS
from holdfast.operators.podcliqueset.templates import Layout, read, replicas
from holdfast.runtime.controllers import View


@dataclass(frozen=True, kw_only=True)
class SetReplica:
    """One replica of a set: the parts that it should have, and those that exist.

    hashes       the template hashes that its standalone cliques should have, in the order of the template
    group_names  the scaling groups that it should have, likewise
    """

    index: int
    hashes: Mapping[str, str]
    group_names: tuple[str, ...]
    generation: str
    cliques: Mapping[str, Clique]
    groups: Mapping[str, Group]

    @cached_property
    def updated_cliques(self) -> tuple[str, ...]:
        """Names of the PodCliques of which all pods have the wanted template."""
        return tuple(
            clique.name
            for template, wanted in self.hashes.items()
            if (clique := self.cliques.get(template)) is not None
            and not clique.deleting
            and clique.has(wanted, self.generation)
        )

    @cached_property
    def updated_groups(self) -> tuple[str, ...]:
        """Names of the scaling groups of which all replicas have the wanted template."""
        return tuple(
            group.name
            for template in self.group_names
            if (group := self.groups.get(template)) is not None and not group.deleting and group.has(self.generation)
        )

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts that exist and should, in the order of the template."""
        cliques = (self.cliques[name] for name in self.hashes if name in self.cliques)
        return (*cliques, *(self.groups[name] for name in self.group_names if name in self.groups))

    @cached_property
    def whole(self) -> bool:
        expected = len(self.hashes) + len(self.group_names)
        return len(self.parts) == expected and not any(part.deleting for part in self.parts)

    @cached_property
    def available(self) -> bool:
        return self.whole and all(part.available for part in self.parts)

    @cached_property
    def current(self) -> bool:
        """All of its parts are updated."""
        return len(self.updated_cliques) == len(self.hashes) and len(self.updated_groups) == len(self.group_names)

    @cached_property
    def updated(self) -> bool:
        return self.available and self.current

    @property
    def scheduled_in_part(self) -> bool:
        """At least one pod of it is scheduled."""
        return any(part.status.scheduled_replicas for part in self.parts)

    @property
    def breached(self) -> bool:
        return any(part.breached for part in self.parts)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Names of the parts that are missing or not available; without numbers, which change with every pod."""
        missing = [name for name in self.hashes if name not in self.cliques]
        missing += [name for name in self.group_names if name not in self.groups]
        short = [part.name for part in self.parts if not part.available]
        return (*missing, *short)


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object   the PodCliqueSet as it was read
    layout   the same, typed
    cliques  its standalone PodCliques by index and clique
    groups   its scaling groups by index and name
    objects  both, as they were read, by kind and name
    all      every PodClique of it, also those of scaling groups
    hashes   the template hashes that its standalone cliques should have
    """

    object: Object
    layout: Layout
    cliques: Mapping[int, Mapping[str, Clique]]
    groups: Mapping[int, Mapping[str, Group]]
    objects: Mapping[tuple[str, str], Object]
    all: tuple[Object, ...]
    hashes: Mapping[str, str]

    @property
    def before(self) -> PodCliqueSetStatus:
        return self.layout.set.status or PodCliqueSetStatus()

    def replica(self, index: int) -> SetReplica:
        return SetReplica(
            index=index,
            hashes=self.hashes,
            group_names=tuple(group.name for group in self.layout.groups),
            generation=self.layout.generation_hash,
            cliques=self.cliques.get(index, {}),
            groups=self.groups.get(index, {}),
        )

    @cached_property
    def replicas(self) -> tuple[SetReplica, ...]:
        """The replicas that should exist."""
        return tuple(self.replica(index) for index in range(self.layout.replicas))

    @cached_property
    def changed(self) -> frozenset[str]:
        """Names of the parts of which an update to the wanted templates replaces pods."""
        found = set()
        wanted: dict[tuple[str, str], str] = {}
        for clique in map(Clique.of, self.all):
            known = clique.template, clique.template_hash
            if clique.deleting or clique.template not in self.layout.pod_templates:
                continue
            if known not in wanted:
                template = self.layout.pod_templates[clique.template]
                wanted[known] = hashes.template_hash(template, recorded=(clique.template_hash,))
            if clique.changes(wanted[known]):
                found.add(clique.metadata.labels.get(labels.GROUP, clique.name))
        return frozenset(found)


def observe(view: View, key: Key) -> World | None:
    """The world of a set; None when it is deleted: then everything of it is garbage."""
    obj = view.get(SETS, key)
    if obj is None or obj.deleting:
        return None
    chosen = labels.selector(labels.of_set(key.name))
    everything = view.list(CLIQUES, namespace=key.namespace, labels=chosen)
    cliques: dict[int, dict[str, Clique]] = {}
    groups: dict[int, dict[str, Group]] = {}
    objects: dict[tuple[str, str], Object] = {}
    for each in (*everything, *view.owned(GROUPS, obj.uid)):
        owner, index = each.controller, labels.index(each.meta.labels, labels.SET_INDEX)
        template = each.meta.labels.get(labels.TEMPLATE, "")
        if owner is None or owner.uid != obj.uid or index is None:
            continue
        objects[each.resource.kind, each.meta.name] = each
        if each.resource == CLIQUES:
            cliques.setdefault(index, {})[template] = Clique.of(each)
        else:
            groups.setdefault(index, {})[template] = Group.of(each)
    layout = _with_minimums(read(obj), map(Clique.of, everything))
    return World(
        object=obj,
        layout=layout,
        cliques=cliques,
        groups=groups,
        objects=objects,
        all=everything,
        hashes=_hashes(layout, cliques),
    )


def _with_minimums(layout: Layout, cliques: Iterable[Clique]) -> Layout:
    """The layout with minAvailable of every clique: as it is recorded, as its PodCliques have it, or by default."""
    if all(clique.name in layout.minimums for clique in layout.cliques):
        return layout
    found: dict[str, int] = {}
    for clique in cliques:
        if not clique.deleting:
            found[clique.template] = max(found.get(clique.template, 0), clique.spec.min_available)
    for template in layout.cliques:
        if template.spec.min_available:
            found[template.name] = template.spec.min_available
        elif template.name in found:
            found[template.name] = min(found[template.name], replicas(template))
    known = Layout(layout.set, minimums=found | dict(layout.minimums))
    return Layout(layout.set, minimums={each.name: known.minimum(each) for each in layout.cliques})


def _hashes(layout: Layout, cliques: Mapping[int, Mapping[str, Clique]]) -> dict[str, str]:
    """The template hash of each standalone clique; the one that its PodCliques record is kept while it is valid."""
    return {
        clique.name: hashes.template_hash(
            layout.pod_templates[clique.name],
            recorded=(parts[clique.name].template_hash for parts in cliques.values() if clique.name in parts),
        )
        for clique in layout.standalone
    }
