"""The functions of a controller that does one step with providers in each pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Failure
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.runtime.controllers import View
from holdfast.runtime.decisions import Decision


class _Worlds(Protocol):
    """The functions that find the world of an object: those of the modules `observe`."""

    def observe(self, view: View, key: Key, /) -> Any: ...

    async def survey(self, world: Any, /, *, connections: Connections) -> Any: ...


class _Calls(Protocol):
    """The functions that decide about a world and call providers: those of the modules `calls`."""

    def decide(self, world: Any, now: datetime, /) -> Decision: ...

    def explain(self, world: Any, failure: Failure, now: datetime, /) -> Mapping[str, Any] | None: ...

    async def act(self, world: Any, decided: Decision, /, *, connections: Connections) -> Decision: ...


def passes(worlds: _Worlds, calls: _Calls, connections: Connections) -> dict[str, Any]:
    """The functions, as arguments of the controller; those that decide also decide about deletions."""
    return {
        "observe": worlds.observe,
        "survey": partial(worlds.survey, connections=connections),
        "decide": calls.decide,
        "cleanup": calls.decide,
        "act": partial(calls.act, connections=connections),
        "explain": calls.explain,
        "backoff": Backoff(),
    }
