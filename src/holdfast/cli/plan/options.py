"""The options that describe a rollout, and what is asked for by them.

A rollout is described by a manifest, by options, or by both: options override
the manifest and are judged by the same schema, so that a mistake is explained
alike wherever it was made.  What is then done with the rollout is up to the
command that has these options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from holdfast import kinds
from holdfast.cli.errors import Complaint, InputError, Place
from holdfast.cli.manifests import documents
from holdfast.cli.manifests.documents import Document
from holdfast.kernel.planning import UnsupportedStrategy, WorkloadSpec, parse_strategy
from holdfast.kinds.cloudless import Workload
from holdfast.kinds.values import nearest
from holdfast.operators.workload.controller import revision, rollout_spec

FLAGS: Final = {
    "spec.replicas": ("--replicas", "N", "How many replicas are desired."),
    "spec.rollout.strategy": ("--strategy", "NAME", "RollingUpdate, Recreate, BlueGreen, Canary or OnDelete."),
    "spec.rollout.maxSurge": ("--max-surge", "N|N%", "How many more than the desired replicas may live."),
    "spec.rollout.maxUnavailable": ("--max-unavailable", "N|N%", "How many of the replicas may be missing."),
    "spec.rollout.minAvailable": ("--min-available", "N|N%", "How many replicas must stay available."),
    "spec.rollout.pauseDuration": ("--pause", "DURATION", "How long to wait between batches, such as 30s."),
}
"""The options that stand for a field of a Workload: path, option, what it takes, what it means."""

MOST_REPLICAS: Final = 1_000_000

_ONLY_WITH: Final = {"canary": "Canary", "blueGreen": "BlueGreen", "partition": "RollingUpdate"}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_LONGEST: Final = 100
"""Characters of an option's value."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The rollout that is asked for.

    scaling_only  the replicas that there are differ from what is desired in number alone
    cautions      what the manifests say that another reader would take otherwise
    """

    workload: Workload
    spec: WorkloadSpec
    current: int
    scaling_only: bool
    cautions: tuple[Complaint, ...] = ()

    @property
    def paused(self) -> bool:
        rollout = self.workload.spec.rollout
        return rollout is not None and bool(rollout.paused)


def rollout_options(command: Command) -> Command:
    """Give ``command`` the options from which `wish_of` makes a `Wish`."""
    options = [
        click.option("-f", "--file", metavar="FILE", help="The manifest of what is desired; - reads standard input."),
        click.option("--from", "old", metavar="FILE", help="The manifest of what runs now, to compare with."),
        click.option(
            "--current",
            metavar="N",
            type=click.IntRange(0, MOST_REPLICAS),
            help="How many replicas run now.  [default: as in --from, else as desired]",
        ),
        click.option("--name", metavar="NAME", help="Which Workload, when a file has several."),
        *(
            click.option(flag, path, metavar=metavar, help=text)
            for path, (flag, metavar, text) in ((_parameter(path), rest) for path, rest in FLAGS.items())
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def wish_of(*, file: str | None, old: str | None, current: int | None, name: str | None, **given: str | None) -> Wish:
    """What the options of `rollout_options` ask for; raises `InputError`, or `click.UsageError`."""
    if old is not None and current is not None:
        raise click.UsageError("--from and --current both say what runs now; give one of them")
    if old is not None and file is None:
        raise click.UsageError("--from is what runs now; give what is desired with -f")
    if file == old == documents.STDIN:
        raise click.UsageError("standard input can be read once; give a file to -f or to --from")
    overrides = {path: _typed(path, text) for path in FLAGS if (text := given.get(_parameter(path))) is not None}
    if file is None and "spec.replicas" not in overrides:
        raise click.UsageError(
            "no rollout is described; give a manifest with -f, or numbers such as --replicas 10 --max-surge 2"
        )
    new = None if file is None else _the_workload(file, name)
    desired = _decoded(new, overrides)
    spec = _asked(lambda: rollout_spec(desired), new, overrides)
    before = None if old is None else _the_workload(old, name, likely=desired.metadata.name)
    running = None if before is None else _decoded(before, {})
    if current is None:
        current = spec.replicas if running is None else _asked(lambda: _replicas(running), before, {})
    return Wish(
        workload=desired,
        spec=spec,
        current=current,
        scaling_only=running is not None and revision(running) == revision(desired),
        cautions=tuple(caution for document in (new, before) if document is not None for caution in document.cautions),
    )


def _replicas(workload: Workload) -> int:
    return rollout_spec(workload).replicas


def _parameter(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _typed(path: str, text: str) -> int | str:
    """The text of an option as YAML would read it; another style of a strategy's name is that strategy."""
    if len(text) > _LONGEST:
        flag, metavar, _ = FLAGS[path]
        message = f"a value of {len(text):,} characters"
        raise InputError(Complaint(message=message, hint=f"write {flag} {metavar}", path=flag))
    if path == "spec.rollout.strategy":
        try:
            return str(parse_strategy(text.replace("-", "")))
        except UnsupportedStrategy:
            return text
    return int(text) if _INTEGER.fullmatch(text) and path != "spec.rollout.pauseDuration" else text


