"""The course of a Workload: which revision is rolled out, and where there is to return to.

Three revisions matter: the one that the spec asks for, the stable one, which was the
last to be rolled out completely, and, where only one gets the traffic, the one that
serves.  A revision that was rejected is not rolled out until the spec asks for
another: what was there before it is.

This module must not know how many replicas there are, nor how the fleet gets there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from holdfast.operators.workload.observe import World, switches
from holdfast.operators.workload.render import REVISION, Template

REJECTED: Final = "holdfast.dev/rejected-revision"
"""The annotation with the revision that was undone or failed, and after a colon the one to return to, if a
certain one is meant.  It is refused until the spec asks for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    wanted   the revision that the spec asks for
    target   what is rolled out: the wanted revision, or what is returned to
    stable   what was rolled out completely before, if that is not the target
    other    what replicas of the other side are started from, if that is known
    serving  the revision that gets the traffic, where only one does
    settled  the target was rolled out completely before
    missing  what the wanted revision needs and nobody made
    held     the wanted revision cannot be known before what is missing is there: nothing is rolled out
    """

    wanted: str
    target: Template
    stable: Template | None = None
    other: Template | None = None
    serving: str | None = None
    settled: bool = False
    missing: tuple[str, ...] = ()
    held: bool = False

    @property
    def rejected(self) -> bool:
        return self.target.revision != self.wanted

    @property
    def returning(self) -> bool:
        """It goes back to what was there before, so nothing has to be tried out."""
        return self.rejected or self.settled


def plot(world: World) -> Course:
    """The course, from what is asked for, what is recorded and what serves."""
    asked = _known(world, Template.of(world.workload, world.configs))
    complete = _complete(world, asked)
    missing = tuple(name for name, fingerprint in world.configs.items() if not fingerprint)
    kept = _kept(world, complete) if missing and asked.revision not in world.records else None
    wanted = kept or asked
    target = _retreat(world, wanted, complete) or wanted
    stable = complete if complete is not None and complete.revision != target.revision else None
    serving = _serving(world, stable or target)
    return Course(
        wanted=wanted.revision,
        target=target,
        stable=stable,
        other=_other(world, target, serving) or (stable if target is wanted else None),
        serving=serving,
        settled=complete is not None and stable is None,
        missing=missing,
        held=kept is not None,
    )


def selector_of(world: World) -> dict[str, str]:
    """The selector of the Service that is switched."""
    spec: dict[str, Any] = {} if world.service is None else world.service.wire().get("spec") or {}
    return spec.get("selector") or {}


def _known(world: World, asked: Template) -> Template:
    """The record of the same meaning, if there is one.

    A later release may know defaults that a record was made without: they are no change.
    """
    if asked.revision in world.records:
        return asked
    same = (each.template for each in world.records.values() if each.template.defaulted() == asked)
    return next(same, asked)


def _complete(world: World, asked: Template) -> Template | None:
    """What was rolled out completely last; None while nothing was."""
    status = world.workload.status
    record = world.records.get(status.current_revision or "") if status is not None else None
    if record is not None:
        return record.template
    if status is not None and status.update_revision and not status.current_revision:
        return None
    # The status was lost, as by a restored backup: what most replicas serve with must have been it.
    ready = Counter(pod.metadata.labels.get(REVISION, "") for pod in world.pods if pod.active and pod.ready)
    known = [name for name, _ in ready.most_common() if name in world.records and name != asked.revision]
    return world.records[known[0]].template if known else None


def _kept(world: World, complete: Template | None) -> Template | None:
    """What is kept while a configuration is missing: a configuration that vanished is no new revision."""
    status = world.workload.status
    under_way = world.records.get(status.update_revision or "") if status is not None else None
    return complete if under_way is None else under_way.template


def _retreat(world: World, wanted: Template, complete: Template | None) -> Template | None:
    """What is returned to if the wanted revision was rejected, and there is something to return to."""
    rejected, _, named = world.object.meta.annotations.get(REJECTED, "").partition(":")
    if rejected != wanted.revision:
        return None
    if named in world.records and named != rejected:
        return world.records[named].template
    if complete is not None and complete.revision != rejected:
        return complete
    newest = world.records[rejected].number if rejected in world.records else 0
    earlier = [record for record in world.records.values() if record.number < newest]
    return max(earlier, key=lambda record: record.number).template if earlier else None


def _serving(world: World, before: Template) -> str | None:
    """The revision that gets the traffic, where only one does; `before` any switch, if the Service does not say."""
    return (selector_of(world).get(REVISION) or before.revision) if switches(world.workload) else None


def _other(world: World, target: Template, serving: str | None) -> Template | None:
    """What serves beside the target: it is kept at its floor until the traffic is switched."""
    record = world.records.get(serving or "")
    return record.template if record is not None and serving != target.revision else None
