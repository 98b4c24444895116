"""The parts of a PodCliqueSet as their owners read them: PodCliques and scaling groups, by their statuses.

A status that is not about the current spec says nothing about an update.  This module
must not know pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.kernel import pod_problems
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.floors import FLOOR_HELD
from holdfast.kernel.pod_problems import PodReason
from holdfast.kinds.grove.cliques import PodCliqueStatus
from holdfast.kinds.grove.groups import PodCliqueScalingGroupStatus
from holdfast.kinds.model import Condition
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.resources import CLIQUES
from holdfast.operators.podcliqueset.status import BREACHED, PODS_READY, READY, UPDATE
from holdfast.runtime.controllers import View


class _Sized(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    min_available: int = 1


_LASTING: Final = frozenset(
    {
        PodReason.IMAGE_PULL_FAILED.value,
        PodReason.CONFIGURATION_MISSING.value,
        PodReason.CRASH_LOOP.value,
        PodReason.UNSCHEDULABLE.value,
        PodReason.NODE_LOST.value,
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a part: the reason, and the message of the part."""

    part: str
    reason: str
    message: str

    @property
    def gravity(self) -> int:
        return pod_problems.gravity(self.reason)

    @property
    def lasts(self) -> bool:
        """Whether it lasts until it is corrected; others are normal while pods start."""
        return self.reason in _LASTING or self.gravity < 0

    def __str__(self) -> str:
        # The message of what passes changes with every pod, and is in the status of the part.
        return f"{self.part}: {self.message}" if self.lasts else f"pods of {self.part} are not ready yet"


def gravest(troubles: Iterable[Trouble | None]) -> Trouble | None:
    return min(filter(None, troubles), key=lambda each: each.gravity, default=None)


def pods_ready(parts: Iterable[Part]) -> Verdict:
    """The condition `PodsReady` of a scaling group or set: the gravest trouble of its parts."""
    found = gravest(part.trouble for part in parts)
    if found is None:
        return Verdict.true(PodCliqueSetReason.ALL_PODS_READY, "all pods are ready")
    return Verdict.false(found.reason, str(found))


class _Component(msgspec.Struct, frozen=True, rename="camel"):
    """What PodCliques and scaling groups have in common."""

    metadata: Meta = Meta()
    spec: _Sized = _Sized()
    status: PodCliqueStatus | PodCliqueScalingGroupStatus = PodCliqueStatus()

    @classmethod
    def of(cls, obj: Object) -> Self:
        return obj.decode(cls)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def template(self) -> str:
        """The name of the clique or scaling group in the template of the set."""
        return self.metadata.labels.get(labels.TEMPLATE, "")

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def condition(self, type: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == type), None)

    def is_true(self, type: str) -> bool:
        found = self.condition(type)
        return found is not None and found.status == "True"

    def is_false(self, type: str) -> bool:
        found = self.condition(type)
        return found is not None and found.status == "False"

    @property
    def floor(self) -> int:
        """How many must be available, as its status says."""
        return 0 if self.status.floor is None else self.status.floor.required or 0

    @property
    def missing(self) -> int:
        """How many are available fewer than its floor needs."""
        return 0 if self.status.floor is None else self.floor - (self.status.floor.available or 0)

    @property
    def fresh(self) -> bool:
        """Its status is about its current spec."""
        return self.status.observed_generation == self.metadata.generation

    @property
    def breached(self) -> bool:
        return self.is_true(BREACHED)

    @property
    def breached_since(self) -> datetime | None:
        """Since when it is below minAvailable, after it was scheduled once."""
        since = self.status.min_available_breached_since
        return times.read(since) if self.breached and self.status.last_scheduled else None

    @property
    def doing(self) -> Condition | None:
        """What its update does or waits for, while one is running."""
        found = self.condition(UPDATE)
        return found if found is not None and found.status == "True" else None

    @property
    def trouble(self) -> Trouble | None:
        """The error of its last pass, or why not all of its pods are ready."""
        if self.status.last_errors:
            error = self.status.last_errors[-1]
            return Trouble(self.name, error.code, error.description or "")
        found = self.condition(PODS_READY)
        if found is None or found.status != "False":
            return None
        return Trouble(self.name, found.reason, found.message or "")

    @property
    def decisive(self) -> tuple[object, ...]:
        """What its owner decides by; the rest of its status, the owner only reports."""
        meta, status = self.metadata, self.status
        return (
            (meta.generation, meta.labels, meta.owner_references, self.deleting),
            (self.fresh, status.current_pod_clique_set_generation_hash),
            (self.breached, self.breached_since, bool(status.scheduled_replicas)),
            (self.floor, self.missing > 0, self.is_false(FLOOR_HELD), self.obstacle),
        )

    @property
    def obstacle(self) -> Trouble | None:
        """The trouble that keeps it from minAvailable, or from its update; an error always does."""
        found = self.trouble
        if found is None or not found.lasts:
            return None
        short = self.doing is not None or self.is_false(READY)
        return found if short or self.status.last_errors else None


