"""Health: reports by tables, and the endpoint over a loopback socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from holdfast.runtime.health import Checks, Health, report
from holdfast.runtime.metrics import CONTENT_TYPE


def fine() -> str | None:
    return None


def late() -> str | None:
    return "pods: the watch was refused"


def broken() -> str | None:
    raise LookupError("a secret")


LEADER = "[+]leader ok: standby, two leads\n"

REPORTS: dict[str, tuple[Checks, bool, int, str]] = {
    "all is well": ({"stores": fine}, False, 200, "ok\n"),
    "nothing is checked": ({}, False, 200, "ok\n"),
    "all is well, at length": (
        {"stores": fine, "controllers": fine},
        True,
        200,
        f"[+]stores ok\n[+]controllers ok\n{LEADER}readyz check passed\n",
    ),
    "one fails, and the reason needs verbose": (
        {"stores": late, "controllers": fine},
        False,
        503,
        "[-]stores failed\n[+]controllers ok\nreadyz check failed; /readyz?verbose says why\n",
    ),
    "one fails, at length": (
        {"stores": late, "controllers": fine},
        True,
        503,
        f"[-]stores failed: pods: the watch was refused\n[+]controllers ok\n{LEADER}readyz check failed\n",
    ),
    "a check that cannot tell has failed": (
        {"stores": broken},
        True,
        503,
        f"[-]stores failed: the check itself failed with LookupError\n{LEADER}readyz check failed\n",
    ),
}


@pytest.mark.parametrize("case", REPORTS)
def test_reports(case: str) -> None:
    checks, verbose, code, text = REPORTS[case]
    assert report("readyz", checks, verbose=verbose, notes={"leader": lambda: "standby, two leads"}) == (code, text)


def served(story: Callable[[Health, Callable[..., Awaitable[tuple[int, str, Any]]]], Awaitable[None]]) -> None:
    """Run a story with an endpoint and a way to ask it."""
    trouble: dict[str, str | None] = {"stores": None}

    async def inside() -> None:
        health = Health(
            alive={"controllers": fine},
            ready={"stores": lambda: trouble["stores"]},
            metrics=lambda: b"holdfast_leader 1.0\n",
            notes={"leader": lambda: "leading"},
        )
        host, port = await health.serve()
        assert host == "127.0.0.1"
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:

            async def ask(path: str, *, method: str = "GET", stores: str | None = None) -> tuple[int, str, Any]:
                trouble["stores"] = stores
                async with session.request(method, path) as answer:
                    return answer.status, await answer.text(), answer.headers

            try:
                await story(health, ask)
            finally:
                await health.close()

    asyncio.run(inside())


def test_the_endpoint_answers() -> None:
    async def story(health: Health, ask: Any) -> None:
        assert (await ask("/healthz"))[:2] == (200, "ok\n")
        assert (await ask("/healthz?verbose"))[:2] == (200, "[+]controllers ok\nhealthz check passed\n")
        assert (await ask("/readyz"))[:2] == (200, "ok\n")
        assert (await ask("/readyz?verbose=true"))[1] == "[+]stores ok\n[+]leader ok: leading\nreadyz check passed\n"
        assert (await ask("/readyz", stores="not read yet"))[0] == 503
        assert "[-]stores failed: not read yet\n" in (await ask("/readyz?verbose", stores="not read yet"))[1]
        assert (await ask("/healthz", stores="not read yet"))[0] == 200, "who is not ready is alive all the same"
        assert (await ask("/healthz", method="HEAD"))[0] == 200
        code, text, headers = await ask("/metrics")
        assert (code, text, headers["Content-Type"]) == (200, "holdfast_leader 1.0\n", CONTENT_TYPE)

    served(story)


@pytest.mark.parametrize(
    ("method", "path", "code"), [("GET", "/", 404), ("GET", "/secrets", 404), ("POST", "/healthz", 405)]
)
def test_the_endpoint_answers_nothing_else(method: str, path: str, code: int) -> None:
    async def story(health: Health, ask: Any) -> None:
        assert (await ask(path, method=method))[0] == code

    served(story)


def test_a_closed_endpoint_takes_no_connections_and_can_be_closed_again() -> None:
    async def story(health: Health, ask: Any) -> None:
        await health.close()
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask("/healthz")
        await health.close()

    served(story)


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open() -> None:
    async def story() -> None:
        first, second = (Health(alive={}, ready={}, metrics=bytes) for _ in range(2))
        _, port = await first.serve()
        with pytest.raises(OSError, match="in use"):
            await second.serve(port=port)
        await first.close()
        assert (await second.serve(port=port))[1] == port
        await second.close()

    asyncio.run(story())
