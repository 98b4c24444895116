"""A server in a process of its own, and who works on it in theirs; pods run on nodes that are simulated."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import operating, processes, targets
from benchmarks.processes import Process
from holdfast.client.kubeconfig import connect
from holdfast.client.protocols import Client
from holdfast.client.resources import NODES
from holdfast.cluster.simulation import nodes

PER_NODE: Final = 250
"""Pods that a node has room for."""

Employ = Callable[[str], contextlib.AbstractContextManager[Process]]
"""Starts a crew of `operating` on the server, for as long as the block lasts."""


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[Client, Employ]]:
    """A new server, a client of it, and how to have somebody work on it."""
    with TemporaryDirectory(prefix="holdfast-bench-") as directory:
        home = Path(directory)
        async with targets.ours(home, "cluster"):
            kubeconfig = home / "cluster" / "kubeconfig"
            client = connect(kubeconfig).client

            def employ(crew: str) -> contextlib.AbstractContextManager[Process]:
                return processes.started(operating.command(crew), KUBECONFIG=str(kubeconfig))

            try:
                yield client, employ
            finally:
                await client.close()


async def furnish(client: Client, *, count: int) -> None:
    """Create nodes that are well and stay so: none of them has a heartbeat, so they cost nothing."""
    fleet = nodes.Fleet(count=count, pods=PER_NODE)
    for name in fleet.names:
        await client.create(NODES, nodes.manifest(fleet, name, datetime.now(UTC)))
