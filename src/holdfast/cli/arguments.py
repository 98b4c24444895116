"""Types of options and arguments: names and paths, which are never empty, though a variable of a shell may be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import click

from holdfast.meta import names

EMPTY: Final = "is empty; is a variable of the shell not set?"


class PathType(click.Path):
    """The path of a file or a directory; click takes an empty one for the current directory."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail(f"the name {EMPTY}", param, ctx)
        return super().convert(value, param, ctx)


class NameType(click.ParamType[str]):
    """The name of an object; without one, a request would be for all objects of the kind."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail(f"the name {EMPTY}", param, ctx)
        return value


class NamespaceType(click.ParamType[str]):
    """The name of a namespace; an empty one stands for the default."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value and names.dns_label(value):
            what = f"{value!r} is not the name of a namespace"
            self.fail(f"{what}; such names have lower-case letters, digits and -", param, ctx)
        return value


class FloatRange(click.FloatRange):
    """A number; what click takes for one, but is none or infinite, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found
