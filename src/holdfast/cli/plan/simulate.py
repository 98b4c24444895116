"""``holdfast simulate``: a rollout in virtual time, with simulated replicas that crash and are slow.

The whole run is made first, which takes a moment, and then shown: as a film on
a terminal, as a log in a pipe, as JSON for programs.  What happens is decided
by `simulator`; how it looks, by `cli.plan.fleets`.
"""

from __future__ import annotations

import json
import math
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import accumulate, pairwise
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.arguments import FloatRange
from holdfast.cli.errors import Complaint, ExitCode, InputError, printable
from holdfast.cli.plan.options import RolloutOptions, described, rollout_options
from holdfast.kernel.planning import rollout_of
from holdfast.meta import durations
from holdfast.simulator import exports, logs
from holdfast.simulator.frames import Actor, Ending, Frame, InvariantBroken, Run
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import USAGE, Command, ScriptError, Verb, parse_all
from holdfast.simulator.simulation import simulate
from holdfast.views.fleets import scale_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from holdfast.cli.plan.fleets import Screen

MOST_REPLICAS: Final = 1_000
"""Every replica is simulated; a plan, which only counts, takes any number."""

LIMIT: Final = timedelta(days=365)
FILM: Final = 12.0
"""Seconds that a film lasts, unless a speed is asked for."""
PER_FRAME: Final = 0.4
"""Seconds that a frame of a short film lasts."""
TICK: Final = 1 / 15

NEVER: Final = "never"
AT_ONCE: Final = "max"


def _duration(_: click.Context, __: click.Parameter, text: str) -> timedelta:
    """A duration as Go writes it, not below zero."""
    try:
        duration = durations.parse(text)
    except durations.DurationError as error:
        raise click.BadParameter(str(error)) from None
    if not timedelta() <= duration <= LIMIT:
        raise click.BadParameter(f"{text!r} is not between 0s and {durations.short(LIMIT)}")
    return duration


def _promotion(ctx: click.Context, parameter: click.Parameter, text: str) -> timedelta | None:
    return None if text == NEVER else _duration(ctx, parameter, text)


def _speed(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """How many virtual seconds pass in a second; None: whatever suits."""
    if text is None:
        return None
    try:
        speed = math.inf if text == AT_ONCE else float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise click.BadParameter(f"{text!r} is not a speed; write 20x for twenty times as fast as life, or max")
    return speed


CHANCE: Final = FloatRange(0, 1)


@click.command("simulate")
@rollout_options
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=7,
    show_default=True,
    help="The seed of the random behaviour; the same seed gives the same run.",
)
@click.option("--crash", type=CHANCE, default=0.0, metavar="P", help="How likely a start ends in a crash, from 0 to 1.")
@click.option("--slow", type=CHANCE, default=0.0, metavar="P", help="How likely a start takes ten times as long.")
@click.option("--broken", is_flag=True, help="The new revision never becomes ready.")
@click.option(
    "--ready-after",
    callback=_duration,
    metavar="DURATION",
    default="8s",
    show_default=True,
    help="How long a replica takes to be ready.",
)
@click.option(
    "--promote-after",
    callback=_promotion,
    metavar="DURATION|never",
    default="15s",
    show_default=True,
    help="How long after a step waits for approval it is promoted.",
)
@click.option(
    "--script",
    multiple=True,
    metavar="'at 30s pause'",
    help=f"Actions of users during the run; repeat the option, or separate with ;: {', '.join(USAGE.values())}.",
)
@click.option(
    "--speed",
    callback=_speed,
    metavar="20x|max",
    help="How fast the film runs.  [default: so that it lasts 12 seconds]",
)
@click.option("--no-live", is_flag=True, help="Print the log, as in a pipe, instead of the film.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to show the run.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    seed: int,
    crash: float,
    slow: float,
    broken: bool,
    ready_after: timedelta,
    promote_after: timedelta | None,
    script: tuple[str, ...],
    speed: float | None,
    no_live: bool,
    output: str,
    **options: Any,
) -> None:
    """Simulate a rollout in virtual time, with crashes and slow starts.

    The engine is the real one; the replicas are made up, and follow from the seed. After every action
    the promises are checked: the floor is never left, and the ceiling never passed, by our hand.

    \b
    A change:             holdfast simulate -f new.yaml --from old.yaml
    Numbers alone:        holdfast simulate --replicas 10 --min-available 9
    With user actions:    holdfast simulate -f web.yaml --script 'at 1m abort'
    For programs:         holdfast simulate -f web.yaml -o json

    Exits with 0 when the rollout completes, is rolled back or waits for a user, with 1 when it is
    blocked or stuck, and with 2 when the manifest or an option is invalid.
    """
    asked = described(**options)
    for caution in asked.cautions:
        click.echo(printable(f"note: {caution}"), err=True)
    behaviour = Behaviour(ready_after=ready_after, slow=slow, crash=crash, broken=frozenset({"v2"} if broken else ()))
    scenario = _scenario(asked, behaviour=behaviour, script=script, promote_after=promote_after)
    run = _run(scenario, seed)
    if output == "json":
        click.echo(json.dumps(exports.to_json(run), indent=2))
    elif no_live or not sys.stdout.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        click.echo(printable("\n".join(logs.log(run, title=", ".join(_title(scenario))))))
    else:
        _show(run, scenario, speed)
    if not run.outcome.good and run.outcome.ending is not Ending.WAITING:
        ctx.exit(ExitCode.BLOCKED)


