"""Links between pages, and from pages to files of the project, lead somewhere; so do their anchors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, name
from tests.places import ROOT

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
WRITTEN_FROM_CODE = ("docs/reference/", "docs/examples/")
"""Pages that are written when the site is built, which checks links to them."""


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in LINK.findall(CODE.sub("", path.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        found = (path.parent / target).resolve() if target else path
        if str(found.relative_to(ROOT)).startswith(WRITTEN_FROM_CODE):
            continue
        assert found.exists(), link
        assert not anchor or found.suffix != ".md" or anchor in anchors(found), link
