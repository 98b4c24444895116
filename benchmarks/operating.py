"""Runs controllers in a process of their own, over HTTP, as an operator does: ``python -m benchmarks.operating copy``.

The server is that of KUBECONFIG.  It says when it has seen everything and works; when it is told to stop, it prints
what it has counted.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.apiserver.http.listener import new_event_loop
from holdfast.client.kubeconfig import connect
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.manager import Manager, Settings

WORKING: Final = "working"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who works together."""

    controllers: Sequence[Controller[Any]]
    components: Sequence[Component] = ()


def _copy() -> Crew:
    from benchmarks import copying

    return Crew(controllers=(copying.CONTROLLER,))


def _workloads() -> Crew:
    from holdfast.operators import workload

    return Crew(controllers=workload.OPERATOR.controllers)


def _gangs() -> Crew:
    from holdfast.operators import podcliqueset

    return Crew(controllers=podcliqueset.OPERATOR.controllers)


def _deployments() -> Crew:
    from holdfast.cluster.controllers import deployments, replicasets

    return Crew(controllers=(deployments.CONTROLLER, replicasets.CONTROLLER))


def _nodes() -> Crew:
    from holdfast.cluster import simulation
    from holdfast.cluster.scheduling.scheduler import Scheduler

    return Crew(controllers=(simulation.controller(),), components=(Scheduler(),))


CREWS: Final[dict[str, Callable[[], Crew]]] = {
    "copy": _copy,
    "workloads": _workloads,
    "gangs": _gangs,
    "deployments": _deployments,
    "nodes": _nodes,
}
"""Each imports what it needs and no more, so that the memory of a process is its own."""


def command(crew: str, *, namespace: str = "") -> tuple[str, ...]:
    """How to start a crew; it works in all namespaces if none is named."""
    return (sys.executable, "-m", "benchmarks.operating", crew, "--namespace", namespace)


async def operate(crew: Crew, namespace: str) -> None:
    """Work until the process is told to stop."""
    client = connect().client
    manager = Manager(
        client,
        controllers=crew.controllers,
        components=crew.components,
        now=lambda: datetime.now(UTC),
        settings=Settings(namespaces=(namespace,) if namespace else ()),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.stop)
    telling = asyncio.create_task(_tell(manager))
    try:
        await manager.run()
    finally:
        telling.cancel()
        await client.close()
    print(manager.metrics.render().decode())


async def _tell(manager: Manager) -> None:
    await manager.working.wait()
    print(WORKING, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("crew", choices=CREWS)
    parser.add_argument("--namespace", default="")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(operate(CREWS[arguments.crew](), arguments.namespace))
