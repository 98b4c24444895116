"""``holdfast convert``: manifests of another API as manifests of the kinds that Holdfast serves.

The documents are translated as `holdfast apply` translates them, and printed; no server is needed.
"""

from __future__ import annotations

import json
from typing import Any

import click

from holdfast.cli.manifests import sources
from holdfast.cli.objects import printers


@click.command("convert")
@sources.files
@sources.recursive
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="How to print them.  [default: yaml]")
def command(files: tuple[str, ...], recursive: bool, output: str | None) -> None:
    """Print manifests of Cloudless as Workloads.

    They are of cloudless/v1, and the Workloads of cloudless.io/v1. Other objects are printed as they are. What cannot
    be translated is refused; what is left out is named on standard error.

    \b
    To look at it:       holdfast convert -f nginx.yaml
    To keep it:          holdfast convert -f nginx.yaml > workload.yaml
    For kubectl:         holdfast convert -R -f manifests/ | kubectl apply -f -
    """
    if not files:
        raise click.UsageError("nothing is given to convert; write -f FILE")
    objects = [manifest.value for manifest in sources.read(files, recursive=recursive)]
    if output == "json":
        whole: Any = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
        click.echo(json.dumps(whole, indent=2))
    else:
        click.echo("---\n".join(printers.as_yaml(each) for each in objects), nl=False)
