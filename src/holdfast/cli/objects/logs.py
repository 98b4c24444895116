"""``holdfast logs``: what the containers of a pod, or of all pods of an object, have written.

Each container is a source of lines.  Once, the sources are printed one after the other; followed, their lines are
printed as they come, new pods and restarted containers join, and a lost connection is resumed after the last line.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Protocol
from urllib.parse import unquote

import click

from holdfast.cli import connecting, painting, watching
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import Complaint, ExitCode, InputError, printable
from holdfast.cli.objects import completing, owned, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.client import streams
from holdfast.client.discovery import Discovery
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope, Unreachable
from holdfast.client.resources import PODS
from holdfast.meta import durations, times
from holdfast.meta.errors import BadRequest, NotFound, StatusError
from holdfast.meta.exchange import Request

FEW: Final = 10
"""Lines of each container that are shown by default, where there are several."""

MOST: Final = 100
"""Containers that are followed at once; each of them is a connection."""

_AT_ONCE: Final = 8
"""Logs that are read at once, where they are not followed."""

_AGAIN: Final = 1.0
"""Seconds until a lost connection is tried again."""

_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines are shown, and how.

    tail     None: all lines of a single container, and the last `FEW` of several; -1: all lines
    prefix   None: only where there are several containers
    """

    container: str = ""
    every_container: bool = False
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: timedelta | None = None
    since_time: str = ""
    prefix: bool | None = None

    def query(self, container: str, *, several: bool, after: str = "") -> dict[str, tuple[str, ...]]:
        """The parameters of a request; `after` is the time of the last line that was printed."""
        few = self.tail is None and several and self.since is None and not self.since_time
        tail = FEW if few else None if self.tail == -1 else self.tail
        given = {
            "container": container,
            "follow": "true" if self.follow else "",
            "previous": "true" if self.previous else "",
            "timestamps": "true" if self.timestamps or self.follow else "",
            "tailLines": "" if tail is None or after else str(tail),
            "sinceSeconds": "" if self.since is None or after else str(max(1, round(self.since.total_seconds()))),
            "sinceTime": after or self.since_time,
        }
        return {name: (value,) for name, value in given.items() if value}


def _duration(ctx: click.Context, parameter: click.Parameter, text: str) -> timedelta | None:
    if not text:
        return None
    try:
        return durations.parse(text)
    except durations.DurationError as error:
        raise click.BadParameter(str(error)) from None


