"""What tests import from one another is there: mypy reads only the package, and a renamed helper breaks whole files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("*.py"))


def file_of(module: str) -> Path | None:
    """The file of a module, or the package that it is; None if it is neither."""
    path = ROOT.joinpath(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py") if path.with_suffix(".py").exists() else None


@cache
def names_of(path: Path) -> set[str]:
    """The names that a module has once it is imported, as far as its text shows."""
    found: set[str] = set()
    statements: list[ast.stmt] = ast.parse(path.read_text()).body if path.exists() else []
    while statements:
        match statement := statements.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(each.asname or each.name).partition(".")[0] for each in names}
            case ast.If() | ast.Try() | ast.With():
                statements += [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
                statements += [each for handler in getattr(statement, "handlers", ()) for each in handler.body]
            case _:
                stored = (each for each in ast.walk(statement) if isinstance(each, ast.Name))
                found |= {each.id for each in stored if isinstance(each.ctx, ast.Store)}
    return found


def missing(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("tests", "benchmarks"):
            module = node.module or ""
            source = file_of(module)
            if source is None:
                yield f"line {node.lineno}: there is no module {module}"
                continue
            known = names_of(source)
            for each in node.names:
                if each.name not in known and file_of(f"{module}.{each.name}") is None:
                    yield f"line {node.lineno}: {module} has no {each.name}"


def test_what_tests_import_from_one_another_is_there() -> None:
    assert {str(path.relative_to(ROOT)): found for path in FILES if (found := list(missing(path)))} == {}


def test_a_name_that_is_not_there_is_found(tmp_path: Path) -> None:
    text = "from tests.architecture.test_tests import FILES, nowhere\nfrom tests.nothing import x\n"
    (tmp_path / "test_a.py").write_text(text)
    assert list(missing(tmp_path / "test_a.py")) == [
        "line 1: tests.architecture.test_tests has no nowhere",
        "line 2: there is no module tests.nothing",
    ]
