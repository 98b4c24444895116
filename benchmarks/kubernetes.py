"""Holdfast beside a Kubernetes that runs already: API servers, rollouts, runtimes, gangs; one table in Markdown.

``HOLDFAST_BENCH_KUBECONFIG`` names it.  CPU and memory of its processes are known if it was started with
``make kubernetes``, and the API server's otherwise too, from its metrics.  What is created in it is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import msgspec

from benchmarks import apiserver, clusters, gangs, operators, rollouts, targets
from benchmarks.tables import Line, shown
from holdfast.apiserver.http.event_loops import new_event_loop

T = TypeVar("T")

COLUMNS: Final = ("What", "Bar", "Holdfast", "Beside it", "Ratio")


def report() -> None:
    kubeconfig = targets.given()
    if kubeconfig is None:
        print(
            f"Kubernetes: not measured; start one with `make kubernetes`, or name its kubeconfig: {targets.KUBECONFIG}"
        )
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        print(f"Kubernetes {runner.run(_version(kubeconfig))}\n", flush=True)
        _print_row(COLUMNS)
        _print_row(["---"] * len(COLUMNS))
        with TemporaryDirectory(prefix="holdfast-bench-") as home:
            ours, theirs = runner.run(apiserver.measured(Path(home), targets.other(kubeconfig)))
        _print_group("API server, beside kube-apiserver with etcd", apiserver.LINES, ours, theirs)
        workload = runner.run(rollouts.measured_workload(clusters.given(kubeconfig)))
        deployment = runner.run(rollouts.measured_deployment(clusters.given(kubeconfig)))
        title = f"Rollout of {rollouts.REPLICAS:,} on Kubernetes: Workload, beside Deployment"
        _print_group(title, rollouts.LINES, workload, deployment)
        copied, by_kopf = runner.run(operators.measured(clusters.given(kubeconfig)))
        _print_group("A field copied to the status on Kubernetes, beside kopf", operators.LINES, copied, by_kopf)
        shape = gangs.SMALL
        created, rolled = runner.run(gangs.measured(clusters.given(kubeconfig), shape))
        _print_group(f"{shape} on Kubernetes, created", gangs.LINES, created)
        _print_group(f"{shape} on Kubernetes, rolled", gangs.LINES, rolled)


async def _version(kubeconfig: Path) -> str:
    async with targets.from_kubeconfig(kubeconfig).session(1) as session, session.get("/version") as answer:
        return str(msgspec.json.decode(await answer.read())["gitVersion"])


def _print_group(title: str, lines: Sequence[Line[T]], ours: T, beside: T | None = None) -> None:
    _print_row([f"**{title}**", "", "", "", ""])
    for line in lines:
        value, other = line.read(ours), 0.0 if beside is None else line.read(beside)
        ratio = f"{value / other:.2f}x" if value and other else ""
        _print_row([line.name, line.bar, shown(value, line.unit), shown(other, line.unit) if other else "", ratio])


def _print_row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)