def _moment(ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    if text:
        try:
            times.parse_micro(text)
        except times.TimeError as error:
            raise click.BadParameter(f"{error}; write such as 2030-01-31T12:00:00Z") from None
    return text


@click.command("logs", cls=Verb)
@click.argument("words", nargs=-1, metavar="POD | TYPE/NAME", shell_complete=completing.objects_or_pods)
@click.option("-l", "--selector", default="", metavar="LABELS", help="The pods with such labels: app=web,tier!=db.")
@click.option("-c", "--container", default="", metavar="NAME", help="The container.  [default: all of several pods]")
@click.option("--all-containers", "every_container", is_flag=True, help="All containers, and those that initialise.")
@click.option("-f", "--follow", is_flag=True, help="Go on to print lines as they are written.")
@click.option("-p", "--previous", is_flag=True, help="The run of the container before its last restart.")
@click.option("--since", callback=_duration, default="", metavar="DURATION", help="Only lines that are newer: 5m.")
@click.option("--since-time", callback=_moment, default="", metavar="TIME", help="Only lines since a time.")
@click.option(
    "--tail", type=click.IntRange(-1), metavar="N",
    help=f"The last N lines; -1 for all.  [default: all, and of several containers {FEW} each]",
)  # fmt: skip
@click.option("--timestamps", is_flag=True, help="Show the time of each line.")
@click.option("--prefix/--no-prefix", default=None, help="Whether lines begin with their pod.  [default: if several]")
@connecting.options
def command(
    *, where: Where, words: tuple[str, ...], selector: str, tail: int | None, previous: bool, follow: bool, **rest: Any
) -> None:
    """Show what pods have written.

    The pods are one by its name, those with a label, or all pods that an object of any kind owns.

    \b
    One pod:                holdfast logs web-0
    All pods of an object:  holdfast logs workload/shop
    As they are written:    holdfast logs pcs/llm --follow
    Before a crash:         holdfast logs web-0 --previous
    The last minutes:       holdfast logs deployment/web --since 5m -c main
    """
    if bool(words) == bool(selector):
        raise click.UsageError("name a pod or an object, such as web-0 or workload/shop, or give -l LABELS")
    if previous and follow:
        raise click.UsageError("the previous run has ended, so there is nothing to follow; leave one of them out")
    if rest["container"] and rest["every_container"]:
        raise click.UsageError("--container and --all-containers are given; leave one of them out")
    if rest["since"] is not None and rest["since_time"]:
        raise click.UsageError("--since and --since-time are given; leave one of them out")
    wanted = Wanted(follow=follow, previous=previous, tail=tail, **rest)
    connecting.run(where, lambda session: _logs(session, words, selector, wanted))


async def _logs(session: Session, words: tuple[str, ...], selector: str, wanted: Wanted) -> ExitCode | None:
    known = await session.discovery()
    choice = await Choice.of(session, known, words, selector)
    if wanted.follow:
        return await Follower(session, choice, wanted, _Printer(wanted)).run()
    found = await choice.pods()
    if not found:
        raise Refused(*choice.nothing())
    sources = [each for pod in found for each in sources_of(pod, wanted, alone=choice.is_pod)]
    printer = _Printer(wanted)
    printer.begin(several=len(sources) > 1)
    for source in sources:
        printer.add(source)
    gate = asyncio.Semaphore(_AT_ONCE)
    reads = [asyncio.ensure_future(_read(session, each, wanted, len(sources) > 1, gate)) for each in sources]
    problems = []
    for source, read in zip(sources, reads, strict=True):
        answer = await read
        if isinstance(answer, bytes):
            printer.whole(source, answer)
        elif len(sources) > 1 and isinstance(answer, BadRequest):
            click.echo(printable(f"note: {answer.message}"), err=True)  # such as one that has not started
        else:
            problems.append(connecting.words(answer))
    return connecting.report(problems)


async def _read(
    session: Session, source: Source, wanted: Wanted, several: bool, gate: asyncio.Semaphore
) -> bytes | StatusError:
    async with gate:
        try:
            return (await session.client.raw(source.request(wanted, several=several))).body
        except StatusError as error:
            return error


# Which pods, and which containers.


@dataclass(frozen=True, slots=True)
class Source:
    """A container of a pod, in one of its runs."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int
    """How often it was restarted before."""
    several: bool
    """Whether its pod has other containers that are shown."""

    @property
    def title(self) -> str:
        return f"{self.pod}/{self.container}" if self.several else self.pod

    def request(self, wanted: Wanted, *, several: bool, after: str = "") -> Request:
        query = wanted.query(self.container, several=several, after=after)
        return Request("GET", unquote(PODS.path(self.namespace, self.pod, "log")), query)


def sources_of(pod: Object, wanted: Wanted, *, alone: bool) -> list[Source]:
    """The containers of a pod that are shown; `alone`: the user named this pod."""
    wire = pod.wire()
    spec = wire.get("spec") or {}
    main = [str(each.get("name")) for each in spec.get("containers") or ()]
    first = [str(each.get("name")) for each in spec.get("initContainers") or ()]
    if wanted.container:
        if wanted.container not in (*first, *main):
            if not alone:
                return []
            message = f"pod {pod.key.name} has no container {wanted.container!r}"
            raise InputError(Complaint(message=message, hint=f"write one of {', '.join((*main, *first))}", path="-c"))
        chosen = [wanted.container]
    elif wanted.every_container:
        chosen = [*first, *main]
    elif alone:
        preferred = pod.meta.annotations.get(_DEFAULT_CONTAINER, "")
        chosen = [preferred] if preferred in main else main[:1]
    else:
        chosen = main
    return [
        Source(pod.key.namespace, pod.key.name, pod.uid, name, _restarts(wire, name), len(chosen) > 1)
        for name in chosen
    ]


def has_started(pod: Object, container: str) -> bool:
    """Whether a container of a pod runs or has run, so that it may have a log."""
    state = _status(pod.wire(), container).get("state") or {}
    return "running" in state or "terminated" in state


def _restarts(pod: dict[str, Any], container: str) -> int:
    return int(_status(pod, container).get("restartCount") or 0)


def _status(pod: dict[str, Any], container: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    found = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return next((each for each in found if each.get("name") == container), {})


@dataclass(frozen=True, slots=True)
class Choice:
    """The pods that the arguments name."""

    session: Session
    known: Discovery
    target: Target | None
    labels: str = ""

    @classmethod
    async def of(cls, session: Session, known: Discovery, words: Sequence[str], labels: str) -> Choice:
        if not words:
            return cls(session, known, None, labels)
        named = ("pod", *words) if len(words) == 1 and "/" not in words[0] else tuple(words)
        return cls(session, known, await targets.one(session, named, discovery=known))

    @property
    def is_pod(self) -> bool:
        return self.target is not None and self.target.resource == PODS

    @property
    def scope(self) -> Scope:
        """The scope in which all of them are."""
        if self.target is None:
            return Scope(namespace=self.session.namespace, labels=self.labels)
        return self.target.watched if self.is_pod else Scope(namespace=self.target.scope.namespace)

    async def pods(self) -> tuple[Object, ...]:
        if self.target is None:
            asked = Asked(words=("pods",), labels=self.labels)
            (target,) = await targets.targets(asked, self.session, discovery=self.known)
            return (await self.session.client.list(PODS, target.scope)).objects
        obj = await self.session.client.get(self.target.resource, self.target.key)
        return await owned.pods(self.session, self.target.served, obj, self.known)

    def nothing(self) -> tuple[str, ...]:
        if self.target is None:
            where = f"namespace {self.session.namespace}"
            return (f"error: no pod in {where} has the labels {self.labels}",)
        called = f"{self.target.type}/{self.target.name}"
        hint = f"'holdfast describe {called}' shows what it waits for"
        return f"error: {called} has no pods now, so there are no logs", f"hint: {hint}; --follow waits for pods"


# Printing.


class Printer(Protocol):
    """Where followed lines go."""

    def begin(self, *, several: bool) -> None:
        """Called once, before anything else: whether there may be several containers."""
        ...

    def add(self, source: Source) -> None:
        """Called before the first line of a container."""
        ...

    def line(self, source: Source, line: bytes) -> None: ...

    def note(self, text: str) -> None: ...


class _Printer:
    """Prints lines; those of several containers begin with their pod."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._prefix = False
        self._colours = painting.has_colours()
        self._numbers: dict[str, int] = {}
        self._width = 0

    def begin(self, *, several: bool) -> None:
        self._prefix = several if self._wanted.prefix is None else self._wanted.prefix

    def note(self, text: str) -> None:
        click.echo(printable(f"note: {text}"), err=True)

    def add(self, source: Source) -> None:
        self._numbers.setdefault(source.title, len(self._numbers))
        self._width = max(self._width, len(source.title))

    def whole(self, source: Source, text: bytes) -> None:
        if not self._prefix:
            click.echo(text, nl=bool(text) and not text.endswith(b"\n"))
            return
        for line in text.split(b"\n")[:-1] if text.endswith(b"\n") else text.split(b"\n") if text else ():
            self.line(source, line)

    def line(self, source: Source, line: bytes) -> None:
        click.echo(self._shown(source) + line)

    def _shown(self, source: Source) -> bytes:
        if not self._prefix:
            return b""
        title = f"{source.title:<{self._width}} │ "
        return (painting.numbered(title, self._numbers[source.title]) if self._colours else title).encode()


# Following.


@dataclass
class Follower:
    """Follows the logs of pods, also of those that are created later."""

    session: Session
    choice: Choice
    wanted: Wanted
    printer: Printer
    _tasks: dict[Source, asyncio.Task[None]] = field(default_factory=dict)
    _ours: set[str] = field(default_factory=set)
    _others: set[str] = field(default_factory=set)

    async def run(self) -> ExitCode | None:
        first = await self.choice.pods()
        if self.choice.is_pod:
            sources_of(first[0], self.wanted, alone=True)  # a container that does not exist fails before any output
        self._ours = {each.uid for each in first}
        count = sum(len(sources_of(each, self.wanted, alone=self.choice.is_pod)) for each in first)
        if count > MOST:
            message = f"there are {count} containers, and at most {MOST} are followed at once"
            raise InputError(Complaint(message=message, hint="name a pod, or a container with -c", path="--follow"))
        self.printer.begin(several=count > 1 or not self.choice.is_pod)
        stores = watching.caches(self.session, {PODS: self.choice.scope})
        changed = asyncio.Event()
        if not first:
            self.printer.note(self.choice.nothing()[0].removeprefix("error: "))
        async with watching.running(stores):
            stores.subscribe(PODS, lambda old, new: changed.set())
            try:
                while True:
                    changed.clear()
                    await self._join(stores.list(PODS), several=count > 1)
                    if self.choice.is_pod and self._has_ended(stores.list(PODS)):
                        await asyncio.gather(*self._tasks.values())
                        return None
                    await changed.wait()
            finally:
                for task in self._tasks.values():
                    task.cancel()

    async def _join(self, pods: Iterable[Object], *, several: bool) -> None:
        """Begin to follow containers that have started since."""
        pods = list(pods)
        if any(self._is_new(each) for each in pods):
            self._ours |= {each.uid for each in await self._found()}
            self._others |= {each.uid for each in pods} - self._ours
        for pod in pods:
            if pod.uid not in self._ours:
                continue
            for source in sources_of(pod, self.wanted, alone=self.choice.is_pod):
                if source not in self._tasks and has_started(pod, source.container):
                    self.printer.add(source)
                    self._tasks[source] = asyncio.ensure_future(self._follow(source, several=several))

    def _is_new(self, pod: Object) -> bool:
        return pod.uid not in self._ours and pod.uid not in self._others

    async def _found(self) -> tuple[Object, ...]:
        with contextlib.suppress(StatusError, Unreachable):  # the object was deleted, or is asked for again
            return await self.choice.pods()
        return ()

    def _has_ended(self, pods: Iterable[Object]) -> bool:
        """Whether the one pod is deleted, or its containers will not run again."""
        phases = [(each.wire().get("status") or {}).get("phase") for each in pods if each.uid in self._ours]
        return not phases or all(phase in ("Succeeded", "Failed") for phase in phases)

    async def _follow(self, source: Source, *, several: bool) -> None:
        """Print the lines of one container until its run ends."""
        after = ""
        while True:
            try:
                response = await self.session.client.raw(source.request(self.wanted, several=several, after=after))
                if response.stream is None:
                    for line in response.body.splitlines():
                        after = self._line(source, line, after)
                    return
                try:
                    async for line in _lines(response.stream):
                        after = self._line(source, line, after)
                finally:
                    await streams.close(response.stream)
            except NotFound:
                return
            except BadRequest as error:
                self.printer.note(error.message)
                return
            except (StatusError, Unreachable) as error:
                self.printer.note(f"{source.title}: {error}; trying again")
                await asyncio.sleep(_AGAIN)
            else:
                return

    def _line(self, source: Source, line: bytes, after: str) -> str:
        """Print a line that was not printed yet; returns the time of the last line."""
        stamp, space, text = line.partition(b" ")
        moment = stamp.decode(errors="replace")
        if not space or not _is_time(moment):
            self.printer.line(source, line)  # a server that writes no times
            return after
        if after and _order(moment) <= _order(after):
            return after
        self.printer.line(source, line if self.wanted.timestamps else text)
        return moment


async def _lines(stream: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines as they come, also the last one of a run that ended without a line break."""
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


def _is_time(text: str) -> bool:
    return len(text) >= 20 and text[4:5] == "-" and text[10:11] == "T"


def _order(moment: str) -> tuple[str, str]:
    """What times with any number of digits behind the second are compared by."""
    whole, _, rest = moment.rstrip("Z").partition(".")
    return whole, rest.ljust(9, "0")
