"""``holdfast profile MODEL``: the answer, the runners-up and the Pareto front."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import click
import msgspec

from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.profile import options
from holdfast.profiler import plots
from holdfast.profiler.request import Machines, Request, Targets, Traffic
from holdfast.profiler.results import Point, Precision, Result
from holdfast.profiler.search import search
from holdfast.profiler.targets import e2e_ms

_HEADER: Final = ("", "MODE", "WORKERS", "BATCH", "GPUS", "TTFT", "ITL", "REQ/S", "TOK/S", "/GPU")
_INDENT: Final = 8
_STYLES: Final = {
    "aggregated": "blue",
    "disaggregated": "yellow",
    "chosen": "bold green",
    "target": "red",
    "axis": "dim",
}


@click.command("model")
@click.argument("model")
@click.option("--gpu", "sku", default="h200_sxm", show_default=True, help="The GPU, such as h200_sxm or a100_sxm.")
@click.option("--gpus", default=8, show_default=True, help="GPUs that may be used.")
@click.option("--per-node", default=8, show_default=True, help="GPUs in one node.")
@click.option("--memory-mib", type=float, help="Memory of one GPU, where it is not the published one.")
@click.option("--isl", default=4000, show_default=True, help="Input length in tokens.")
@click.option("--osl", default=1000, show_default=True, help="Output length in tokens.")
@click.option("--ttft", type=float, help="Time to the first token, in ms; 2000 by default.")
@click.option("--itl", type=float, help="Time between tokens, in ms; 30 by default.")
@click.option("--e2e", type=float, help="Time for a whole answer, in ms, instead of --ttft and --itl.")
@click.option("--rate", type=float, help="Requests a second to serve, with the fewest GPUs.")
@click.option("--concurrency", type=float, help="Requests in flight at once to serve, with the fewest GPUs.")
@click.option("--favour", type=click.Choice(["latency", "throughput"]), help="What to favour within the targets.")
@click.option("--planner", is_flag=True, help="One prefill and one decode worker, for a planner to multiply.")
@click.option(
    "--backend",
    type=click.Choice(["auto", "vllm", "sglang", "trtllm"]),
    default="auto",
    show_default=True,
    help="The engine that runs the model.",
)
@options.precision
@options.table
@click.option(
    "--engine",
    type=click.Choice(["holdfast", "aiconfigurator"]),
    default="holdfast",
    show_default=True,
    help="What predicts: Holdfast, or aiconfigurator where it is installed.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "svg", "manifest"]),
    default="table",
    show_default=True,
    help="How to print the answer; manifest prints the deployment.",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Find the configuration that serves MODEL best within its targets.

    MODEL is a hub name, or the path of a config.json. Without a load, the configuration with the
    most tokens a second is chosen; with --rate or --concurrency, the one with the fewest GPUs.

    Exits with 1 when no configuration meets the targets.
    """
    with options.complaints():
        request = _request(given)
        gpu = options.gpu(given["sku"], given["table"])
        if given["engine"] == "aiconfigurator":
            from holdfast.profiler import aiconfigurator

            result = aiconfigurator.search(request)
        else:
            result = search(request, hardware=gpu)
        _print(request, result, given["output"])
    if result.chosen is None:
        ctx.exit(ExitCode.BLOCKED)


def _request(given: dict[str, Any]) -> Request:
    if given["e2e"] is not None and (given["ttft"] is not None or given["itl"] is not None):
        raise click.UsageError("give --e2e, or --ttft and --itl, not both")
    if given["rate"] is not None and given["concurrency"] is not None:
        raise click.UsageError("give the load as --rate or as --concurrency, not both")
    targets = Targets(favour=given["favour"])
    if given["e2e"] is not None:
        targets = msgspec.structs.replace(targets, e2e_ms=given["e2e"], ttft_ms=None, itl_ms=None)
    for option, field in (("ttft", "ttft_ms"), ("itl", "itl_ms")):
        if given[option] is not None:
            targets = msgspec.structs.replace(targets, **{field: given[option]})
    precision: Precision | None = given["precision"]
    return Request(
        model=given["model"],
        backend=given["backend"],
        machines=Machines(
            sku=given["sku"], gpus=given["gpus"], per_node=given["per_node"], memory_mib=given["memory_mib"]
        ),
        traffic=Traffic(
            isl=given["isl"], osl=given["osl"], request_rate=given["rate"], concurrency=given["concurrency"]
        ),
        targets=targets,
        planner=given["planner"],
        precision=precision,
    )


# --- printing ----------------------------------------------------------------


def _print(request: Request, result: Result, output: str) -> None:
    match output:
        case "json" | "yaml":
            answer = options.figures({"request": msgspec.to_builtins(request), **msgspec.to_builtins(result)})
            click.echo(json.dumps(answer, indent=2) if output == "json" else _yaml([answer]), nl=output == "json")
        case "svg":
            title = f"{request.model} on {request.machines.gpus} {request.machines.sku}"
            click.echo(plots.svg(result, title=title, itl_ms=request.targets.itl_ms), nl=False)
        case "manifest":
            click.echo(_yaml(_manifests(request, result)), nl=False)
        case _:
            _show(request, result)


