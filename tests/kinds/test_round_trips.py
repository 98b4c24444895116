"""What a schema accepts, the type decodes and writes back: the two never disagree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.documents import plain
from tests.kinds.strategies import documents

from holdfast import kinds
from holdfast.kinds import checks
from holdfast.kinds.model import Kind


def survives(kind: Kind, doc: dict[str, Any]) -> None:
    assert checks.problems(kind, doc) == ()
    for variant in (doc, checks.defaulted(kind, doc)):
        decoded = checks.decode(kind, variant)
        written = msgspec.to_builtins(decoded)
        assert plain(written) == plain(variant)
        assert checks.decode(kind, written) == decoded


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=40)
def test_an_object_that_is_accepted_survives_the_round_trip_through_its_type(kind: Kind, data: st.DataObject) -> None:
    survives(kind, data.draw(documents(kind, most=3)))


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=3)
def test_an_object_with_every_field_survives_the_round_trip_too(kind: Kind, data: st.DataObject) -> None:
    survives(kind, data.draw(documents(kind)))
