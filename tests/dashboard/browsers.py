"""A real Chromium, and pages that must not log an error or break the Content-Security-Policy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without pages; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of a browser, with everything that it complained about."""

    def __init__(self, browser: Any, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1280, "height": 800})
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))"
        )

    def _logged(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        self.context.close()

    def rows(self) -> list[str]:
        """The names on the overview, from top to bottom."""
        script = """rows => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
            .map(row => row.querySelector('.name').textContent)"""
        found: list[str] = self.page.eval_on_selector_all(".space .row", script)
        return found

    def expect(self, script: str, *, timeout: int = 15_000) -> None:
        """Wait until a condition holds in the page, whose policy forbids to evaluate strings there."""
        looking = """() => new Promise((resolve, reject) => {
            const until = performance.now() + %d;
            const look = () => {
                if (%s) resolve();
                else if (performance.now() > until) reject(new Error('it did not happen'));
                else setTimeout(look, 10);
            };
            look();
        })"""
        self.page.evaluate(looking % (timeout, script))

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))
