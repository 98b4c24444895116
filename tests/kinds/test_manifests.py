"""Manifests that users of the five systems have today are accepted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.kinds.documents import documents, plain
from tests.places import ROOT

from holdfast import kinds

SHARED = ROOT.parent / "shared" / "manifests"
MANIFESTS = sorted(SHARED.rglob("*.yaml"))


@pytest.mark.skipif(not MANIFESTS, reason="no manifests beside the checkout")
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(SHARED)))
def test_a_manifest_is_accepted_and_a_round_trip_loses_nothing(path: Path) -> None:
    for doc in documents(path):
        assert plain(msgspec.to_builtins(kinds.decode(doc))) == plain(doc)
