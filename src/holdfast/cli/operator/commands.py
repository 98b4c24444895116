"""``holdfast operator``: the operators on any Kubernetes, and what it takes to run them there."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

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
from holdfast.cli.operator.registration import WebhookOptions, parsed_name, parsed_selector
from holdfast.meta.selectors import SelectorError
from holdfast.runtime.health import LOOPBACK
from holdfast.views.columns import aligned

_LEVELS: Final = ("debug", "info", "warning", "error")

_CONTROLLERS: Final = click.option(
    "--controllers", "names", metavar="NAME,...", multiple=True, help="Only these; 'holdfast operator list' has them."
)


_STRICT: Final = click.option(
    "--webhook-strict", is_flag=True, help="Refuse objects while no webhook answers.  [default: accept]"
)
_SELECTOR: Final = click.option(
    "--webhook-selector", default="", metavar="LABELS", help="Review only in namespaces with these.  [default: all]"
)
_EXEMPT: Final = click.option(
    "--webhook-exempt", metavar="NS", multiple=True, help="Review nothing in this namespace; may be repeated."
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
@click.option(
    "--webhook-port",
    type=click.IntRange(1, 65535),
    help="Serve webhooks, which review objects and convert older versions, on this port.  [default: none]",
)
@click.option(
    "--webhook-bind", metavar="ADDRESS", default=LOOPBACK, show_default=True, help="Where webhooks are served."
)
@click.option(
    "--webhook-service", default="", metavar="NS/NAME", help="The Service by which the server reaches them, port 443."
)
@click.option("--webhook-url", default="", help="Or their URL.  [default: https://127.0.0.1 and the port]")
@_STRICT
@_SELECTOR
@_EXEMPT
@click.option(
    "--webhook-certificate",
    type=PathType(file_okay=False),
    metavar="DIRECTORY",
    help="Serve tls.crt and tls.key of it, which are read again when they change.  [default: one of our own]",
)
@click.option(
    "--webhook-inject-from",
    default="",
    metavar="NS/NAME",
    help="The Certificate of cert-manager that they are from, which then has the server trust it.",
)
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
    webhook_port: int | None,
    webhook_bind: str,
    webhook_service: str,
    webhook_url: str,
    webhook_strict: bool,
    webhook_selector: str,
    webhook_exempt: tuple[str, ...],
    webhook_certificate: Path | None,
    webhook_inject_from: str,
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
        webhooks=_webhooks(
            webhook_port,
            bind=webhook_bind,
            service=webhook_service,
            url=webhook_url,
            strict=webhook_strict,
            selector=webhook_selector,
            exempt=webhook_exempt,
            files=webhook_certificate,
            injected=webhook_inject_from,
        ),
    )
    logs.configure(log_format, level=logging.getLevelNamesMapping()[log_level.upper()])
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(operate(options))


def _webhooks(
    port: int | None,
    *,
    bind: str,
    service: str,
    url: str,
    strict: bool,
    selector: str,
    exempt: tuple[str, ...],
    files: Path | None,
    injected: str,
) -> WebhookOptions | None:
    if port is None:
        if service or url or strict or selector or exempt or files or injected:
            raise click.UsageError("options of webhooks need --webhook-port; add it, or leave them out")
        return None
    if service and url:
        raise click.UsageError("webhooks are reached by --webhook-service or by --webhook-url; leave one out")
    if service and parsed_name(service) is None:
        raise click.UsageError(f"--webhook-service {service!r} is no Service; write NAMESPACE/NAME")
    if injected and (files is None or parsed_name(injected) is None):
        raise click.UsageError("--webhook-inject-from names a Certificate, NAMESPACE/NAME, of --webhook-certificate")
    if url and not (url.startswith("https://") and urlsplit(url).hostname):
        raise click.UsageError(f"--webhook-url {url!r} is no URL of a webhook; write https://HOST:PORT")
    return WebhookOptions(
        bind=bind,
        port=port,
        service=parsed_name(service) or ("", ""),
        url="" if service else url or f"https://127.0.0.1:{port}",
        strict=strict,
        selector=_selector(selector),
        exempt=exempt,
        files=files,
        injected=injected,
    )


def _selector(text: str) -> dict[str, Any]:
    try:
        return parsed_selector(text)
    except SelectorError as error:
        message = f"--webhook-selector {text!r} selects no labels of namespaces: {error}"
        raise click.UsageError(f"{message}; write KEY=VALUE,...") from None


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
@_STRICT
@_SELECTOR
@_EXEMPT
@click.option("--image", default=f"holdfast:{holdfast.__version__}", show_default=True, help="What it runs from.")
@_CONTROLLERS
@settings.OPTION
def manifests(
    namespace: str,
    webhooks: bool,
    cert_manager: bool,
    webhook_strict: bool,
    webhook_selector: str,
    webhook_exempt: tuple[str, ...],
    image: str,
    names: tuple[str, ...],
    given: tuple[str, ...],
) -> None:
    """Print what runs the operators in a cluster: a Deployment, its account, and a role for what each of them does.

    \b
    Use it:    holdfast operator manifests | kubectl apply -f -
    """
    if not webhooks and (cert_manager or webhook_strict or webhook_selector or webhook_exempt):
        raise click.UsageError("options of webhooks need --webhooks; add it, or leave them out")
    chosen = selection.chosen(names)
    options = deploying.webhook_options(
        namespace,
        strict=webhook_strict,
        selector=_selector(webhook_selector),
        exempt=webhook_exempt,
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
