"""The transition table of a request: which phase follows which, when, and with which Event.

The rows are those of the reference, with its defects corrected; R1 and D1 to D3 are ours.  A row whose source and
target are equal is a pass that stays in its phase.  The table steers nothing: the phase is derived from facts
(`facts.LADDER`), each fact names its row, and tests raise where an edge is not in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holdfast.kernel.phases import Transitions

Phase: TypeAlias = Literal["Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"]
PHASES: Final[tuple[Phase, ...]] = ("Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    source   the phases that it leaves; None is a request without a phase
    target   the phase that it leads to; None: the phase stays as it is
    when     what was observed
    event    the type and the reason of the Event, where the row is worth one beside those of its conditions
    """

    source: tuple[Phase | None, ...]
    target: Phase | None
    when: str
    event: tuple[Literal["Normal", "Warning"], str] | None = None


_WORKING: Final = ("Profiling", "Ready", "Deploying", "Deployed")

TABLE: Final[Mapping[str, Row]] = {
    "G1": Row(source=(None, *PHASES), target=None, when="the request is gone"),
    "G2": Row(source=(None, *PHASES), target=None, when="the request is being deleted"),
    "G3": Row(
        source=_WORKING,
        target=None,
        when="the spec was changed while the request is at work: the change is ignored, the work goes on",
    ),
    "T1": Row(source=(None, "Pending"), target="Pending", when="the spec is valid", event=("Normal", "Initialized")),
    "T2": Row(source=(None, "Pending", "Failed"), target="Failed", when="the spec is invalid"),
    "T3": Row(source=("Pending",), target="Pending", when="the hardware, or the volume of the model, is awaited"),
    "T4": Row(source=("Pending",), target="Pending", when="the hardware is known: the Job is created"),
    "T5": Row(
        source=("Pending",), target="Profiling", when="the Job is observed", event=("Normal", "ProfilingJobCreated")
    ),
    "T6": Row(source=("Pending",), target="Failed", when="the API refuses the Job for good"),
    "T7": Row(source=("Profiling",), target="Profiling", when="the profiler reports a phase"),
    "T8": Row(source=("Profiling",), target="Profiling", when="the profiler reports a phase that is not known"),
    "T9": Row(source=("Profiling",), target="Profiling", when="the Job runs and nothing was reported yet"),
    "T10": Row(source=("Profiling",), target="Profiling", when="the Job exists and its pod does not run yet"),
    "T11": Row(source=("Profiling",), target="Failed", when="the Job failed"),
    "T12": Row(source=("Profiling",), target="Failed", when="the Job was deleted and has left no result"),
    "T13": Row(source=("Profiling",), target="Failed", when="the profiler reports its failure"),
    "T14": Row(source=("Profiling",), target="Profiling", when="the API does not answer: the pass is repeated"),
    "T15": Row(source=("Profiling",), target="Profiling", when="the Job is complete and its output is awaited"),
    "T16": Row(source=("Profiling",), target="Failed", when="the output has no deployment that can be used"),
    "T17": Row(source=("Profiling",), target="Profiling", when="a write met a conflict: the pass is repeated"),
    "T18": Row(source=("Profiling",), target="Deploying", when="a deployment was generated, and autoApply is on"),
    "T19": Row(source=("Profiling",), target="Ready", when="a deployment was generated, and autoApply is off"),
    "T20": Row(source=("Ready",), target="Ready", when="autoApply is off"),
    "T21": Row(source=("Ready",), target="Deploying", when="autoApply was switched on"),
    "T22": Row(source=("Deploying",), target="Ready", when="autoApply was switched off before anything was created"),
    "T23": Row(source=("Deploying",), target="Deploying", when="the name of the deployment is known from the result"),
    "T24": Row(
        source=("Deploying",),
        target="Deploying",
        when="the deployment does not exist: it is created",
        event=("Normal", "DeploymentCreated"),
    ),
    "T25": Row(source=("Deploying",), target="Failed", when="a deployment of the name exists that is not ours"),
    "T26": Row(source=("Deploying",), target="Failed", when="the API refuses the deployment for good"),
    "T27": Row(source=("Deploying",), target="Deploying", when="the deployment could not be created: it is retried"),
    "T28": Row(source=("Deploying",), target="Deployed", when="the deployment is ready"),
    "T29": Row(source=("Deploying",), target="Deploying", when="the deployment is not ready yet"),
    "T30": Row(source=("Deploying",), target="Failed", when="the deployment was deleted"),
    "T31": Row(source=("Deployed",), target="Deployed", when="the deployment serves; it may be scaled or updated"),
    "T32": Row(source=("Deployed",), target="Deploying", when="the deployment has lost replicas for a while"),
    "T33": Row(source=("Deployed",), target="Failed", when="the deployment was deleted"),
    "T34": Row(source=("Failed",), target="Failed", when="nothing has changed"),
    "T35": Row(source=(), target=None, when="the phase is not known: it is derived again from the facts"),
    "R1": Row(
        source=("Failed",),
        target="Pending",
        when="the spec was changed, or a retry was asked for",
        event=("Normal", "Retried"),
    ),
    "D1": Row(source=("Profiling",), target="Failed", when="the profiling is beyond its deadline"),
    "D2": Row(source=("Profiling",), target="Failed", when="the output was awaited beyond its deadline"),
    "D3": Row(source=("Deploying",), target="Failed", when="the deployment is beyond its deadline"),
}  # fmt: skip


def _followers(phase: Phase | None) -> frozenset[Phase]:
    rows = (row for row in TABLE.values() if phase in row.source)
    return frozenset(row.target for row in rows if row.target is not None)


TRANSITIONS: Final[Transitions[Phase]] = Transitions(
    table={phase: _followers(phase) for phase in PHASES}, start=tuple(sorted(_followers(None)))
)
"""Which phase may follow which, by the table."""
