"""Health over HTTP: ``/healthz``, ``/readyz`` and ``/metrics``, as kubelets and people ask for them.

A check says in a sentence what is wrong, or None.  `report` makes an answer of checks
and is pure; `Health` serves it, on loopback by default.  That it answers at
all shows that the event loop turns.  Nothing here knows what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from aiohttp import web

from holdfast.runtime.metrics import CONTENT_TYPE

Check: TypeAlias = Callable[[], str | None]
"""What is wrong, in a sentence; None if nothing is.  It must not wait."""

Checks: TypeAlias = Mapping[str, Check]
Notes: TypeAlias = Mapping[str, Callable[[], str]]
"""What is worth knowing and never wrong, such as who leads."""

LOOPBACK: Final = "127.0.0.1"

_DRAIN_SECONDS: Final = 5.0


def report(name: str, checks: Checks, *, verbose: bool = False, notes: Notes | None = None) -> tuple[int, str]:
    """Code and text for a set of checks.

    Reasons are given only with `verbose`: a client that may ask whether the process is alive need not know more.
    """
    troubles = {check: _trouble(run) for check, run in checks.items()}
    healthy = not any(troubles.values())
    if healthy and not verbose:
        return 200, "ok\n"
    lines = [_line(check, trouble, verbose=verbose) for check, trouble in troubles.items()]
    if verbose:
        lines += [f"[+]{note} ok: {say()}" for note, say in (notes or {}).items()]
    verdict = f"{name} check passed" if healthy else f"{name} check failed"
    hint = "" if healthy or verbose else f"; /{name}?verbose says why"
    return (200 if healthy else 503), "\n".join([*lines, verdict + hint, ""])


def _line(check: str, trouble: str | None, *, verbose: bool) -> str:
    if trouble is None:
        return f"[+]{check} ok"
    return f"[-]{check} failed: {trouble}" if verbose else f"[-]{check} failed"


def _trouble(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # a check that cannot tell is a check that failed
        return f"the check itself failed with {type(error).__name__}"


class Health:
    """The endpoint of one process.

    alive    what, if it fails, only a restart can mend: workers that are stuck
    ready    what this process needs before it does its work: stores that have been read
    notes    what ``/readyz?verbose`` says besides
    metrics  the text of ``/metrics``
    """

    def __init__(
        self, *, alive: Checks, ready: Checks, metrics: Callable[[], bytes], notes: Notes | None = None
    ) -> None:
        self._alive = alive
        self._ready = ready
        self._notes = notes
        self._metrics = metrics
        self._runner: web.AppRunner | None = None

    async def serve(self, bind: str = LOOPBACK, port: int = 0) -> tuple[str, int]:
        """Begin; the address and port it listens on.  Raises `OSError` where they cannot be had."""
        app = web.Application(client_max_size=0)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metered)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_DRAIN_SECONDS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, bind, port).start()
        except OSError:
            await self.close()
            raise
        host, bound, *_ = self._runner.addresses[0]
        return host, bound

    async def close(self) -> None:
        """Take no more connections, finish what is being answered, and close."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        return _answer(*report("healthz", self._alive, verbose="verbose" in request.query))

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer(*report("readyz", self._ready, verbose="verbose" in request.query, notes=self._notes))

    async def _metered(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": CONTENT_TYPE})


def _answer(code: int, text: str) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(status=code, text=text, headers=headers)
