"""The certificate of the webhooks: shared, renewed before it expires, and trusted at every moment."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from tests.cli.operator.test_webhooks import ADMISSION, free_port, played

from holdfast.apiserver.auth.certificates import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    CertificateError,
    Pair,
    new_authority,
    new_serving,
)
from holdfast.cli.operator import certificates, definitions, installing, webhooks
from holdfast.cli.operator.certificates import Files, Kept, Material, Renewal
from holdfast.cli.operator.installing import Installed
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.cli.operator.registration import INJECTED, SECRET, Registered, WebhookOptions
from holdfast.cli.process.binding import CannotStart
from holdfast.client.api import ApiClient
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS, SECRETS, Resource
from holdfast.kinds import nvidia
from holdfast.meta.errors import AlreadyExists, Conflict, NotFound
from holdfast.meta.objects import Key
from holdfast.testing import loops
from holdfast.testing.loops import VirtualLoop

HOSTS = ("127.0.0.1",)
KEY = Key("default", SECRET)
BUNDLE_OF = (MUTATING, VALIDATING)


def leaf(chain: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(chain)


def trusts(trusted: bytes, chain: bytes) -> bool:
    """Whether a bundle has the authority that signed a certificate."""
    for authority in x509.load_pem_x509_certificates(trusted):
        try:
            leaf(chain).verify_directly_issued_by(authority)
            return True
        except Exception:  # any failure to verify is a no
            continue
    return False


# --- our own, in a Secret


def test_all_processes_of_an_operator_share_one_certificate_and_one_of_other_hosts_is_replaced() -> None:
    async def story(client: ApiClient) -> None:
        now = datetime.now(UTC)
        first, second = [await Kept(client, "default", ("a.b.svc",)).read(now) for _ in range(2)]
        assert first == second
        other = await Kept(client, "default", ("other.b.svc",)).read(now)
        assert other.trusted == first.trusted
        assert other.chain != first.chain
        await client.patch(SECRETS, KEY, {"data": {"ca.key": "AAAA"}})
        replaced = await Kept(client, "default", ("other.b.svc",)).read(now)
        assert replaced.chain != other.chain
        assert trusts(replaced.trusted, replaced.chain)
        assert trusts(replaced.trusted, other.chain), "what another process serves is still trusted"

    played(story)


@pytest.mark.parametrize("data", [{}, {"tls.crt": "%%%"}, {"ca.crt": "bm90aGluZw==", "ca.key": ""}, None])
def test_a_secret_with_nothing_or_nonsense_in_it_is_filled(data: dict[str, str] | None) -> None:
    async def story(client: ApiClient) -> None:
        wire: dict[str, Any] = {"metadata": {"name": SECRET, "namespace": "default"}}
        raw = {name: value for name, value in (data or {}).items() if value != "%%%"}
        await client.create(SECRETS, {**wire, "data": raw} if data is not None else wire)
        made = await Kept(client, "default", HOSTS).read(datetime.now(UTC))
        assert trusts(made.trusted, made.chain)
        assert await Kept(client, "default", HOSTS).read(datetime.now(UTC)) == made

    played(story)


class Watched:
    """A process of an operator: what it serves, and what it has published since when."""

    def __init__(self, loop: VirtualLoop, published: list[tuple[float, bytes]]) -> None:
        self.loop = loop
        self.published = published
        self.chain = b""
        self.served: list[bytes] = []

    async def publish(self, trusted: bytes) -> None:
        self.published.append((self.loop.time(), trusted))

    def serve(self, chain: bytes) -> None:
        self.chain = chain
        self.served.append(chain)

    def check(self, now: datetime) -> None:
        """What is served has not expired, and is trusted by servers that read what was published ten seconds ago."""
        assert leaf(self.chain).not_valid_after_utc > now
        read = [trusted for at, trusted in self.published if at <= self.loop.time() - certificates.PROPAGATION] or [
            self.published[0][1]
        ]
        assert trusts(read[-1], self.chain)
        assert trusts(self.published[-1][1], self.chain)


class Store:
    """A Secret, and the versions by which two clients do not overwrite each other."""

    def __init__(self) -> None:
        self.wire: dict[str, Any] | None = None
        self.version = 0

    async def get(self, resource: Resource, key: Key) -> Object:
        if self.wire is None:
            raise NotFound.of(resource.plural, key.name)
        return Object(resource, msgspec.json.encode(self.wire))

    async def create(self, resource: Resource, wire: Mapping[str, Any]) -> None:
        if self.wire is not None:
            raise AlreadyExists.of(resource.plural, KEY.name)
        self._put(wire["data"])

    async def patch(self, resource: Resource, key: Key, wire: Mapping[str, Any]) -> None:
        await asyncio.sleep(0.1)  # Virtual time, in which the other process may write.
        if wire["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict.of(resource.plural, key.name)
        self._put(wire["data"])

    def _put(self, data: Mapping[str, str]) -> None:
        self.version += 1
        metadata = {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": str(self.version)}
        self.wire = {"metadata": metadata, "data": dict(data)}


def test_in_thirty_years_no_process_ever_serves_what_is_expired_or_not_trusted() -> None:
    async def story(loop: VirtualLoop) -> None:
        store: Any = Store()
        published: list[tuple[float, bytes]] = []
        processes = [Watched(loop, published) for _ in range(2)]
        tasks = []
        try:
            for each in processes:
                source = Kept(store, "default", HOSTS)
                material = await source.read(loop.now())
                each.serve(material.chain)
                await each.publish(material.trusted)
                renewal = Renewal(source, material, publish=each.publish, serve=each.serve, now=loop.now)
                tasks.append(asyncio.create_task(renewal.run()))
            for _ in range(30 * 12):
                await asyncio.sleep(30.4 * 24 * 3600)
                for each in processes:
                    each.check(loop.now())
        finally:
            for task in tasks:
                task.cancel()
        authorities = {x509.load_pem_x509_certificates(trusted)[0].serial_number for _, trusted in published}
        assert len(authorities) == 4, "an authority of ten years is replaced a year before its end"
        assert processes[0].served == processes[1].served
        assert len(processes[0].served) > 30

    loops.run(story)


def test_a_renewal_that_fails_is_tried_again_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        reads = 0

        async def read(self, now: datetime) -> Material:
            self.reads += 1
            if self.reads < 5:
                raise CertificateError("tls.key cannot be read")
            return Material(b"new", b"")

        def seconds_until_due(self, material: Material, now: datetime) -> float:
            return 10.0

    async def story(loop: VirtualLoop) -> None:
        served: list[bytes] = []
        process = Watched(loop, [])
        renewal = Renewal(Failing(), Material(b"old", b""), publish=process.publish, serve=served.append, now=loop.now)
        task = asyncio.create_task(renewal.run())
        await asyncio.sleep(1000)
        task.cancel()
        assert served == [b"new"]

    loops.run(story)
    assert [each.message for each in caplog.records].count("webhook certificate not renewed") == 1


# --- with real connections


@asynccontextmanager
async def connected(port: int, trusted: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the webhooks by a client that trusts only these authorities."""
    context = ssl.create_default_context(cadata=trusted.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
    try:
        yield reader, writer
    finally:
        writer.close()


async def status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """The status of a review that is asked for over an open connection."""
    writer.write(b"POST /validate HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.partition(b":")[2]) for line in head.split(b"\r\n") if b"ontent-Length" in line)
    await reader.readexactly(length)
    return int(head.split()[1])


async def served_serial(port: int, trusted: bytes) -> int:
    async with connected(port, trusted) as (_, writer):
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der).serial_number


class Clock:
    """A clock that is set by a test."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


async def bundles(client: Client) -> list[bytes]:
    """The authorities that API servers have been given."""
    found = [await client.get(each, Key("", "holdfast-operator")) for each in BUNDLE_OF]
    configs = [webhook["clientConfig"] for each in found for webhook in each.wire()["webhooks"]]
    return [base64.b64decode(each["caBundle"]) for each in configs]


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "PROPAGATION", 0.0)


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize(
    ("age", "signs_itself"), [(LEAF_LIFETIME - timedelta(days=60), False), (AUTHORITY_LIFETIME - LEAF_LIFETIME, True)]
)
def test_a_renewal_keeps_open_connections_and_serves_new_ones_with_the_new_certificate(
    age: timedelta, signs_itself: bool
) -> None:
    async def story(client: ApiClient) -> None:
        real = datetime.now(UTC)
        # The certificate that the operator finds was made long ago, and is still valid.
        authority = new_authority(real - age - timedelta(days=1))
        old = new_serving(authority, HOSTS, now=real - min(age, LEAF_LIFETIME - timedelta(days=60)))
        await client.create(SECRETS, secret_of(authority, old))
        port, clock = free_port(), Clock(real - timedelta(days=300) if not signs_itself else real - timedelta(days=200))
        options = WebhookOptions(bind="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
        definitions_written: list[Registered] = []

        async def redefine(registered: Registered) -> None:
            definitions_written.append(registered)

        async with (
            webhooks.served(client, options, "default", ADMISSION, redefine=redefine, now=clock) as serving,
            connected(port, authority.certificate_pem) as open_connection,
        ):
            assert await served_serial(port, authority.certificate_pem) == old.certificate.serial_number
            assert await status(*open_connection) == 200
            clock.now = real
            await serving.renew()
            assert await status(*open_connection) == 200
            (trusted, again) = await bundles(client)
            assert trusted == again
            assert await served_serial(port, trusted) != old.certificate.serial_number
            assert trusts(trusted, old.certificate_pem), "processes that have not renewed yet are trusted"
            assert bool(definitions_written) == signs_itself
            if signs_itself:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await served_serial(port, authority.certificate_pem)
            else:
                assert await served_serial(port, authority.certificate_pem) != old.certificate.serial_number

    played(story)


def secret_of(authority: Pair, serving: Pair) -> dict[str, Any]:
    files = {
        "ca.crt": authority.certificate_pem,
        "ca.key": authority.key_pem,
        "tls.crt": serving.certificate_pem,
        "tls.key": serving.key_pem,
    }
    data = {name: base64.b64encode(value).decode() for name, value in files.items()}
    return {"metadata": {"name": SECRET, "namespace": "default"}, "data": data}


# --- of another issuer, in files


def mounted(directory: Path, number: int, authority: Pair, serving: Pair) -> None:
    """Write files as a kubelet does: into a directory of their own, to which a link is then moved."""
    home = directory / f"..{number}"
    home.mkdir(parents=True)
    (home / "tls.crt").write_bytes(serving.certificate_pem)
    (home / "tls.key").write_bytes(serving.key_pem)
    (home / "ca.crt").write_bytes(authority.certificate_pem)
    link = directory / "..new"
    link.symlink_to(home.name)
    link.rename(directory / "..data")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")


@pytest.fixture
def pairs() -> tuple[Pair, Pair, Pair]:
    now = datetime.now(UTC)
    authority = new_authority(now)
    return authority, new_serving(authority, HOSTS, now=now), new_serving(authority, HOSTS, now=now)


@pytest.mark.usefixtures("_at_once")
def test_files_that_are_replaced_are_served_from_the_next_connection_on(
    tmp_path: Path, pairs: tuple[Pair, Pair, Pair]
) -> None:
    authority, old, new = pairs

    async def story(client: ApiClient) -> None:
        mounted(tmp_path, 1, authority, old)
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        options = WebhookOptions(bind="127.0.0.1", port=port, url=url, files=tmp_path)
        trusted = authority.certificate_pem
        async with (
            webhooks.served(client, options, "default", ADMISSION) as serving,
            connected(port, trusted) as open_connection,
        ):
            assert await bundles(client) == [trusted, trusted]
            assert await served_serial(port, trusted) == old.certificate.serial_number
            # A key that does not belong to the certificate is not served, and what was served goes on.
            (tmp_path / "..1/tls.key").write_bytes(new.key_pem)
            with pytest.raises(CertificateError):
                await serving.renew()
            assert await served_serial(port, trusted) == old.certificate.serial_number
            mounted(tmp_path, 2, authority, new)
            await serving.renew()
            assert await served_serial(port, trusted) == new.certificate.serial_number
            assert await status(*open_connection) == 200
            # The issuer has a new authority: it is published before it is needed.
            other = new_authority(datetime.now(UTC))
            mounted(tmp_path, 3, other, new_serving(other, HOSTS, now=datetime.now(UTC)))
            await serving.renew()
            assert await bundles(client) == [other.certificate_pem] * 2
            await served_serial(port, other.certificate_pem)

    played(story)


def test_files_are_looked_at_again_every_few_seconds(tmp_path: Path, pairs: tuple[Pair, Pair, Pair]) -> None:
    authority, old, new = pairs

    async def story(loop: VirtualLoop) -> None:
        process = Watched(loop, [])
        mounted(tmp_path, 1, authority, old)
        source = Files(tmp_path)
        material = await source.read(loop.now())
        renewal = Renewal(source, material, publish=process.publish, serve=process.serve, now=loop.now)
        task = asyncio.create_task(renewal.run())
        await asyncio.sleep(60)
        assert process.served == []
        mounted(tmp_path, 2, authority, new)
        await asyncio.sleep(60)
        task.cancel()
        assert [leaf(each).serial_number for each in process.served] == [new.certificate.serial_number]

    loops.run(story)


def test_with_cert_manager_the_authority_is_left_to_it(tmp_path: Path, pairs: tuple[Pair, Pair, Pair]) -> None:
    authority, old, _ = pairs
    mounted(tmp_path, 1, authority, old)
    (tmp_path / "ca.crt").unlink()

    async def story(client: ApiClient) -> None:
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        options = WebhookOptions(
            bind="127.0.0.1", port=port, url=url, files=tmp_path, injected="ops/holdfast-operator-webhooks"
        )
        async with webhooks.served(client, options, "default", ADMISSION) as serving:
            for resource in BUNDLE_OF:
                wire = (await client.get(resource, Key("", "holdfast-operator"))).wire()
                assert wire["metadata"]["annotations"] == {INJECTED: "ops/holdfast-operator-webhooks"}
                assert all("caBundle" not in each["clientConfig"] for each in wire["webhooks"])
            registered = serving.registered
            kinds = [nvidia.GRAPHS]

            async def installed() -> int:
                made = await installing.install(
                    client, kinds, conversion=registered.conversion, annotations=registered.annotations
                )
                return made.written

            assert await installed() == 1
            # cert-manager writes the authority; the operator leaves it there.
            key = Key("", nvidia.GRAPHS.crd_name)
            bundle = base64.b64encode(authority.certificate_pem).decode()
            injected = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}
            await client.patch(DEFINITIONS, key, injected)
            assert await installed() == 0
            wire = (await client.get(DEFINITIONS, key)).wire()
            assert wire["metadata"]["annotations"][INJECTED] == "ops/holdfast-operator-webhooks"
            assert wire["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == bundle

    played(story)


@pytest.mark.parametrize("lacks", ["tls.crt", "tls.key", "ca.crt", "everything"])
def test_a_directory_without_a_certificate_is_told_with_the_file(
    tmp_path: Path, pairs: tuple[Pair, Pair, Pair], lacks: str
) -> None:
    authority, old, _ = pairs
    if lacks != "everything":
        mounted(tmp_path, 1, authority, old)
        (tmp_path / "..1" / lacks).unlink()
    options = WebhookOptions(bind="127.0.0.1", port=1, url="https://127.0.0.1", files=tmp_path)

    async def story(client: ApiClient) -> None:
        with pytest.raises(CannotStart) as refused:
            async with webhooks.served(client, options, "default", ADMISSION):
                pass
        missing = "tls.crt" if lacks == "everything" else lacks
        assert missing in str(refused.value)

    played(story)


def test_a_definition_with_another_authority_is_written_again() -> None:
    async def story(client: ApiClient) -> None:
        options = WebhookOptions(bind="127.0.0.1", port=1, service=("ops", "holdfast"))

        async def install(trusted: bytes) -> Installed:
            conversion = Registered.of(options, trusted).conversion
            return await installing.install(client, [nvidia.GRAPHS], conversion=conversion)

        authorities = [new_authority(datetime.now(UTC)).certificate_pem for _ in range(2)]
        order = (authorities[0], authorities[0], authorities[1])
        assert [(await install(trusted)).written for trusted in order] == [1, 0, 1]
        marked = definitions.marked(nvidia.GRAPHS, conversion=Registered.of(options, b"").conversion)
        found = (await client.get(DEFINITIONS, Key("", nvidia.GRAPHS.crd_name))).wire()
        assert definitions.is_current(found, marked), "the chart, which has no authority, has the same definition"

    played(story)
