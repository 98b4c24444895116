"""The site of the documentation is built without a warning, and its reference has what the code has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs.site import reference
from tests.places import ROOT

from holdfast import kinds
from holdfast.cli.main import COMMANDS
from holdfast.cli.operator import selection

PAGES = reference.pages()


@pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed (extra docs)")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert (tmp_path / "tutorials" / "rollout.html").exists()
    assert sorted(_fetched_from_elsewhere(tmp_path)) == []


class _Fetched(HTMLParser):
    """What a browser fetches for a page by itself, beside links that a reader follows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag != "a":
            self.found += [given[name] or "" for name in ("src", "srcset", "href", "data", "poster") if name in given]
        self.found += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style") or "")
        if "mermaid" in (given.get("class") or "").split():
            self.found.append("https://the.theme.fetches/mermaid")


def _fetched_from_elsewhere(site: Path) -> Iterator[tuple[str, str]]:
    """The files of the site that make a browser fetch something from another host, and what they fetch."""
    for path in (each for each in site.rglob("*") if each.suffix in (".html", ".css", ".svg")):
        text = path.read_text()
        if path.suffix == ".css":
            found = re.findall(r"(?:url\(|@import )['\"]?([^'\")\s;]+)", text)
        else:
            page = _Fetched()
            page.feed(text)
            found = page.found
        yield from ((path.name, each) for each in found if re.match(r"([a-z]+:)?//", each))


def test_what_a_page_fetches_from_another_host_is_found(tmp_path: Path) -> None:
    fetched = (
        '<script src="https://cdn.example.com/a.js"></script><link rel="stylesheet" href="//example.com/a.css">'
        '<pre class="mermaid"></pre><img src="images/floor.svg"><a href="https://example.com/">read it</a>'
    )
    (tmp_path / "a.html").write_text(fetched)
    (tmp_path / "a.css").write_text(
        "@import 'https://example.com/b.css'; a { background: url(data:image/png;base64,) }"
    )
    assert sorted(_fetched_from_elsewhere(tmp_path)) == [
        ("a.css", "https://example.com/b.css"),
        ("a.html", "//example.com/a.css"),
        ("a.html", "https://cdn.example.com/a.js"),
        ("a.html", "https://the.theme.fetches/mermaid"),
    ]


def test_the_reference_has_every_kind_with_its_fields() -> None:
    for kind in kinds.ALL:
        assert f"# {kind.name}\n" in PAGES[f"reference/kinds/{kind.plural}.md"]
    assert "| `rollout.minAvailable` |" in PAGES["reference/kinds/workloads.md"]


def test_the_reference_has_every_command_and_every_option_that_is_not_hidden() -> None:
    page = PAGES["reference/commands.md"]
    assert all(f"\n## holdfast {name}\n" in page for name in COMMANDS)
    assert "### holdfast rollout undo" in page


def test_the_reference_has_every_reason() -> None:
    page = PAGES["reference/reasons.md"]
    for operator in selection.operators():
        assert all(f"| `{reason.value}` |" in page for family in operator.reasons for reason in family)


def test_the_reference_has_settings_variables_and_metrics() -> None:
    for operator in selection.operators():
        for setting in operator.settings:
            assert f"`{setting.name}`" in PAGES["reference/settings.md"]
            assert f"`{setting.variable}`" in PAGES["reference/environment.md"]
    assert "`holdfast_rollout_" in PAGES["reference/metrics.md"]
    assert "`holdfast_reconcile_total`" in PAGES["reference/metrics.md"]
