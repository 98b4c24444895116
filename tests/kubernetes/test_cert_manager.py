"""The certificate of the webhooks from a real cert-manager, on a given Kubernetes.

    export HOLDFAST_CERT_MANAGER_BIN=$(make -s cert-manager)
    HOLDFAST_KUBECONFIG=build/kubernetes/kubeconfig python -m pytest tests/kubernetes/test_cert_manager.py

The operator is a process with the account and the arguments of its Deployment.  The stories do what a kubelet and the
network of a cluster would do: they write the files of the Secret, and have the Service lead to the process.  The API
server has to reach endpoints of Services, as that of `make kubernetes` does.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from tests.cli.operator.test_commands import Operator, printed
from tests.cli.operator.test_packaging import helm, needs_helm
from tests.cli.operator.test_webhooks import free_port
from tests.kubernetes.cert_manager import programs
from tests.kubernetes.sites import PATIENCE, Site, play
from tests.kubernetes.test_operators import EXAMPLES, GIVEN, GRAPHS, OURS, SET, SETS, fresh, given, needs_kubectl
from tests.kubernetes.test_permissions import refusals, signed_in
from tests.kubernetes.yards import kubectl

from holdfast.cli.operator import deploying, packaging, registration
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.client import waiting
from holdfast.client.resources import DEFINITIONS, DEPLOYMENTS, SECRETS, SERVICES, SLICES, Resource
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.objects import Key

__all__ = ["fresh"]

BIN = os.environ.get("HOLDFAST_CERT_MANAGER_BIN", "")
needs_cert_manager = pytest.mark.skipif(not BIN, reason="HOLDFAST_CERT_MANAGER_BIN names no directory")

CERTIFICATES = Resource("cert-manager.io", "v1", "certificates", "Certificate")
AUTHORITY = f"{deploying.CERTIFICATE}-authority"
ASKED = 20
"""How many invalid objects the webhook has to refuse."""

CONFIGURED = Key("", registration.CONFIGURATION)
Wire = dict[str, Any]
Story = Callable[[Site], Awaitable[None]]


def cyclic() -> Wire:
    """A PodCliqueSet that the schema accepts and a review refuses."""
    made = copy.deepcopy(SET)
    one, other = made["spec"]["template"]["cliques"]
    made["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    one["spec"]["startsAfter"], other["spec"]["startsAfter"] = [other["name"]], [one["name"]]
    return made


async def refused(site: Site) -> bool:
    """Whether the webhook refuses an object; without a webhook that the server trusts, it is accepted."""
    manifest = cyclic()
    # Nothing is reviewed in the namespace of the operator.
    manifest["metadata"] = {"generateName": "cyclic-", "namespace": "default"}
    try:
        await site.client.create(SETS, manifest, dry_run=True)
    except StatusError as error:
        if "cliques start after each other in a cycle" not in str(error):
            raise
        return True
    return False


async def converted(site: Site) -> None:
    """Have the server convert an object of an older version by the webhook; without one that it trusts, it fails."""
    documents = yaml.safe_load_all((EXAMPLES / "graphdeployments/v1alpha1.yaml").read_text())
    manifest = next(each for each in documents if each["kind"] == GRAPHS.kind)
    manifest["metadata"]["namespace"] = "default"
    older = Resource(GRAPHS.group, "v1alpha1", GRAPHS.plural, GRAPHS.kind)
    await site.client.create(older, manifest, dry_run=True)


# --- cert-manager


@asynccontextmanager
async def cert_manager(site: Site, home: Path, *, merges: bool = True) -> AsyncIterator[None]:
    """cert-manager at work on the cluster, with the webhook that reviews its objects."""
    directory = Path(BIN).expanduser()
    assert not (lacking := programs.missing(directory)), f"{directory} lacks {lacking}; 'make cert-manager' builds them"
    before = {each.key.name for each in (await site.client.list(DEFINITIONS)).objects}
    made = [each for each in programs.definitions(directory) if each["metadata"]["name"] not in before]
    home.mkdir()
    try:
        for definition in made:
            await site.client.apply(DEFINITIONS, definition)
        for definition in made:
            await site.eventually(lambda each=definition: _served(site, each), "the kinds of cert-manager are served")
        with programs.running(directory, site.kubeconfig, home, merges=merges) as webhook:
            for resource, wire in webhook.items():
                await site.client.apply(resource, wire)
            await site.eventually(lambda: _reviewed(site), "the webhook of cert-manager reviews Certificates")
            yield
    finally:
        for resource in (MUTATING, VALIDATING):
            with suppress(NotFound):
                await site.client.delete(resource, Key("", "cert-manager-webhook"))
        for key in (Key("", each["metadata"]["name"]) for each in made):
            await site.client.delete(DEFINITIONS, key)
            await waiting.until(site.client, DEFINITIONS, key, lambda obj: obj is None, timeout=PATIENCE)


async def _served(site: Site, definition: Wire) -> bool:
    spec = definition["spec"]
    names, version = spec["names"], spec["versions"][0]["name"]
    try:
        await site.client.list(Resource(spec["group"], version, names["plural"], names["kind"]))
    except StatusError:
        return False
    return True


async def _reviewed(site: Site) -> bool:
    """Whether a Certificate that the schema accepts and cert-manager does not is refused."""
    spec = {"secretName": "x", "issuerRef": {"name": "x"}, "dnsNames": ["x"], "duration": "1h", "renewBefore": "2h"}
    manifest = {"metadata": {"name": "invalid", "namespace": site.namespace}, "spec": spec}
    try:
        await site.client.create(CERTIFICATES, manifest, dry_run=True)
    except StatusError as error:
        return "renewBefore" in str(error)
    return False


async def ready(site: Site, name: str) -> bool:
    wire = await site.find(CERTIFICATES, name)
    found = {each["type"]: each["status"] for each in ((wire or {}).get("status") or {}).get("conditions") or ()}
    return found.get("Ready") == "True" and found.get("Issuing") != "True"


async def renewed(site: Site, name: str, secret: str) -> None:
    """Have a Certificate issued again, as ``cmctl renew`` does, and wait for it."""
    before = serial(await data(site, secret))
    wire = await site.find(CERTIFICATES, name)
    assert wire is not None
    others = [each for each in wire["status"]["conditions"] if each["type"] != "Issuing"]
    issuing = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "message": "renewed by a test",
        "lastTransitionTime": others[0]["lastTransitionTime"],
    }
    patch = {"status": {"conditions": [*others, issuing]}}
    await site.client.patch(CERTIFICATES, Key(site.namespace, name), patch, subresource="status")

    async def issued() -> bool:
        return serial(await data(site, secret)) != before and await ready(site, name)

    await site.eventually(issued, f"cert-manager issues {name} again")


# --- the Secret and its files


async def data(site: Site, secret: str) -> dict[str, bytes]:
    wire = await site.find(SECRETS, secret)
    return {name: base64.b64decode(each) for name, each in ((wire or {}).get("data") or {}).items()}


def serial(files: dict[str, bytes]) -> int:
    return x509.load_pem_x509_certificate(files["tls.crt"]).serial_number


def mount(directory: Path, files: dict[str, bytes]) -> None:
    """Write files as a kubelet does: into a directory of their own, to which a link is then moved."""
    directory.mkdir(mode=0o700, exist_ok=True)
    home = directory / f"..{serial(files)}"
    home.mkdir(mode=0o700, exist_ok=True)
    for name, content in files.items():
        (home / name).touch(mode=0o600)
        (home / name).write_bytes(content)
    (directory / "..new").symlink_to(home.name)
    (directory / "..new").rename(directory / "..data")
    for name in files:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")


# --- the operator


class Installed:
    """An operator that is installed on the cluster; its process runs here."""

    def __init__(self, site: Site, home: Path) -> None:
        self.site = site
        self.address = own_address()
        self.port = free_port()
        self.files = home / "files"
        self._home = home
        self._process: Operator | None = None

    async def start(self) -> Operator:
        """Run the command of the Deployment, with its account; a process before it is stopped."""
        self.stop()
        wire = await self.site.find(DEPLOYMENTS, deploying.NAME)
        assert wire is not None
        pod = wire["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        places = {"--webhook-port": self.port, "--webhook-certificate": self.files, "--health-port": 0}
        options = []
        for option, _, value in (each.partition("=") for each in container["args"]):
            options.append(f"{option}={places.get(option, value)}" if value else option)
        for secret in (each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each):
            # A kubelet waits for the Secret.
            await self.site.eventually(lambda secret=secret: data(self.site, secret), f"the Secret {secret} has data")
            mount(self.files, await data(self.site, secret))
        await self._routed()
        self._process = Operator(await signed_in(self.site, self._home), *options)
        await asyncio.to_thread(self._process.wait_for, "operator working")
        return self._process

    def stop(self) -> None:
        """Stop the process, which then gives up the lease."""
        if self._process is not None:
            try:
                self._process.end(code=0)
            finally:
                self._process.close()
        self._process = None

    async def _routed(self) -> None:
        """Have the Service of the webhooks lead here, instead of to pods."""
        name = deploying.NAME
        await self.site.patch(SERVICES, name, {"spec": {"selector": None}})
        slice = {
            "metadata": {
                "name": name,
                "namespace": self.site.namespace,
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [self.address], "conditions": {"ready": True}}],
            "ports": [{"name": "webhooks", "port": self.port, "protocol": "TCP"}],
        }
        await self.site.client.apply(SLICES, slice)

    def served(self, authority: bytes) -> int:
        """The serial number of the certificate that a new connection gets, which this authority must have signed."""
        trusted = ssl.create_default_context(cadata=authority.decode())
        host = f"{deploying.NAME}.{self.site.namespace}.svc"
        with (
            socket.create_connection((self.address, self.port), timeout=10) as plain,
            trusted.wrap_socket(plain, server_hostname=host) as connection,
        ):
            found = connection.getpeercert(binary_form=True)
        assert found is not None
        return x509.load_der_x509_certificate(found).serial_number

    async def trusted(self, authority: bytes) -> bool:
        """Whether all objects that name the webhooks have an authority; cert-manager keeps those before it."""
        return all(authority in bundle for _, bundle in await self.named())

    async def named(self) -> list[tuple[str, bytes]]:
        """All objects that name the webhooks, and the authority in them."""
        found = []
        for resource in (MUTATING, VALIDATING):
            wire = (await self.site.client.get(resource, CONFIGURED)).wire()
            found += [(resource.plural, each["clientConfig"].get("caBundle", "")) for each in wire["webhooks"]]
        for obj in (await self.site.client.list(DEFINITIONS)).objects:
            conversion = obj.wire()["spec"].get("conversion") or {}
            if obj.key.name in OURS and conversion.get("strategy") == "Webhook":
                found.append((obj.key.name, conversion["webhook"]["clientConfig"].get("caBundle", "")))
        return [(name, base64.b64decode(each)) for name, each in found]

    async def versions(self) -> dict[str, str]:
        """The versions of all objects that name the webhooks."""
        found = {}
        for resource in (MUTATING, VALIDATING):
            found[resource.plural] = (await self.site.client.get(resource, CONFIGURED)).meta.resource_version
        for obj in (await self.site.client.list(DEFINITIONS)).objects:
            if obj.key.name in OURS:
                found[obj.key.name] = obj.meta.resource_version
        return found


def own_address() -> str:
    """An address of this machine that may be an endpoint, which addresses of the loopback interface may not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but those of its loopback interface")
        return str(probe.getsockname()[0])


