"""Objects that are gone leave nothing behind: neither in the memory of a server nor in its file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.torture.growth import grown, limits


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_server_does_not_grow_with_objects_that_were_created_and_deleted(tmp_path: Path) -> None:
    empty, first, _, last = asyncio.run(grown(tmp_path, objects=2_400))
    memory, file = limits(empty, first)
    assert last.memory < memory
    assert last.file < file
