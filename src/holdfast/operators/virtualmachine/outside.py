"""The ways out of the operator: gRPC to the processes of providers, HTTP to guests.

What speaks gRPC is imported when the first provider is reached: a command that reaches none does not load it.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

import aiohttp

from holdfast.operators.virtualmachine.connections import (
    CA,
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    KEY,
    Target,
)
from holdfast.providers.contract import Code, Hypervisor, ProviderError


def connect(target: Target) -> Hypervisor:
    """The provider at a target, over gRPC."""
    from holdfast.providers.wire.client import Remote, Settings
    from holdfast.providers.wire.tls import Tls

    settings = Settings(calls_per_second=target.qps, burst=target.burst, in_flight=target.connections)
    name = f"{target.provider.namespace}/{target.provider.name}"
    if not target.secure:
        return Remote(target.address, plaintext=True, name=name, settings=settings)
    kept = tempfile.TemporaryDirectory(prefix="holdfast-tls-")
    folder = _written(target, Path(kept.name))
    tls = Tls.in_folder(folder, target.server_name)
    remote = Remote(target.address, tls=tls, name=name, settings=settings)
    weakref.finalize(remote, kept.cleanup)
    return remote


def _written(target: Target, folder: Path) -> Path:
    """The directory with the certificates: gRPC reads files."""
    found = {
        CA: target.credentials.get(CA),
        CERTIFICATE: target.credentials.first((CLIENT_CERTIFICATE, CERTIFICATE)),
        KEY: target.credentials.first((CLIENT_KEY, KEY)),
    }
    for name, content in found.items():
        if content is None:
            raise ProviderError(Code.INVALID, f"the Secret with the certificates has no {name}")
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return folder


async def fetch(url: str, seconds: float) -> int:
    """Send a GET request to a guest."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.get(url, allow_redirects=False, ssl=False) as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, TimeoutError) as error:
        raise OSError(str(error)) from error
