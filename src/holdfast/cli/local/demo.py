"""``holdfast demo``: rollouts under a floor, in a minute, on a cluster of its own.

It applies the manifests of a directory, waits until they run, changes all of them at
once, breaks one on purpose, and says whether a floor was broken at any change of a pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from holdfast.apiserver.http import listener
from holdfast.cli import logs
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.local import examples, running
from holdfast.cli.local.demo_subjects import Subject, subject_of
from holdfast.cli.local.embedded import ClusterOptions, Embedded, embedded
from holdfast.cli.local.serving import Settings
from holdfast.cli.local.signals import until_signalled
from holdfast.cli.manifests import sources
from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.runtime.controllers import Stores, View
from holdfast.views.floors import Ledger, bar, is_ready

PATIENCE: Final = 80.0
"""The time limit of each act, in seconds."""

_LONGEST: Final = 150
"""The longest line of the log."""

_FRAME: Final = 0.15
"""Seconds between two frames on a terminal."""


Holds = Callable[[Subject, View], bool]


class NotKept(InputError):
    """A floor was broken, or an act took too long."""

    exit_code = ExitCode.BLOCKED


@click.command("demo")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seed", type=int, default=7, show_default=True, help="The seed of the random behaviour of pods.")
def command(directory: Path | None, seed: int) -> None:
    """Show rollouts that keep their floors, on a cluster of their own.

    The manifests of DIRECTORY, or of the example demo, are applied, changed all at once, and one of them is broken on
    purpose.  On a terminal the cluster stays until Ctrl-C; otherwise the demo ends with a summary.
    """
    logs.configure("text", level=logging.ERROR)
    subjects = [subject_of(each.value) for each in sources.read([str(directory or examples.DEMO)])]
    with running.for_now() as home:
        settings = Settings(data_dir=None, bind="127.0.0.1", port=0, kubeconfig=home / "kubeconfig")
        options = ClusterOptions(settings=settings, nodes=4, seed=seed, home=home)
        with asyncio.Runner(loop_factory=listener.new_event_loop) as runner:
            if not runner.run(until_signalled(_run(options, subjects))):
                raise click.Abort


async def _run(options: ClusterOptions, subjects: Sequence[Subject]) -> None:
    began = time.monotonic()
    async with embedded(options) as cluster:
        stage = Stage(cluster, subjects, began=began)
        await stage.play()
        if sys.stdout.isatty():
            click.echo(f"\ncontinue by hand:  export KUBECONFIG={options.settings.kubeconfig}")
            click.echo("the cluster stays until Ctrl-C")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        else:
            click.echo("\nthe cluster is gone; holdfast up starts one that stays, and prints its kubeconfig")
    if not stage.ledger.kept:
        raise NotKept(Complaint(message="a floor was broken; the summary says which", path="demo"))


class Stage:
    """The cluster, its objects, and the count of their ready pods."""

    def __init__(self, cluster: Embedded, subjects: Sequence[Subject], *, began: float) -> None:
        self._cluster = cluster
        self._subjects = subjects
        self._began = began
        self._shown: tuple[str, ...] = ()
        self._act = ""
        self.ledger = Ledger()

    async def play(self) -> None:
        """Run all acts in order."""
        forget = self._stores.subscribe(PODS, self._pod)
        screen = asyncio.create_task(self._draw())
        try:
            await self._apply()
            self.ledger.look()
            await self._change("change all at once", self._subjects, version="2", until=Subject.runs)
            for subject in [each for each in self._subjects if each.breakable][:1]:
                act = f"break {subject.title} on purpose: an image that cannot be pulled"
                await self._change(act, [subject], version="broken", until=Subject.recovered)
            self._show()
        finally:
            screen.cancel()
            forget()
        self._summary()

    @property
    def _stores(self) -> Stores:
        return self._cluster.manager.caches

    # --- acts

    async def _apply(self) -> None:
        act = f"apply {', '.join(subject.title for subject in self._subjects)}"
        self._begin(act)
        for subject in self._subjects:
            await self._cluster.client.apply(subject.resource, subject.manifest)
        await self._wait(act, self._subjects, until=Subject.runs)

    async def _change(self, act: str, subjects: Sequence[Subject], *, version: str, until: Holds) -> None:
        self._begin(act)
        for subject in subjects:
            await self._cluster.client.patch(subject.resource, subject.key, subject.change(version))
        await self._wait(act, subjects, until=until)

    async def _wait(self, act: str, subjects: Sequence[Subject], *, until: Holds) -> None:
        """Wait until `until` is true of all subjects; checked at every change, up to the time limit."""
        changed = asyncio.Event()
        watched = {PODS, *(subject.resource for subject in subjects)}
        forget = [self._stores.subscribe(resource, lambda old, new: changed.set()) for resource in watched]
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(until(subject, self._stores) for subject in subjects):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            message = f"{act}: it took longer than {PATIENCE:.0f} s"
            raise NotKept(Complaint(message=message, path="demo")) from None
        finally:
            for each in forget:
                each()

    def _begin(self, act: str) -> None:
        self._act = act
        if not sys.stdout.isatty():
            click.echo(f"{self._clock()}  {act}")

    # --- counting and drawing

    def _pod(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None, "a change is of something"
        stores = self._stores
        for subject in self._subjects:
            self.ledger.expect(subject.floors(stores))
            group = subject.group(pod)
            if group is not None:
                self.ledger.see(group, pod.uid, ready=new is not None and is_ready(new.wire()))

    async def _draw(self) -> None:
        """Redraw the picture on a terminal; elsewhere print a line for each change of a phase or message."""
        while True:
            self._show()
            await asyncio.sleep(_FRAME)

    def _show(self) -> None:
        live = sys.stdout.isatty()
        lines = tuple(self._picture() if live else self._lines())
        if lines == self._shown:
            return
        if live:
            self._paint(lines)
        else:
            for line in lines:
                if line not in self._shown:
                    click.echo(_cut(f"{self._clock()}  {line}", _LONGEST))
            sys.stdout.flush()
        self._shown = lines

    def _picture(self) -> Iterator[str]:
        stores = self._stores
        yield f"{self._clock()}  {self._act}"
        yield ""
        for subject in self._subjects:
            phase, because = subject.says(stores)
            yield f"{subject.title}  {phase}: {because}"
            for name in subject.floors(stores):
                group = self.ledger.groups.get(name)
                if group is not None:
                    ready = len(group.ready)
                    size = subject.size(stores, name)
                    drawn = bar(ready, group.floor, size)
                    yield f"  {name:<24} {drawn:<21}  {ready} of {size} ready, floor {group.floor}"
            yield ""

    def _lines(self) -> Iterator[str]:
        stores = self._stores
        for subject in self._subjects:
            phase, because = subject.says(stores)
            yield f"{subject.title}  {phase}: {because}"

    def _paint(self, lines: Sequence[str]) -> None:
        if self._shown:
            click.echo(f"\x1b[{len(self._shown)}A\x1b[J", nl=False)
        width = shutil.get_terminal_size().columns
        for line in lines:
            click.echo(_cut(line, width))
        sys.stdout.flush()

    def _summary(self) -> None:
        took = time.monotonic() - self._began
        click.echo(f"\n{len(self._subjects)} objects rolled out and one broken, in {took:.0f} s")
        for name, group in sorted(self.ledger.groups.items()):
            verdict = "kept" if group.kept else "BROKEN"
            click.echo(f"  floor {verdict}: {name}: at least {group.lowest} ready, {group.floor} needed")
        click.echo(f"  counted at {self.ledger.changes:,} changes of pods")

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f"{seconds // 60}:{seconds % 60:02}"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
