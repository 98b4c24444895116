"""The certificate of the webhooks: one of our own in a Secret, or one of another issuer in files.

Both sources are read again and again by `Renewal`.  A new authority is published before a certificate that it signed is
served, beside the one before it, so that the API server trusts every process of the operator at every moment.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.certificates import CertificateError, Pair
from holdfast.apiserver.auth.identity import load_chain
from holdfast.cli.errors import Complaint
from holdfast.cli.operator.registration import SECRET
from holdfast.cli.process.binding import CannotStart
from holdfast.client.protocols import Client, Unreachable
from holdfast.client.resources import SECRETS
from holdfast.meta.errors import AlreadyExists, Conflict, NotFound, StatusError
from holdfast.meta.objects import Key

PROPAGATION: Final = 10.0
"""Seconds from publishing an authority until a certificate that it signed is served: servers must read it first."""

_FILES: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_ATTEMPTS: Final = 5
_LOOKED_AT: Final = 10.0
"""Seconds between two looks at files, which a kubelet replaces about a minute after their Secret."""

_SOON: Final = 60.0
"""Seconds after which a renewal that failed is tried again."""

_log: Final = logging.getLogger("holdfast.webhooks")


@dataclass(frozen=True, slots=True)
class Material:
    """What webhooks serve, and what the API server has to trust.

    chain    the certificate, those between it and its authority, and its key, in PEM
    trusted  the authorities, in PEM; empty where another controller publishes them
    due      when it is to be replaced; None where its issuer decides
    """

    chain: bytes
    trusted: bytes
    due: datetime | None = None


class Source(Protocol):
    """Where a certificate comes from."""

    async def read(self, now: datetime) -> Material: ...

    def seconds_until_due(self, material: Material, now: datetime) -> float: ...


def load(tls: ssl.SSLContext, chain: bytes) -> None:
    """Serve a certificate from the next connection on; after a `CertificateError` the one before is still served."""
    try:
        # A context that refuses a key has lost the certificate that it had.
        load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), chain)
        load_chain(tls, chain)
    except ssl.SSLError as error:
        raise CertificateError(f"certificate and key cannot be served: {error.reason or error}") from None


class Renewal:
    """Keeps what is served and what is trusted as its source has it.

    publish  has API servers trust these authorities
    serve    serves a chain from the next connection on
    """

    def __init__(
        self,
        source: Source,
        material: Material,
        *,
        publish: Callable[[bytes], Awaitable[None]],
        serve: Callable[[bytes], None],
        now: Callable[[], datetime],
    ) -> None:
        self._source = source
        self._material = material
        self._publish = publish
        self._serve = serve
        self._now = now

    async def run(self) -> None:
        """Renew whenever it is due, until it is cancelled."""
        problem = ""
        wait = self._source.seconds_until_due(self._material, self._now())
        while True:
            await asyncio.sleep(wait)
            try:
                await self.once()
                problem, wait = "", self._source.seconds_until_due(self._material, self._now())
            except (StatusError, Unreachable, CertificateError, CannotStart, OSError) as error:
                if str(error) != problem:
                    problem = str(error)
                    fields = {"why": problem, "serves": "the certificate that it had"}
                    _log.warning("webhook certificate not renewed", extra={"fields": fields})
                wait = _SOON

    async def once(self) -> None:
        """Read the source, and publish and serve what is new."""
        fresh = await self._source.read(self._now())
        if fresh == self._material:
            return
        if fresh.trusted != self._material.trusted:
            await self._publish(fresh.trusted)
            await asyncio.sleep(PROPAGATION)
        self._serve(fresh.chain)
        self._material = fresh
        due = {} if fresh.due is None else {"due": fresh.due.isoformat()}
        _log.info("webhook certificate renewed", extra={"fields": due})


# --- of another issuer, in files


@dataclass(frozen=True, slots=True)
class Files:
    """A directory of ``tls.crt``, ``tls.key`` and ``ca.crt``, as a mounted Secret of cert-manager has them.

    publishes  whether ``ca.crt`` is what the API server has to trust; else cert-manager tells the server
    """

    directory: Path
    publishes: bool = True

    async def read(self, now: datetime) -> Material:
        return await asyncio.to_thread(self._read)

    def _read(self) -> Material:
        # A kubelet replaces a mounted Secret by one symbolic link: all files are read behind the same one.
        home = (self.directory / "..data").resolve() if (self.directory / "..data").exists() else self.directory
        try:
            certificate, key = (home / "tls.crt").read_bytes(), (home / "tls.key").read_bytes()
            trusted = (home / "ca.crt").read_bytes() if self.publishes else b""
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from None
        return Material(certificate.rstrip() + b"\n" + key, trusted)

    def seconds_until_due(self, material: Material, now: datetime) -> float:
        return _LOOKED_AT


# --- our own, in a Secret


@dataclass(frozen=True, slots=True)
class Kept:
    """A Secret with an authority and the certificate that it signed, which all processes of an operator share.

    The first process creates them, and the first that finds them due renews them.
    """

    client: Client
    namespace: str
    hosts: tuple[str, ...]

    async def read(self, now: datetime) -> Material:
        """The certificate as the Secret has it; created or renewed where it is missing or due."""
        key = Key(self.namespace, SECRET)
        for _ in range(_ATTEMPTS):
            try:
                found = (await self.client.get(SECRETS, key)).wire()
            except NotFound:
                found = None
            before = _Stored.of({} if found is None else found.get("data") or {})
            kept = before.renewed(self.hosts, now)
            if kept is before:
                return kept.material
            try:
                await _write(self.client, key, kept, found)
            except (AlreadyExists, Conflict):
                continue  # another process of the operator was first: its certificate is read
            return kept.material
        raise CannotStart(Complaint(message=f"the Secret {key} is being changed by another client again and again"))

    def seconds_until_due(self, material: Material, now: datetime) -> float:
        return _SOON if material.due is None else max((material.due - now).total_seconds(), _SOON)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a Secret has; None for what is missing or cannot be read.

    earlier  the certificates of authorities that were replaced: certificates that they signed may still be served
    """

    authority: Pair | None
    serving: Pair | None
    earlier: tuple[x509.Certificate, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> _Stored:
        pem = {name: _decoded(data.get(name)) for name in _FILES}
        try:
            bundle = tuple(x509.load_pem_x509_certificates(pem["ca.crt"]))
        except ValueError:
            bundle = ()
        authority = _pair(pem["ca.crt"], pem["ca.key"])
        return cls(authority, _pair(pem["tls.crt"], pem["tls.key"]), bundle[1:] if authority else bundle)

    def renewed(self, hosts: tuple[str, ...], now: datetime) -> _Stored:
        """The same, if the certificate serves these hosts for long enough; else a new one."""
        if self.authority is None or certificates.expired(self.authority, now):
            authority = certificates.new_authority(now)
            replaced = () if self.authority is None else (self.authority.certificate,)
            earlier = tuple(each for each in (*replaced, *self.earlier) if each.not_valid_after_utc > now)
            return _Stored(authority, certificates.new_serving(authority, hosts, now=now), earlier)
        if self.serving is not None and certificates.serves(self.serving, self.authority, hosts=hosts, now=now):
            return self
        # Whatever an earlier authority signed was replaced when this one came.
        return _Stored(self.authority, certificates.new_serving(self.authority, hosts, now=now))

    @property
    def material(self) -> Material:
        _, serving = self.pairs
        return Material(serving.certificate_pem + serving.key_pem, self.trusted, serving.renew_at)

    @property
    def trusted(self) -> bytes:
        """The authorities, the newest first."""
        authority, _ = self.pairs
        return authority.certificate_pem + b"".join(each.public_bytes(Encoding.PEM) for each in self.earlier)

    @property
    def pairs(self) -> tuple[Pair, Pair]:
        assert self.authority is not None, "it was renewed"
        assert self.serving is not None, "it was renewed"
        return self.authority, self.serving


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(str(value or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _pair(certificate: bytes, key: bytes) -> Pair | None:
    try:
        return Pair.load(certificate, key)
    except CertificateError:
        return None


async def _write(client: Client, key: Key, kept: _Stored, found: dict[str, Any] | None) -> None:
    authority, serving = kept.pairs
    content = (kept.trusted, authority.key_pem, serving.certificate_pem, serving.key_pem)
    data = {name: base64.b64encode(value).decode() for name, value in zip(_FILES, content, strict=True)}
    if found is None:
        metadata = {"name": key.name, "namespace": key.namespace}
        await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        return
    patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": data}
    await client.patch(SECRETS, key, patch)