@asynccontextmanager
async def reviewing(site: Site) -> AsyncIterator[None]:
    """Inside the block, the webhook refuses an invalid object at every moment."""
    accepted: list[int] = []
    number = 0

    async def ask() -> None:
        nonlocal number
        while True:
            number += 1
            if not await refused(site):
                accepted.append(number)
            await asyncio.sleep(0.1)  # So that the server has time for the other requests.

    task = asyncio.create_task(ask())
    try:
        yield
        await site.eventually(lambda: number >= ASKED or task.done(), "the webhook is asked often enough")
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled() and task.exception() is not None:
        raise AssertionError("the webhook could not be asked") from task.exception()
    assert not accepted, f"of {number} invalid objects, {len(accepted)} were accepted: {accepted[:10]}"


# --- binaries


def test_binaries_are_cached_by_version_unless_a_directory_is_named() -> None:
    cached = programs.binaries({"XDG_CACHE_HOME": "/cache"})
    assert cached == Path("/cache/holdfast-cert-manager") / programs.CERT_MANAGER
    assert programs.binaries({"HOLDFAST_CERT_MANAGER_BIN": "/opt/bin"}) == Path("/opt/bin")


def test_without_go_and_without_binaries_building_is_skipped_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_CERT_MANAGER_BIN", str(tmp_path / "bin"))
    assert programs.main() == 0
    assert "skipped: " in (said := capsys.readouterr().err)
    assert "install Go" in said
    assert not (tmp_path / "bin").exists()


