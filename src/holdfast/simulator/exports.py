"""A simulation for programs: the outcome, and every frame with its counts.  Fields are only ever added."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.kernel.reasons import Because
from holdfast.simulator.frames import Frame, Run
from holdfast.simulator.logs import picture


def to_json(run: Run) -> dict[str, Any]:
    """The outcome, and every frame with its counts; times are seconds since the beginning."""
    outcome = run.outcome
    return {
        "seed": outcome.seed,
        "ending": str(outcome.ending),
        "because": _because(outcome.because),
        "remedy": outcome.remedy or None,
        "revision": outcome.revision,
        "rejected": list(outcome.rejected),
        "seconds": _seconds(outcome.duration),
        "replicas": outcome.replicas,
        "floor": outcome.floor,
        "floorGuaranteed": outcome.guaranteed,
        "maxLive": outcome.ceiling,
        "lowestReady": outcome.lowest_ready,
        "mostLive": outcome.most_live,
        "finalReady": outcome.final_ready,
        "started": outcome.starts,
        "stopped": outcome.stops,
        "crashes": outcome.crashes,
        "deaths": outcome.deaths,
        "belowFloorByOthers": {"times": outcome.dips, "seconds": _seconds(outcome.below)},
        "waits": [
            {"code": waited.code.value, "times": waited.times, "seconds": _seconds(waited.time)}
            for waited in outcome.waits
        ],
        "warnings": [_because(warning) for warning in outcome.warnings],
        "frames": [_frame_json(frame) for frame in run.frames],
    }


def _frame_json(frame: Frame) -> dict[str, Any]:
    return {
        "seconds": _seconds(frame.at),
        "actor": str(frame.actor),
        "what": frame.what,
        "phase": frame.phase.value,
        "because": _because(frame.decision.because),
        "ready": frame.fleet.ready,
        "live": frame.fleet.live,
        "floor": frame.shape.floor,
        "maxLive": frame.shape.ceiling,
        "revisions": {
            row.revision: {str(state): number for state, number in row.counts} for row in picture(frame).rows
        },
    }


def _because(because: Because) -> dict[str, str]:
    return {"code": because.code.value, "message": because.message}


def _seconds(time: timedelta) -> int | float:
    seconds = time.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
