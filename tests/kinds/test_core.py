"""The schemas of built-in types that custom kinds use are those of the API server."""

from __future__ import annotations

import pytest
from tests.kinds.core_types import NAMES, PATH, document

from holdfast.kinds.core import typed


def test_the_schemas_are_generated_from_the_types_of_the_api_server() -> None:
    assert PATH.read_text() == document(), "run 'python -m tests.kinds.core_types'"


@pytest.mark.parametrize("name", NAMES)
def test_a_type_keeps_nothing_that_it_does_not_describe(name: str) -> None:
    schema = typed(name).extra_json_schema
    assert schema is not None
    assert schema["properties"]
    assert schema["x-kubernetes-preserve-unknown-fields"] is None
