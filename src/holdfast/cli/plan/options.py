"""The options that describe a rollout, for ``holdfast plan`` and ``holdfast simulate``.

A manifest, options, or both describe a rollout: options override the manifest and are
validated by the same schema, so that a mistake is explained alike in both.  Each kind
declares how its manifests are planned (`OfflinePlanner`); this module must not know any
kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import click
import msgspec

from holdfast import kinds
from holdfast.cli.bundling import together
from holdfast.cli.errors import Complaint, InputError, Place
from holdfast.cli.manifests import documents
from holdfast.cli.manifests.documents import Document
from holdfast.cli.operator.selection import rollout_kinds
from holdfast.kernel.planning import UnsupportedStrategy, parse_strategy, rollout_of
from holdfast.meta.suggestions import nearest
from holdfast.operators import offline
from holdfast.operators.rollouts import OfflinePlanner, OfflineRollout, RolloutKind

FLAGS: Final = {
    "replicas": ("--replicas", "N", "The desired number of replicas."),
    "strategy": ("--strategy", "NAME", "RollingUpdate, Recreate, BlueGreen, Canary or OnDelete."),
    "maxSurge": ("--max-surge", "N|N%", "How many replicas may run above the desired number."),
    "maxUnavailable": ("--max-unavailable", "N|N%", "How many replicas may be unavailable."),
    "minAvailable": ("--min-available", "N|N%", "How many replicas must stay available."),
    "pauseDuration": ("--pause", "DURATION", "How long to wait between batches, such as 30s."),
}
"""The options that set a field of the manifest, by setting: option, value, help."""

MOST_REPLICAS: Final = 1_000_000

_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_LONGEST: Final = 100
"""The longest value of an option, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOptions:
    """The rollout that the options describe.

    paths         the JSON paths of the kind's settings
    current       how many replicas run now
    scaling_only  the replicas that run now are of the desired revision
    cautions      places in the manifests that kubectl reads differently
    notes         what else is to know about the rollout
    """

    rollout: OfflineRollout
    paths: Mapping[str, str]
    current: int
    scaling_only: bool
    cautions: tuple[Complaint, ...] = ()
    notes: tuple[str, ...] = ()


rollout_options: Final = together(
    click.option("-f", "--file", metavar="FILE", help="The manifest to roll out; - reads standard input."),
    click.option("--from", "old", metavar="FILE", help="The manifest that runs now, to compare with."),
    click.option(
        "--current",
        metavar="N",
        type=click.IntRange(0, MOST_REPLICAS),
        help="How many replicas run now.  [default: as in --from, else as desired]",
    ),
    click.option("--name", metavar="NAME", help="Which object, when a file has several."),
    *(
        click.option(flag, setting.lower(), metavar=metavar, help=text)
        for setting, (flag, metavar, text) in FLAGS.items()
    ),
)
"""The options that `described` reads."""


def described(
    *, file: str | None, old: str | None, current: int | None, name: str | None, **given: str | None
) -> RolloutOptions:
    """The rollout that the options describe; raises `InputError`, or `click.UsageError`."""
    if old is not None and current is not None:
        raise click.UsageError("--from and --current both say what runs now; give one of them")
    if old is not None and file is None:
        raise click.UsageError("--from is the manifest that runs now; give the one to roll out with -f")
    if file == old == documents.STDIN:
        raise click.UsageError("standard input can be read once; give a file to -f or to --from")
    settings = {each: _typed(each, text) for each in FLAGS if (text := given.get(each.lower())) is not None}
    if file is None and "replicas" not in settings:
        raise click.UsageError(
            "no rollout is described; give a manifest with -f, or numbers such as --replicas 10 --max-surge 2"
        )
    new = _Manifest.minimal() if file is None else _Manifest.read(file, name)
    desired = new.rollout(settings)
    before = None if old is None else _Manifest.read(old, name, likely=desired.spec.name)
    running = None if before is None else before.rollout({})
    if current is None:
        current = (desired if running is None else running).spec.replicas
    in_place = running is not None and _in_place(running, desired)
    return RolloutOptions(
        rollout=_without_surge(desired) if in_place else desired,
        paths=new.kind.settings,
        current=current,
        scaling_only=running is not None and running.revision == desired.revision,
        cautions=(*new.cautions, *(before.cautions if before is not None else ())),
        notes=(_IN_PLACE,) if in_place else (),
    )


_IN_PLACE: Final = "replicas are changed in place: each that is stopped here becomes the new one that is started"


def _in_place(running: OfflineRollout, desired: OfflineRollout) -> bool:
    same = bool(desired.replaced_by) and running.replaced_by == desired.replaced_by
    return same and running.revision != desired.revision


def _without_surge(rollout: OfflineRollout) -> OfflineRollout:
    """The rollout of replicas that are changed in place: none is started beside them unless the floor needs it."""
    asked = msgspec.structs.replace(rollout.spec.rollout, max_surge=0)
    spec = msgspec.structs.replace(rollout.spec, rollout=asked)
    return replace(rollout, spec=spec) if rollout_of(spec).limits.feasible else rollout


