"""``holdfast examples``: the manifests that come with Holdfast, listed or copied.

`ROOT` is a part of the package, so that an installation without a checkout has them too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

import holdfast
from holdfast.cli import painting
from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, InputError

ROOT: Final = Path(holdfast.__file__).parent / "examples"
"""The folder of all examples."""

DEMO: Final = ROOT / "demo"
"""What `holdfast demo` rolls out."""


@click.command("examples")
@click.option(
    "--to",
    "target",
    type=PathType(file_okay=False),
    help="Copy them to this directory, which must not exist; the documentation calls it examples.",
)
def command(target: Path | None) -> None:
    """List the example manifests, or copy them.

    Each example runs on a cluster of `holdfast up`, and starts with a comment that says what to type.

    \b
    List them:     holdfast examples
    Copy them:     holdfast examples --to examples
    """
    if target is None:
        lines = (f"{path.relative_to(ROOT)!s:<38}   {summary(path.read_text())}" for path in paths())
        click.echo(painting.folded(lines))
        click.echo("\ncopy them with: holdfast examples --to examples")
        return
    if target.exists():
        message = f"{target} exists already, and is not overwritten"
        raise InputError(Complaint(message=message, hint="name another directory, or remove it", path="--to"))
    try:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise InputError(Complaint(message=f"{target} cannot be written: {error.strerror}", path="--to")) from None
    click.echo(f"copied {len(paths())} examples to {target}")


def paths() -> tuple[Path, ...]:
    """All examples, in a fixed order."""
    return tuple(sorted(ROOT.glob("*/*.yaml")))


def summary(text: str) -> str:
    """The first sentence of the comment at the top of an example."""
    words = " ".join(" ".join(_comment(text)).split("  ")[0].split())
    sentence, dot, _ = words.partition(". ")
    return sentence + dot.strip() if dot else words


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("# "):
            return
        yield line.removeprefix("# ")


def commands(text: str) -> tuple[str, ...]:
    """What the comment at the top of an example says to type."""
    top = (line for line in text.split("\napiVersion:")[0].splitlines() if line.startswith("#   "))
    return tuple(line.removeprefix("#   ") for line in top)
