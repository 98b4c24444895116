"""Asks probes and runs hooks: over HTTP, over TCP, or by a command beside the container's own.

The edge to the network.  An answer is a value; whatever goes wrong while asking is
a bad answer with its reason, and never an exception.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp

from holdfast.client.http import cause
from holdfast.cluster.process.lifecycle.pods import (
    Container,
    Exec,
    Handler,
    HttpGet,
    Probe,
    Sleep,
    TcpSocket,
    port_number,
)
from holdfast.cluster.process.lifecycle.probes import Answer
from holdfast.cluster.process.running.containers import ContainerRun
from holdfast.cluster.process.running.specs import Launch

_SHOWN = 1024
"""How much of the answer to a probe is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whom to ask: one run of a container, and where it is reached."""

    container: Container
    run: ContainerRun
    launch: Launch
    ip: str
    http: aiohttp.ClientSession

    async def ask(self, probe: Probe | Handler, *, timeout: float) -> Answer:
        """One question, answered within `timeout` seconds."""
        if probe.exec is not None:
            return await self._execute(probe.exec, timeout)
        try:
            async with asyncio.timeout(timeout):
                if probe.http_get is not None:
                    return await self._get(probe.http_get)
                if probe.tcp_socket is not None:
                    return await self._connect(probe.tcp_socket)
                if isinstance(probe, Handler) and probe.sleep is not None:
                    return await _slept(probe.sleep)
        except TimeoutError:
            return Answer(good=False, message=f"no answer within {timeout:g} s")
        except (OSError, aiohttp.ClientError) as error:
            return Answer(good=False, message=cause(error))
        return Answer(good=False, message="it says nothing to do; use exec, httpGet or tcpSocket")

    async def _execute(self, exec: Exec, timeout: float) -> Answer:
        done = await self.run.execute(self.launch.command(exec.command), timeout=timeout)
        return Answer(good=not done.failure and done.code == 0, message=(done.failure or done.output.strip())[:_SHOWN])

    async def _get(self, get: HttpGet) -> Answer:
        port = port_number(self.container, get.port)
        if port is None:
            return _unknown(get.port)
        url = f"{get.scheme.lower()}://{get.host or self.ip}:{port}/{get.path.removeprefix('/')}"
        headers = {"User-Agent": "holdfast-probe", "Accept": "*/*"}
        headers |= {header.name: header.value for header in get.http_headers}
        # Certificates are not checked, as in Kubernetes: a probe asks whether it works, not who it is.
        async with self.http.get(url, headers=headers, ssl=False, allow_redirects=False) as response:
            good = 200 <= response.status < 400
            return Answer(good=good, message=f"HTTP probe answered with status code {response.status}")

    async def _connect(self, tcp: TcpSocket) -> Answer:
        port = port_number(self.container, tcp.port)
        if port is None:
            return _unknown(tcp.port)
        _, writer = await asyncio.open_connection(tcp.host or self.ip, port)
        writer.close()
        return Answer(good=True)


async def _slept(sleep: Sleep) -> Answer:
    await asyncio.sleep(sleep.seconds)
    return Answer(good=True)


def _unknown(port: int | str) -> Answer:
    return Answer(good=False, message=f"the container names no port {port!r}; add it to its ports")
