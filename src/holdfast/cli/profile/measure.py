"""``holdfast profile measure``: a table of the operators of this machine's GPU."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.profile import options
from holdfast.profiler import measuring, models

_MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B")


@click.command("measure")
@click.option("--model", "names", multiple=True, default=_MODELS, help="Models whose shapes are measured; repeatable.")
@click.option("--write", type=PathType(dir_okay=False), help="The file to write; stdout by default.")
def command(names: tuple[str, ...], write: Path | None) -> None:
    """Measure the operators of the GPU of this machine.

    Needs torch and a CUDA GPU; takes some minutes. Other commands read the table with --table.
    """
    with options.complaints():
        shapes = [models.find(name) for name in names]
    try:
        table = measuring.measure(shapes, report=lambda message: click.echo(f"measuring {message}", err=True))
    except measuring.Unavailable as error:
        raise InputError(Complaint(message=str(error))) from None
    text = msgspec.json.encode(table) + b"\n"
    if write is None:
        click.echo(text, nl=False)
        return
    try:
        write.write_bytes(text)
    except OSError as error:
        raise InputError(Complaint(path="--write", message=f"{write} cannot be written: {error.strerror}")) from None
    click.echo(f"wrote {write}: {table.device}, {len(table.gemm_bf16) + len(table.gemm_fp8)} products")
