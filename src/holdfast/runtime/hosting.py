"""Hosting: builds a manager with all that belongs to it in a process: clients that are counted, an election, its fence.

Whatever writes for a manager with an election asks the fence first, at every request;
this is the one place that ensures it.  It must not know how requests travel, nor which
controllers run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final

from holdfast.client.api import ApiClient
from holdfast.client.protocols import Transport
from holdfast.client.retries import Policy
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.leadership.elections import Election, boot_seconds, unique_identity
from holdfast.runtime.leadership.fencing import FencedTransport
from holdfast.runtime.leadership.leases import TERMS, Terms
from holdfast.runtime.manager import Manager, Settings
from holdfast.runtime.metrics import Metrics

_ONCE: Final = Policy(attempts=1)
"""An election decides itself when to ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """That only one of several processes works.

    lease      the key of the Lease that they share; its namespace must exist
    identity   who this process is; no other one may ever have the same
    monotonic  seconds of a clock that only ever goes forward, also while the machine sleeps
    """

    lease: Key
    identity: str = field(default_factory=unique_identity)
    terms: Terms = TERMS
    monotonic: Callable[[], float] = boot_seconds


def build_manager(
    transport: Transport,
    *,
    controllers: Sequence[Controller[Any]],
    components: Sequence[Component] = (),
    now: Callable[[], datetime],
    settings: Settings | None = None,
    metrics: Metrics | None = None,
    seed: int | None = None,
    election: LeaderElection | None = None,
) -> Manager:
    """A manager that works over a transport, which stays its maker's to close."""
    metrics = metrics or Metrics()
    randomness = Random(seed)
    elected = None
    if election is not None:
        elected = Election(
            ApiClient(transport, policy=_ONCE, random=randomness, observed=metrics.called),
            election.lease,
            identity=election.identity,
            now=now,
            monotonic=election.monotonic,
            terms=election.terms,
            spread=randomness.random,
        )
        transport = FencedTransport(transport, elected.held)
    return Manager(
        ApiClient(transport, random=randomness, observed=metrics.called),
        controllers=controllers,
        components=components,
        now=now,
        settings=settings,
        metrics=metrics,
        seed=seed,
        election=elected,
        takes_over=True,
    )
