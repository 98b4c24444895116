"""``holdfast profile estimate``: one prediction, and what it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.cli.errors import printable
from holdfast.cli.profile import options
from holdfast.profiler import models
from holdfast.profiler.performance import Step, Worker
from holdfast.profiler.request import Unanswerable
from holdfast.profiler.timing import Timing


@click.command("estimate")
@click.option("--model", required=True, help="A hub name, or the path of a config.json.")
@click.option("--gpu", "sku", default="h200_sxm", show_default=True, help="The GPU, such as h200_sxm.")
@click.option("--tp", default=1, show_default=True, type=click.IntRange(1, 64), help="GPUs over which it is split.")
@click.option("--isl", type=click.IntRange(1, 2_000_000), help="Tokens of one sequence that is prefilled.")
@click.option("--batch", type=click.IntRange(1, 65_536), help="Sequences that get one token each in a decode step.")
@click.option("--context", type=click.IntRange(1, 2_000_000), help="Tokens that each of these sequences has already.")
@options.precision
@click.option("--no-communication", is_flag=True, help="Leave out the traffic between the GPUs.")
@options.table
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def command(
    model: str,
    sku: str,
    tp: int,
    isl: int | None,
    batch: int | None,
    context: int | None,
    precision: Any,
    no_communication: bool,
    table: Path | None,
    output: str,
) -> None:
    """Predict one prefill (--isl) or one decode step (--batch and --context).

    \b
    holdfast profile estimate --model Qwen/Qwen3-32B --tp 4 --isl 4000
    holdfast profile estimate --model Qwen/Qwen3-32B --batch 32 --context 4000
    """
    if (isl is None) == (batch is None and context is None) or (batch is None) != (context is None):
        raise click.UsageError("give --isl for a prefill, or --batch and --context for a decode step")
    with options.complaints():
        architecture, gpu = models.find(model), options.gpu(sku, table)
        if not architecture.splits(tp):
            heads = f"{architecture.heads} heads and a width of {architecture.intermediate}"
            raise Unanswerable("--tp", f"{architecture.name} has {heads}, which {tp} GPUs cannot share evenly")
        chosen = precision or (architecture.precision if gpu.peaks.fp8 is not None else "bf16")
        if chosen == "fp8" and gpu.peaks.fp8 is None:
            raise Unanswerable("--precision", f"{gpu.sku} has no fp8 arithmetic; write bf16")
        worker = Worker(architecture, Timing(gpu), tp, chosen, communication=not no_communication)
    step = worker.prefill(isl) if isl is not None else worker.decode(batch or 1, context or 1)
    answer = {
        "ttftMs" if isl is not None else "itlMs": step.ms,
        "breakdown": _breakdown(step),
        "model": architecture.name,
        "gpu": gpu.sku,
        "tp": tp,
        "precision": chosen,
        "estimated": gpu.estimated,
        "extrapolated": list(step.extrapolated),
    }
    if output == "json":
        click.echo(json.dumps(options.figures(answer), indent=2))
        return
    name = "ttft" if isl is not None else "itl"
    click.echo(printable(f"{name} {step.ms:.2f} ms: {architecture.name}, {chosen}, tp {tp} on {gpu.sku}"))
    for part, ms in _breakdown(step).items():
        click.echo(f"  {part.removesuffix('Ms'):<14}{ms:9.3f} ms  {ms / step.ms:4.0%}")
    if gpu.estimated:
        click.echo(f"estimated: {gpu.sku} was not measured; the figures are a roofline of its published peaks")
    if step.extrapolated:
        click.echo(f"extrapolated: {', '.join(step.extrapolated)} lie beyond what was measured")


def _breakdown(step: Step) -> dict[str, float]:
    parts = msgspec.to_builtins(step)
    return {name: ms for name, ms in parts.items() if name not in ("ms", "extrapolated")}
