"""The quiet summary below ``holdfast up``: on a terminal it changes in place, elsewhere lines are added."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import click

from holdfast.client.resources import NODES, PODS, Resource
from holdfast.kinds.cloudless import KINDS
from holdfast.runtime.controllers import Stores
from holdfast.views.summaries import Summary, summary

WORKLOADS: Final = Resource.of(KINDS[0])

_PACE: Final = {True: 0.5, False: 5.0}
"""Seconds between two looks after a change, on a terminal and elsewhere."""


async def watch_summary(stores: Stores) -> None:
    """Show how the cluster is whenever that has changed, until cancelled."""
    changed = asyncio.Event()
    stops = [stores.subscribe(resource, lambda old, new: changed.set()) for resource in (NODES, PODS, WORKLOADS)]
    live = sys.stdout.isatty()
    shown: tuple[str, ...] = ()
    try:
        while True:
            await changed.wait()
            changed.clear()
            lines = _summary(stores).lines()
            if lines != shown:
                _show(lines, erase=len(shown) if live else 0)
                shown = lines
            await asyncio.sleep(_PACE[live])
    finally:
        for stop in stops:
            stop()


def _summary(stores: Stores) -> Summary:
    nodes, pods, workloads = ([obj.wire() for obj in stores.list(each)] for each in (NODES, PODS, WORKLOADS))
    return summary(nodes, pods, workloads)


def _show(lines: tuple[str, ...], *, erase: int) -> None:
    if erase:
        # Up to the first line of what is there, and clear all below.
        click.echo(f"\x1b[{erase}A\x1b[J", nl=False)
    width = _width()
    for line in lines:
        click.echo(line if width is None or len(line) <= width else f"{line[: width - 1]}…")
    sys.stdout.flush()


def _width() -> int | None:
    import shutil  # only where something is shown

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
