"""``holdfast profile job``: what it reads, what it reports, and to which ConfigMap."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.waiting import eventually

from holdfast.apiserver.server import Server
from holdfast.cli.profile import job
from holdfast.cli.profile.job import Failed, Job
from holdfast.client.protocols import Client
from holdfast.client.resources import CONFIG_MAPS
from holdfast.meta.errors import StatusError
from holdfast.meta.objects import Key
from holdfast.profiler.jobs import Asked, Report, Search, rapid
from holdfast.profiler.request import Request
from holdfast.profiler.results import Progress, Result
from holdfast.testing.clusters import connected

KEY = Key("default", "output")


def place(attempt: str = "a1", **spec: Any) -> dict[str, Any]:
    asked = {
        "name": "qwen",
        "namespace": "default",
        "attempt": attempt,
        "deployment": "qwen-dgd",
        "spec": {"model": "Qwen/Qwen3-0.6B", "backend": "vllm", **spec},
        "hardware": {"gpuSku": "h200_sxm", "totalGpus": 2, "numGpusPerNode": 8},
    }
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    data = {"request.json": json.dumps(asked), "profiler_error": "of an earlier run"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def played(story: Callable[[Client], Awaitable[None]]) -> None:
    async def play() -> None:
        server = await Server.open(None)
        client = connected(server)
        try:
            await story(client)
        finally:
            await client.close()
            await server.close()

    asyncio.run(play())


async def run(client: Client, search: Search = rapid) -> None:
    await Job(client, await client.get(CONFIG_MAPS, KEY)).run(None, search=lambda loop: search)


async def output(client: Client) -> dict[str, str]:
    data: dict[str, str] = (await client.get(CONFIG_MAPS, KEY)).wire()["data"]
    return data


def test_the_result_is_written_and_nothing_of_an_earlier_run_is_left() -> None:
    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, place())
        await run(client)
        data = await output(client)
        assert (data["phase"], data["profiler_status"]) == ("Done", "success")
        assert "kind: DynamoGraphDeployment" in data["final_config.yaml"]
        assert json.loads(data["result.json"])["chosen"]["slaMet"]
        assert data["heartbeat"]
        assert "profiler_error" not in data

    played(story)


def test_progress_is_reported_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PACE", 0.0)
    seen = threading.Event()

    def slow(asked: Asked, request: Request, report: Report) -> Result:
        report(Progress(phase="SweepingDecode", message="tp 4", done=3, total=7))
        assert seen.wait(30)
        return rapid(asked, request, lambda progress: None)

    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, place())
        running = asyncio.create_task(run(client, slow))

        async def swept() -> bool:
            return (await output(client)).get("phase") == "SweepingDecode"

        await eventually(swept)
        data = await output(client)
        assert (data["message"], data["progress"]) == ("tp 4", "3 of 7")
        seen.set()
        await running
        assert (await output(client))["phase"] == "Done"

    played(story)


def test_a_request_that_cannot_be_answered_is_said_with_its_field() -> None:
    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, place(model="Qwen/Qwen3-0.7B"))
        with pytest.raises(Failed, match=r"spec\.model"):
            await run(client)
        data = await output(client)
        assert (data["phase"], data["profiler_status"]) == ("Initializing", "failed")
        assert data["profiler_error"].startswith("spec.model: ")

    played(story)


def test_a_defect_is_reported_with_the_phase_in_which_it_happened() -> None:
    def broken(asked: Asked, request: Request, report: Report) -> Result:
        report(Progress(phase="SweepingPrefill"))
        raise ZeroDivisionError("division by zero")

    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, place())
        with pytest.raises(ZeroDivisionError):
            await run(client, broken)
        data = await output(client)
        assert (data["phase"], data["profiler_status"]) == ("SweepingPrefill", "failed")
        assert data["profiler_error"] == "ZeroDivisionError: division by zero"

    played(story)


@pytest.mark.parametrize(("attempt", "written"), [("a1", True), ("a2", False)])
def test_an_output_that_is_made_again_is_used_unless_a_later_attempt_owns_it(
    monkeypatch: pytest.MonkeyPatch, attempt: str, written: bool
) -> None:
    monkeypatch.setattr(job, "AGAIN", 0.0)

    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, place())
        old = Job(client, await client.get(CONFIG_MAPS, KEY))
        await client.delete(CONFIG_MAPS, KEY)
        await client.create(CONFIG_MAPS, place(attempt))
        if written:
            await old.run(None)
        else:
            with pytest.raises(StatusError):
                await old.run(None)
        assert ("final_config.yaml" in await output(client)) is written

    played(story)
