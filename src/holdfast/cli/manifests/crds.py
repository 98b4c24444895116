"""``holdfast crds``: the definitions that make an API server serve the kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from holdfast import kinds
from holdfast.cli import painting
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.manifests import writing
from holdfast.cli.operator.definitions import marked
from holdfast.meta.suggestions import nearest
from holdfast.views.columns import aligned


@click.command("crds")
@click.option("--kind", "names", metavar="KIND", multiple=True, help="Only this kind; may be repeated.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="How to print them.  [default: yaml]")
@click.option("--list", "listed", is_flag=True, help="Only list the kinds.")
def command(names: tuple[str, ...], output: str | None, listed: bool) -> None:
    """Print the CustomResourceDefinitions of all kinds.

    A KIND is named as in kubectl, in any case: Workload, workloads, wl or workloads.cloudless.io.

    \b
    Install them:         holdfast crds | kubectl apply --server-side -f -
    See what there is:    holdfast crds --list
    """
    if listed and output is not None:
        raise click.UsageError("--list prints a table; leave out -o, or --list")
    chosen = tuple(dict.fromkeys(_kind(name) for name in names)) or kinds.ALL
    if listed:
        click.echo("\n".join(_table(chosen)))
    elif output == "json":
        click.echo(json.dumps(_one_or_list([marked(kind) for kind in chosen]), indent=2))
    else:
        # One by one, so that the first is there at once and a reader that goes away stops the rest.
        for kind in chosen:
            click.echo(f"---\n{writing.text(marked(kind))}", nl=False)


def _kind(name: str) -> kinds.Kind:
    kind = kinds.by_name(name)
    if kind is not None:
        return kind
    known = [kind.name for kind in kinds.ALL]
    suggestion = nearest(name, known)
    hint = f"the kinds are {', '.join(known)}" if suggestion is None else f"did you mean {suggestion}?"
    raise InputError(Complaint(message=f"there is no kind {name!r}", hint=hint, path="--kind"))


def _one_or_list(definitions: list[dict[str, Any]]) -> dict[str, Any]:
    if len(definitions) == 1:
        return definitions[0]
    return {"apiVersion": "v1", "kind": "List", "items": definitions}


def _table(chosen: Iterable[kinds.Kind]) -> list[str]:
    rows = [("NAME", "SHORT NAMES", "API VERSION", "KIND")]
    rows += [(kind.plural, ",".join(kind.short_names), kind.api_version, kind.name) for kind in chosen]
    return aligned(rows, painting.width())
