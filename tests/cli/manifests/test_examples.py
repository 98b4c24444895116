"""``holdfast examples`` lists and copies the examples, which are part of every installation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.errors import ExitCode
from holdfast.cli.manifests import examples

EXAMPLES = {str(path.relative_to(ROOT / "examples")) for path in (ROOT / "examples").glob("*/*.yaml")}
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def test_the_list_has_every_example_with_what_it_shows() -> None:
    listed = CliRunner().invoke(main, ["examples"]).output
    assert all(path in listed for path in EXAMPLES)
    assert "An object store of four servers" in listed


def test_examples_are_copied_as_they_are(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["examples", "--to", str(tmp_path / "mine")])
    assert result.exit_code == ExitCode.OK
    copied = {str(path.relative_to(tmp_path / "mine")) for path in (tmp_path / "mine").glob("*/*.yaml")}
    assert copied == EXAMPLES
    assert not (tmp_path / "mine" / "demo").is_symlink()


def test_a_directory_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "examples", "--to", str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == ExitCode.BAD_INPUT
    assert "exists already, and is not overwritten" in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# One thing.\n#\n#   holdfast get pods\n", "One thing."),
        ("# Two lines of\n# one sentence.  And another.\n", "Two lines of one sentence."),
        ("# An address such as a.b is no end. More.\nkind: A\n", "An address such as a.b is no end."),
    ],
)
def test_the_first_sentence_of_the_comment_says_what_an_example_shows(text: str, sentence: str) -> None:
    assert examples.summary(text) == sentence


@pytest.mark.skipif(find_spec("setuptools") is None, reason="setuptools is not installed")
def test_a_wheel_has_every_example(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in SOURCES:
        shutil.copy(ROOT / name, tree)
    for name in ("src", "examples"):
        shutil.copytree(
            ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=tree, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = ZipFile(wheel).namelist()
    assert {
        name.removeprefix("holdfast/examples/") for name in inside if "/examples/" in name and ".yaml" in name
    } == EXAMPLES