# --- stories


@given
@needs_cert_manager
@needs_kubectl
@pytest.mark.parametrize("merges", [True, False], ids=["authorities are merged", "authorities are replaced"])
def test_cert_manager_issues_and_renews_the_certificate_of_the_webhooks(
    tmp_path: Path, fresh: Callable[..., Any], merges: bool
) -> None:
    async def story(site: Site) -> None:
        await fresh(site)
        made = printed("--namespace", site.namespace, "--webhooks", "--cert-manager")
        manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
        async with cert_manager(site, tmp_path / "cert-manager", merges=merges):
            applied = await kubectl(site, "apply", "--server-side", "--force-conflicts", "-f", "-", input=manifests)
            assert applied.returncode == 0, applied.stderr
            operator = Installed(site, tmp_path)
            try:
                await in_site(site, operator)
            finally:
                operator.stop()
                await kubectl(site, "delete", "--wait=false", "-f", "-", input=manifests)

    async def in_site(site: Site, operator: Installed) -> None:
        secret = registration.ISSUED
        for name in (AUTHORITY, deploying.CERTIFICATE):
            await site.eventually(lambda name=name: ready(site, name), f"the Certificate {name} is ready")
        files = await data(site, secret)
        certificate = x509.load_pem_x509_certificate(files["tls.crt"])
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        host = f"{deploying.NAME}.{site.namespace}.svc"
        assert names.get_values_for_type(x509.DNSName) == [host, f"{host}.cluster.local"]

        process = await operator.start()
        assert operator.served(files["ca.crt"]) == serial(files)

        async def trusted() -> bool:
            return await operator.trusted(files["ca.crt"])

        await site.eventually(trusted, "cert-manager writes the authority into all objects that name the webhooks")
        assert len(await operator.named()) > len((MUTATING, VALIDATING)), "definitions name the webhooks too"
        await site.eventually(lambda: refused(site), "an invalid object is refused")
        async with reviewing(site):
            await converted(site)

            # The certificate is renewed, and then the authority and the certificate.
            for renewing in ((deploying.CERTIFICATE,), (AUTHORITY, deploying.CERTIFICATE)):
                for name in renewing:
                    await renewed(site, name, secret if name == deploying.CERTIFICATE else AUTHORITY)
                before, files = files, await data(site, secret)
                assert (files["ca.crt"] != before["ca.crt"]) == (AUTHORITY in renewing)
                await site.eventually(trusted, "all objects have the authority of the new certificate")
                # A kubelet replaces the files about a minute later; the old certificate is served until then.
                assert operator.served(files["ca.crt"]) == serial(before)
                assert operator.served(before["ca.crt"]) == serial(before)
                mount(operator.files, files)
                await site.eventually(
                    lambda files=files: operator.served(files["ca.crt"]) == serial(files), "it is served"
                )
        # The log says so after a certificate is served.
        await site.eventually(lambda: process.messages.count("webhook certificate renewed") == 2, "both are logged")
        assert refusals(process) == []

        # What is cert-manager's is left alone, also by a process that starts.
        wire = await site.find(SECRETS, secret)
        assert wire is not None
        assert all(each["manager"].startswith("cert-manager") for each in wire["metadata"]["managedFields"])
        versions = await operator.versions()
        await operator.start()
        assert await operator.versions() == versions
        assert await refused(site)
        again = await site.find(SECRETS, secret)
        assert again is not None
        assert again["metadata"]["resourceVersion"] == wire["metadata"]["resourceVersion"]
        await converted(site)
        operator.stop()
        assert not await refused(site)
        with pytest.raises(StatusError, match="conversion webhook"):
            await converted(site)

    play(story, kubeconfig=Path(GIVEN).expanduser(), directory=tmp_path)


