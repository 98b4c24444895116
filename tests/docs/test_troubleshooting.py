"""Every message that the page about troubleshooting quotes is a message of the code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from tests.places import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGES = [
    message
    for section in PAGE.split("\n## ")[1:]
    if not section.startswith("Things that surprise")
    for row in re.findall(r"^\| (`.+?) \| .+ \|$", section, re.MULTILINE)
    for message in re.findall(r"`([^`]+)`", row)
]


@cache
def texts() -> str:
    """All texts of the code; what is filled in is ``…``."""
    return "\n".join(
        text for path in (ROOT / "src").rglob("*.py") for text in _texts(ast.parse(path.read_text(), str(path)))
    )


def _texts(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_that_is_quoted_exists(message: str) -> None:
    for part in filter(None, re.split(r"\s*…\s*", message)):
        assert part in texts(), part


def test_messages_are_quoted() -> None:
    assert len(MESSAGES) > 25
