"""``holdfast load``: a load test of an inference server."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

import click
import msgspec

from holdfast.cli import connecting, painting
from holdfast.cli.arguments import FloatRange
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.objects import fetching, targets
from holdfast.cli.objects.targets import Asked
from holdfast.meta import durations
from holdfast.meta.durations import DurationError
from holdfast.profiler.load import generator, report
from holdfast.profiler.load import targets as goals_of
from holdfast.profiler.load.arrivals import Process
from holdfast.profiler.load.figures import STATISTICS, Goals, Sample, Statistic, compare, figures, sla_met
from holdfast.profiler.load.generator import Plan, Progress, Unusable
from holdfast.views.spans import cut

Output = Literal["text", "json"]

MOST_IN_FLIGHT: Final = 256
"""Requests in flight that are sent only where they are asked for."""


class CannotTest(InputError):
    """The server cannot be tested now."""

    exit_code = ExitCode.BLOCKED


class _Seconds(click.ParamType[float]):
    """A duration, in seconds."""

    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = durations.parse(value).total_seconds()
        except DurationError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0:
            self.fail(f"{value!r} is negative; write such as 20s", param, ctx)
        return seconds


SECONDS = _Seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says; what is None is that of the request, or a default."""

    url: str
    request: str
    model: str
    rate: float | None
    concurrency: int | None
    isl: int | None
    osl: int | None
    requests: int | None
    duration: float | None
    warmup: float
    ramp: float | None
    process: Process
    seed: int
    timeout: float
    goals: Goals
    by: Statistic
    output: Output


