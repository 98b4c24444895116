"""``holdfast plan``: what a rollout will do, before it is done.

The plan comes from `views.plans`.  This module prints it: as a table with bars on a
terminal, as plain lines in a pipe, as JSON for programs.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.errors import Complaint, ExitCode, InputError, printable
from holdfast.cli.plan.options import FLAGS, RolloutOptions, described, rollout_options
from holdfast.kernel.preview import Action, Phase
from holdfast.kernel.reasons import count
from holdfast.meta import durations
from holdfast.views.folding import wrap
from holdfast.views.plans import Fix, PlanRow, PlanSummary, PlanView, plan_view, summary_to_json, to_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


_MOST_NAMED: Final = 3
"""How many parts with the same plan are named."""


@click.command("plan")
@rollout_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print the plan.")
@click.pass_context
def command(ctx: click.Context, /, output: str, **options: Any) -> None:
    """Show what a rollout will do, step by step, before it starts.

    No cluster is needed: a manifest, options, or both describe the rollout; options override the
    manifest. Without --from, the plan rolls out a new revision; with it, both manifests are compared,
    and if only the number of replicas differs, the plan only scales.

    \b
    A manifest:           holdfast plan -f web.yaml
    A change:             holdfast plan -f new.yaml --from old.yaml
    Numbers alone:        holdfast plan --replicas 10 --min-available 9
    In CI:                holdfast plan -f web.yaml --replicas 50 -o json

    Exits with 0 when there is a plan, with 1 when the rollout would be blocked, and with 2 when
    the manifest or an option is invalid.
    """
    asked = described(**options)
    for caution in asked.cautions:
        click.echo(printable(f"note: {caution}"), err=True)
    for note in asked.notes:
        click.echo(f"note: {note}", err=True)
    view = _view(asked)
    show(view, output, paths=asked.paths)
    if view.blocked:
        ctx.exit(ExitCode.BLOCKED)


def show(plan: PlanView | PlanSummary, output: str, *, paths: Mapping[str, str]) -> None:
    """Print a plan as a ``table`` or as ``json``; `paths` are the JSON paths of the kind's settings."""
    if output == "json":
        made = to_json(plan) if isinstance(plan, PlanView) else summary_to_json(plan)
        click.echo(json.dumps(made, indent=2))
        return
    shown = [plan] if isinstance(plan, PlanView) else [replace(view, name=_joined(names)) for view, names in plan.alike]
    if isinstance(plan, PlanSummary):
        click.echo(f"{plan.name}: {'; '.join(plan.notes)}")
    for number, view in enumerate(shown):
        if sys.stdout.isatty():
            click.echo(_painted(view, paths), nl=False)
        else:
            click.echo("\n".join([*([""] if number or view is not plan else []), *_lines(view, paths)]))


def brief(plan: PlanView | PlanSummary) -> list[str]:
    """A plan in a few lines: what changes, how far down it goes, and the warnings."""
    if isinstance(plan, PlanSummary):
        parts = [line for view, names in plan.alike for line in brief(replace(view, name=_joined(names)))]
        return [f"{plan.name}: {'; '.join(plan.notes)}", *parts]
    name, strategy, size, _ = _title(plan)
    facts = ", ".join(" ".join(fact) for fact in _summary(plan))
    warnings = [f"warning: {warning.message} ({warning.code.value})" for warning in plan.warnings]
    ending = [": ".join(_ending(plan)), f"remedy: {plan.remedy}"] if plan.blocked else []
    return [f"{name}: {size}, {strategy}", facts, *warnings, *ending]


def _view(asked: RolloutOptions) -> PlanView:
    rollout = asked.rollout
    try:
        return plan_view(
            rollout.spec,
            current=asked.current,
            scaling_only=asked.scaling_only,
            paused=rollout.paused,
            ordered=rollout.ordered,
            count_terminating=rollout.count_terminating,
        )
    except OverflowError:
        message = "the pauses add up to thousands of years"
        hint = "write a shorter pauseDuration, such as 30s, or a larger maxSurge or maxUnavailable"
        raise InputError(Complaint(message=message, hint=hint, path=asked.paths["pauseDuration"])) from None