# --- the manifest ------------------------------------------------------------


def _the_workload(file: str, name: str | None, *, likely: str | None = None) -> Document:
    """The one Workload that is meant; other objects in the file are none of our business."""
    found = documents.read(file)
    workloads = [document for document in found if _kind(document) == "Workload"]
    named = [document for document in workloads if _name(document) == (name or likely)]
    if len(named) == 1:
        return named[0]
    if len(workloads) == 1 and name is None:
        return workloads[0]
    place = Place("<stdin>" if file == documents.STDIN else file)
    if workloads:
        names = ", ".join(str(_name(document)) for document in workloads)
        called = "" if name is None else f" called {name!r}"
        message = f"there is not exactly one Workload{called} in it, but {names}"
        raise InputError(Complaint(message=message, hint="choose one with --name", place=place))
    others = ", ".join(dict.fromkeys(str(document.value["kind"]) for document in found))
    message = f"there is no Workload in it, only {others}"
    hint = "only Workloads can be asked about so far; give numbers instead, such as --replicas 3 --max-unavailable 1"
    raise InputError(Complaint(message=message, hint=hint, place=place))


def _name(document: Document) -> str | None:
    metadata = document.value.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def _kind(document: Document) -> str | None:
    """The name of the document's kind if it is one of ours; None for other people's objects."""
    value = document.value
    if not isinstance(value, dict):
        _asked(lambda: kinds.decode(value), document, {})
    api_version, name = value.get("apiVersion"), value.get("kind")
    if isinstance(api_version, str) and isinstance(name, str):
        if kinds.find(api_version, name) is not None:
            return name
        if not _meant_for_us(api_version, name):
            return None
    _asked(lambda: kinds.decode(value), document, {})
    return None


def _meant_for_us(api_version: str, name: str) -> bool:
    """Whether an object that is none of ours was probably meant to be."""
    group = api_version.partition("/")[0]
    groups = {kind.group for kind in kinds.ALL}
    return group in groups or (
        name in {kind.name for kind in kinds.ALL} and ("." not in group or nearest(group, groups) is not None)
    )


# --- the options over it -----------------------------------------------------


def _decoded(document: Document | None, overrides: Mapping[str, Any]) -> Workload:
    bare = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "fleet"},
        "spec": {"image": "any"},
    }
    value = bare if document is None else document.value
    decoded = _asked(lambda: kinds.decode(_overridden(value, overrides)), document, overrides)
    assert isinstance(decoded, Workload), "only Workloads are chosen"
    return decoded


def _overridden(value: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """``value`` with the options written into it; what belongs to another strategy goes when the strategy does."""
    if not overrides:
        return dict(value)
    spec = value.get("spec")
    rollout = (spec.get("rollout") or {}) if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(rollout, dict):
        return dict(value)
    rollout = dict(rollout)
    for path, setting in overrides.items():
        field = path.rpartition(".")[2]
        if field == "replicas":
            spec = {**spec, field: setting}
        else:
            rollout[field] = setting
    strategy = overrides.get("spec.rollout.strategy")
    if strategy is not None:
        rollout = {field: held for field, held in rollout.items() if _ONLY_WITH.get(field, strategy) == strategy}
    return {**value, "spec": {**spec, "rollout": rollout}}


Answer = TypeVar("Answer")


def _asked(ask: Callable[[], Answer], document: Document | None, overrides: Iterable[str]) -> Answer:
    """What ``ask`` answers; a refusal is told with the option, or the line, that it is about."""
    try:
        return ask()
    except kinds.DocumentError as error:
        # What else is wrong with a field that is wrong already can wait.
        first = {problem.path: problem for problem in reversed(error.problems)}
        ordered = sorted(first.values(), key=error.problems.index)
        raise InputError(*(_complaint(problem, document, overrides) for problem in ordered)) from None


def _complaint(problem: kinds.Problem, document: Document | None, overrides: Iterable[str]) -> Complaint:
    if problem.path in overrides:
        flag, metavar, _ = FLAGS[problem.path]
        hint = problem.hint or f"write {flag} {metavar}"
        return Complaint(message=problem.message, hint=hint, path=flag)
    place = None if document is None else document.place_of(problem.path)
    return Complaint(message=problem.message, hint=problem.hint, path=problem.path, place=place)
