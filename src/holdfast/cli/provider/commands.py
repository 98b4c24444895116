"""``holdfast provider serve``: serve a hypervisor over gRPC until a signal comes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from holdfast.cli import logs
from holdfast.cli.arguments import FloatRange, PathType
from holdfast.cli.bundling import bundled
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.groups import Group
from holdfast.cli.process.signals import until_signalled
from holdfast.runtime.health import Health

if TYPE_CHECKING:
    from holdfast.providers.contract import Hypervisor
    from holdfast.providers.simulated import World
    from holdfast.providers.wire.tls import Tls

INVENTORY: Final = "HOLDFAST_PROVIDER_INVENTORY"
"""The environment variable with the inventory of a simulated hypervisor, in YAML."""

_PAGE: Final = "docs/virtualmachines/placementpolicies.md"

FILE: Final = PathType(dir_okay=False)
FOLDER: Final = PathType(file_okay=False)


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a provider serves, and whom."""

    address: str
    tls_dir: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    clients: tuple[str, ...]
    plaintext: bool
    health: str | None
    log_format: logs.Format


options: Final = bundled(
    "listening",
    Listening,
    click.option("--listen", "address", default="127.0.0.1:9443", show_default=True, help="Address to serve at."),
    click.option("--tls-dir", type=FOLDER, help="Folder with tls.crt, tls.key and ca.crt, as a Secret is mounted."),
    click.option("--tls-cert", type=FILE, help="Certificate of the provider."),
    click.option("--tls-key", type=FILE, help="Key of the certificate."),
    click.option("--tls-ca", type=FILE, help="Authorities that sign the certificates of clients."),
    click.option(
        "--client", "clients", multiple=True, help="A name that client certificates may have.  [default: any]"
    ),
    click.option("--health", metavar="HOST:PORT", help="Address of /healthz, /readyz and /metrics.  [default: none]"),
    click.option("--plaintext", is_flag=True, help="Serve without TLS everyone who can connect."),
    click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True),
)
"""The options of every provider, as one argument `listening`."""

claim_option: Final = click.option(
    "--claim", "claims", multiple=True, metavar="NAME=FOLDER", help="The folder of a claim with storage of migrations."
)


def _claims(given: tuple[str, ...]) -> dict[str, Path]:
    """The folders of claims, by name."""
    found = {}
    for each in given:
        name, _, folder = each.partition("=")
        if not name or not folder:
            raise click.UsageError(f"--claim is written NAME=FOLDER, and not {each}")
        found[name] = Path(folder).absolute()
    return found


@click.group("provider", cls=Group)
def command() -> None:
    """Serve a hypervisor to operators over gRPC."""


@command.group()
def serve() -> None:
    """Serve a hypervisor until SIGTERM or Ctrl-C.

    Clients show a certificate that --tls-ca signed; without TLS the provider serves only if --plaintext is given.
    Machines go on running when the provider ends, and are found again by the next one with the same --data.
    """


@serve.command("simulated")
@click.option("--data", type=FOLDER, help="Folder of the journal.  [default: in memory only]")
@click.option("--hosts", type=click.IntRange(1, 10_000), default=3, show_default=True, help="Number of hosts.")
@click.option(
    "--inventory",
    type=PathType(exists=True, dir_okay=False),
    help=f"YAML file with hosts, datastores, folders, resource pools.  [default: the text of {INVENTORY}, or --hosts]",
)
@click.option(
    "--storage",
    type=FOLDER,
    envvar="HOLDFAST_PROVIDER_STORAGE",
    help="Folder with pvc/CLAIM and nfs/SERVER.  [default: in memory only]",
)
@claim_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of what varies.")
@click.option("--failure-rate", type=FloatRange(0, 1), default=0.0, show_default=True, help="Share of calls that fail.")
@click.option("--any-place", is_flag=True, help="Take hosts, clusters and datastores that do not exist for others.")
@options
def simulated(
    listening: Listening,
    *,
    data: Path | None,
    hosts: int,
    inventory: Path | None,
    storage: Path | None,
    claims: tuple[str, ...],
    seed: int,
    failure_rate: float,
    any_place: bool,
) -> None:
    """Serve machines that exist in memory."""
    from holdfast.providers.simulated import CAPABILITIES, Fault, Simulated, World

    text = os.environ.get(INVENTORY) if inventory is None else inventory.read_text(errors="replace")
    world = _described(text, str(inventory or INVENTORY)) if text else World.of(hosts=hosts)

    async def make() -> Hypervisor:
        from holdfast.providers.staging import Staging

        staging = Staging(storage, claims=_claims(claims)) if storage or claims else None
        # What stands for any hypervisor does not know the names of its hosts.
        able = msgspec.structs.replace(CAPABILITIES, inventory=not any_place)
        return Simulated(
            msgspec.structs.replace(world, any_place=any_place),
            capabilities=able if staging is None else staging.able(able),
            seed=seed,
            faults=[Fault(rate=failure_rate)] if failure_rate else (),
            journal=data / "journal" if data else None,
            store=staging,
        )

    _serve(listening, make)


def _described(text: str, where: str) -> World:
    """The world that an inventory describes."""
    import yaml

    from holdfast.providers.simulated import World

    try:
        return msgspec.convert(yaml.safe_load(text), World)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        said = " ".join(str(error).split())
        raise InputError(Complaint(message=said, path=where, hint=f"see {_PAGE}")) from error


