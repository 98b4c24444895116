"""``holdfast profile job``: the command of a profiling Job.

It reads what is asked from a ConfigMap, searches, and writes its progress and its result to the same ConfigMap,
through the API.  Reports are written while the search runs beside the event loop; the newest one counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.client.kubeconfig import connect, in_cluster
from holdfast.client.objects import Object
from holdfast.client.protocols import Client, Unreachable
from holdfast.client.resources import CONFIG_MAPS
from holdfast.client.settings import KubeconfigError
from holdfast.meta import times
from holdfast.meta.errors import Conflict, NotFound, StatusError
from holdfast.meta.objects import Key
from holdfast.profiler import jobs, thorough
from holdfast.profiler.jobs import ASKED, Asked, Report, Search
from holdfast.profiler.request import Request, Unanswerable
from holdfast.profiler.results import Output, Progress, Result
from holdfast.profiler.thorough import Owner

T = TypeVar("T")

HEARTBEAT: Final = 15.0
"""Seconds between two reports of a search that has nothing new to report."""

PACE: Final = 0.2
"""Seconds between two reports of a search that has."""

PATIENCE: Final = 60.0
"""Seconds for which a server that does not answer is asked again."""


class Failed(InputError):
    """The Job failed, and has reported why."""

    exit_code = ExitCode.BLOCKED


@click.command("job")
@click.option(
    "--output", "place", required=True, metavar="NAMESPACE/NAME", help="The ConfigMap to read from and to report to."
)
@click.option(
    "--credentials",
    type=PathType(file_okay=False),
    help="The directory with the token of a service account.  [default: as other commands connect]",
)
@click.option("--model-dir", type=PathType(file_okay=False), help="A directory that may have the model.")
@click.option("--mock", is_flag=True, help="Measure mock workers where the search is thorough: there are no GPUs here.")
def command(place: str, credentials: Path | None, model_dir: Path | None, mock: bool) -> None:
    """Run as a profiling Job: read what is asked from a ConfigMap, and write progress and result there.

    \b
    In a pod:  holdfast profile job --output team/output
    """
    namespace, _, name = place.partition("/")
    if not namespace or not name:
        raise InputError(Complaint(message=f"{place!r} is not NAMESPACE/NAME", path="--output"))
    asyncio.run(_run(Key(namespace, name), credentials, model_dir, mock=mock))


async def _run(key: Key, credentials: Path | None, model_dir: Path | None, *, mock: bool) -> None:
    try:
        connection = in_cluster(credentials) if credentials is not None else connect()
    except KubeconfigError as error:
        raise InputError(Complaint(message=str(error), path="--credentials")) from None
    client = connection.client
    try:
        job = Job(client, await _patiently(lambda: client.get(CONFIG_MAPS, key)))
        await job.run(model_dir, search=partial(_search, client, credentials, mock))
    except (StatusError, Unreachable) as error:
        raise Failed(Complaint(message=f"configmap {key}: {error}")) from None
    finally:
        await client.close()


AGAIN: Final = 2.0
"""Seconds that the controller has to make a ConfigMap again that was deleted."""


def _search(client: Client, credentials: Path | None, mock: bool, loop: asyncio.AbstractEventLoop) -> Search:
    """The search of a Job: by prediction, or by measuring candidates on the cluster, as is asked."""

    def search(asked: Asked, request: Request, report: Report) -> Result:
        if not asked.thorough:
            return jobs.rapid(asked, request, report)
        token = (credentials / "token").read_text() if credentials is not None else ""
        owner = Owner(
            name=asked.name,
            namespace=asked.namespace,
            uid=asked.uid,
            spec=asked.spec,
            reference=thorough.account_reference(token) or thorough.request_reference(asked.name, asked.uid),
        )
        measuring = thorough.measure(client, owner, request, report, mock=mock)
        return asyncio.run_coroutine_threadsafe(measuring, loop).result()

    return search


class _Data(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def _asked(place: Object) -> Asked:
    return msgspec.json.decode(place.decode(_Data).data.get(ASKED, "{}"), type=Asked)


def _attempt(place: Object) -> str:
    try:
        return _asked(place).attempt
    except msgspec.MsgspecError:
        return ""


class Job:
    """One run: a search beside the event loop, and its reports."""

    def __init__(self, client: Client, place: Object) -> None:
        self._client = client
        self._place = place
        self._latest = Output()
        self._news = asyncio.Event()
        self._ended = False

    async def run(
        self, model_dir: Path | None, *, search: Callable[[asyncio.AbstractEventLoop], Search] = lambda loop: jobs.rapid
    ) -> None:
        """Search and report; raises `Failed` after a failure has been reported."""
        loop = asyncio.get_running_loop()

        def report(progress: Progress) -> None:
            loop.call_soon_threadsafe(self._tell, jobs.reported(progress))

        telling = asyncio.create_task(self._report())
        try:
            asked = _asked(self._place)
            output = await asyncio.to_thread(
                jobs.profile, asked, report=report, search=search(loop), model_dir=model_dir
            )
            failure = None
        except Exception as error:
            output, failure = jobs.failed(error, phase=self._latest.phase or "Initializing"), error
        # A report that is on its way is waited for: it must not arrive after the output.
        self._ended = True
        self._news.set()
        await telling
        await self._write(output)
        if isinstance(failure, Unanswerable):
            raise Failed(Complaint(message=failure.message, path=failure.field))
        if failure is not None:
            raise failure
        click.echo(output.message or "done")

    def _tell(self, output: Output) -> None:
        self._latest = output
        self._news.set()

    async def _report(self) -> None:
        """Write the newest report, and a heartbeat where there is none."""
        while not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await self._news.wait()
            self._news.clear()
            if self._latest.phase and not self._ended:
                await self._write(self._latest)
                await asyncio.sleep(PACE)

    async def _write(self, output: Output) -> None:
        """Replace the output, also in a ConfigMap that was made again; one of a later attempt is left alone."""
        stamped = msgspec.structs.replace(output, heartbeat=times.format(datetime.now(UTC)))
        # Keys that are empty are removed: nothing of an earlier report is left.
        empty: dict[str, Any] = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(Output))
        data = {**empty, **msgspec.to_builtins(stamped)}
        while True:
            patch = {"metadata": {"uid": self._place.uid}, "data": data}
            try:
                await _patiently(partial(self._client.patch, CONFIG_MAPS, self._place.key, patch))
            except (NotFound, Conflict):
                await asyncio.sleep(AGAIN)
                again = await _patiently(lambda: self._client.get(CONFIG_MAPS, self._place.key))
                if again.uid == self._place.uid or _attempt(again) != _attempt(self._place):
                    raise
                self._place = again
            else:
                return


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the server answers; a refusal that another attempt does not change is raised."""
    loop = asyncio.get_running_loop()
    until, wait = loop.time() + PATIENCE, 0.1
    while True:
        try:
            return await ask()
        except (NotFound, Conflict):
            raise
        except (StatusError, Unreachable):
            if loop.time() + wait > until:
                raise
        await asyncio.sleep(wait)
        wait = min(wait * 2, 5.0)
