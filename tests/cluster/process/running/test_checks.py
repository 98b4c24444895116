"""What a probe says of a container that does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest

from holdfast.cluster.process.lifecycle.pods import Container, Probe
from holdfast.cluster.process.running.checks import Asker

CLOSED = 9


@pytest.mark.parametrize("means", ["httpGet", "tcpSocket"])
def test_a_refused_connection_is_reported_in_the_words_of_the_system(means: str) -> None:
    async def asked() -> str:
        probe = msgspec.convert({means: {"port": CLOSED, "path": "/"}}, Probe)
        unused: Any = None
        async with aiohttp.ClientSession() as http:
            container = Container(name="main")
            asker = Asker(container=container, run=unused, launch=unused, ip="127.0.0.1", http=http)
            answer = await asker.ask(probe, timeout=5)
        assert not answer.good
        return answer.message

    assert asyncio.run(asked()) == "Connection refused"
