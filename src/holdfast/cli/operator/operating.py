"""Operators at work on some server: reached, prepared, run, and stopped by signals.

While the server cannot be reached, the command retries.  What only a user can correct
ends the command with one message: wrong credentials, no permission to install
definitions, a port that is in use.  Missing permissions of controllers are logged, and
the controllers retry.  This module must not know which controllers run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.operator import deploying, installing, permissions, selection
from holdfast.cli.operator import health as checkups
from holdfast.cli.operator.installing import Installed
from holdfast.cli.operator.registration import Registered, WebhookOptions
from holdfast.cli.process.binding import CannotStart
from holdfast.cli.process.garbage import collect_rarely
from holdfast.client.kubeconfig import Connection, connect
from holdfast.client.protocols import Unreachable, Untrusted
from holdfast.client.settings import KubeconfigError
from holdfast.kernel.backoff import Backoff
from holdfast.meta.errors import Conflict, Forbidden, StatusError, Unauthorized
from holdfast.meta.objects import Key
from holdfast.operators.admission import Admission
from holdfast.operators.metrics import RolloutMetrics
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller
from holdfast.runtime.hosting import LeaderElection, build_manager
from holdfast.runtime.manager import Manager, Settings
from holdfast.runtime.metrics import Metrics

_log: Final = logging.getLogger("holdfast.operator")

BACKOFF: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(seconds=30))
"""Between attempts to reach a server that is away when we start."""

_GRANT: Final = "grant the role that 'holdfast operator manifests' prints"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of ``holdfast operator run``."""

    controllers: tuple[Controller[Any], ...]
    kubeconfig: Path | None = None
    context: str = ""
    namespaces: tuple[str, ...] = ()
    elects: bool = False
    lease_namespace: str = ""
    health: tuple[str, int]
    installs: bool = True
    adopts: bool = False
    webhooks: WebhookOptions | None = None


async def operate(options: RunOptions) -> None:
    """Run until a signal comes."""
    stop = _stopped_by_signals()
    metrics = Metrics()
    connection = _connected(options, metrics)
    try:
        manager = build_manager(
            connection.transport,
            controllers=options.controllers,
            now=lambda: datetime.now(UTC),
            settings=Settings(namespaces=options.namespaces),
            metrics=metrics,
            election=_candidacy(options, connection),
        )
        metrics.extend(RolloutMetrics(_rolled(options), manager.caches, lambda: datetime.now(UTC)))
        bind, port = options.health
        async with checkups.served(manager, bind, port=port) as address:
            _log.info("operator started", extra={"fields": _described(options, connection) | {"health": address}})
            if missing := selection.left_out(options.controllers):
                hint = "the chosen controllers wait for what these do; another process must run them"
                _log.warning("controllers left out", extra={"fields": {"controllers": list(missing), "hint": hint}})
            async with contextlib.AsyncExitStack() as stack:
                if await _done_before(stop, _prepared(options, connection, manager, stack)):
                    await _worked(manager, stop)
    finally:
        await connection.client.close()


def _rolled(options: RunOptions) -> list[RolloutKind]:
    """The kinds that roll out, and that the controllers of this process operate."""
    operated = {controller.resource for controller in options.controllers}
    return [kind for kind in selection.rollout_kinds() if kind.resource in operated]


def _stopped_by_signals() -> asyncio.Event:
    """Set by the first signal; the second one ends the process."""
    stop = asyncio.Event()

    def signalled() -> None:
        if stop.is_set():
            os._exit(ExitCode.INTERRUPTED)
        _log.info("operator stopping", extra={"fields": {"hint": "a second signal ends it at once"}})
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    return stop


async def _done_before(stop: asyncio.Event, doing: Coroutine[Any, Any, None]) -> bool:
    """Do something unless a stop comes first; whether it was done."""
    task, stopped = asyncio.create_task(doing), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.wait({task})
    return False


