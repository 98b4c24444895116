"""Recorded conversations with a real API server, held against this one; docs/conformance.md explains what differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.apiserver.servers import loopback
from tests.places import ROOT

ORACLE = ROOT.parent / "shared" / "oracle"
FAMILIES = ("apply", "auth", "builtin", "crds", "crud", "lists", "patches", "watches")
"""Those that need no controllers."""

EXPLAINED = {"streaming list": 1}
"""Hard differences that are kept, by scenario."""

pytestmark = pytest.mark.skipif(not (ORACLE / "replay.py").exists(), reason="the recorded conversations are not here")


@pytest.mark.parametrize("family", FAMILIES)
def test_this_server_answers_as_a_real_one_did(tmp_path: Path, family: str) -> None:
    with loopback(tmp_path) as server:
        run = subprocess.run(
            [
                *(sys.executable, str(ORACLE / "replay.py"), "--server", server.url, "--token", server.token),
                *("--ca", str(server.authority), str(ORACLE / "cases" / f"{family}.json")),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert run.stdout, run.stderr
    hard = [line for line in run.stdout.splitlines() if line.startswith("HARD")]
    unexplained = [line for line in hard if not any(f" / {name} / " in line for name in EXPLAINED)]
    assert not unexplained, run.stdout
    assert len(hard) <= sum(EXPLAINED.values())


def test_every_difference_that_is_kept_is_explained() -> None:
    text = (ROOT / "docs" / "conformance.md").read_text()
    for name in EXPLAINED:
        assert name in text
