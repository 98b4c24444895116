"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.places import ROOT

PAGES = (
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
LIVE = tuple(path for path in PAGES if path.parent.name in ("tutorials", "howto", "coming-from"))
"""Pages whose console blocks are typed beside a cluster of ``holdfast up``, from the first to the last."""

TOUR = ROOT / "README.md"
"""The same, from ``holdfast up`` to ``holdfast down``."""

OFFLINE = tuple(path for path in PAGES if path not in (*LIVE, TOUR))
"""Pages whose console blocks need no cluster."""

FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
"""What is in a console block: commands after a dollar sign, and what they print."""

COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    """A block of code, and its language."""

    language: str
    text: str

    def commands(self) -> Iterator[tuple[str, str]]:
        """The commands that it shows, with what is shown of their output."""
        yield from COMMAND.findall(self.text)


def blocks(path: Path) -> list[Block]:
    return [Block(language, text) for _, language, text in FENCE.findall(path.read_text())]