@click.command("load", cls=Verb)
@click.argument("url", required=False, default="")
@click.option("--request", metavar="KIND/NAME", default="", help="Test what a request deployed: dgdr/NAME.")
@click.option("--model", default="", metavar="NAME", help="The model.  [default: the first that the server lists]")
@click.option("--rate", type=FloatRange(min=0, min_open=True), help="Requests a second, at random times.")
@click.option("--constant", is_flag=True, help="Send at --rate evenly, not at random times.")
@click.option("--concurrency", type=click.IntRange(1, 10_000), help="Requests in flight, instead of --rate.")
@click.option("--isl", type=click.IntRange(8), help="Tokens of a prompt.  [default: the request's, or 256]")
@click.option("--osl", type=click.IntRange(1), help="Tokens of an answer.  [default: the request's, or 64]")
@click.option("--requests", type=click.IntRange(1), help="How many requests to send.")
@click.option("--duration", type=SECONDS, metavar="DURATION", help="How long to send.  [default: 20s]")
@click.option("--warmup", type=SECONDS, default="0s", metavar="DURATION", help="Leave out what was sent in this time.")
@click.option("--ramp", type=SECONDS, metavar="DURATION", help="Begin --concurrency over this time.  [default: 0s]")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of random times.")
@click.option("--timeout", type=SECONDS, default="5m", metavar="DURATION", help="How long one request may take.")
@click.option("--ttft", type=FloatRange(min=0, min_open=True), metavar="MS", help="The target of TTFT.")
@click.option("--itl", type=FloatRange(min=0, min_open=True), metavar="MS", help="The target of ITL.")
@click.option("--by", type=click.Choice(STATISTICS), default="mean", show_default=True, help="What targets are for.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@connecting.options
def command(
    url: str,
    request: str,
    model: str,
    rate: float | None,
    constant: bool,
    concurrency: int | None,
    isl: int | None,
    osl: int | None,
    requests: int | None,
    duration: float | None,
    warmup: float,
    ramp: float | None,
    seed: int,
    timeout: float,
    ttft: float | None,
    itl: float | None,
    by: Statistic,
    output: Output,
    where: Where,
) -> None:
    """Send requests to an inference server, and measure TTFT, ITL and throughput.

    With --request, the endpoint, the traffic, the targets and the predictions are those of the request, unless options
    say otherwise.  The exit code is 1 where the SLA is not met.

    \b
    At a rate:       holdfast load http://127.0.0.1:8000 --rate 5 --duration 20s
    In flight:       holdfast load http://127.0.0.1:8000 --concurrency 8 --itl 20
    Of a request:    holdfast load --request dgdr/chat --duration 30s
    """
    if bool(url) == bool(request):
        raise click.UsageError("name the URL of a server, or a request by --request KIND/NAME")
    if rate is not None and concurrency is not None:
        raise click.UsageError("--rate and --concurrency are two kinds of load; leave one of them out")
    options = Options(
        url=_checked(url) if url else "",
        request=request,
        model=model,
        rate=rate,
        concurrency=concurrency,
        isl=isl,
        osl=osl,
        requests=requests,
        duration=duration,
        warmup=warmup,
        ramp=ramp,
        process="constant" if constant else "poisson",
        seed=seed,
        timeout=timeout,
        goals=Goals(ttft_ms=ttft, itl_ms=itl),
        by=by,
        output=output,
    )
    if url:
        code = asyncio.run(_test(options))
        if code:
            raise click.exceptions.Exit(code)
        return
    connecting.run(where, lambda session: _of_request(session, options))


def _checked(url: str) -> str:
    given = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(given)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are not closed, or a port that is no number
        usable = False
    if not usable:
        raise InputError(Complaint(message=f"{url!r} is not a URL; write such as http://127.0.0.1:8000"))
    return given.rstrip("/").removesuffix("/v1")


async def _of_request(session: Session, options: Options) -> ExitCode:
    """Test the deployment of a request."""
    (target,) = await targets.targets(Asked(words=(options.request,)), session)
    if not target.name:
        raise click.UsageError("--request names one object: KIND/NAME")
    (wire,) = await fetching.objects(session.client, target)
    try:
        asked = goals_of.of_request(wire)
        url = await goals_of.endpoint(session.client, target.scope.namespace, asked.graph)
    except (goals_of.NotReady, msgspec.ValidationError) as error:
        raise CannotTest(Complaint(message=str(error), path="--request")) from None
    given, load = options.goals, asked.traffic
    own = options.rate is not None or options.concurrency is not None
    if not own and load.request_rate is None and (asked.concurrency or 0) > MOST_IN_FLIGHT:
        message = f"{target.name} was predicted with {asked.concurrency} requests in flight, too many for one client"
        hint = "write --rate or --concurrency; the predictions are for more load than that"
        raise CannotTest(Complaint(message=message, hint=hint, path="--request"))
    goals = msgspec.structs.replace(
        asked.goals, ttft_ms=given.ttft_ms or asked.goals.ttft_ms, itl_ms=given.itl_ms or asked.goals.itl_ms
    )
    tested = replace(
        options,
        url=url,
        model=options.model or asked.model,
        rate=options.rate if own else load.request_rate,
        concurrency=options.concurrency if own or load.request_rate is not None else asked.concurrency,
        isl=options.isl or load.isl,
        osl=options.osl or load.osl,
        goals=goals,
    )
    if not is_predicted(tested, asked):
        click.echo(f"Another load than {target.name} was predicted for: predictions are not compared.", err=True)
        goals = msgspec.structs.replace(goals, predicted_ttft_ms=None, predicted_itl_ms=None)
    return await _test(replace(tested, goals=goals))


def is_predicted(options: Options, asked: goals_of.Asked) -> bool:
    """Whether a test has the load that a request was predicted for."""
    load = asked.traffic
    if (options.isl, options.osl) != (load.isl, load.osl):
        return False
    if load.request_rate is not None:
        return options.rate == load.request_rate
    return options.rate is None and options.concurrency == asked.concurrency


async def _test(options: Options) -> ExitCode:
    rate = 1.0 if options.rate is None and options.concurrency is None else options.rate
    plan = Plan(
        url=options.url,
        model=options.model,
        isl=options.isl or 256,
        osl=options.osl or 64,
        rate=rate,
        concurrency=options.concurrency,
        requests=options.requests,
        duration=20.0 if options.duration is None and options.requests is None else options.duration,
        ramp=options.ramp or 0.0,
        process=options.process,
        seed=options.seed,
        timeout=options.timeout,
    )
    load = f"{rate:g} request{'' if rate == 1 else 's'}/s" if rate is not None else f"{plan.concurrency} in flight"
    click.echo(f"{plan.url}: {load}, {plan.isl} tokens in, {plan.osl} out", err=True)
    found = figures(await _measured(plan, in_cluster=bool(options.request)), warmup=options.warmup)
    if options.output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report.value(found, options.goals, by=options.by))).decode())
    else:
        click.echo(painting.folded(report.text(found, options.goals, by=options.by).splitlines()))
    met = sla_met(found, compare(found, options.goals, by=options.by))
    return ExitCode.BLOCKED if met is False or not found.completed else ExitCode.OK


async def _measured(plan: Plan, *, in_cluster: bool) -> Sequence[Sample]:
    """The samples of a test; Ctrl-C ends it early, and what was measured until then is shown."""
    seen: list[Progress] = []
    live = sys.stderr.isatty()

    def shown(progress: Progress) -> None:
        seen[:] = [progress]
        if live:
            line = cut(report.live(progress), (painting.width(sys.stderr) or 80) - 1)
            click.echo(f"\r\x1b[2K{line}", nl=False, err=True)

    test = asyncio.create_task(generator.run(plan, report=shown))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, test.cancel)
    try:
        return await test
    except Unusable as error:
        hint = "outside of a cluster, forward a port to the frontend and name the URL" if in_cluster else None
        raise CannotTest(Complaint(message=str(error), hint=hint)) from None
    except asyncio.CancelledError:
        if not test.cancelled():
            raise
        return seen[-1].samples if seen else ()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        if live and seen:
            click.echo("", err=True)