def _typed(setting: str, text: str) -> int | str:
    """The value of an option as YAML would read it; strategies may be written in other styles."""
    if len(text) > _LONGEST:
        flag, metavar, _ = FLAGS[setting]
        message = f"a value of {len(text):,} characters"
        raise InputError(Complaint(message=message, hint=f"write {flag} {metavar}", path=flag))
    if setting == "strategy":
        try:
            return str(parse_strategy(text.replace("-", "")))
        except UnsupportedStrategy:
            return text
    return int(text) if _INTEGER.fullmatch(text) and setting != "pauseDuration" else text


# --- the manifest ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Manifest:
    """A manifest of a kind that can be planned offline; `document` is None where there is no file."""

    kind: RolloutKind
    planner: OfflinePlanner
    document: Document | None

    @classmethod
    def minimal(cls) -> _Manifest:
        return cls(*_planned_kinds()[0], None)

    @classmethod
    def read(cls, file: str, name: str | None, *, likely: str | None = None) -> _Manifest:
        """The one object of the file that can be planned; objects of other kinds are skipped."""
        found = [document.translated() for document in documents.read(file)]
        planned = [
            cls(kind, planner, document)
            for document in found
            for kind, planner in _planned_kinds()
            if _kind(document) == (kind.resource.api_version, kind.resource.kind)
        ]
        named = [each for each in planned if each.name == (name or likely)]
        if len(named) == 1:
            return named[0]
        if len(planned) == 1 and name is None:
            return planned[0]
        place = Place("<stdin>" if file == documents.STDIN else file)
        known = " or ".join(kind.resource.kind for kind, _ in _planned_kinds())
        if planned:
            names = ", ".join(str(each.name) for each in planned)
            called = "" if name is None else f" called {name!r}"
            message = f"it must have exactly one {known}{called}, and it has {names}"
            raise InputError(Complaint(message=message, hint="choose one with --name", place=place))
        others = ", ".join(dict.fromkeys(str(document.value["kind"]) for document in found))
        message = f"it has no {known}, only {others}"
        hint = f"{known} can be planned from a manifest; or give numbers, such as --replicas 3 --max-unavailable 1"
        raise InputError(Complaint(message=message, hint=hint, place=place))

    @property
    def name(self) -> str | None:
        metadata = None if self.document is None else self.document.value.get("metadata")
        return metadata.get("name") if isinstance(metadata, dict) else None

    @property
    def cautions(self) -> tuple[Complaint, ...]:
        return () if self.document is None else tuple(self.document.cautions)

    def rollout(self, settings: Mapping[str, Any]) -> OfflineRollout:
        """The rollout that it describes with these settings in place of its own; raises `InputError`."""
        unknown = next((FLAGS[each][0] for each in settings if each not in self.kind.settings), None)
        if unknown is not None:
            message = f"a {self.kind.resource.kind} has no field for it"
            raise InputError(Complaint(message=message, hint="leave it out", path=unknown))
        value = self.planner.minimal if self.document is None else self.document.value
        flags = {self.kind.settings[each]: FLAGS[each] for each in settings}
        return _checked(lambda: offline.rollout(self.kind, value, settings), self.document, flags)


def _planned_kinds() -> list[tuple[RolloutKind, OfflinePlanner]]:
    """The kinds that can be planned without a cluster."""
    return [(kind, kind.offline) for kind in rollout_kinds() if kind.offline is not None]


def _kind(document: Document) -> tuple[str, str] | None:
    """The document's apiVersion and kind where Holdfast has the kind; None for other objects; raises `InputError`."""
    value = document.value
    if not isinstance(value, dict):
        _checked(lambda: kinds.decode(value), document, {})
    api_version, name = value.get("apiVersion"), value.get("kind")
    if isinstance(api_version, str) and isinstance(name, str):
        if kinds.find(api_version, name) is not None:
            return api_version, name
        if not _probably_ours(api_version, name):
            return None
    _checked(lambda: kinds.decode(value), document, {})
    return None


def _probably_ours(api_version: str, name: str) -> bool:
    """Whether an unknown apiVersion and kind are probably a misspelling of a kind that Holdfast has."""
    group = api_version.partition("/")[0]
    groups = {kind.group for kind in kinds.ALL}
    return group in groups or (
        name in {kind.name for kind in kinds.ALL} and ("." not in group or nearest(group, groups) is not None)
    )


# --- the options over it -----------------------------------------------------


Checked = TypeVar("Checked")


def _checked(
    check: Callable[[], Checked], document: Document | None, flags: Mapping[str, tuple[str, str, str]]
) -> Checked:
    """The result of ``check``; raises `InputError` with the option, or the line, of each problem."""
    try:
        return check()
    except kinds.DocumentError as error:
        # One problem for each field is enough.
        first = {problem.path: problem for problem in reversed(error.problems)}
        ordered = sorted(first.values(), key=error.problems.index)
        raise InputError(*(_complaint(problem, document, flags) for problem in ordered)) from None


def _complaint(
    problem: kinds.Problem, document: Document | None, flags: Mapping[str, tuple[str, str, str]]
) -> Complaint:
    if problem.path in flags:
        flag, metavar, _ = flags[problem.path]
        hint = problem.hint or f"write {flag} {metavar}"
        return Complaint(message=problem.message, hint=hint, path=flag)
    place = None if document is None else document.place_of(problem.path)
    return Complaint(message=problem.message, hint=problem.hint, path=problem.path, place=place)
