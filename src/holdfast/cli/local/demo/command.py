"""``holdfast demo``: rollouts of several systems under their floors, in half a minute, on a cluster of its own.

It applies the manifests of a directory, waits until they run, changes all of them at
once, breaks one on purpose, and says whether a floor was broken at any change of a pod.
On a terminal the rollouts are live trees; elsewhere each change is a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli import logs, painting
from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.local.apiserver.serving import Settings
from holdfast.cli.local.cluster import hints
from holdfast.cli.local.cluster.embedded import ClusterOptions, Embedded, embedded
from holdfast.cli.local.demo.subjects import Subject, known, subject_of
from holdfast.cli.manifests import examples, sources
from holdfast.cli.manifests.sources import Manifest
from holdfast.cli.process import running
from holdfast.cli.process.signals import until_signalled
from holdfast.client.discovery import UnknownResource, discover
from holdfast.client.objects import Object
from holdfast.runtime.controllers import Stores, View
from holdfast.views import stages
from holdfast.views.floors import Ledger, is_ready
from holdfast.views.spans import Line, Span, Tone, cut
from holdfast.views.trees import Tree

PATIENCE: Final = 120.0
"""The time limit of each act, in seconds."""

READY: Final = (timedelta(seconds=1), timedelta(seconds=3))
"""How long simulated pods take to become ready: long enough to see it happen."""

_LONGEST: Final = 150
"""The longest line of the log."""

_FRAME: Final = 0.15
"""Seconds between two frames on a terminal."""


Holds = Callable[[Subject, View], bool]


class NotKept(InputError):
    """A floor was broken, or an act took too long."""

    exit_code = ExitCode.BLOCKED


@click.command("demo")
@click.argument("directory", required=False, type=PathType(exists=True, file_okay=False))
@click.option("--seed", type=int, default=7, show_default=True, help="The seed of the random behaviour of pods.")
def command(directory: Path | None, seed: int) -> None:
    """Show rollouts that keep their floors, on a cluster of their own.

    The manifests of DIRECTORY, or of the example demo, are applied, changed all at once, and one of them is broken on
    purpose.  On a terminal the cluster stays until Ctrl-C; otherwise the demo ends with a summary.
    """
    logs.configure("text", level=logging.ERROR)
    manifests = sources.read([str(directory or examples.DEMO)])
    if not any(subject_of(each.value) for each in manifests):
        message = f"nothing in {directory} rolls out; the demo knows {known()}"
        raise InputError(Complaint(message=message, path="DIRECTORY"))
    with running.for_now() as home:
        settings = Settings(data_dir=None, bind="127.0.0.1", port=0, kubeconfig=home / "kubeconfig")
        options = ClusterOptions(settings=settings, nodes=4, seed=seed, ready=READY, home=home)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            if not runner.run(until_signalled(_run(options, manifests))):
                raise click.Abort


async def _run(options: ClusterOptions, manifests: Sequence[Manifest]) -> None:
    began = time.monotonic()
    click.echo("starting a cluster: API server, controllers, 4 simulated nodes, operators ...")
    async with embedded(options) as cluster:
        click.echo(f"ready after {time.monotonic() - began:.1f} s")
        stage = Stage(cluster, manifests, began=began)
        await stage.play()
        stage.summary()
        click.echo("\n".join(_next(options.settings.kubeconfig if sys.stdout.isatty() else None)))
        if sys.stdout.isatty():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    if not stage.ledger.kept:
        raise NotKept(Complaint(message="a floor was broken; the summary says which", path="demo"))


def _next(kubeconfig: Path | None) -> Iterator[str]:
    """What to try next, on this cluster while it runs, or on another one."""
    yield ""
    yield from hints.activation()
    if kubeconfig is None:
        yield "the cluster is gone; try next:"
        yield from _columns({"holdfast up": "a cluster that stays", "holdfast examples": "what to apply to it"})
    else:
        yield "this cluster stays until Ctrl-C; try next, in another terminal:"
        yield f"  export KUBECONFIG={kubeconfig}"
        yield from _columns(
            {
                "holdfast rollout history workload/shop": "see the rejected revision",
                "holdfast rollout restart pcs/llm": "roll the gangs out again,",
                "holdfast rollout status pcs/llm": "and watch it in detail",
                "holdfast chaos crash -l app=shop --share 0.3": "crash a third of the shop",
                "holdfast describe workload shop": "its state, and why",
            }
        )
    yield "see what a rollout would do before it starts, without a cluster:"
    yield "  holdfast plan --replicas 3 --max-surge 0 --min-available 3"


def _columns(rows: dict[str, str]) -> Iterator[str]:
    width = max(map(len, rows))
    yield from (f"  {command:<{width}}  {words}" for command, words in rows.items())


class Stage:
    """The cluster, its objects, and the count of their ready pods."""

    def __init__(self, cluster: Embedded, manifests: Sequence[Manifest], *, began: float) -> None:
        self._cluster = cluster
        self._manifests = manifests
        self._subjects = [subject for each in manifests if (subject := subject_of(each.value)) is not None]
        self._broken = next((each for each in self._subjects if each.breakable), None)
        self._began = began
        self._lines: tuple[str, ...] = ()
        self._acts = 3 if self._broken else 2
        self._act = 0
        self._words = ""
        self.ledger = Ledger()

    async def play(self) -> None:
        """Run all acts in order."""
        counted = {subject.counted for subject in self._subjects}
        forget = [self._stores.subscribe(resource, self._seen) for resource in counted]
        try:
            async with self._screen():
                await self._apply()
                self.ledger.look()
                joining = [f", with {subject.title}" for subject in self._subjects if subject.joins]
                words = f"change all of them at once{''.join(joining)}"
                await self._change(words, self._subjects, version="2", until=Subject.runs)
                if self._broken is not None:
                    words = f"break {self._broken.title} on purpose: an image that cannot be pulled"
                    await self._change(words, [self._broken], version="broken", until=Subject.recovered)
        finally:
            for each in forget:
                each()

    @property
    def _stores(self) -> Stores:
        return self._cluster.manager.caches

    # --- acts

    async def _apply(self) -> None:
        subjects = [each for each in self._subjects if not each.joins]
        self._begin(f"apply {', '.join(subject.title for subject in subjects)}")
        await self._prepare([each for each in self._manifests if subject_of(each.value) is None])
        for subject in subjects:
            await self._cluster.client.apply(subject.resource, subject.manifest)
        await self._wait(subjects, until=Subject.runs)

    async def _prepare(self, manifests: Sequence[Manifest]) -> None:
        """Apply what the objects of the demo refer to."""
        served = await discover(self._cluster.client) if manifests else None
        for each in manifests:
            assert served is not None
            try:
                resource = served.kind(each.gvk).resource
            except UnknownResource as error:
                raise InputError(each.complaint(str(error), path="kind")) from None
            metadata = {**({"namespace": "default"} if resource.namespaced else {}), **each.value["metadata"]}
            await self._cluster.client.apply(resource, {**each.value, "metadata": metadata})

    async def _change(self, words: str, subjects: Sequence[Subject], *, version: str, until: Holds) -> None:
        self._begin(words)
        for subject in subjects:
            if subject.joins:
                await self._cluster.client.apply(subject.resource, subject.manifest)
            else:
                await self._cluster.client.patch(subject.resource, subject.key, subject.change(version))
        await self._wait(subjects, until=until)

    async def _wait(self, subjects: Sequence[Subject], *, until: Holds) -> None:
        """Wait until `until` is true of all subjects; checked at every change, up to the time limit."""
        changed = asyncio.Event()
        watched = {each for subject in subjects for each in (subject.counted, subject.resource)}
        forget = [self._stores.subscribe(resource, lambda old, new: changed.set()) for resource in watched]
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(until(subject, self._stores) for subject in subjects):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            late = [subject for subject in subjects if not until(subject, self._stores)]
            waits = "; ".join(f"{each.title}: {each.says(self._stores)[1]}" for each in late)
            message = f"{self._words}: it took longer than {PATIENCE:.0f} s; {waits}"
            raise NotKept(Complaint(message=message, path="demo")) from None
        finally:
            for each in forget:
                each()

    def _begin(self, words: str) -> None:
        self._act += 1
        self._words = words
        if not sys.stdout.isatty():
            click.echo(f"{self._clock()}  {words}")

    # --- counting

    def _seen(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None, "a change is of something"
        for subject in self._subjects:
            self.ledger.expect(subject.floors(self._stores))
            group = subject.group(pod)
            if group is not None:
                self.ledger.see(group, pod.uid, ready=new is not None and is_ready(new.wire()))

    # --- drawing

    @contextlib.asynccontextmanager
    async def _screen(self) -> AsyncGenerator[None, None]:
        """Show the rollouts while the block runs: redrawn in place on a terminal, as lines elsewhere."""
        show = self._paint if sys.stdout.isatty() else self._log
        drawing = asyncio.create_task(self._draw(show))
        if sys.stdout.isatty():
            click.echo("\x1b[?1049h\x1b[?25l", nl=False)
        try:
            yield
            show()
        finally:
            drawing.cancel()
            if sys.stdout.isatty():
                click.echo("\x1b[?25h\x1b[?1049l", nl=False)
                self._paint_last()

    async def _draw(self, show: Callable[[], None]) -> None:
        while True:
            show()
            await asyncio.sleep(_FRAME)

    def _paint(self) -> None:
        size = shutil.get_terminal_size()
        act = stages.Act(self._clock(), self._act, self._acts, self._words)
        lines = stages.stage(act, self._trees(), width=size.columns, height=size.lines)
        drawn = painting.text(lines, colours=painting.has_colours())
        click.echo("\x1b[H" + "\x1b[K\n".join(drawn.split("\n")) + "\x1b[J", nl=False)
        sys.stdout.flush()

    def _paint_last(self) -> None:
        """The rollouts as they are at the end stay on the terminal, as short as they can be shown."""
        lines = stages.blocks(self._trees(), width=shutil.get_terminal_size().columns)
        click.echo(painting.text(lines, colours=painting.has_colours()))

    def _trees(self) -> list[tuple[str, Tree]]:
        now = datetime.now(UTC)
        return [(each.resource.kind, tree) for each in self._subjects if (tree := each.tree(self._stores, now))]

    def _log(self) -> None:
        """A line for each object whose phase or message has changed."""
        said = (each.says(self._stores) for each in self._subjects)
        titles = (each.title for each in self._subjects)
        lines = tuple(f"{title}  {phase}: {because}" for title, (phase, because) in zip(titles, said, strict=True))
        for line in lines:
            if line not in self._lines:
                click.echo(cut(f"{self._clock()}  {line}", _LONGEST))
        sys.stdout.flush()
        self._lines = lines

    # --- the end

    def summary(self) -> None:
        """What happened, and whether every floor was kept."""
        took = time.monotonic() - self._began
        broken = ", one of them broken on purpose" if self._broken else ""
        lines: list[Line] = [(Span(f"\n{len(self._subjects)} objects changed{broken}, in {took:.0f} s", Tone.STRONG),)]
        for name, group in sorted(self.ledger.groups.items()):
            verdict, tone = ("kept", Tone.GOOD) if group.kept else ("BROKEN", Tone.BAD)
            needed = f": {name}: at least {group.lowest} ready, {group.floor} needed"
            lines.append((Span(f"  floor {verdict}", tone), Span(needed)))
        lines.append((Span(f"  counted at {self.ledger.changes:,} changes of pods and machines", Tone.FAINT),))
        if self._broken is not None:
            lines.append((Span(f"  rolled back by itself: {self._broken.title}, whose new image cannot be pulled"),))
        lines += ((Span(f"  complete meanwhile: {each.title}"),) for each in self._subjects if each.joins)
        click.echo(painting.text(lines, colours=painting.has_colours()))

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f"{seconds // 60}:{seconds % 60:02}"