def _joined(names: Sequence[str]) -> str:
    """The names of parts whose plans are alike."""
    rest = len(names) - _MOST_NAMED
    return " and ".join([*names[:_MOST_NAMED], *([f"{rest} more"] if rest > 0 else [])])


# --- in words ----------------------------------------------------------------


def _title(view: PlanView) -> list[str]:
    size = count(view.desired) if view.current == view.desired else f"{view.current:,} → {count(view.desired)}"
    return [view.name, str(view.strategy), size, "same revision" if view.scaling_only else "new revision"]


def _summary(view: PlanView) -> list[tuple[str, str]]:
    facts = [
        ("floor", f"{view.floor:,}"),
        ("lowest ready", f"{view.lowest_ready:,}"),
        ("at most", f"{view.max_live:,} live"),
    ]
    if view.duration:
        facts.append(("pauses", durations.short(view.duration)))
    return facts


def _ending(view: PlanView) -> tuple[str, str]:
    """A word for how the plan ends, and the sentence."""
    if view.blocked:
        return "blocked", f"{view.outcome.message} ({view.outcome.code.value})"
    done = view.outcome.code.value == "Completed"
    if done and not view.rows:
        return "nothing to do", view.outcome.message
    return "done" if done else "then", view.outcome.message


def _fix(fix: Fix, paths: Mapping[str, str]) -> tuple[str, str]:
    """A fix as options, and as fields of a manifest."""
    options = " ".join(f"{FLAGS[setting][0]} {value}" for setting, value in fix.fields)
    return options, ", ".join(f"{paths.get(setting, setting)}: {value}" for setting, value in fix.fields)


# --- plain -------------------------------------------------------------------


