"""The readable log of a simulation: one line for each change, then a summary.

The content of golden files, and what `holdfast simulate` prints where its output is
no terminal.  Plain text without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from holdfast.kernel.reasons import count
from holdfast.kernel.rollout import Hold, Wait
from holdfast.meta import durations
from holdfast.simulator.frames import Actor, Ending, Frame, Outcome, Run
from holdfast.views import fleets

MARKS = {Actor.ENGINE: " ", Actor.CLUSTER: "~", Actor.USER: ">"}
"""The mark of each actor in the log."""

SPARKS = 60


def log(run: Run, *, title: str) -> Iterator[str]:
    """The whole log: a heading, a line for each change that is worth one, the summary."""
    yield from heading(run, title=title)
    yield ""
    yield from lines(run.frames)
    yield ""
    yield from (f"{label:<10} {text}" for label, text in summary(run))


def heading(run: Run, *, title: str) -> Iterator[str]:
    yield f"# {title}"
    yield f"# {fleets.legend(run.frames[-1].revisions)}"
    yield "# ~ events in the cluster  > actions of a user"


def lines(frames: Sequence[Frame]) -> Iterator[str]:
    """One line a frame, in columns; a wait that goes on for the same reason is written once."""
    drawn = [picture(frame).line() for frame in frames]
    width = max(len(text) for text in drawn)
    numbers = [_numbers(frame) for frame in frames]
    wide = max(len(text) for text in numbers)
    written: object = None
    for frame, text, number in zip(frames, drawn, numbers, strict=True):
        waits = frame.actor is Actor.ENGINE and isinstance(frame.decision, Wait | Hold)
        if waits and written == frame.decision.because.code:
            continue
        if frame.actor is Actor.ENGINE:
            written = frame.decision.because.code if waits else None
        because = f"  {frame.decision.because.message}" if frame.actor is Actor.ENGINE else ""
        clock = durations.short(frame.at)
        what = f"{MARKS[frame.actor]} {frame.what}"
        yield f"{clock:>7} {what:<24} {text:<{width}}  {number:<{wide}}{because}".rstrip()


def _numbers(frame: Frame) -> str:
    ready = f"{frame.fleet.ready}/{frame.desired}"
    return f"ready {ready:>5} floor {frame.shape.floor}"


def picture(frame: Frame, *, scale: int = 1) -> fleets.Picture:
    """The view of a frame."""
    return fleets.picture(
        frame.replicas,
        revisions=frame.revisions,
        target=frame.target,
        now=frame.now,
        min_ready=frame.min_ready,
        scale=scale,
    )


def samples(frames: Sequence[Frame]) -> tuple[fleets.Sample, ...]:
    """The ready replicas of each revision over time, for charts."""
    return tuple(sample(frame, picture(frame)) for frame in frames)


def sample(frame: Frame, seen: fleets.Picture) -> fleets.Sample:
    """A moment of a chart; replicas of a revision without traffic count as not ready."""
    ready = seen.ready
    if frame.serving is not None:
        ready = tuple(number * (row.revision == frame.serving) for row, number in zip(seen.rows, ready, strict=True))
    return fleets.Sample(frame.at, ready, frame.shape.floor)


def summary(run: Run) -> Iterator[tuple[str, str]]:
    """The outcome as labelled sentences; the first one is the ending."""
    outcome = run.outcome
    after = f" after {durations.short(outcome.duration)}" if outcome.duration else ""
    yield "end", f"{outcome.ending}{after}: {_ending(outcome)}"
    if outcome.remedy:
        yield "remedy", outcome.remedy
    yield "floor", _floor(outcome)
    yield "ceiling", f"{outcome.ceiling:,} kept: {outcome.most_live:,} live at most"
    yield "ready", _sparks(run)
    yield "work", _work(outcome)
    for index, waited in enumerate(waited for waited in outcome.waits if waited.time):
        times = "once" if waited.times == 1 else f"{waited.times:,} times"
        yield ("" if index else "waits"), f"{durations.short(waited.time):>7} {waited.code} ({times})"
    for warning in outcome.warnings:
        yield "warning", warning.message
    yield "seed", str(outcome.seed)


def _ending(outcome: Outcome) -> str:
    match outcome.ending:
        case Ending.WITHDRAWN:
            rejected = f"; {', '.join(outcome.rejected)} is rejected" if outcome.rejected else ""
            return f"{outcome.revision} runs again, {outcome.final_ready:,} of {outcome.replicas:,} ready{rejected}"
        case Ending.SPINNING:
            return "the engine kept deciding and nothing changed any more"
        case _:
            return outcome.because.message


def _floor(outcome: Outcome) -> str:
    if not outcome.guaranteed:
        return f"{outcome.floor:,}, which this strategy does not keep: {outcome.lowest_ready:,} ready at worst"
    if not outcome.dips and outcome.lowest_ready < outcome.floor:
        return f"{outcome.floor:,} held once it was reached; {outcome.lowest_ready:,} ready before that"
    if not outcome.dips:
        return f"{outcome.floor:,} held: {outcome.lowest_ready:,} ready at worst"
    lost = "once" if outcome.dips == 1 else f"{outcome.dips:,} times"
    return (
        f"{outcome.floor:,} kept by the engine; crashes or deletions took it below {lost}, "
        f"for {durations.short(outcome.below)} in all: {outcome.lowest_ready:,} ready at worst"
    )


def _work(outcome: Outcome) -> str:
    crashes = count(outcome.crashes, "crash", "crashes") if outcome.crashes else "no crashes"
    dead = f" ({outcome.deaths:,} for good)" if outcome.deaths else ""
    return f"{outcome.starts:,} started, {outcome.stops:,} stopped, {crashes}{dead}"


def _sparks(run: Run) -> str:
    """Ready replicas over time; the worst of each span, so that no dip is lost."""
    end = run.outcome.duration or timedelta(seconds=1)
    worst = fleets.worst_moments(samples(run.frames), end=end, width=SPARKS - 1)
    values = (*worst, run.outcome.final_ready)
    if min(values) == max(values):
        return f"{values[0]:,} all the time"
    return f"{fleets.sparkline(values, top=max(values))} {min(values):,} to {max(values):,}"