Install = Callable[[Site, bool], Awaitable[None]]
"""Installs on the cluster of a site, with cert-manager or without, or changes what is installed."""


def by_helm(home: Path) -> tuple[Install, Callable[[Site], Awaitable[None]]]:
    packaging.write(packaging.chart(), home / "chart")

    async def install(site: Site, cert_manager: bool) -> None:
        values = f"webhooks.certManager={json.dumps(cert_manager)},crds.keep=false"
        await run(site, "upgrade", "--install", "holdfast", str(home / "chart"), "--set", values)

    async def uninstall(site: Site) -> None:
        await run(site, "uninstall", "holdfast")

    async def run(site: Site, *arguments: str) -> None:
        place = ("--kubeconfig", str(site.kubeconfig), "-n", site.namespace)
        answer = await asyncio.to_thread(helm, *arguments, *place, home=home)
        assert answer.returncode == 0, answer.stderr

    return install, uninstall


def by_kubectl(home: Path) -> tuple[Install, Callable[[Site], Awaitable[None]]]:
    async def install(site: Site, cert_manager: bool) -> None:
        await run(site, "apply", "--server-side", "-f", "-", input=manifests(site, cert_manager))
        if not cert_manager:
            kinds = "certificates.cert-manager.io,issuers.cert-manager.io"
            await run(site, "delete", kinds, "--selector", "app.kubernetes.io/name=holdfast-operator")

    async def uninstall(site: Site) -> None:
        for cert_manager in (True, False):
            given = manifests(site, cert_manager)
            await run(site, "delete", "--ignore-not-found", "--wait=false", "-f", "-", input=given)

    def manifests(site: Site, cert_manager: bool) -> str:
        options = ["--cert-manager"] if cert_manager else []
        made = printed("--namespace", site.namespace, "--webhooks", *options)
        # The namespace is the story's.
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": made[1:]})

    async def run(site: Site, *arguments: str, input: str = "") -> None:
        answer = await kubectl(site, "-n", site.namespace, *arguments, input=input)
        assert answer.returncode == 0, answer.stderr

    return install, uninstall