async def _worked(manager: Manager, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        working = group.create_task(manager.run(), name="manager")
        begun = group.create_task(_begun(manager), name="begun")
        await stop.wait()
        manager.stop()
        await asyncio.wait({working})
        begun.cancel()
    _log.info("operator stopped")


async def _begun(manager: Manager) -> None:
    await manager.working.wait()
    collect_rarely()
    _log.info("operator working")


# --- what it stands on


def _connected(options: RunOptions, metrics: Metrics) -> Connection:
    try:
        return connect(options.kubeconfig, context=options.context, observed=metrics.called)
    except KubeconfigError as error:
        raise InputError(Complaint(message=str(error))) from None


def _candidacy(options: RunOptions, connection: Connection) -> LeaderElection | None:
    return LeaderElection(lease=Key(_lease_namespace(options, connection), deploying.NAME)) if options.elects else None


def _lease_namespace(options: RunOptions, connection: Connection) -> str:
    return options.lease_namespace or connection.namespace


def _described(options: RunOptions, connection: Connection) -> dict[str, Any]:
    return {
        "server": connection.server,
        "found_in": connection.source,
        "controllers": [controller.name for controller in options.controllers],
        "namespaces": list(options.namespaces) or "all",
    }


# --- what comes first


async def _prepared(
    options: RunOptions, connection: Connection, manager: Manager, stack: contextlib.AsyncExitStack
) -> None:
    """Prepare the server, however long it is away; what is served meanwhile ends with `stack`."""
    registered: Registered | None = None

    async def redefine(registered: Registered) -> None:
        await _installed(options, connection, registered)

    for attempt in count(1):
        try:
            if options.webhooks is not None and registered is None:
                from holdfast.cli.operator import webhooks  # only who serves webhooks pays for certificates

                namespace, admission = _lease_namespace(options, connection), Admission(selection.operators())
                serving = webhooks.served(connection.client, options.webhooks, namespace, admission, redefine=redefine)
                registered = (await stack.enter_async_context(serving)).registered
            await _prepare(options, connection, manager, registered)
            return
        except (StatusError, Unreachable, TimeoutError) as error:
            if (final := _final(error, connection)) is not None:
                raise final from None
            delay = BACKOFF.delay(attempt).total_seconds()
            fields = {"server": connection.server, "why": str(error), "again_in": f"{delay:g}s"}
            _log.warning("server away", extra={"fields": fields})
        await asyncio.sleep(delay)


async def _installed(options: RunOptions, connection: Connection, registered: Registered | None) -> Installed:
    """Have the server serve the kinds."""
    return await installing.install(
        connection.client,
        selection.kinds_of(options.controllers),
        created=selection.created(options.controllers),
        adopts=options.adopts,
        writes=options.installs,
        conversion=None if registered is None else registered.conversion,
        annotations={} if registered is None else registered.annotations,
    )


async def _prepare(
    options: RunOptions, connection: Connection, manager: Manager, registered: Registered | None
) -> None:
    """Have the server serve the kinds, and say what we may not do there."""
    client = connection.client
    installed = await _installed(options, connection, registered)
    if installed.written:
        _log.info("definitions installed", extra={"fields": {"written": installed.written}})
    installing.refuse(installed.unfit, options.controllers, manager.refusals)
    lacking = await permissions.missing(client, permissions.needed(options.controllers), namespaces=options.namespaces)
    if options.elects:
        place = _lease_namespace(options, connection)
        lacking += await permissions.missing(client, permissions.to_elect(deploying.NAME), namespaces=[place])
    for permission in lacking:
        _log.error("permission missing", extra={"fields": {"permission": str(permission), "hint": _GRANT}})


def _final(error: StatusError | Unreachable | TimeoutError, connection: Connection) -> InputError | None:
    """The error that ends the command, where a retry cannot succeed."""
    match error:
        case Untrusted():
            return InputError(Complaint(message=str(error)))
        case Unauthorized():
            message = f"{connection.server} does not accept the credentials of {connection.source}: {error.message}"
            return InputError(Complaint(message=message, hint="log in again, or name another --kubeconfig"))
        case Forbidden():
            message = f"definitions cannot be installed: {error.message}"
            return CannotStart(Complaint(message=message, hint=f"{_GRANT}, or run with --no-install-crds"))
        case TimeoutError():
            return CannotStart(Complaint(message=str(error), hint="look at the conditions of the definition"))
        case StatusError() if not (error.transient or isinstance(error, Conflict)):
            return CannotStart(Complaint(message=f"{connection.server} refuses definitions: {error.message}"))
        case _:
            return None
