"""Manifests that users of the five systems have today are accepted, or it is said why not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.kinds.documents import documents, plain
from tests.places import ROOT

from holdfast import kinds

SHARED = ROOT.parent / "shared" / "manifests"
MANIFESTS = sorted(SHARED.rglob("*.yaml"))

DIFFERENCES: dict[str, set[str]] = {
    # Left over from v1alpha1.
    "virtrigaud/snapshot-lifecycle.yaml": {
        "spec.nameHint: unknown field; known here: vmRef, snapshotConfig, retentionPolicy, schedule, metadata",
        "spec.memory: unknown field; known here: vmRef, snapshotConfig, retentionPolicy, schedule, metadata",
        "spec.description: unknown field; did you mean snapshotConfig.description?",
    },
}
"""What is said of the manifests that are refused, by path; the comments have the reasons."""


@pytest.mark.skipif(not MANIFESTS, reason="no manifests beside the checkout")
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(SHARED)))
def test_a_manifest_is_accepted_and_a_round_trip_loses_nothing_or_the_difference_is_listed(path: Path) -> None:
    said: set[str] = set()
    for doc in documents(path):
        try:
            decoded = kinds.decode(doc)
        except kinds.DocumentError as refused:
            said |= {str(problem) for problem in refused.problems}
        else:
            assert plain(msgspec.to_builtins(decoded)) == plain(doc)
    assert said == DIFFERENCES.get(str(path.relative_to(SHARED)), set())


@pytest.mark.skipif(not MANIFESTS, reason="no manifests beside the checkout")
def test_no_difference_is_listed_that_is_gone() -> None:
    assert set(DIFFERENCES) <= {str(path.relative_to(SHARED)) for path in MANIFESTS}
