"""The webhooks of ``holdfast operator run``: their server, their certificate, and their registration."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from holdfast.apiserver.auth.certificates import CertificateError
from holdfast.cli.errors import Complaint
from holdfast.cli.operator import certificates, registration
from holdfast.cli.operator.certificates import Files, Kept, Renewal, Source
from holdfast.cli.operator.registration import CONVERT, DEFAULT, VALIDATE, Registered, WebhookOptions
from holdfast.cli.process.binding import CannotStart
from holdfast.client.protocols import Client
from holdfast.kinds import reviews
from holdfast.operators.admission import Admission
from holdfast.runtime.webhooks import Route, Webhooks


def routes(admission: Admission) -> dict[str, Route]:
    return {CONVERT: reviews.answered, DEFAULT: admission.completed, VALIDATE: admission.reviewed}


@dataclass(frozen=True, slots=True)
class Serving:
    """Webhooks that are served.

    registered  how definitions have their objects converted there
    renew       renews the certificate now, if it is due or its files have changed
    """

    registered: Registered
    renew: Callable[[], Awaitable[None]]


Redefine = Callable[[Registered], Awaitable[None]]
"""Writes definitions again, after their authority has changed."""


async def _unchanged(registered: Registered) -> None:
    """No definition names the webhooks."""


@contextlib.asynccontextmanager
async def served(
    client: Client,
    options: WebhookOptions,
    namespace: str,
    admission: Admission,
    *,
    redefine: Redefine = _unchanged,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[Serving]:
    """Answer reviews until the end of the block; the Secret of the certificate is in this namespace."""
    source = source_of(client, options, namespace)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        material = await source.read(now())
        certificates.load(tls, material.chain)
    except CertificateError as error:
        hint = "--webhook-certificate names a directory with tls.crt, tls.key and ca.crt"
        raise CannotStart(Complaint(message=f"webhooks have no certificate: {error}", hint=hint)) from None
    webhooks = Webhooks(routes(admission))
    try:
        await webhooks.serve(options.bind, options.port, tls)
    except OSError as error:
        message = f"webhooks cannot be served at {options.bind}, port {options.port}: {error.strerror}"
        raise CannotStart(Complaint(message=message, hint="choose another --webhook-port or --webhook-bind")) from None

    async def register(trusted: bytes) -> None:
        for resource, wire in registration.configurations(options, trusted, admission, namespace):
            await client.apply(resource, wire)

    async def publish(trusted: bytes) -> None:
        await register(trusted)
        await redefine(Registered.of(options, trusted))

    renewal = Renewal(source, material, publish=publish, serve=partial(certificates.load, tls), now=now)
    task = asyncio.create_task(renewal.run())
    try:
        await register(material.trusted)
        yield Serving(Registered.of(options, material.trusted), renewal.once)
    finally:
        task.cancel()
        await webhooks.close()


def source_of(client: Client, options: WebhookOptions, namespace: str) -> Source:
    if options.files is None:
        return Kept(client, namespace, options.hosts)
    return Files(options.files, publishes=not options.injected)
