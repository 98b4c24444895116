"""First-boot data of a guest: what the spec has inline, and what Secrets have.

Inline data and a Secret may both be given: user data becomes a MIME multipart document, meta data is concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from holdfast.kinds.virtrigaud.references import LocalObjectReference
from holdfast.operators.virtualmachine.machines.observe import World
from holdfast.operators.virtualmachine.secrets import Sealed

USER_DATA_KEYS: Final = ("userdata", "user-data", "cloud-init", "cloud-config")
META_DATA_KEYS: Final = ("metadata", "meta-data", "meta_data")
IGNITION_KEYS: Final = ("ignition", "config.ign", *USER_DATA_KEYS)

_BOUNDARY: Final = "==HOLDFAST-USER-DATA=="

_TYPES: Final = (
    (b"#cloud-config", "text/cloud-config"),
    (b"#!", "text/x-shellscript"),
    (b"#include", "text/x-include-url"),
    (b"#cloud-boothook", "text/cloud-boothook"),
)


class MissingKey(Exception):
    """A Secret has none of the keys under which data is looked for."""

    def __init__(self, path: str, secret: str, keys: Sequence[str]) -> None:
        super().__init__(f"{path}: the Secret {secret} has none of the keys {', '.join(keys)}")


class _Source(Protocol):
    @property
    def inline(self) -> str | None: ...
    @property
    def secret_ref(self) -> LocalObjectReference | None: ...


def user_data(world: World) -> bytes:
    """The user data of the guest; raises `MissingKey`."""
    given = world.machine.spec.user_data
    if given is None:
        return b""
    if given.ignition is not None:
        return b"".join(_parts(given.ignition, world, "spec.userData.ignition.secretRef", IGNITION_KEYS))
    return merged(_parts(given.cloud_init, world, "spec.userData.cloudInit.secretRef", USER_DATA_KEYS))


def meta_data(world: World) -> bytes:
    """The meta data of the guest; raises `MissingKey`.  Without any, the guest is called as the VirtualMachine is."""
    given = world.machine.spec.meta_data
    parts = (
        [] if given is None else _parts(given.cloud_init, world, "spec.metaData.cloudInit.secretRef", META_DATA_KEYS)
    )
    if parts:
        return b"\n".join(part.rstrip(b"\n") for part in parts) + b"\n"
    identity = {"instance-id": world.object.uid, "local-hostname": world.object.key.name}
    return b"".join(f"{name}: {msgspec.json.encode(value).decode()}\n".encode() for name, value in identity.items())


def _parts(source: _Source | None, world: World, path: str, keys: Sequence[str]) -> list[bytes]:
    if source is None:
        return []
    parts = [source.inline.encode()] if source.inline else []
    if source.secret_ref is not None:
        name = source.secret_ref.name
        found = world.secrets.get(name, Sealed()).first(keys)
        if found is None:
            raise MissingKey(path, name, keys)
        parts.append(found)
    return [part for part in parts if part.strip()]


def merged(parts: Sequence[bytes]) -> bytes:
    """Several parts as one document: none is empty, one is itself, more are a MIME multipart document."""
    if len(parts) < 2:
        return b"".join(parts)
    lines = [f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"'.encode(), b"MIME-Version: 1.0", b""]
    for part in parts:
        lines += [f"--{_BOUNDARY}".encode(), f"Content-Type: {_type(part)}; charset=utf-8".encode(), b"", part]
    return b"\n".join((*lines, f"--{_BOUNDARY}--".encode(), b""))


def _type(part: bytes) -> str:
    return next((type for start, type in _TYPES if part.lstrip().startswith(start)), "text/plain")
