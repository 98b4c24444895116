"""The memory of a server does not grow with the bodies that clients send at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.torture.bodies import sent


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("known", [False, True])
def test_sixty_bodies_of_three_mebibytes_take_less_memory_than_they_have(tmp_path: Path, known: bool) -> None:
    taken = asyncio.run(sent(tmp_path, connections=60, known=known))
    assert taken.answered == 60
    # All bodies together have 180 MiB: without credentials none is read, with them sixteen at a time.
    assert taken.added < (150 if known else 75)
