"""Every example is accepted, and survives a round trip through its type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.kinds.documents import documents, plain
from tests.places import ROOT

from holdfast import kinds

EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_an_example_is_accepted_and_a_round_trip_loses_nothing(path: Path) -> None:
    docs = list(documents(path))
    assert docs or path.stem == "secrets", "no document of ours in it"
    for doc in docs:
        assert plain(msgspec.to_builtins(kinds.decode(doc))) == plain(doc)


def test_each_system_has_a_minimal_and_a_realistic_example() -> None:
    groups = Counter(doc["apiVersion"].split("/")[0] for path in EXAMPLES for doc in documents(path))
    systems = {kind.group for kind in kinds.ALL} - {"scheduler.grove.io"}
    assert {group for group in systems if groups[group] >= 2} == systems


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_an_example_says_in_a_comment_what_it_shows(path: Path) -> None:
    assert path.read_text().startswith("# ")
