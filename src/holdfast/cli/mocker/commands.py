"""``holdfast mocker``: an inference server without a GPU, with the timing of one."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from aiohttp import web

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli import logs
from holdfast.cli.arguments import FloatRange, PathType
from holdfast.cli.bundling import Decorator, together
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.groups import Group
from holdfast.cli.process.binding import CannotStart, checked_bind
from holdfast.profiler.mocker import discovery, modelled
from holdfast.profiler.mocker.engine import Engine, Limits
from holdfast.profiler.mocker.frontend import Backends, Frontend
from holdfast.profiler.mocker.modelled import Modelled
from holdfast.profiler.mocker.timing import Scaled
from holdfast.profiler.mocker.worker import ROLES, Role, Settings, Worker, kept_running
from holdfast.profiler.performance import CHUNK
from holdfast.profiler.request import Unanswerable
from holdfast.profiler.results import Precision

DRAIN_SECONDS: Final = 20.0
"""How long answers in progress may take when the process is stopped."""

_OPTIONS_OF: Final = {"spec.model": "--model", "spec.hardware.gpuSku": "--gpu", "precision": "--precision"}
"""The option of a field that the performance model complains about."""


@click.group("mocker", cls=Group)
def command() -> None:
    """Serve a model without a GPU, with the timing of one.

    The timing is that of the performance model; the text means nothing.

    \b
    One worker:   holdfast mocker serve --model Qwen/Qwen3-8B --gpu h200_sxm
    A router:     holdfast mocker frontend --workers http://10.0.0.1:8000
    Ask it:       curl http://127.0.0.1:8000/v1/models
    Load it:      holdfast load http://127.0.0.1:8000 --rate 5 --duration 20s
    """


def _address(*, variable: str, port: int) -> Decorator:
    """The options of an address; in a pod of a graph, variables have the defaults."""
    return together(
        click.option(
            "--bind",
            metavar="ADDRESS",
            default="127.0.0.1",
            envvar="POD_IP",
            help="The address to listen on.  [default: $POD_IP, or 127.0.0.1]",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=port,
            envvar=variable,
            help=f"The port to listen on; 0 is any free one.  [default: ${variable}, or {port}]",
        ),
        click.option(
            "--allow-non-loopback", is_flag=True, help="Let other machines reach it; needed for such a --bind."
        ),
        click.option(
            "--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True, help="How to log."
        ),
    )


@command.command("serve")
@click.option("--model", required=True, metavar="NAME|PATH", help="The model: of the catalogue, or with a config.json.")
@click.option("--gpu", default="h200_sxm", show_default=True, metavar="SKU", help="The GPU whose timing it has.")
@click.option("--tp", type=click.IntRange(1, 64), default=1, show_default=True, help="GPUs of the worker.")
@click.option("--precision", type=click.Choice(["bf16", "fp8"]), help="Of the weights.  [default: the model's]")
@click.option("--batch", type=click.IntRange(1), default=256, show_default=True, help="Sequences that run at a time.")
@click.option("--step-tokens", type=click.IntRange(1), default=CHUNK, show_default=True, help="Tokens of one step.")
@click.option("--kv-tokens", type=click.IntRange(1), help="Tokens of the KV cache.  [default: what the GPUs hold]")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="worker",
    show_default=True,
    help="worker answers whole requests; prefill and decode share them behind a frontend.",
)
@click.option("--name", default="", metavar="NAME", help="The name of the model in requests.  [default: --model]")
@click.option(
    "--speed",
    type=FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="How many times as fast as the GPU it is; below 1 for figures that a slow machine keeps up with.",
)
@_address(variable="DYN_SYSTEM_PORT", port=8000)
def serve(
    model: str,
    gpu: str,
    tp: int,
    precision: Precision | None,
    batch: int,
    step_tokens: int,
    kv_tokens: int | None,
    role: Role,
    name: str,
    speed: float,
    bind: str,
    port: int,
    allow_non_loopback: bool,
    log_format: logs.Format,
) -> None:
    """Run one worker: an OpenAI-compatible server whose tokens come when those of the GPU would.

    \b
    Try it:           holdfast mocker serve --model Qwen/Qwen3-8B --tp 1
    Ten times slower: holdfast mocker serve --model Qwen/Qwen3-0.6B --speed 0.1
    """
    bind = checked_bind(bind, allow_others=allow_non_loopback)
    try:
        worker = modelled.worker(model, gpu, tensor_parallel=tp, precision=precision)
    except Unanswerable as error:
        path = _OPTIONS_OF.get(error.field, error.field)
        raise InputError(Complaint(message=error.message, path=path)) from None
    held = kv_tokens or modelled.kv_tokens(worker)
    if not held:
        message = f"{model} in {worker.precision} does not fit into {tp} {gpu}; use more GPUs"
        raise InputError(Complaint(message=message, path="--tp"))
    engine = Engine(Limits(kv_tokens=held, batch=batch, step_tokens=step_tokens), Scaled(Modelled(worker), speed))
    settings = Settings(
        model=name or model, role=role, transfer=lambda tokens: worker.transfer_ms(tokens) / 1000 / speed
    )
    estimated = "estimated" if worker.timing.hardware.estimated else "measured"
    what = f"{role} of {settings.model} on {tp} {gpu} ({estimated}), KV cache of {held} tokens"
    logs.configure(log_format, level=logging.WARNING)
    _run(lambda: Worker(engine, settings).app(), bind, port, what)


@command.command("frontend")
@click.option(
    "--workers",
    "given",
    metavar="URL,...",
    default="",
    envvar="HOLDFAST_WORKERS",
    help="The workers; a name with several addresses stands for one worker at each.  [default: $HOLDFAST_WORKERS]",
)
@click.option(
    "--workers-file",
    type=PathType(dir_okay=False),
    envvar="HOLDFAST_WORKERS_FILE",
    help="A JSON file with the workers, which is followed; it comes before --workers.  "
    "[default: $HOLDFAST_WORKERS_FILE]",
)
@_address(variable="DYN_HTTP_PORT", port=8000)
def frontend(
    given: str,
    workers_file: Path | None,
    bind: str,
    port: int,
    allow_non_loopback: bool,
    log_format: logs.Format,
) -> None:
    """Run a router: requests go to the worker with the fewest in flight, or to a prefill and a decode worker.

    \b
    Before workers:  holdfast mocker frontend --workers http://a:80,http://b:80
    """
    bind = checked_bind(bind, allow_others=allow_non_loopback)
    try:
        urls = tuple(discovery.url(each) for each in given.split(",") if each.strip())
    except ValueError as error:
        raise InputError(Complaint(message=str(error), path="--workers")) from None
    if not urls and workers_file is None:
        raise click.UsageError("name the workers by --workers or --workers-file")
    logs.configure(log_format, level=logging.WARNING)

    def app() -> web.Application:
        backends = Backends(clock=asyncio.get_running_loop().time)
        made = Frontend(backends).app()
        follow = (
            partial(discovery.follow_names, urls)
            if workers_file is None
            else partial(discovery.follow_file, workers_file)
        )
        made.cleanup_ctx.append(partial(_followed, follow(backends.set)))
        return made

    _run(app, bind, port, "frontend")


async def _followed(following: Coroutine[Any, Any, None], app: web.Application) -> AsyncIterator[None]:
    async with kept_running(following):
        yield


def _run(app: Callable[[], web.Application], bind: str, port: int, what: str) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(app, bind, port, what))


async def _serve(app: Callable[[], web.Application], bind: str, port: int, what: str) -> None:
    """Serve until a signal comes; then finish the answers in progress."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(app(), handler_cancellation=True, shutdown_timeout=DRAIN_SECONDS, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, bind, port).start()
        except OSError as error:
            message = f"{bind}:{port} cannot be listened on: {error.strerror}; choose another address"
            raise CannotStart(Complaint(message=message, path="--port")) from None
        host, bound = runner.addresses[0][:2]
        click.echo(f"ready: http://{f'[{host}]' if ':' in host else host}:{bound}  {what}")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await runner.cleanup()
