"""The data files of the built-in types."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

from tests.places import ROOT


def test_every_data_file_is_part_of_the_package() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = config["tool"]["setuptools"]["package-data"]["holdfast.apiserver.builtins"]
    folder = Path(str(files("holdfast.apiserver.builtins")))
    packaged = {path for pattern in patterns for path in folder.glob(pattern)}
    assert packaged == {path for path in (folder / "data").rglob("*") if path.is_file()}