def _scenario(
    asked: RolloutOptions, *, behaviour: Behaviour, script: Sequence[str], promote_after: timedelta | None
) -> Scenario:
    try:
        commands = parse_all(script)
    except ScriptError as error:
        raise InputError(Complaint(message=str(error), path="--script")) from None
    scales = (command.number or 0 for command in commands if command.verb is Verb.SCALE)
    rollout = asked.rollout
    most = max(rollout.spec.replicas, asked.current, *scales)
    if most > MOST_REPLICAS:
        message = f"{most:,} replicas are too many: {MOST_REPLICAS:,} can be simulated, each of them separately"
        hint = f"write {MOST_REPLICAS:,} or less, or use 'holdfast plan', which takes any number"
        raise InputError(Complaint(message=message, hint=hint))
    if rollout.paused:
        commands = (Command(timedelta(), Verb.PAUSE), *commands)
    return Scenario(
        spec=rollout.spec,
        current=asked.current,
        target="v1" if asked.scaling_only else "v2",
        min_ready=rollout.min_ready,
        deadline=rollout.deadline,
        on_failure=rollout.on_failure,
        count_terminating=rollout.count_terminating,
        # An ordered fleet of the simulator has no surge.
        ordered=rollout.ordered and rollout_of(rollout.spec).limits.surge == 0,
        behaviour=behaviour,
        script=commands,
        promote_after=promote_after,
        limit=LIMIT,
    )


