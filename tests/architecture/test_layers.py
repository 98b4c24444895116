"""The import table: which package may import which, read from the source.

Every package is in the table; a package that is not in it may not exist.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import ROOT

from holdfast import kinds
from holdfast.cli.main import COMMANDS

SOURCE = ROOT / "src" / "holdfast"

EVERYTHING = frozenset({"*"})

MOST_MODULES = 40
"""A package with more modules than this is divided into packages."""

MAY_IMPORT: dict[str, frozenset[str]] = {
    "meta": frozenset(),
    "kernel": frozenset({"meta"}),
    "kinds": frozenset({"meta"}),
    "client": frozenset({"meta"}),
    "runtime": frozenset({"kernel", "meta", "client"}),
    "apiserver": frozenset({"meta"}),
    "cluster": frozenset({"kernel", "meta", "kinds", "client", "runtime"}),
    "operators": frozenset({"kernel", "meta", "kinds", "client", "runtime", "views", "profiler", "providers"}),
    "providers": frozenset({"meta", "kinds"}),
    "profiler": frozenset({"meta", "kinds", "client"}),
    "views": frozenset({"kernel", "meta", "kinds"}),
    "dashboard": frozenset({"client", "kernel", "kinds", "meta", "operators", "runtime", "simulator", "views"}),
    "simulator": frozenset({"kernel", "meta", "views"}),
    # Its contract suite runs controllers on the real server and cluster.
    "testing": frozenset({"kernel", "meta", "kinds", "client", "runtime", "apiserver", "cluster"}),
    # The composition root: it may put everything together.
    "cli": EVERYTHING,
}

THIRD_PARTY: dict[str, frozenset[str]] = {
    "meta": frozenset({"msgspec"}),
    "kernel": frozenset({"msgspec"}),
    "kinds": frozenset({"msgspec"}),
    "views": frozenset({"msgspec"}),
}
"""The pure packages may use these alone; the others are free in this respect."""


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        if len(parts) > 1:
            yield parts[0], path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, in full, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def test_every_package_stands_in_the_table() -> None:
    assert {package for package, _ in modules()} <= MAY_IMPORT.keys()


@pytest.mark.parametrize("package", sorted({package for package, _ in modules()}))
def test_packages_know_only_what_the_table_allows(package: str) -> None:
    allowed, foreign = MAY_IMPORT[package], THIRD_PARTY.get(package)
    crossings = []
    for owner, path in modules():
        if owner != package:
            continue
        for name, line in imports(path):
            root, *rest = name.split(".")
            where = f"{path.relative_to(SOURCE.parent)}:{line} imports {name}"
            if root == "holdfast":
                inner = rest[0] if rest else ""
                if inner != package and inner not in allowed and allowed is not EVERYTHING:
                    crossings.append(where)
            elif foreign is not None and root not in sys.stdlib_module_names and root not in foreign:
                crossings.append(where)
    assert not crossings, "\n".join(crossings)


def test_operators_do_not_know_each_other() -> None:
    crossings = []
    for package, path in modules():
        parts = path.relative_to(SOURCE).parts
        if package != "operators" or len(parts) < 3:
            continue
        for name, line in imports(path):
            other = name.removeprefix("holdfast.operators.").split(".")[0]
            if name.startswith("holdfast.operators.") and other not in (
                parts[1],
                "operator",
                "rollouts",
                "pausing",
                "shown",
                "commands",
            ):
                crossings.append(f"{path}:{line} imports {name}")
    assert not crossings, "\n".join(crossings)


def test_operators_know_what_the_profiler_is_asked_and_answers_and_not_how_it_searches() -> None:
    known = ("holdfast.profiler.request", "holdfast.profiler.results")
    crossings = [
        f"{path.relative_to(SOURCE.parent)}:{line} imports {name}"
        for package, path in modules()
        if package == "operators"
        for name, line in imports(path)
        if name.startswith("holdfast.profiler") and not name.startswith(known)
    ]
    assert not crossings, "\n".join(crossings)


OPERATORS = SOURCE / "operators"
SYSTEMS = sorted(path.parent.name for path in OPERATORS.glob("*/__init__.py"))

KNOW_NO_OPERATOR = ("cli", "dashboard", "views")
"""The packages that read what operators declare, and know no operator and no custom kind by name."""


def test_operators_are_known_outside_their_folders_only_by_their_declarations() -> None:
    crossings = [
        f"{path.relative_to(SOURCE.parent)}:{line} imports {name}"
        for package, path in modules()
        if package != "operators"
        for name, line in imports(path)
        if name.startswith(tuple(f"holdfast.operators.{system}" for system in SYSTEMS))
    ]
    assert not crossings, "\n".join(crossings)


KNOW_NO_KIND = ("crds", "model", "checks", "reviews", "values")
"""Modules of `kinds` that are the same for every kind."""


def test_the_command_line_and_the_views_name_no_custom_kind() -> None:
    names = {
        name
        for kind in kinds.ALL
        for name in (kind.name, kind.name.lower(), kind.plural, kind.crd_name, kind.group, *kind.short_names)
    }
    names -= set(COMMANDS)  # a command may have the name of what it is for
    groups = tuple(dict.fromkeys(kind.group for kind in kinds.ALL))
    found = []
    for package, path in modules():
        if package not in KNOW_NO_OPERATOR:
            continue
        where = path.relative_to(SOURCE.parent)
        found += [
            f"{where}:{line} imports {name}"
            for name, line in imports(path)
            if name.startswith("holdfast.kinds.") and name.split(".")[2] not in KNOW_NO_KIND
        ]
        for node in ast.walk(ast.parse(path.read_text())):
            # Examples in help texts and messages are sentences; a name alone is knowledge.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                word = node.value
                if word in names or any(group in word for group in groups):
                    found.append(f"{where}:{node.lineno} mentions {word!r}")
    assert not found, "\n".join(found)


def test_no_module_is_nested_deeper_than_three_packages() -> None:
    assert not [path for _, path in modules() if len(path.relative_to(SOURCE).parts) > 4]


def test_no_module_repeats_the_name_of_its_package() -> None:
    repeated = [path for _, path in modules() if path.stem.startswith(f"{path.parent.name}_")]
    assert not repeated


def test_no_package_has_more_modules_than_a_reader_can_survey() -> None:
    sizes = Counter(path.parent for _, path in modules())
    assert not {str(folder.relative_to(SOURCE)): size for folder, size in sizes.items() if size > MOST_MODULES}