def _lines(view: PlanView, paths: Mapping[str, str]) -> Iterator[str]:
    yield ", ".join(_title(view)).replace(",", ":", 1)
    yield ", ".join(" ".join(fact) for fact in _summary(view))
    for warning in view.warnings:
        yield f"warning: {warning.message} ({warning.code.value})"
    if view.rows:
        yield ""
        rows = [("ROUND", "TIMES", "PHASE", "ACTION", "READY", "REASON"), *map(_cells, view.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield ": ".join(_ending(view))
    if view.remedy is not None:
        yield f"remedy: {view.remedy}"
    for fix in view.fixes:
        yield "fix: {}  ({})".format(*_fix(fix, paths))


def _cells(row: PlanRow) -> tuple[str, ...]:
    step = row.step
    return (
        str(step.round + 1),
        f"x{step.repeat:,}",
        step.phase.value,
        row.what,
        f"{row.ready:,}",
        step.because.message,
    )


# --- on a terminal -----------------------------------------------------------

_PHASES: Final = {
    Phase.SCALING_UP: "cyan",
    Phase.UPDATING: "blue",
    Phase.SCALING_DOWN: "magenta",
    Phase.PAUSED: "yellow",
}
_ACTIONS: Final = {Action.START: "green", Action.STOP: "red", Action.SWITCH: "cyan", Action.WAIT: "dim"}
_FILLING: Final = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)
"""The end of a line, which is filled up with blanks that only get in the way of copying it."""
_REASON: Final = 16
"""The least columns for the reason of a step."""
_WIDE: Final = 110
"""Columns from which on there is room for longer bars."""


def _painted(view: PlanView, paths: Mapping[str, str]) -> str:
    """The plan for a terminal, as text with its colours; `NO_COLOR` is obeyed by rich."""
    from rich.console import Console  # a tenth of a second that pipes and JSON need not wait for

    width = shutil.get_terminal_size().columns
    console = Console(file=StringIO(), force_terminal=True, width=width, highlight=False)
    with console.capture() as captured:
        for part in _parts(view, width, paths):
            console.print(part)
    return _FILLING.sub(lambda end: end[0].replace(" ", ""), captured.get())


def _parts(view: PlanView, width: int, paths: Mapping[str, str]) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    name, strategy, *rest = _title(view)
    title = Text.assemble((name, "bold"), "  ", (strategy, "bold blue"), ("  " + ", ".join(rest), "dim"))
    yield Padding(title, (1, 2, 0, 2))
    facts = [Text.assemble((f"{label} ", "dim"), (value, _fact_style(view, label))) for label, value in _summary(view)]
    yield Padding(Text("   ").join(facts), (0, 2))
    for warning in view.warnings:
        yield Padding(Text.assemble(("! ", "bold yellow"), (warning.message, "yellow")), (1, 2, 0, 2))
    if view.rows:
        yield Padding(_table(view, 20 if width >= _WIDE else 6, width - 3), (1, 2, 0, 1))
    word, sentence = _ending(view)
    mark, style = ("✗", "bold red") if view.blocked else ("…", "bold yellow") if word == "then" else ("✓", "bold green")
    yield Padding(Text.assemble((f"{mark} {word}", style), "  ", sentence), (1, 2, 0 if view.blocked else 1, 2))
    if view.remedy is not None:
        yield Padding(_fixes(view, paths), (1, 2, 1, 2))


def _fact_style(view: PlanView, label: str) -> str:
    if label != "lowest ready":
        return "bold"
    return "bold green" if view.holds else "bold red"


def _table(view: PlanView, bar: int, width: int) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    for header in ("phase", "action", "ready"):
        table.add_column(header, no_wrap=True)
    table.add_column("reason", overflow="fold")
    neighbours = zip((None, *view.rows), view.rows, (*view.rows[1:], None), strict=False)
    rows = [_painted_cells(view, row, previous, following, bar) for previous, row, following in neighbours]
    beside = sum(max(cell.cell_len for cell in column) + 2 for column in list(zip(*rows, strict=True))[:-1])
    for bracket, *cells, reason in rows:
        parts = wrap(reason.plain, max(width - beside, _REASON))
        if bracket.plain[-1:] in ("┌", "│"):  # the bracket goes on beside the lines of the reason
            bracket.append("\n│" * (len(parts) - 1), "dim")
        reason.plain = "\n".join(parts)
        table.add_row(bracket, *cells, reason)
    return table


def _painted_cells(
    view: PlanView, row: PlanRow, previous: PlanRow | None, following: PlanRow | None, bar: int
) -> tuple[Text, ...]:
    from rich.text import Text

    step = row.step
    first = previous is None or previous.step.round != step.round
    last = following is None or following.step.round != step.round
    same_phase = previous is not None and not first and previous.step.phase is step.phase
    verb, _, object_ = row.what.partition(" ")
    return (
        Text(_bracket(step.repeat, first, last), "bold" if first else "dim"),
        Text("" if same_phase else step.phase.value, _PHASES.get(step.phase, "")),
        Text.assemble((verb, _ACTIONS[step.action]), f" {object_}"),
        _bar(view, row.ready, bar),
        Text(step.because.message, "dim"),
    )


def _bracket(repeat: int, first: bool, last: bool) -> str:
    """What joins the rows that are repeated together."""
    if repeat == 1:
        return ""
    if first:
        return f"×{repeat:,} {'─' if last else '┌'}"
    return "└" if last else "│"


def _bar(view: PlanView, ready: int, cells: int) -> Text:
    """Ready replicas against all that may live, with the floor as a notch.

    The bar begins as far below the floor as it ends above, so that one replica of ten thousand can be seen.
    """
    from rich.text import Text

    most = max(view.max_live, view.current, 1)
    least = max(0, min(2 * view.floor - most, view.lowest_ready))
    filled, notch = (round((number - least) * cells / max(1, most - least)) for number in (ready, view.floor))
    style = "green" if ready > view.floor else "yellow" if ready == view.floor else "red"
    text = Text()
    for cell in range(cells + 1):
        if cell == notch and view.floor:
            text.append("╎", "bold")
        if cell < cells:
            text.append(*(("━", style) if cell < filled else ("┄", "bright_black")))
    number = f"{ready:,}"
    text.append(f" {number:>{len(f'{most:,}')}}", style)
    return text


def _fixes(view: PlanView, paths: Mapping[str, str]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0), pad_edge=False)
    for options, manifest in (_fix(each, paths) for each in view.fixes):
        table.add_row(Text("fix", "green"), Text(options, "bold"), Text(manifest, "dim"))
    if not view.fixes:
        table.add_row(Text("remedy", "green"), Text(view.remedy or ""))
    return table
