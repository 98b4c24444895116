"""Runs controllers in a process of their own, over HTTP, as an operator does: ``python -m benchmarks.operating copy``.

The server is that of KUBECONFIG.  The process prints a line when its caches are complete, and its metrics when it is
stopped.
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

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli.process.garbage import collect_rarely
from holdfast.client.kubeconfig import connect
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.manager import Manager, Settings

WORKING: Final = "working"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one process runs."""

    controllers: Sequence[Controller[Any]]
    components: Sequence[Component] = ()


def _copy() -> Program:
    from benchmarks import copying

    return Program(controllers=(copying.CONTROLLER,))


def _workloads() -> Program:
    from holdfast.operators import workload

    return Program(controllers=workload.OPERATOR.controllers)


def _gangs() -> Program:
    from holdfast.operators import podcliqueset

    return Program(controllers=podcliqueset.OPERATOR.controllers)


def _deployments() -> Program:
    from holdfast.cluster.controllers import deployments, replicasets

    return Program(controllers=(deployments.CONTROLLER, replicasets.CONTROLLER))


def _nodes() -> Program:
    from holdfast.cluster import simulation
    from holdfast.cluster.controllers.gc.collector import GarbageCollector
    from holdfast.cluster.scheduling.scheduler import Scheduler

    return Program(controllers=(simulation.controller(),), components=(Scheduler(), GarbageCollector()))


def _kubelets() -> Program:
    from holdfast.cluster import simulation

    return Program(controllers=(simulation.controller(),))


PROGRAMS: Final[dict[str, Callable[[], Program]]] = {
    "copy": _copy,
    "workloads": _workloads,
    "gangs": _gangs,
    "deployments": _deployments,
    "nodes": _nodes,
    "kubelets": _kubelets,
}
"""Each imports what it needs and no more, so that the memory of a process is its own."""


def command(program: str, *, namespace: str = "") -> tuple[str, ...]:
    """The command that starts a program; it works in all namespaces if none is named."""
    return (sys.executable, "-m", "benchmarks.operating", program, "--namespace", namespace)


async def operate(program: Program, namespace: str) -> None:
    """Work until the process is stopped."""
    client = connect().client
    manager = Manager(
        client,
        controllers=program.controllers,
        components=program.components,
        now=lambda: datetime.now(UTC),
        settings=Settings(namespaces=(namespace,) if namespace else ()),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.stop)
    printing = asyncio.create_task(_print_when_working(manager))
    try:
        await manager.run()
    finally:
        printing.cancel()
        await client.close()
    print(manager.metrics.render().decode())


async def _print_when_working(manager: Manager) -> None:
    await manager.working.wait()
    collect_rarely()  # as `holdfast operator run` does
    print(WORKING, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--namespace", default="")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(operate(PROGRAMS[arguments.program](), arguments.namespace))
