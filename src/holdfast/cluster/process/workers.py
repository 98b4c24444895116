"""One pod on this node: performs what is decided about it, and reports what comes of it.

The thin part between the decisions (`state`) and the machine: it begins
actions, collects news, and writes the status when it differs.  Reporting is a task of
its own, so that an API that is slow or away delays no deadline; only the newest status
is written.  Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiohttp

from holdfast.client.objects import Object
from holdfast.client.pods import FINISHED
from holdfast.client.protocols import Client, PatchType, Unreachable
from holdfast.client.resources import PODS
from holdfast.cluster import start_orders
from holdfast.cluster.process.lifecycle import events, facts, state
from holdfast.cluster.process.lifecycle import status as statuses
from holdfast.cluster.process.lifecycle.pods import Container, Pod, Referred, TokenSource, referred, token_sources
from holdfast.cluster.process.lifecycle.probes import Kind
from holdfast.cluster.process.running.checks import Asker
from holdfast.cluster.process.running.containers import ContainerRun, Exit, StartFailed
from holdfast.cluster.process.running.env import Lookup, Refused, Surroundings
from holdfast.cluster.process.running.logs import last_words
from holdfast.cluster.process.running.specs import Launch, launch
from holdfast.cluster.process.storage.directories import Directories
from holdfast.cluster.process.storage.files import make_private, publish, read_tail
from holdfast.cluster.process.storage.tokens import mint
from holdfast.cluster.process.storage.volumes import contents, located
from holdfast.meta.errors import Conflict, NotFound, StatusError
from holdfast.runtime.controllers import BACKOFF, View
from holdfast.runtime.decisions import Notice
from holdfast.runtime.passes.events import Events

_log: Final = logging.getLogger("holdfast.cluster.process")

STOP_GRACE: Final = 5.0
"""Seconds that containers have to end when the node itself ends; nothing may outlive it for longer."""

_MESSAGE_BYTES: Final = 4096
_START_FAILED: Final = 128
_HOOK_PATIENCE: Final = 3600.0
"""The limit of a hook without a deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all pods of a node share.

    machine  the variables of the machine that every process is given
    means    how `hidden` is hidden
    hidden   the files and directories of the machine that no process can reach, but for directories of its pod
    """

    directories: Directories
    lookup: Lookup
    view: View
    client: Client
    events: Events
    http: aiohttp.ClientSession
    machine: Mapping[str, str]
    means: str
    hidden: tuple[Path, ...]
    now: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class _Process:
    """A container that runs."""

    run: ContainerRun
    launch: Launch


_Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


class Worker:
    """Runs one pod, from when it is bound to the node until its object is gone."""

    def __init__(self, obj: Object, site: Site, *, around: Surroundings) -> None:
        self._site, self._around = site, around
        self._object = obj
        self.pod = Pod.of(obj)
        self.facts = facts.begun(self.pod, site.now())
        self.refers: frozenset[Referred] = referred(self.pod)
        self._processes: dict[str, _Process] = {}
        self._news: list[facts.News] = []
        self._wake = asyncio.Event()
        self._wanted: dict[str, Any] | None = None
        self._over = False
        self._changed = asyncio.Event()
        self._notices: list[Notice] = []
        self._tokens: dict[TokenSource, str] = {}

    # --- input

    def tell(self, news: facts.News) -> None:
        self._news.append(news)
        self._notices += events.of_news(news)
        self._wake.set()

    def update(self, obj: Object) -> None:
        """The pod has changed: its labels, perhaps, or it is to be deleted."""
        before = self.pod.metadata
        self._object, self.pod = obj, Pod.of(obj)
        if (before.labels, before.annotations) != (self.pod.metadata.labels, self.pod.metadata.annotations):
            self._refresh()
        self._wake.set()

    def reconsider(self) -> None:
        """Something that the pod refers to has changed."""
        self._refresh()
        self.tell(facts.SourcesChanged())

    @property
    def starts_after(self) -> frozenset[str]:
        """The PodCliques of its namespace that the pod starts after."""
        return frozenset(clique for clique, _ in start_orders.waits_for(self._object))

    @property
    def ip(self) -> str:
        return self._around.ip

    @property
    def is_running(self) -> bool:
        """Whether a container of it runs."""
        return bool(self._processes)

    def running(self, name: str) -> tuple[ContainerRun, Launch] | None:
        """The run of a container, and what was started; None while it does not run."""
        process = self._processes.get(name)
        return None if process is None else (process.run, process.launch)

    # --- the loop

    async def run(self) -> None:
        """Work until the object is gone and nothing runs any more; then nothing of the pod is left."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {group.create_task(self._report())}

                def spawn(doing: Coroutine[Any, Any, None]) -> None:
                    task = group.create_task(doing)
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

                await self._work(spawn)
                for task in tasks:
                    task.cancel()
        finally:
            await self._stop_processes()
        shutil.rmtree(self._site.directories.pod(self.pod.uid), ignore_errors=True)

    async def _work(self, spawn: _Spawn) -> None:
        # What had finished when the node was started is not looked at again; only its logs are still there.
        settled = self.pod.status.phase in FINISHED
        while True:
            self._wake.clear()
            self._take_news()
            wake = None if settled else self._look(spawn)
            if self.facts.gone and (settled or self._over):
                return
            await self._until(wake)

    async def _until(self, moment: datetime | None) -> None:
        """Until there is news, or the moment has come."""
        delay = None if moment is None else max((moment - self._site.now()).total_seconds(), 0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._wake.wait()

    def _take_news(self) -> None:
        news, self._news = self._news, []
        for each in news:
            self.facts = facts.observed(self.pod, self.facts, each)

    def _look(self, spawn: _Spawn) -> datetime | None:
        now = self._site.now()
        step = state.step(self.pod, self.facts, now)
        self.facts, self._over = step.facts, step.over
        for action in step.actions:
            self._notices += events.of_action(action)
            self._perform(action, spawn)
        reported = statuses.status(self.pod, self.facts, now, around=self._around, last=self._wanted)
        self._notices += events.of_status(self._wanted, reported)
        if reported != self._wanted or self._notices or self._over:
            self._wanted = reported
            self._changed.set()
        return step.wake

    def _perform(self, action: state.Action, spawn: _Spawn) -> None:
        match action:
            case state.Start(name, number):
                spawn(self._live(self.pod.container(name), number))
            case state.Ask(name, pid, kind):
                spawn(self._ask(name, pid, kind))
            case state.RunHook():
                spawn(self._hook(action))
            case state.Terminate(name):
                self._signal(name, signal.SIGTERM)
            case state.Kill(name):
                self._signal(name, signal.SIGKILL)

    def _signal(self, name: str, number: signal.Signals) -> None:
        process = self._processes.get(name)
        if process is not None:
            process.run.signal(number)

    # --- a container

    async def _live(self, container: Container, number: int) -> None:
        """One run of a container, from its preparation to its end."""
        name, now = container.name, self._site.now
        mounted = frozenset(mount.name for mount in container.volume_mounts)
        try:
            if self._waits_for_others(container):
                ended = facts.Ended(exit_code=0, reason="Completed", started_at=now(), finished_at=now())
                self.tell(facts.Exited(name, ended))
                return
            renewal = await self._mint(mounted)
            process = await self._start(container, number)
        except Refused as refused:
            self.tell(facts.Unstartable(name, facts.Refused(refused.reason, refused.message)))
            return
        except (StartFailed, OSError) as error:
            failed = facts.Ended(
                exit_code=_START_FAILED, reason=events.START_ERROR, message=str(error), finished_at=now()
            )
            self.tell(facts.Exited(name, failed))
            return
        started, pid = now(), process.run.pid
        self._processes[name] = process
        self.tell(facts.Started(name, pid, started))
        renewing = asyncio.create_task(self._renew_tokens(mounted, renewal))
        try:
            exit = await process.run.ended()
        finally:
            renewing.cancel()
        del self._processes[name]
        ended = facts.Ended(
            exit_code=exit.code,
            signal=exit.signal,
            reason="Completed" if exit.code == 0 else "Error",
            message=self._message(container, exit, number=number),
            started_at=started,
            finished_at=now(),
            pid=pid,
        )
        self.tell(facts.Exited(name, ended))

    async def _start(self, container: Container, number: int) -> _Process:
        """Start the process of a container; raises `Refused`, `StartFailed` or `OSError`."""
        prepared = self._prepare(container)
        log = self._site.directories.log(self.pod.uid, container.name, number)
        make_private(log.parent)
        _drop_old_logs(log.parent, number)
        run = await ContainerRun.start(
            prepared.argv,
            env=prepared.env,
            directory=prepared.directory,
            log=log,
            means=self._site.means,
            hidden=self._site.hidden,
            shown=prepared.shown,
            spares=prepared.spares,
        )
        return _Process(run, prepared)

    # --- tokens

    async def _mint(self, mounted: frozenset[str]) -> datetime | None:
        """Ask for the tokens of volumes; returns when they are to be renewed.  An API that is away is asked again."""
        sources = token_sources(self.pod, mounted)
        failures = 0
        while sources:
            try:
                minted = await mint(self._site.client, self.pod, sources, now=self._site.now())
            except (StatusError, Unreachable) as error:
                failures += 1
                fields = {"pod": str(self._object.key), "error": str(error)}
                _log.warning("token not granted", extra={"fields": fields})
                await asyncio.sleep(BACKOFF.delay(failures).total_seconds())
            else:
                self._tokens.update(minted.tokens)
                return minted.renew_at
        return None

    async def _renew_tokens(self, mounted: frozenset[str], moment: datetime | None) -> None:
        """Renew the tokens of volumes for as long as their container runs and the service account exists."""
        with contextlib.suppress(Refused):
            while moment is not None:
                await asyncio.sleep(max((moment - self._site.now()).total_seconds(), 1.0))
                moment = await self._mint(mounted)
                self._refresh()

    def _waits_for_others(self, container: Container) -> bool:
        """Whether a container only waits for other pods, which the node does; raises `Refused` while some are missing.

        The node tries it again when one of those pods changes.
        """
        if container.command[: len(start_orders.WAITER)] != start_orders.WAITER or not self.starts_after:
            return False
        short = start_orders.lacking(self._site.view, self._object)
        if short:
            waiting = ", ".join(f"{number} ready pods of {clique}" for clique, number in short.items())
            raise Refused(f"waiting for {waiting}", reason="PodInitializing")
        return True

    def _prepare(self, container: Container) -> Launch:
        """Everything that a container needs before it is started."""
        site, directories = self._site, self._site.directories
        prepared = launch(
            self.pod,
            container,
            directories=directories,
            lookup=site.lookup,
            around=self._around,
            machine=site.machine,
        )
        for directory in prepared.needed:
            make_private(directory)
        self._publish(mount.name for mount in container.volume_mounts)
        directories.message(self.pod.uid, container.name).unlink(missing_ok=True)
        return prepared

    def _publish(self, names: Iterable[str]) -> None:
        site = self._site
        for volume in self.pod.spec.volumes:
            if volume.name in names:
                files = contents(self.pod, volume, lookup=site.lookup, around=self._around, tokens=self._tokens)
                if files is not None:
                    publish(located(self.pod, volume, directories=site.directories, lookup=site.lookup), files)

    def _refresh(self) -> None:
        """Bring the files of volumes that are in use up to date; what is missing now is left as it was."""
        for name in self._processes:
            for mount in self.pod.container(name).volume_mounts:
                with contextlib.suppress(Refused, OSError):
                    self._publish((mount.name,))

    def _message(self, container: Container, exit: Exit, *, number: int) -> str:
        """Why a container ended, in its own words."""
        if exit.message:
            return exit.message
        directories = self._site.directories
        said = read_tail(directories.message(self.pod.uid, container.name), _MESSAGE_BYTES)
        if not said and exit.code and container.termination_message_policy == "FallbackToLogsOnError":
            said = last_words(directories.log(self.pod.uid, container.name, number))
        return said

    async def _ask(self, name: str, pid: int, kind: Kind) -> None:
        live = self.facts.containers[name].run
        if name not in self._processes or not isinstance(live, facts.Live):
            return
        probe = live.probes[kind].probe
        answer = await self._asker(name).ask(probe, timeout=probe.timeout_seconds)
        self.tell(facts.Probed(name, pid, kind, answer, self._site.now()))

    async def _hook(self, action: state.RunHook) -> None:
        lifecycle = self.pod.container(action.container).lifecycle
        handler = lifecycle.post_start if action.hook is facts.Hook.POST_START else lifecycle.pre_stop
        if handler is None or action.container not in self._processes:
            return
        timeout = _HOOK_PATIENCE if action.timeout is None else max(action.timeout.total_seconds(), 0.0)
        answer = await self._asker(action.container).ask(handler, timeout=timeout)
        failure = "" if answer.good else answer.message or "it gave no reason"
        self.tell(facts.Hooked(action.container, action.pid, action.hook, self._site.now(), failure))

    def _asker(self, name: str) -> Asker:
        process = self._processes[name]
        return Asker(
            container=self.pod.container(name),
            run=process.run,
            launch=process.launch,
            ip=self.ip,
            http=self._site.http,
        )

    async def _stop_processes(self) -> None:
        """Stop the processes that still run, because the node ends: SIGTERM, and after a short grace SIGKILL."""
        runs = [process.run for process in self._processes.values()]
        if not runs:
            return
        for run in runs:
            run.signal(signal.SIGTERM)
        grace = min(STOP_GRACE, self.pod.grace.total_seconds())
        try:
            async with asyncio.timeout(grace):
                await asyncio.gather(*(run.ended() for run in runs))
        except TimeoutError:
            await asyncio.gather(*(run.kill() for run in runs))

    # --- reporting

    async def _report(self) -> None:
        """Write the newest status whenever it differs from what was written, and at the end remove the pod."""
        written: dict[str, Any] | None = None
        removed = False
        failures = 0
        while True:
            await self._changed.wait()
            self._changed.clear()
            wanted, over = self._wanted, self._over
            try:
                if wanted is not None and wanted != written:
                    await self._write(wanted)
                    written = wanted
                if over and wanted is self._wanted and self.pod.deleting and not removed:
                    await self._remove()
                    removed = True
            except (NotFound, Conflict):
                # There is no such pod any more; the stores will say so.
                written, removed = wanted, True
            except (StatusError, Unreachable) as error:
                failures += 1
                fields = {"pod": str(self._object.key), "error": str(error)}
                _log.warning("status not written", extra={"fields": fields})
                await asyncio.sleep(BACKOFF.delay(failures).total_seconds())
                self._changed.set()
                continue
            failures = 0
            notices, self._notices = self._notices, []
            await self._site.events.emit(self._object, notices)

    async def _write(self, wanted: Mapping[str, Any]) -> None:
        await self._site.client.patch(
            PODS,
            self._object.key,
            statuses.patch(wanted, uid=self.pod.uid),
            type=PatchType.STRATEGIC,
            subresource="status",
        )

    async def _remove(self) -> None:
        await self._site.client.delete(PODS, self._object.key, uid=self.pod.uid, grace_seconds=0)


def _drop_old_logs(directory: Path, number: int) -> None:
    """Keep the log of the run before this one, and no older."""
    for path in directory.iterdir():
        run = path.name.partition(".")[0]
        if run.isdecimal() and int(run) < number - 1:
            path.unlink(missing_ok=True)
