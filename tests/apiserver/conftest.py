"""Servers as fixtures; `servers` says what they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.apiserver.servers import Api


@pytest.fixture
def api() -> Iterator[Api]:
    """A server of this test alone, in this process, on virtual time."""
    api = Api()
    yield api
    api.close()
