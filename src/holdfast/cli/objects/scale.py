"""``holdfast scale``: another number of replicas, through the scale subresource.

Before anything is changed, the plan of the operator is shown, and a number below a declared minimum is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import click
import msgspec

from holdfast.cli import connecting
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import completing, targets
from holdfast.cli.objects.describe import seen
from holdfast.cli.objects.targets import Target
from holdfast.cli.operator import selection
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Scope
from holdfast.client.resources import AUTOSCALERS, BUDGETS
from holdfast.kernel.reasons import Code
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.selectors import LabelSelector
from holdfast.operators import steering
from holdfast.operators.rollouts import Refusal, RolloutKind
from holdfast.views.plans import PlanSummary, PlanView

MANAGER: Final = "holdfast-scale"
"""The field manager of this command."""

_FLOOR: Final = "--below-floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How many replicas, and under which conditions."""

    replicas: int
    current: int | None = None
    below_floor: bool = False
    dry_run: bool = False


class _Numbers(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Scale(msgspec.Struct, frozen=True):
    spec: _Numbers = _Numbers()
    status: _Numbers = _Numbers()


@click.command("scale", cls=Verb)
@click.argument("words", nargs=-1, metavar="TYPE/NAME", shell_complete=completing.objects)
@click.option("--replicas", type=click.IntRange(0), required=True, metavar="N", help="How many replicas it gets.")
@click.option("--current-replicas", "current", type=click.IntRange(0), metavar="N", help="Only if it has N now.")
@click.option(_FLOOR, "below_floor", is_flag=True, help="Also below the number that must stay available.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@connecting.options
def command(*, where: Where, words: tuple[str, ...], **wanted: Any) -> None:
    """Set the number of replicas of an object.

    The plan is shown first. A number below the minimum that the object or a PodDisruptionBudget declares is refused,
    because the minimum would then hold for fewer replicas than it names.

    \b
    More replicas:      holdfast scale workload/shop --replicas 12
    Only to see:        holdfast scale workload/shop --replicas 2 --dry-run
    Only from three:    holdfast scale deploy/a --replicas 5 --current-replicas 3
    """
    connecting.run(where, lambda session: _scale(session, words, Wanted(**wanted)))


async def _scale(session: Session, words: tuple[str, ...], wanted: Wanted) -> ExitCode | None:
    target = await targets.one(session, words)
    called = f"{target.type}/{target.name}"
    scaling = await prepared(session, target, wanted.replicas)
    if wanted.current is not None and wanted.current != scaling.before:
        raise Refused(
            f"error: {called} has {scaling.before} replicas, and --current-replicas says {wanted.current}",
            f"hint: look at it with 'holdfast describe {called}', and decide again",
        )
    if scaling.before == wanted.replicas:
        click.echo(f"{called} has {scaling.before} replicas already")
        return None
    if scaling.too_few and not wanted.below_floor:
        raise Refused(
            f"error: {called}: {wanted.replicas} replicas are too few: {'; '.join(scaling.too_few)}",
            f"hint: lower the minimum first, or write {_FLOOR}; nothing was changed",
        )
    click.echo(printable("\n".join(scaling.plan)))
    if wanted.dry_run:
        click.echo(f"{called} is not changed (dry run)")
        return None
    await carry_out(session, target, scaling)
    click.echo(f"{called} scaled from {scaling.before} to {wanted.replicas}")
    if selection.rollout_kind(target.resource.group_resource) is not None:
        click.echo(connecting.placed(f"hint: 'holdfast rollout status {called}' shows how far it is"))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Another number of replicas of an object, before it is set.

    before   how many it has
    plan     what will happen, in a few lines
    too_few  the minimums that are more than the new number
    """

    object: Object
    before: int
    replicas: int
    plan: tuple[str, ...]
    too_few: tuple[str, ...]


async def prepared(session: Session, target: Target, replicas: int) -> Scaling:
    """What another number of replicas means; nothing is changed.  Raises `Refused` where there is no such number."""
    if "scale" not in target.served.subresources:
        raise Refused(
            f"error: {target.type}/{target.name}: objects of this kind have no number of replicas that can be set",
            f"hint: 'holdfast get {target.type} {target.name} -o yaml' shows its fields",
        )
    answer = await session.ask(Request("GET", _path(target), headers={"accept": JSON}))
    before = msgspec.json.decode(answer.body, type=_Scale).spec.replicas
    kind = selection.rollout_kind(target.resource.group_resource)
    plan: PlanView | PlanSummary | None = None
    if kind is None or before == replicas:
        obj = await session.client.get(target.resource, target.key)
    else:
        obj = await steering.fresh(session.client, kind, target.resource, target.key)
        plan = await _planned(session, kind, obj, replicas)
    lower = [why async for why in _floors(session, obj, plan, replicas)] if replicas < before else []
    lines = await _lines(session, target, plan, before, replicas)
    return Scaling(object=obj, before=before, replicas=replicas, plan=tuple(lines), too_few=tuple(lower))


async def carry_out(session: Session, target: Target, scaling: Scaling) -> None:
    """Set the number of replicas; the field stays with its owner."""
    body = encode({"spec": {"replicas": scaling.replicas}})
    headers = {"accept": JSON, "content-type": PatchType.MERGE.value}
    await session.ask(Request("PATCH", _path(target), {"fieldManager": (MANAGER,)}, headers, body))
    await steering.hand_back(session.ask, session.client, scaling.object, manager=MANAGER, subresource="scale")


def _path(target: Target) -> str:
    return unquote(target.resource.path(target.scope.namespace, target.name, "scale"))


async def _planned(session: Session, kind: RolloutKind, obj: Object, replicas: int) -> PlanView | PlanSummary | None:
    """What the operator will do; None where it makes no plans of this."""
    from holdfast.cli.rollout.plan import changed  # kinds without an operator need no engine

    if kind.planner is None or "replicas" not in kind.settings:
        return None
    later = await steering.as_it_would_be(session.client, obj, changed(kind, {"replicas": replicas}))
    plan = await steering.planned(session.client, kind, later)
    return None if isinstance(plan, Refusal) else plan


async def _lines(
    session: Session, target: Target, plan: PlanView | PlanSummary | None, before: int, replicas: int
) -> list[str]:
    from holdfast.cli.plan.command import brief

    lines = [f"{target.name}: {before} → {replicas} replicas"] if plan is None else brief(plan)
    scalers = await seen(session.client.list(AUTOSCALERS, Scope(namespace=target.scope.namespace)))
    for scaler in () if scalers is None else scalers.objects:
        spec = scaler.wire().get("spec") or {}
        reference = spec.get("scaleTargetRef") or {}
        if (reference.get("kind"), reference.get("name")) == (target.resource.kind, target.name):
            bounds = f"{spec.get('minReplicas', 1)} to {spec.get('maxReplicas')}"
            name = f"horizontalpodautoscaler/{scaler.key.name}"
            lines.append(f"warning: {name} keeps it at {bounds} replicas and will change this number again")
    return lines


async def _floors(
    session: Session, obj: Object, plan: PlanView | PlanSummary | None, replicas: int
) -> AsyncIterator[str]:
    """The minimums that are more than so many replicas."""
    views = () if plan is None else (plan,) if isinstance(plan, PlanView) else plan.parts
    clamped = [each.message for view in views for each in view.warnings if each.code is Code.MIN_AVAILABLE_CLAMPED]
    for message in dict.fromkeys(clamped):
        yield message
    spec: Mapping[str, Any] = obj.wire().get("spec") or {}
    minimum = spec.get("minAvailable")
    if not clamped and isinstance(minimum, int) and minimum > replicas:
        yield f"spec.minAvailable is {minimum}"
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") if "template" in spec else None
    if not labels:
        return
    budgets = await seen(session.client.list(BUDGETS, Scope(namespace=obj.key.namespace)))
    for budget in () if budgets is None else budgets.objects:
        wanted = budget.wire().get("spec") or {}
        least = wanted.get("minAvailable")
        selected = LabelSelector.from_object(wanted.get("selector"), "spec.selector").matches(labels)
        if selected and isinstance(least, int) and least > replicas:
            yield f"poddisruptionbudget/{budget.key.name} needs {least} available pods"