@serve.command("qemu")
@click.option("--data", type=FOLDER, required=True, help="Folder of the machines, images and disks.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    envvar="HOLDFAST_PROVIDER_HOSTS",
    metavar="NAME[=FOLDER]",
    help="A host, and its folder.  [default: local]",
)
@click.option(
    "--images",
    type=FOLDER,
    multiple=True,
    envvar="HOLDFAST_PROVIDER_IMAGES",
    help="A folder with images that machines may be made from.",
)
@click.option(
    "--storage",
    type=FOLDER,
    envvar="HOLDFAST_PROVIDER_STORAGE",
    help="Folder in which storage of migrations is mounted: pvc/CLAIM, nfs/SERVER.",
)
@claim_option
@click.option(
    "--allow-host",
    "hosts_allowed",
    multiple=True,
    envvar="HOLDFAST_PROVIDER_ALLOW_HOSTS",
    help="A pattern of hosts of images and S3.  [default: all but link-local addresses]",
)
@click.option(
    "--accel",
    type=click.Choice(("auto", "kvm", "tcg")),
    default="auto",
    envvar="HOLDFAST_PROVIDER_ACCEL",
    show_default=True,
    help="How machines are run: by KVM, or emulated.",
)
@options
def qemu(
    listening: Listening,
    *,
    data: Path,
    hosts: tuple[str, ...],
    images: tuple[Path, ...],
    storage: Path | None,
    claims: tuple[str, ...],
    hosts_allowed: tuple[str, ...],
    accel: str,
) -> None:
    """Serve machines that run as QEMU processes on this computer."""

    async def make() -> Hypervisor:
        from holdfast.providers.qemu import Qemu, launch

        folders = {}
        for host in hosts:
            name, _, folder = host.partition("=")
            folders[name] = Path(folder).absolute() if folder else data.absolute() / "hosts" / name
        return await Qemu.open(
            data,
            hosts=folders or None,
            image_folders=tuple(path.absolute() for path in images),
            storage=storage.absolute() if storage else None,
            claims=_claims(claims),
            hosts_allowed=hosts_allowed,
            acceleration={"kvm": launch.KVM, "tcg": launch.TCG}.get(accel),
        )

    _serve(listening, make)


@serve.command("libvirt")
@click.option("--data", type=FOLDER, help="Not used: libvirt keeps its machines itself.")
@click.option("--uri", default="qemu:///system", show_default=True, help="Connection of libvirt.")
@options
def libvirt(listening: Listening, *, data: Path | None, uri: str) -> None:
    """Serve machines of libvirt, here or over SSH."""

    async def make() -> Hypervisor:
        try:
            from holdfast.providers.libvirt.hypervisor import Libvirt
        except ImportError:
            raise click.UsageError("libvirt's binding is not installed: pip install 'holdfast[libvirt]'") from None
        return Libvirt(uri)

    _serve(listening, make)


def _serve(listening: Listening, make: Callable[[], Awaitable[Hypervisor]]) -> None:
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # programs that are started do not use gRPC
    from holdfast.providers.contract import ProviderError
    from holdfast.providers.wire.metrics import ServedMetrics
    from holdfast.providers.wire.server import Server

    tls = _tls(listening)
    logs.configure(listening.log_format, level=logging.INFO)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)

    async def run() -> None:
        hypervisor = await make()
        try:
            server = Server(
                hypervisor,
                listening.address,
                tls=tls,
                plaintext=listening.plaintext,
                clients=listening.clients,
                metrics=ServedMetrics(registry),
            )
            port = await server.start()
            host = listening.address.rpartition(":")[0]
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(server.stop)
                if listening.health:
                    url = await stack.enter_async_context(_health(listening.health, registry))
                    click.echo(f"health: {url}")
                click.echo(f"ready: {host}:{port}")
                await asyncio.Event().wait()
        finally:
            await hypervisor.close()

    try:
        with asyncio.Runner() as runner:
            runner.run(until_signalled(run()))
    except ProviderError as error:
        raise InputError(Complaint(message=error.message)) from None


@contextlib.asynccontextmanager
async def _health(address: str, registry: CollectorRegistry) -> AsyncIterator[str]:
    """Answer ``/healthz``, ``/readyz`` and ``/metrics``; gives the URL.  A provider that answers is alive and ready."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not host:
        raise click.UsageError("--health is written HOST:PORT")
    health = Health(alive={}, ready={}, metrics=lambda: generate_latest(registry))
    try:
        bound, number = await health.serve(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise click.UsageError(f"health cannot be served at {address}: {error}") from None
    try:
        yield f"http://{bound}:{number}"
    finally:
        await health.close()


def _tls(listening: Listening) -> Tls | None:
    """The files of TLS, or None if plaintext is asked for."""
    from holdfast.providers.wire.tls import Tls

    mounted = Tls.in_folder(listening.tls_dir) if listening.tls_dir else None
    cert = listening.tls_cert or (mounted and mounted.cert)
    key = listening.tls_key or (mounted and mounted.key)
    ca = listening.tls_ca or (mounted and mounted.ca)
    if cert and key and ca:
        if listening.plaintext:
            raise click.UsageError("--plaintext and TLS files exclude each other; leave one of them out")
        missing = [str(path) for path in (cert, key, ca) if not path.is_file()]
        if missing:
            raise click.UsageError(f"there is no file {missing[0]}")
        return Tls(cert=cert, key=key, ca=ca)
    if not listening.plaintext:
        raise click.UsageError(
            "a provider serves with TLS: give --tls-dir, or --tls-cert, --tls-key and --tls-ca;"
            " or --plaintext, where everyone who can connect may use the machines"
        )
    return None
