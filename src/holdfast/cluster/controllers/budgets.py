"""PodDisruptionBudgets: how many pods of a set may be evicted now, in their status.

The eviction API reads the status and counts it down; this controller computes it again.  How many
pods are expected is the scale of their controllers, where the budget is a percentage.
This module must not know how a pod is evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object, OwnerReference
from holdfast.client.pods import Pod
from holdfast.client.resources import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from holdfast.cluster.controllers.replica_types import controller_of, identity
from holdfast.kernel.outcomes import Outcome, soonest, until
from holdfast.kinds.model import Kind
from holdfast.meta import amounts, times
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import Decision, Notice

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"

_DELETION: Final = timedelta(minutes=2)
"""How long the deletion of an evicted pod may take to be seen before the pod counts again."""


class BudgetSpec(msgspec.Struct, frozen=True, rename="camel"):
    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    conditions: list[dict[str, Any]] = []

    def wire(self) -> dict[str, Any]:
        """As Kubernetes writes it: the four counts always, and of the rest what there is."""
        wired: dict[str, Any] = msgspec.to_builtins(self)
        optional = ("observedGeneration", "disruptedPods", "conditions")
        return {field: value for field, value in wired.items() if value or field not in optional}


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    @classmethod
    def of(cls, obj: Object) -> Budget:
        return obj.decode(cls)

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector.from_object(self.spec.selector, "spec.selector")

    @property
    def is_relative(self) -> bool:
        """Whether it is a percentage, so that the scale of the controllers must be known."""
        return self.spec.max_unavailable is not None or isinstance(self.spec.min_available, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How many pods the controllers of some pods want, together.

    unmanaged  pods without a controller: how many are expected is not known
    trouble    why it cannot be computed, if it cannot
    """

    replicas: int = 0
    unmanaged: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`scale` is only asked for where the budget is relative."""

    budget: Budget
    pods: tuple[Pod, ...] = ()
    scale: Scale = Scale()


# --- deciding


def decide(world: World, now: datetime) -> Decision:
    budget, pods = world.budget, world.pods
    notices: list[Notice] = []
    if not pods:
        notices.append(Notice(reason="NoPods", message="No matching pods found"))
    if world.scale.trouble:
        why = world.scale.trouble
        failed = f"Failed to calculate the number of expected pods: {why}"
        notices.append(Notice(type="Warning", reason="CalculateExpectedPodCountFailed", message=failed))
        return Decision(status=_failed_safe(budget, why, now=now), notices=tuple(notices))
    if world.scale.unmanaged:
        notices.append(_about_unmanaged(budget))
    disrupted, late = _disrupted(budget, pods, now=now)
    notices += [_about_late(budget, pod) for pod in late]
    healthy = sum(pod.ready for pod in pods if not pod.deleting and pod.metadata.name not in disrupted)
    expected, desired = _wanted(world)
    # None is allowed where none is expected, so that the first pods are not evicted before they are counted.
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    generation = budget.metadata.generation
    verdict = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    status = BudgetStatus(
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        observed_generation=generation,
        disrupted_pods=disrupted,
        conditions=_conditions(budget, *verdict, generation=generation, now=now),
    )
    return Decision(status=status.wire(), notices=tuple(notices), outcome=_expiry(disrupted, now=now))


def _wanted(world: World) -> tuple[int, int]:
    """How many pods there should be, and how many of them must stay healthy."""
    spec, expected = world.budget.spec, world.scale.replicas
    if spec.max_unavailable is not None:
        unavailable = amounts.resolve(spec.max_unavailable, expected, round="up")
        return expected, max(expected - unavailable, 0)
    if spec.min_available is None:
        return 0, 0
    if isinstance(spec.min_available, int):
        return len(world.pods), spec.min_available
    return expected, amounts.resolve(spec.min_available, expected, round="up")


def _disrupted(budget: Budget, pods: Iterable[Pod], *, now: datetime) -> tuple[dict[str, str], list[Pod]]:
    """The pods that were evicted and are not deleted yet, and those that should have been by now."""
    awaited: dict[str, str] = {}
    late: list[Pod] = []
    for pod in pods:
        stamp = budget.status.disrupted_pods.get(pod.metadata.name)
        if stamp is None or pod.deleting:
            continue
        if times.parse(stamp) + _DELETION < now:
            late.append(pod)
        else:
            awaited[pod.metadata.name] = stamp
    return awaited, late


def _expiry(disrupted: Mapping[str, str], *, now: datetime) -> Outcome:
    because = "an evicted pod counts again if it is not on its way out by then"
    return soonest(until(times.parse(stamp) + _DELETION, now=now, because=because) for stamp in disrupted.values())


def _failed_safe(budget: Budget, why: str, *, now: datetime) -> dict[str, Any]:
    """Where pods cannot be counted, no disruption is allowed; the rest of the status stays as it was."""
    generation = budget.status.observed_generation
    conditions = _conditions(budget, "False", "SyncFailed", generation=generation, now=now, message=why)
    return msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=conditions).wire()


def _conditions(
    budget: Budget, status: str, reason: str, *, generation: int, now: datetime, message: str = ""
) -> list[dict[str, Any]]:
    """The conditions with this one in the place where it was."""
    had = {each["type"]: each for each in budget.status.conditions}
    old = had.get(DISRUPTION_ALLOWED, {})
    said: dict[str, Any] = {"type": DISRUPTION_ALLOWED, "status": status, "reason": reason, "message": message}
    same = old.get("status") == status
    said["lastTransitionTime"] = old["lastTransitionTime"] if same else times.format(now)
    if generation:
        said["observedGeneration"] = generation
    return list({**had, DISRUPTION_ALLOWED: said}.values())


def _about_unmanaged(budget: Budget) -> Notice:
    message = (
        f"Some pods that this budget selects ({budget.selector}) have no controller, so how many are expected "
        "is not known; set spec.minAvailable to a whole number to count the pods themselves."
    )
    return Notice(type="Warning", reason="UnmanagedPods", message=message)


def _about_late(budget: Budget, pod: Pod) -> Notice:
    place = f"{budget.metadata.namespace}/{budget.metadata.name}"
    message = f"Pod was expected by PDB {place} to be deleted but it wasn't"
    return Notice(type="Warning", reason="NotDeleted", message=message, about=identity(PODS, pod.metadata))


# --- what controllers are scaled to


class _Scaled(msgspec.Struct, frozen=True):
    """Of any object that can be scaled, all that is needed."""

    spec: dict[str, Any] = {}

    def replicas(self, path: Sequence[str]) -> int:
        value: Any = {"spec": self.spec}
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Scalable:
    """A resource that can be scaled, and where it says to how many."""

    resource: Resource
    path: tuple[str, ...] = ("spec", "replicas")

    @classmethod
    def of(cls, kind: Kind) -> Scalable | None:
        if kind.scale is None:
            return None
        return cls(Resource.of(kind), tuple(kind.scale.spec.strip(".").split(".")))

    def owns(self, owner: OwnerReference) -> bool:
        return (owner.kind, owner.group) == (self.resource.kind, self.resource.group)


BUILT_IN: Final = (Scalable(DEPLOYMENTS), Scalable(REPLICA_SETS), Scalable(STATEFUL_SETS))


def _scale(view: View, pods: Iterable[Pod], scalables: Sequence[Scalable]) -> Scale:
    counts: dict[str, int] = {}
    unmanaged: list[str] = []
    seen: set[str] = set()
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            unmanaged.append(pod.metadata.name)
        elif owner.uid not in seen:
            seen.add(owner.uid)
            found = _owner(view, owner, pod.metadata.namespace, scalables)
            if isinstance(found, str):
                return Scale(trouble=found or f'found no controllers for pod "{pod.metadata.name}"')
            uid, replicas = found
            counts[uid] = replicas
    return Scale(replicas=sum(counts.values()), unmanaged=tuple(unmanaged))


def _owner(view: View, owner: OwnerReference, namespace: str, scalables: Sequence[Scalable]) -> tuple[str, int] | str:
    """The UID and the scale of the topmost owner that can be scaled; else why there is none, if that can be said."""
    scalable = next((each for each in scalables if each.owns(owner)), None)
    if scalable is None:
        plural = f"{owner.kind.lower()}s"
        resource = f"{plural}.{owner.group}" if owner.group else plural
        return f"{resource} does not implement the scale subresource"
    found = view.get(scalable.resource, Key(namespace, owner.name))
    if found is None or found.uid != owner.uid:
        return ""
    above = found.controller
    if scalable.resource == REPLICA_SETS and above is not None and BUILT_IN[0].owns(above):
        return _owner(view, above, namespace, scalables)
    return found.uid, found.decode(_Scaled).replicas(scalable.path)


# --- what is seen


def _observing(scalables: Sequence[Scalable]) -> Callable[[View, Key], World | None]:
    def observe(view: View, key: Key) -> World | None:
        found = view.get(BUDGETS, key)
        if found is None:
            return None
        budget = Budget.of(found)
        pods = tuple(Pod.of(obj) for obj in view.list(PODS, namespace=key.namespace, labels=budget.selector))
        scale = _scale(view, pods, scalables) if budget.is_relative else Scale()
        return World(budget=budget, pods=pods, scale=scale)

    return observe


def selecting(pod: Object, view: View) -> Iterator[Key]:
    """The budgets that a pod belongs to."""
    for found in view.list(BUDGETS, namespace=pod.meta.namespace):
        if Budget.of(found).selector.matches(pod.meta.labels):
            yield found.key


def relative(owner: Object, view: View) -> Iterator[Key]:
    """The budgets that may go by the scale of a controller; whose pods it has is seen when they are counted."""
    for found in view.list(BUDGETS, namespace=owner.meta.namespace):
        if Budget.of(found).is_relative:
            yield found.key


def controller(kinds: Iterable[Kind] = ()) -> Controller[World]:
    """The controller, with kinds that can be scaled besides the built-in ones; their definitions must be installed."""
    declared = (Scalable.of(kind) for kind in kinds)
    scalables = (*BUILT_IN, *(each for each in declared if each is not None))
    return Controller(
        name="disruption",
        resource=BUDGETS,
        watches=(
            Watch(resource=PODS, keys=selecting),
            *(Watch(resource=each.resource, keys=relative) for each in scalables),
        ),
        observe=_observing(scalables),
        decide=decide,
    )


CONTROLLER: Final = controller()
observe: Final = CONTROLLER.observe