class Clique(_Component, frozen=True, rename="camel"):
    """A PodClique."""

    status: PodCliqueStatus = PodCliqueStatus()

    @property
    def decisive(self) -> tuple[object, ...]:
        template = self.outdated, self.status.current_pod_template_hash
        return *super().decisive, self.available, self.ready_since, template

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(labels.TEMPLATE_HASH, "")

    @property
    def scheduled(self) -> bool:
        return self.fresh and self.is_true("PodCliqueScheduled")

    @property
    def available(self) -> bool:
        # Also while its status is about an earlier spec: a new template changes neither its pods nor minAvailable.
        return (self.status.ready_replicas or 0) >= min(self.spec.min_available, self.spec.replicas)

    @property
    def ready_since(self) -> datetime | None:
        found = self.condition(READY)
        return times.read(found.last_transition_time) if self.available and found is not None else None

    @property
    def outdated(self) -> bool:
        """Some of its pods have an earlier template."""
        return self.fresh and (self.status.updated_replicas or 0) < (self.status.replicas or 0)

    def changes(self, template_hash: str) -> bool:
        """Whether an update to this template replaces pods of it."""
        known = self.status.current_pod_template_hash
        return self.template_hash != template_hash or self.outdated or known not in (None, template_hash)

    def has(self, template_hash: str, generation: str) -> bool:
        """All of its pods have this template, and its status is about this generation."""
        return (
            self.template_hash == template_hash
            and self.fresh
            and not self.outdated
            and self.status.current_pod_template_hash == template_hash
            and self.status.current_pod_clique_set_generation_hash == generation
        )

    @property
    def situation(self) -> str:
        """Its name, with the numbers."""
        return f"{self.name} ({self.status.ready_replicas or 0} of {self.spec.min_available} ready)"


class Group(_Component, frozen=True, rename="camel"):
    """A PodCliqueScalingGroup."""

    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()

    @property
    def decisive(self) -> tuple[object, ...]:
        return *super().decisive, self.available

    @property
    def available(self) -> bool:
        return (self.status.available_replicas or 0) >= min(self.spec.min_available, self.spec.replicas)

    def has(self, generation: str) -> bool:
        return self.fresh and self.status.current_pod_clique_set_generation_hash == generation

    @property
    def situation(self) -> str:
        return f"{self.name} ({self.status.available_replicas or 0} of {self.spec.min_available} available)"


Part = Clique | Group


def part_of(obj: Object) -> Part:
    """An object of either kind, typed."""
    return Clique.of(obj) if obj.resource.kind == CLIQUES.kind else Group.of(obj)


def is_urgent(old: Object | None, new: Object | None, view: View) -> bool:
    """Whether a change of a part may change what its owner does, and not only what the owner reports."""
    return old is None or new is None or part_of(old).decisive != part_of(new).decisive


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReplica:
    """One replica of a scaling group: the PodCliques that it should have, and those that exist.

    hashes      the template hashes that its PodCliques should have, by clique
    generation  the generation hash that the set wants
    """

    index: int
    hashes: Mapping[str, str]
    generation: str
    members: Mapping[str, Clique]

    @property
    def missing(self) -> tuple[str, ...]:
        """The cliques of which no PodClique exists, in the order of the template."""
        return tuple(name for name in self.hashes if name not in self.members)

    @property
    def whole(self) -> bool:
        return not self.missing and not any(clique.deleting for clique in self.members.values())

    @property
    def scheduled(self) -> bool:
        return self.whole and all(clique.scheduled for clique in self.members.values())

    @property
    def available(self) -> bool:
        return self.whole and all(clique.available for clique in self.members.values())

    @property
    def scheduled_in_part(self) -> bool:
        """At least one pod of it is scheduled."""
        return any(clique.status.scheduled_replicas for clique in self.members.values())

    @property
    def ready_since(self) -> datetime | None:
        """When the last of its PodCliques became ready; None while it is not available."""
        moments = (clique.ready_since for clique in self.members.values())
        known = [moment for moment in moments if moment is not None]
        return max(known, default=self.created_at) if self.available else None

    @property
    def outdated(self) -> bool:
        """One of its PodCliques, or a pod of one, has an earlier template."""
        return any(
            clique.template_hash != self.hashes.get(name) or clique.outdated
            for name, clique in self.members.items()
            if not clique.deleting
        )

    @property
    def current(self) -> bool:
        """Every PodClique of it exists, and all of its pods have the wanted template."""
        return self.whole and all(
            clique.has(self.hashes.get(name, ""), self.generation) for name, clique in self.members.items()
        )

    @property
    def ever_scheduled(self) -> bool:
        return not self.missing and all(clique.status.last_scheduled for clique in self.members.values())

    @property
    def breached(self) -> bool:
        return any(clique.breached for clique in self.members.values())

    @property
    def breached_since(self) -> datetime | None:
        """Since when a PodClique of it is below minAvailable, after it was scheduled once."""
        moments = [since for clique in self.members.values() if (since := clique.breached_since) is not None]
        return min(moments, default=None)

    @property
    def created_at(self) -> datetime:
        """When the first of its PodCliques was created; asked only where one exists."""
        return min(times.parse(each.metadata.creation_timestamp or "") for each in self.members.values())
