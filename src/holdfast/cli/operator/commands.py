"""``holdfast operator``: the operators on any Kubernetes, and what it takes to run them there."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Final, Literal

import click

import holdfast
from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli import logs, painting
from holdfast.cli.arguments import PathType
from holdfast.cli.groups import Group
from holdfast.cli.manifests import writing
from holdfast.cli.operator import deploying, selection, settings, wait_for
from holdfast.cli.operator.deploying import Installation
from holdfast.cli.operator.operating import RunOptions, operate
from holdfast.cli.operator.webhook_flags import ReviewFlags, ServingFlags, review_flags, serving_flags
from holdfast.runtime.health import LOOPBACK
from holdfast.views.columns import aligned

_LEVELS: Final = ("debug", "info", "warning", "error")

_CONTROLLERS: Final = click.option(
    "--controllers", "names", metavar="NAME,...", multiple=True, help="Only these; 'holdfast operator list' has them."
)


@click.group("operator", cls=Group)
def command() -> None:
    """Run the operators on any Kubernetes."""


command.add_command(wait_for.command)


@command.command("run")
@click.option(
    "--kubeconfig",
    type=PathType(dir_okay=False),
    help="How to reach the server.  [default: $KUBECONFIG, ~/.kube/config, or the cluster around this pod]",
)
@click.option("--context", default="", metavar="NAME", help="Which context of the kubeconfig.  [default: its current]")
@click.option("--namespace", "namespaces", metavar="NS", multiple=True, help="Only in this one; may be repeated.")
@_CONTROLLERS
@settings.OPTION
@click.option("--leader-elect", is_flag=True, help="Of several processes, let only the one that holds a lease work.")
@click.option("--lease-namespace", default="", metavar="NS", help="Where that lease is.  [default: the connection's]")
@click.option(
    "--health-bind", metavar="ADDRESS", default=LOOPBACK, show_default=True, help="Where health and metrics are served."
)
@click.option("--health-port", type=click.IntRange(0, 65535), default=0, help="On which port.  [default: any free one]")
@click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True, help="How to log.")
@click.option(
    "--log-level", type=click.Choice(_LEVELS), default="info", show_default=True, help="What is worth a line."
)
@click.option(
    "--install-crds/--no-install-crds", "installs", default=True, help="Whether to install definitions.  [default: yes]"
)
@serving_flags
@click.option("--adopt-crds", "adopts", is_flag=True, help="Replace definitions that another project installed.")
def run(
    kubeconfig: Path | None,
    context: str,
    namespaces: tuple[str, ...],
    names: tuple[str, ...],
    given: tuple[str, ...],
    leader_elect: bool,
    lease_namespace: str,
    health_bind: str,
    health_port: int,
    log_format: logs.Format,
    log_level: Literal["debug", "info", "warning", "error"],
    installs: bool,
    serving: ServingFlags,
    adopts: bool,
) -> None:
    """Run the operators against a Kubernetes API server.

    They run until SIGTERM or Ctrl-C: then what is under way is finished, and the lease is given up.  A second signal
    ends it at once.  A server that is away is waited for.

    \b
    From a laptop:    holdfast operator run --kubeconfig ~/.kube/config
    In a cluster:     holdfast operator manifests | kubectl apply -f -
    """
    if adopts and not installs:
        raise click.UsageError("--adopt-crds writes definitions and --no-install-crds writes none; leave one out")
    if lease_namespace and not leader_elect:
        raise click.UsageError("--lease-namespace says where the lease of --leader-elect is; add that, or leave it out")
    options = RunOptions(
        controllers=selection.chosen(names, settings.values(given, os.environ)),
        kubeconfig=kubeconfig,
        context=context,
        namespaces=namespaces,
        elects=leader_elect,
        lease_namespace=lease_namespace,
        health=(health_bind, health_port),
        installs=installs,
        adopts=adopts,
        webhooks=serving.webhooks(),
    )
    logs.configure(log_format, level=logging.getLevelNamesMapping()[log_level.upper()])
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(operate(options))


@command.command("list")
def listed() -> None:
    """List the controllers there are, and the kinds that they operate."""
    rows = [("NAME", "KIND", "OWNS")]
    rows += [
        (each.name, f"{each.resource.kind} ({each.resource.api_version})", ", ".join(map(str, each.owns)) or "-")
        for each in selection.every_controller()
    ]
    click.echo("\n".join(aligned(rows, painting.width())))


@command.command("manifests")
@click.option(
    "--namespace", metavar="NS", default="holdfast-system", show_default=True, help="Where it runs; it is created."
)
@click.option("--webhooks", is_flag=True, help="Serve webhooks too: reviews, and older versions of kinds.")
@click.option("--cert-manager", is_flag=True, help="Have cert-manager issue their certificate.  [default: our own]")
@review_flags
@click.option("--image", default=f"holdfast:{holdfast.__version__}", show_default=True, help="What it runs from.")
@_CONTROLLERS
@settings.OPTION
def manifests(
    namespace: str,
    webhooks: bool,
    cert_manager: bool,
    reviews: ReviewFlags,
    image: str,
    names: tuple[str, ...],
    given: tuple[str, ...],
) -> None:
    """Print what runs the operators in a cluster: a Deployment, its account, and a role for what each of them does.

    \b
    Use it:    holdfast operator manifests | kubectl apply -f -
    """
    if not webhooks and (cert_manager or reviews.are_given):
        raise click.UsageError("options of webhooks need --webhooks; add it, or leave them out")
    chosen = selection.chosen(names)
    options = deploying.webhook_options(
        namespace,
        strict=reviews.strict,
        selector=reviews.namespaces,
        exempt=reviews.exempt,
        cert_manager=cert_manager,
    )
    arguments = [f"--controllers={','.join(each.name for each in chosen)}"] if names else []
    arguments += [f"--set={name}={value}" for name, value in settings.values(given, {}).items()]
    installation = Installation(
        namespace=namespace,
        image=image,
        controllers=deploying.by_operator(selection.operators(), chosen),
        arguments=tuple(arguments),
        webhooks=options if webhooks else None,
    )
    for manifest in deploying.manifests(installation):
        click.echo(f"---\n{writing.text(manifest)}", nl=False)


@command.command("package")
@click.argument("form", type=click.Choice(("chart", "kustomize")))
@click.option(
    "--output",
    type=PathType(file_okay=False),
    required=True,
    help="The directory to write; what is in it must be an earlier package.",
)
def package(form: Literal["chart", "kustomize"], output: Path) -> None:
    """Write what installs the operators: a Helm chart, or a kustomize base.

    \b
    Helm:       holdfast operator package chart --output chart
                helm install holdfast chart -n holdfast-system --create-namespace
    kustomize:  holdfast operator package kustomize --output kustomize
                kubectl apply --server-side -k kustomize/base
    """
    from holdfast.cli.operator import packaging

    files = packaging.chart() if form == "chart" else packaging.kustomize()
    packaging.write(files, output)
    click.echo(f"wrote {len(files)} files to {output}")