def _run(scenario: Scenario, seed: int) -> Run:
    try:
        return simulate(scenario, seed=seed)
    except InvariantBroken as error:
        click.echo(f"internal error: the engine broke a promise: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.INTERNAL) from None
    except OverflowError:
        message = "the pauses add up to thousands of years"
        hint = "write shorter durations, such as 30s"
        raise InputError(Complaint(message=message, hint=hint, path="spec.rollout")) from None


def _title(scenario: Scenario) -> tuple[str, ...]:
    same = scenario.target == scenario.before or scenario.current == 0
    change = scenario.target if same else f"{scenario.before} → {scenario.target}"
    return scenario.spec.name or "fleet", scenario.spec.rollout.strategy, change


# --- on a terminal -----------------------------------------------------------


def _show(run: Run, scenario: Scenario, speed: float | None) -> None:
    from rich.console import Console  # a tenth of a second that pipes and JSON need not wait for

    console = Console(highlight=False)
    film = Film(run, scenario, console)
    try:
        film.play(speed)
    except KeyboardInterrupt:
        console.print(f"\n  interrupted; the same again with --seed {run.outcome.seed}", style="yellow")
        raise
    console.print(_summary(run))


class Film:
    """A run as a moving picture."""

    def __init__(self, run: Run, scenario: Scenario, console: Console) -> None:
        from holdfast.cli.plan import fleets

        self.run = run
        self.console = console
        self._fleets = fleets
        self._title = _title(scenario)
        self._top = max(max(frame.shape.ceiling, frame.fleet.ready) for frame in run.frames)
        scale = scale_of(max(len(frame.replicas) for frame in run.frames))
        self._pictures = [logs.picture(frame, scale=scale) for frame in run.frames]
        self._samples = list(map(logs.sample, run.frames, self._pictures))
        self._most = tuple(self._most_cells(index) for index in range(len(run.frames[-1].revisions)))
        self._since = list(accumulate(run.frames, _began, initial=run.frames[0]))[1:]

    def play(self, speed: float | None) -> None:
        """Show every moment at its time; the last one stays."""
        from rich.live import Live

        cues = _cues(self.run.frames, speed)
        note = _note(self.run, cues[-1])
        with Live(console=self.console, auto_refresh=False, vertical_overflow="crop") as live:
            began = monotonic()
            shown: object = None
            while True:
                passed = monotonic() - began
                index, at = self._position(cues, passed)
                if (index, at) != shown:
                    live.update(self.paint(index, at, note=note), refresh=True)
                    shown = index, at
                if passed >= cues[-1]:
                    return
                sleep(TICK)

    def _position(self, cues: Sequence[float], passed: float) -> tuple[int, timedelta]:
        """The frame to show and the virtual time, in whole seconds, `passed` seconds into the film."""
        frames = self.run.frames
        index = max(0, bisect_right(cues, passed) - 1)
        if index + 1 == len(frames):
            return index, frames[index].at
        share = (passed - cues[index]) / ((cues[index + 1] - cues[index]) or 1)
        at = frames[index].at + (frames[index + 1].at - frames[index].at) * share
        return index, timedelta(seconds=int(at.total_seconds()))

    def paint(self, index: int, at: timedelta, *, note: str) -> RenderableType:
        return self._fleets.paint(
            self._screen(index, at, note=note), width=self.console.width, height=self.console.height
        )

    def _screen(self, index: int, at: timedelta, *, note: str) -> Screen:
        frame = self.run.frames[index]
        shown = [seen for seen in self.run.frames[max(0, index - 40) : index + 1] if _is_shown(seen)]
        return self._fleets.Screen(
            title=self._title,
            note=note,
            picture=self._pictures[index],
            ready=frame.fleet.ready,
            desired=frame.desired,
            floor=frame.shape.floor,
            ceiling=frame.shape.ceiling,
            decision=frame.decision,
            samples=self._samples[: index + 1],
            at=at,
            end=self.run.outcome.duration or timedelta(seconds=1),
            top=self._top,
            most=self._most,
            since=timedelta(seconds=int((at - self._since[index].at).total_seconds())),
            last=index + 1 == len(self.run.frames),
            recent=[(seen.at, _line(seen), seen.actor is Actor.ENGINE) for seen in shown],
        )

    def _most_cells(self, index: int) -> int:
        return max(len(picture.rows[index].cells) for picture in self._pictures if len(picture.rows) > index)


def _began(first: Frame, frame: Frame) -> Frame:
    """The frame from which on the reason has been the same, given the one for the frame before."""
    return first if first.decision.because.code is frame.decision.because.code else frame


def _is_shown(frame: Frame) -> bool:
    return frame.actor is not Actor.ENGINE or frame.what != "wait"


def _line(frame: Frame) -> str:
    return f"{logs.MARKS[frame.actor]} {frame.what}"


def _cues(frames: Sequence[Frame], speed: float | None) -> list[float]:
    """When each frame is shown, in seconds from the beginning of the film."""
    gaps = [(after.at - before.at).total_seconds() for before, after in pairwise(frames)]
    if speed is not None:
        return [0.0, *accumulate(gap / speed for gap in gaps)]
    lasts = min(FILM, PER_FRAME * len(frames))
    virtual = sum(gaps) or 1.0
    # Half of the time goes to what happens, half to how long it takes: neither a burst nor a pause is missed.
    return [0.0, *accumulate(lasts * (0.5 * gap / virtual + 0.5 / len(gaps)) for gap in gaps)]


def _note(run: Run, lasts: float) -> str:
    pace = run.outcome.duration.total_seconds() / lasts if lasts else 0
    return f"×{pace:,.0f}  seed {run.outcome.seed}" if pace >= 2 else f"seed {run.outcome.seed}"


def _summary(run: Run) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    outcome = run.outcome
    good = ("✓", "bold green") if outcome.good else ("✗", "bold red")
    mark, style = ("…", "bold yellow") if outcome.ending is Ending.WAITING else good
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _shown(run):
        if label == "end":
            word, _, rest = text.partition(" ")
            table.add_row(Text(mark, style), Text.assemble((word, style), f" {rest}"))
        else:
            table.add_row(Text(label, "bright_black"), Text(text, _STYLES.get(label, "")))
    return Padding(table, (1, 2))


def _shown(run: Run) -> Iterator[tuple[str, str]]:
    """The summary without what the chart has just shown, and with the way to another run."""
    for label, text in logs.summary(run):
        if label == "seed":
            yield label, f"{text}; another run with --seed {run.outcome.seed + 1}"
        elif label != "ready":
            yield label, text


_STYLES: Final = {"warning": "yellow", "remedy": "bold", "floor": "bold", "seed": "bright_black"}