@given
@needs_cert_manager
@pytest.mark.parametrize(
    "installer", [pytest.param(by_helm, marks=needs_helm), pytest.param(by_kubectl, marks=needs_kubectl)]
)
def test_an_installation_changes_between_cert_manager_and_its_own_certificate(
    tmp_path: Path,
    fresh: Callable[..., Any],
    installer: Callable[[Path], tuple[Install, Callable[[Site], Awaitable[None]]]],
) -> None:
    install, uninstall = installer(tmp_path)

    async def story(site: Site) -> None:
        await fresh(site)
        async with cert_manager(site, tmp_path / "cert-manager"):
            operator = Installed(site, tmp_path)
            try:
                for by_cert_manager in (True, False, True):
                    await install(site, by_cert_manager)
                    await operator.start()
                    await in_site(site, operator, registration.ISSUED if by_cert_manager else registration.SECRET)
            finally:
                operator.stop()
                await uninstall(site)
            left = {each.key.name for each in (await site.client.list(SECRETS, site.scope)).objects}
            assert left == {AUTHORITY, registration.ISSUED}, "cert-manager keeps its Secrets"

    async def in_site(site: Site, operator: Installed, secret: str) -> None:
        async def trusted() -> bool:
            return await operator.trusted((await data(site, secret))["ca.crt"])

        await site.eventually(trusted, f"all objects that name the webhooks have the authority of {secret}")
        await site.eventually(lambda: refused(site), "an invalid object is refused")
        async with reviewing(site):
            files = await data(site, secret)
            assert operator.served(files["ca.crt"]) == serial(files)
        assert await trusted()

    play(story, kubeconfig=Path(GIVEN).expanduser(), directory=tmp_path)
