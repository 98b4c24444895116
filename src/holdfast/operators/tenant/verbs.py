"""The verbs of a Tenant: which field or annotation each of them sets, and which it does not have.  Pure."""

from __future__ import annotations

from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.kinds.rustfs.tenants import Tenant
from holdfast.meta import times
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind
from holdfast.operators.tenant import names, view
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.pool_table import pool_rows
from holdfast.operators.tenant.pools import UNDER_WAY
from holdfast.operators.tenant.render import RESTARTED_AT
from holdfast.operators.tenant.validate import rollout_of
from holdfast.views.descriptions import StatusTable


def _is_paused(obj: Object) -> bool:
    return bool(rollout_of(obj.decode(Tenant)).paused)


def pause(case: Case) -> Answer:
    if _is_paused(case.object):
        return Already("already paused")
    status = case.object.decode(Tenant).status
    idle = status is not None and all(pool.state not in UNDER_WAY for pool in status.pools)
    notes = ("no rollout is under way; the next one starts when it is resumed",) if idle else ()
    return Change({"spec": {"rollout": {"paused": True}}}, "paused", notes)


def resume(case: Case) -> Answer:
    if not _is_paused(case.object):
        return Already("not paused")
    return Change({"spec": {"rollout": {"paused": None}}}, "resumed")


def restart(case: Case) -> Answer:
    now = times.format(case.now)
    if case.object.meta.annotations.get(RESTARTED_AT) == now:
        return Already("already restarted this second")
    notes = ("it is paused, so no server is restarted before it is resumed",) if _is_paused(case.object) else ()
    return Change({"metadata": {"annotations": {RESTARTED_AT: now}}}, "restarted", notes)


_NO_EARLIER_SPEC: Final = Refusal(
    "a Tenant keeps no earlier spec",
    "apply the earlier manifest: servers that were not replaced yet stay as they are, and servers of the other "
    "revision that are not ready are replaced at once",
)


ROLLOUT: Final = RolloutKind(
    resource=TENANTS,
    parts=(PODS, STATEFUL_SETS),
    selector=lambda obj: f"{names.TENANT}={obj.key.name}",
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    tables=(StatusTable(title="Pools", field="pools", rows=pool_rows),),
    demo=view.DEMO,
    verbs={"pause": pause, "resume": resume, "restart": restart},
    unsupported={
        "promote": Refusal(
            "the rollout of a Tenant has no steps that wait for a promotion: one server follows the other",
            "'pause' holds it before the next server",
        ),
        "abort": _NO_EARLIER_SPEC,
        "undo": _NO_EARLIER_SPEC,
        "retry": Refusal(
            "no revision of a Tenant is rejected; a rollout that failed goes on once its servers are ready",
            "'status' shows what it waits for; 'restart' replaces all servers",
        ),
        "history": Refusal(
            "a Tenant keeps no earlier specs; its StatefulSets keep theirs, which are no specs of Tenants",
            "see them with 'holdfast get controllerrevisions -l rustfs.tenant=NAME'",
        ),
        "plan": Refusal(
            "a Tenant cannot be planned yet",
            "'holdfast plan --replicas 4 --max-surge 0 --max-unavailable 1' shows a rollout with these limits",
        ),
    },
)
