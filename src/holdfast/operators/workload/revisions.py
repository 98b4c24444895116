"""The revisions of a Workload: which one is rolled out, and which one an abort returns to.

Three revisions matter: the wanted one, which the spec describes; the stable one, which
was the last to be rolled out completely; and, where a Service sends traffic to one
revision, the serving one.  A rejected revision is not rolled out until the spec
describes another one; the controller returns to the revision before it.  This module
must not know how many replicas there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.kinds.cloudless.rollouts import Rejection
from holdfast.operators.workload.observe import World, switches
from holdfast.operators.workload.render import REVISION, Template

REJECTED: Final = "holdfast.dev/rejected-revision"
"""The annotation with the revision that was undone or that failed, optionally with ``:<revision to return to>``.
The revision is refused until the spec describes another one.  A restart makes no other revision of it."""

PROMOTED: Final = "holdfast.dev/promoted"
"""The annotation ``<revision>:<steps>``: how many steps of the rollout of a revision are approved."""

REJECTION: Final = "holdfast.dev/rejection"
"""The annotation with the cause of the rejection (`Rejection`, as JSON); it is written together with `REJECTED`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """The revisions that one reconciliation works with.

    wanted   the revision of the spec; if that is rejected, as the history names it
    target   the revision that is rolled out: the wanted one, or the one that an abort returns to
    stable   the revision that was rolled out completely before, if that is not the target
    other    the template of replicas that are not of the target, if it is known
    serving  the revision that receives the traffic, where a Service selects one
    settled  the target was rolled out completely before
    missing  ConfigMaps and Secrets of the wanted revision that do not exist
    held     the wanted revision is unknown until they exist, so nothing is rolled out
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
        """The wanted revision is refused."""
        return self.target.revision != self.wanted

    @property
    def returning(self) -> bool:
        """The target ran before, so its rollout needs no partition, pause or approval."""
        return self.rejected or self.settled


def choose(world: World) -> Revisions:
    """The revisions, from the spec, the recorded revisions, the status and the Service."""
    asked = _recorded(world, Template.of(world.workload, world.configs))
    complete = _complete(world, asked)
    missing = tuple(name for name, fingerprint in world.configs.items() if not fingerprint)
    kept = _kept(world, complete) if missing and asked.revision not in world.records else None
    wanted = kept or asked
    back = _returned_to(world, wanted, complete)
    target = wanted if back is None else back
    stable = complete if complete is not None and complete.revision != target.revision else None
    serving = _serving(world, stable or target)
    return Revisions(
        wanted=wanted.revision if back is None else rejected_revision(world.object),
        target=target,
        stable=stable,
        other=_other(world, target, serving) or (stable if back is None else None),
        serving=serving,
        settled=complete is not None and stable is None,
        missing=missing,
        held=kept is not None,
    )


def rejected_revision(obj: Object) -> str:
    """The revision that is refused; empty: none."""
    return obj.meta.annotations.get(REJECTED, "").partition(":")[0]


def returned_to(obj: Object) -> str:
    """The revision that an undo returned to; empty: none."""
    return obj.meta.annotations.get(REJECTED, "").partition(":")[2]


def rejection(obj: Object) -> Rejection | None:
    """Why a revision is refused, as it was recorded with the refusal."""
    try:
        found = msgspec.json.decode(obj.meta.annotations.get(REJECTION, ""), type=Rejection)
    except msgspec.DecodeError:
        return None
    return found if found.revision == rejected_revision(obj) else None


def cause(why: Rejection) -> str:
    """The value of the annotation `REJECTION`."""
    return msgspec.json.encode(why).decode()


def selector_of(world: World) -> dict[str, str]:
    """The selector of the Service that is switched."""
    spec: dict[str, Any] = {} if world.service is None else world.service.wire().get("spec") or {}
    return spec.get("selector") or {}


def _recorded(world: World, asked: Template) -> Template:
    """The recorded template that equals `asked`, if there is one.

    A later release may add defaults that a record was written without; they make no new revision.
    """
    if asked.revision in world.records:
        return asked
    same = (each.template for each in world.records.values() if each.template.defaulted() == asked)
    return next(same, asked)


def _complete(world: World, asked: Template) -> Template | None:
    """The revision that was rolled out completely last; None if none was."""
    status = world.workload.status
    record = world.records.get(status.current_revision or "") if status is not None else None
    if record is not None:
        return record.template
    if status is not None and status.update_revision and not status.current_revision:
        return None
    # The status was lost, for example by a restored backup: most ready replicas run the complete revision.
    ready = Counter(each.replica.revision for each in world.members if each.active and each.ready)
    known = [name for name, _ in ready.most_common() if name in world.records and name != asked.revision]
    return world.records[known[0]].template if known else None


def _kept(world: World, complete: Template | None) -> Template | None:
    """The revision that is kept while a ConfigMap or Secret is missing: its deletion makes no new revision."""
    status = world.workload.status
    under_way = world.records.get(status.update_revision or "") if status is not None else None
    return complete if under_way is None else under_way.template


def _returned_to(world: World, wanted: Template, complete: Template | None) -> Template | None:
    """The revision to return to if the wanted one was rejected; None if it was not, or if there is no other."""
    rejected = rejected_revision(world.object)
    record = world.records.get(rejected)
    if rejected != wanted.revision and (record is None or not _alike(record.template, wanted)):
        return None
    back = _before(world, rejected, complete)
    # A restart that was rejected rejects neither the revision that was restarted nor the next restart.
    restarted = back is not None and rejected != wanted.revision and _alike(back, wanted)
    return None if restarted else back


def _alike(one: Template, other: Template) -> bool:
    """Whether two templates differ at most by the time of a restart."""
    return msgspec.structs.replace(one, restarted_at=other.restarted_at).revision == other.revision


def _before(world: World, rejected: str, complete: Template | None) -> Template | None:
    """The revision to return to: the one that the annotation names, as it was restarted last, or the complete one."""
    named = world.records.get(returned_to(world.object))
    others = [record for name, record in world.records.items() if name != rejected]
    same = [record for record in others if named is not None and _alike(named.template, record.template)]
    if same:
        return max(same, key=lambda record: record.number).template
    if complete is not None and complete.revision != rejected:
        return complete
    newest = world.records[rejected].number if rejected in world.records else 0
    earlier = [record for record in world.records.values() if record.number < newest]
    return max(earlier, key=lambda record: record.number).template if earlier else None


def _serving(world: World, before: Template) -> str | None:
    """The revision that receives the traffic, where a Service selects one; `before` until the Service selects any."""
    return (selector_of(world).get(REVISION) or before.revision) if switches(world.workload) else None


def _other(world: World, target: Template, serving: str | None) -> Template | None:
    """The serving revision, if it is not the target: it is kept at the floor until the Service is switched."""
    record = world.records.get(serving or "")
    return record.template if record is not None and serving != target.revision else None
