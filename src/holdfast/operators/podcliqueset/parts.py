"""The parts of a PodCliqueSet as those above them read them: PodCliques and scaling groups, by what they say.

A part that has not looked at its own spec yet says nothing that counts.  This module
must not know pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.kinds.grove.cliques import PodCliqueStatus
from holdfast.kinds.grove.groups import PodCliqueScalingGroupStatus
from holdfast.kinds.model import Condition
from holdfast.meta import times
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.reports import BREACHED, READY, UPDATE


class _Sized(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    min_available: int = 1


def _condition(conditions: Iterable[Condition], type: str) -> Condition | None:
    return next((each for each in conditions if each.type == type), None)


def _is(conditions: Iterable[Condition], type: str, status: str) -> bool:
    found = _condition(conditions, type)
    return found is not None and found.status == status


def _is_homeless(conditions: Iterable[Condition]) -> bool:
    found = _condition(conditions, READY)
    return found is not None and found.status == "False" and found.reason == Why.NO_PLACE.value


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
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def fresh(self) -> bool:
        """Its status is about its spec as it is."""
        return self.status.observed_generation == self.metadata.generation

    @property
    def breached(self) -> bool:
        return _is(self.status.conditions, BREACHED, "True")

    @property
    def breached_since(self) -> datetime | None:
        """Since when it has had too few, though it once had enough."""
        since = self.status.min_available_breached_since
        return times.parse(since) if self.breached and since and self.status.last_scheduled else None

    @property
    def doing(self) -> Condition | None:
        """What its update does, or waits for."""
        found = _condition(self.status.conditions, UPDATE)
        return found if found is not None and found.status == "True" else None

    @property
    def homeless(self) -> bool:
        """It is not ready, because pods of it have no place."""
        return _is_homeless(self.status.conditions)


class Clique(_Component, frozen=True, rename="camel"):
    """A PodClique."""

    status: PodCliqueStatus = PodCliqueStatus()

    @property
    def template(self) -> str:
        return self.metadata.labels.get(labels.TEMPLATE, "")

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(labels.TEMPLATE_HASH, "")

    @property
    def scheduled(self) -> bool:
        return self.fresh and _is(self.status.conditions, "PodCliqueScheduled", "True")

    @property
    def ready(self) -> bool:
        return self.fresh and (self.status.ready_replicas or 0) >= min(self.spec.min_available, self.spec.replicas)

    @property
    def ready_since(self) -> datetime | None:
        found = _condition(self.status.conditions, READY)
        return times.parse(found.last_transition_time) if self.ready and found is not None else None

    @property
    def outdated(self) -> bool:
        """Some of its pods are of an earlier template than it has."""
        return self.fresh and (self.status.updated_replicas or 0) < (self.status.replicas or 0)

    def has(self, template_hash: str, generation: str) -> bool:
        """All of its pods are of this template, and it knows that this is what the generation wants."""
        return (
            self.template_hash == template_hash
            and self.fresh
            and not self.outdated
            and self.status.current_pod_template_hash == template_hash
            and self.status.current_pod_clique_set_generation_hash == generation
        )

    @property
    def situation(self) -> str:
        """In a few words, what it lacks."""
        return f"{self.name} ({self.status.ready_replicas or 0} of {self.spec.min_available} ready)"


class Group(_Component, frozen=True, rename="camel"):
    """A PodCliqueScalingGroup."""

    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()

    @property
    def available(self) -> bool:
        return self.fresh and (self.status.available_replicas or 0) >= min(self.spec.min_available, self.spec.replicas)

    def has(self, generation: str) -> bool:
        return self.fresh and self.status.current_pod_clique_set_generation_hash == generation

    @property
    def situation(self) -> str:
        return f"{self.name} ({self.status.available_replicas or 0} of {self.spec.min_available} available)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReplica:
    """One replica of a scaling group: the PodCliques that it should have, and those that it has.

    hashes      the templates that its cliques should have, by clique
    generation  the generation that wants them
    """

    index: int
    hashes: Mapping[str, str]
    generation: str
    members: Mapping[str, Clique]

    @property
    def missing(self) -> tuple[str, ...]:
        """The cliques that it lacks, in the order of the template."""
        return tuple(name for name in self.hashes if name not in self.members)

    @property
    def whole(self) -> bool:
        return not self.missing and not any(clique.deleting for clique in self.members.values())

    @property
    def scheduled(self) -> bool:
        return self.whole and all(clique.scheduled for clique in self.members.values())

    @property
    def available(self) -> bool:
        return self.whole and all(clique.ready for clique in self.members.values())

    @property
    def placed(self) -> bool:
        """Some pod of it has a node."""
        return any(clique.status.scheduled_replicas for clique in self.members.values())

    @property
    def ready_since(self) -> datetime | None:
        moments = [clique.ready_since for clique in self.members.values()]
        known = [moment for moment in moments if moment is not None]
        return max(known) if self.available and len(known) == len(moments) else None

    @property
    def outdated(self) -> bool:
        """Some clique of it, or some pod of one, is of an earlier template."""
        return any(
            clique.template_hash != self.hashes.get(name) or clique.outdated
            for name, clique in self.members.items()
            if not clique.deleting
        )

    @property
    def current(self) -> bool:
        """Every clique of it is there, and has what the generation wants."""
        return self.whole and all(
            clique.has(self.hashes.get(name, ""), self.generation) for name, clique in self.members.items()
        )

    @property
    def updated(self) -> bool:
        return self.available and self.current

    @property
    def ever_scheduled(self) -> bool:
        return not self.missing and all(clique.status.last_scheduled for clique in self.members.values())

    @property
    def breached(self) -> bool:
        return any(clique.breached for clique in self.members.values())

    @property
    def breached_since(self) -> datetime | None:
        """Since when a clique of it has had too few pods, though it once had enough."""
        moments = [since for clique in self.members.values() if (since := clique.breached_since) is not None]
        return min(moments, default=None)

    @property
    def created_at(self) -> datetime | None:
        moments = [each.metadata.creation_timestamp for each in self.members.values()]
        return min((times.parse(moment) for moment in moments if moment), default=None)