def _manifests(request: Request, result: Result) -> Sequence[dict[str, Any]]:
    from holdfast.profiler import manifests

    name = "".join(letter if letter.isalnum() else "-" for letter in Path(request.model).name.lower()).strip("-")
    return manifests.deployment(request, result, name=name[:30].strip("-"))


def _yaml(documents: Sequence[Any]) -> str:
    import yaml

    return yaml.safe_dump_all(documents, sort_keys=False, width=100)


def _show(request: Request, result: Result) -> None:
    lines = list(_lines(request, result))
    if not sys.stdout.isatty():
        click.echo(printable("\n".join("".join(text for text, _ in line) for line in lines)))
        return
    from rich.console import Console
    from rich.text import Text

    width = shutil.get_terminal_size().columns
    console = Console(width=width, highlight=False)
    for line in lines:
        text = Text.assemble(*line)
        wrapped = text.wrap(console, width - _INDENT) if text.cell_len > width else [text]
        console.print(Text("\n" + " " * _INDENT).join(wrapped))
    console.print()
    for runs in plots.text(result, width=min(width, 100), itl_ms=request.targets.itl_ms):
        console.print(Text.assemble(*((run.text, _STYLES[run.mark]) for run in runs)), no_wrap=True, overflow="crop")
    if result.pareto:
        best = "chosen" if result.chosen else "closest"
        legend = f"up tokens/s for a GPU, right for a user; o aggregated, x disaggregated, @ {best}"
        console.print(Text(legend, "dim"))


Line = list[tuple[str, str]]


def _lines(request: Request, result: Result) -> Iterator[Line]:
    traffic, machines = request.traffic, request.machines
    best = result.chosen or result.closest
    precision = best.engines[0].precision if best is not None else request.precision or ""
    facts = [f"{machines.gpus} {machines.sku}", *([precision] if precision else []), result.backend]
    load = ""
    if traffic.request_rate is not None:
        load = f", {traffic.request_rate:g} requests/s"
    elif traffic.concurrency is not None:
        load = f", {traffic.concurrency:g} at once"
    yield [(request.model, "bold"), (f" on {', '.join(facts)}", "")]
    yield [(f"{traffic.isl} tokens in, {traffic.osl} out{load}; {_targets(request)}", "dim")]
    yield [("", "")]
    if result.chosen is not None:
        yield [("chosen: ", "bold green"), (result.why, "")]
    else:
        yield [("blocked: ", "bold red"), (result.remedy, "")]
    points = [*([best] if best is not None else []), *result.runners_up]
    if not points:
        return
    yield [("", "")]
    rows = [_HEADER, *(_cells(point, number, result) for number, point in enumerate(points))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if position < 3 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        style = "dim" if number == 0 else "bold" if number == 1 and result.chosen is not None else ""
        yield [("  ".join(cells).rstrip(), style or "none")]
    yield [("", "")]
    yield from ([(note, "dim")] for note in _notes(request, best, result))


def _targets(request: Request) -> str:
    targets = request.targets
    if targets.e2e_ms is not None:
        return f"within e2e {targets.e2e_ms:g} ms"
    named = [(name, ms) for name, ms in (("ttft", targets.ttft_ms), ("itl", targets.itl_ms)) if ms is not None]
    return "within " + ", ".join(f"{name} {ms:g} ms" for name, ms in named) if named else "no targets"


def _cells(point: Point, number: int, result: Result) -> tuple[str, ...]:
    mark = f"{number + 1}" if result.chosen is not None else "-"
    workers = " + ".join(f"{engine.replicas} x tp{engine.tensor_parallel}" for engine in point.engines)
    mode: Literal["disagg", "agg"] = "disagg" if point.disaggregated else "agg"
    return (
        mark,
        mode,
        workers,
        str(point.engines[-1].batch),
        str(point.gpus),
        f"{point.ttft_ms:.0f}",
        f"{point.itl_ms:.1f}",
        f"{point.requests_per_second:.2f}",
        f"{point.tokens_per_second:.0f}",
        f"{point.tokens_per_second_per_gpu:.0f}",
    )


def _notes(request: Request, best: Point | None, result: Result) -> Iterator[str]:
    yield f"{result.considered} configurations; times in ms, predicted"
    if best is None:
        return
    whole = e2e_ms(best.ttft_ms, best.itl_ms, request.traffic.osl)
    yield f"a whole answer takes {whole / 1000:.1f} s; one reader sees {best.tokens_per_second_per_user:.0f} tokens/s"
    if best.estimated:
        yield f"estimated: {request.machines.sku} was not measured; the figures are a roofline of its published peaks"
    if best.extrapolated:
        yield f"extrapolated: {', '.join(best.extrapolated)} lie beyond what was measured"
