"""The site of the documentation is built without a warning, and its reference has what the code has."""

from __future__ import annotations

import os
import subprocess
import sys
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
