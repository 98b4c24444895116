"""The planner: a rollout described by numbers, its plan, and a simulation of it.

Pure.  The engine itself makes both, as for `holdfast plan` and `holdfast simulate`.  This
module must not know any kind: a kind says which settings it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from holdfast import kinds
from holdfast.meta import durations
from holdfast.operators import offline
from holdfast.operators.rollouts import OfflineRollout, RolloutKind
from holdfast.simulator import exports
from holdfast.simulator.frames import InvariantBroken
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.simulation import simulate
from holdfast.views import plans
from holdfast.views.plans import PlanSummary, PlanView, plan_view

MOST_REPLICAS: Final = 500
"""The most replicas that are simulated for a page."""

MOST_FRAMES: Final = 4_000
LIMIT: Final = timedelta(days=30)

STRATEGIES: Final = ("RollingUpdate", "Recreate", "BlueGreen", "Canary")


class Asked(msgspec.Struct, frozen=True, rename="camel"):
    """What a page asks for; `settings` by name, as the options of `holdfast plan` have them."""

    settings: dict[str, int | str] = {}
    current: int | None = None
    crash: float = 0.0
    slow: float = 0.0
    broken: bool = False
    ready_after: str = "8s"
    promote_after: str = "15s"
    seed: int = 7


class Wrong(ValueError):
    """What is wrong with what was asked: a setting and a sentence for each problem."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(message for _, message in problems))
        self.problems = problems


def planned_kinds(known: Iterable[RolloutKind]) -> tuple[RolloutKind, ...]:
    """The kinds that can be planned without a cluster."""
    return tuple(each for each in known if each.offline is not None)


def answer(kind: RolloutKind, asked: Asked) -> dict[str, Any]:
    """The plan and the simulation as JSON; raises `Wrong`."""
    described = _described(kind, asked)
    spec = described.spec
    current = spec.replicas if asked.current is None else asked.current
    if not 0 <= current <= MOST_REPLICAS or spec.replicas > MOST_REPLICAS:
        raise Wrong(("replicas", f"write a number from 0 to {MOST_REPLICAS}; 'holdfast plan' takes any"))
    view = plan_view(spec, current=current, paused=described.paused)
    return {"plan": plan_json(view), "simulation": _simulated(described, asked, current)}


def plan_json(view: PlanView | PlanSummary) -> dict[str, Any]:
    """A plan for a page: as for programs, with what each step does in words."""
    if isinstance(view, PlanSummary):
        parts = [{"names": list(names), **plan_json(part)} for part, names in view.alike]
        return {"name": view.name, "notes": list(view.notes), "blocked": view.blocked, "parts": parts}
    steps = [
        {**step, "what": row.what, "ready": row.ready}
        for row, step in zip(view.rows, plans.to_json(view)["steps"], strict=True)
    ]
    fixes = [dict(fix.fields) for fix in view.fixes]
    return {**plans.to_json(view), "name": view.name, "holds": view.holds, "steps": steps, "fixes": fixes}


def _described(kind: RolloutKind, asked: Asked) -> OfflineRollout:
    assert kind.offline is not None, "only kinds that can be planned offline are asked for"
    unknown = [each for each in asked.settings if each not in kind.settings]
    if unknown:
        raise Wrong(*((each, f"{kind.name} has no setting {each!r}") for each in unknown))
    try:
        return offline.rollout(kind, kind.offline.minimal, asked.settings)
    except kinds.DocumentError as error:
        paths = {path: name for name, path in kind.settings.items()}
        raise Wrong(*((paths.get(each.path, ""), each.message) for each in error.problems)) from None


def _simulated(described: OfflineRollout, asked: Asked, current: int) -> dict[str, Any]:
    for name, chance in (("crash", asked.crash), ("slow", asked.slow)):
        if not 0 <= chance <= 1:
            raise Wrong((name, "write a share from 0 to 1"))
    behaviour = Behaviour(
        ready_after=_duration("readyAfter", asked.ready_after),
        slow=asked.slow,
        crash=asked.crash,
        broken=frozenset({"v2"} if asked.broken else ()),
    )
    scenario = Scenario(
        spec=described.spec,
        current=current,
        min_ready=described.min_ready,
        deadline=described.deadline,
        on_failure=described.on_failure,
        count_terminating=described.count_terminating,
        behaviour=behaviour,
        promote_after=None if asked.promote_after == "never" else _duration("promoteAfter", asked.promote_after),
        limit=LIMIT,
        most_frames=MOST_FRAMES,
    )
    try:
        made = exports.to_json(simulate(scenario, seed=asked.seed))
    except InvariantBroken as error:
        raise Wrong(("", f"the engine broke a promise: {error}")) from None
    except OverflowError:
        raise Wrong(("pauseDuration", "write a shorter duration, such as 30s")) from None
    return {**made, "frames": made["frames"][:MOST_FRAMES]}


def _duration(name: str, text: str) -> timedelta:
    try:
        return durations.parse(text)
    except ValueError as error:
        raise Wrong((name, f"{error}; write a duration such as 30s")) from None


def form(kind: RolloutKind) -> Mapping[str, Any]:
    """The settings that a page offers for a kind."""
    return {
        "kind": kind.resource.kind,
        "resource": kind.name,
        "settings": list(kind.settings),
        "strategies": STRATEGIES,
    }
