"""How MkDocs builds the site: it adds the pages that are written from code, and leads links to where pages are.

Pages link to each other, to examples and to other files of the project as they are in a
checkout, so that the links work there too.  On the site, an example is a section of a
generated page, and a file that is not part of the site is only named.
"""

from __future__ import annotations

import importlib
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT))

reference = importlib.import_module("docs.site.reference")  # MkDocs runs this file by its path, outside any package.

PROJECT: Final = {name: f"project/{name.lower()}" for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")}
"""Pages of the project that are not in docs, by their path in a checkout."""

_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation: a folder stands for its pages, and pages that it does not name come last."""
    generated = _generated()
    here = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))
    everything = [*here, *generated, *PROJECT.values()]
    config.nav = [_expanded(item, everything) for item in config.nav or []]
    named = set(_named(config.nav))
    rest = [path for path in everything if path not in named and not path.startswith("decisions/")]
    if rest:
        config.nav.append({"More": rest})
    return config


def _generated() -> dict[str, str]:
    """The pages of the reference, and the list of decisions."""
    paths = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    titles = ((path.name, path.read_text().partition("\n")[0].removeprefix("# ")) for path in paths)
    listed = "\n".join(f"- [{title}]({name})" for name, title in titles)
    return reference.pages() | {"decisions/index.md": f"# Decisions\n\nWhat was decided, and why.\n\n{listed}\n"}


def _expanded(item: Any, everything: list[str]) -> Any:
    if isinstance(item, dict):
        return {title: _inside(value, everything) for title, value in item.items()}
    return item


def _inside(value: Any, everything: list[str]) -> Any:
    if isinstance(value, list):
        return [_expanded(each, everything) for each in value]
    if isinstance(value, str) and value.endswith("/"):
        inside = [path for path in everything if posixpath.dirname(path) == value.rstrip("/")]
        return sorted(inside, key=lambda path: (not path.endswith("index.md"), path))
    return value


def _named(item: Any) -> list[str]:
    if isinstance(item, str):
        return [item]
    inside = item if isinstance(item, list) else list(item.values())
    return [path for each in inside for path in _named(each)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs."""
    for at, text in (_generated() | {at: (ROOT / path).read_text() for path, at in PROJECT.items()}).items():
        files.append(File.generated(config, at, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to other files of the checkout to their place on the site."""
    here = page.file.src_uri
    source = next((path for path, at in PROJECT.items() if at == here), f"docs/{here}")

    def led(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        path, _, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        found = _place(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)), anchor)
        if found is None:
            return match[0] if not (ROOT / posixpath.dirname(source) / path).exists() else text
        return f"[{text}]({os.path.relpath(found[0], posixpath.dirname(here) or '.')}{found[1]})"

    # What is code is not a link.
    parts = _CODE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(led, part) for number, part in enumerate(parts))


def _place(path: str, anchor: str) -> tuple[str, str] | None:
    """The page of a file of the checkout, with an anchor; None where it has no page."""
    after = f"#{anchor}" if anchor else ""
    if path in PROJECT:
        return PROJECT[path], after
    if path == "README.md":
        return "index.md", ""
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/"), after
    if path == "docs/decisions":
        return "decisions/index.md", ""
    if path == "examples":
        return "examples/workloads.md", ""
    if path.startswith("examples/"):
        folder, _, name = path.removeprefix("examples/").partition("/")
        return f"examples/{folder}.md", f"#{name.replace('.', '')}" if name else ""
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/"), after
    return None
