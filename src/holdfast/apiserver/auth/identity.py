"""The identity of a server: its certificate authority, serving certificate, token key and admin token.

Created on the first start and kept, since every kubeconfig depends on it.  In a data directory these are files that
only their owner can read; an ephemeral server keeps them in memory.  This module does not know HTTP or the store.
"""

from __future__ import annotations

import base64
import os
import secrets
import ssl
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.certificates import CertificateError, Pair

_AUTHORITY: Final = "ca"
_SERVING: Final = "serving"
_TOKEN_KEY: Final = "service-account.key"
_ADMIN_TOKEN: Final = "admin.token"


FILES: Final = ("ca.crt", "ca.key", "serving.crt", "serving.key", _TOKEN_KEY, _ADMIN_TOKEN)
"""The files of an identity that is kept in a directory."""


class IdentityError(Exception):
    """A stored file cannot be used; the message names the file and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The keys, certificates and admin token of a server."""

    authority: Pair
    serving: Pair
    token_key: ec.EllipticCurvePrivateKey
    admin_token: str

    @classmethod
    def ephemeral(cls, bind: str, *, now: datetime) -> Identity:
        """An identity in memory, gone with the process."""
        authority = certificates.new_authority(now)
        return cls(
            authority=authority,
            serving=certificates.new_serving(authority, certificates.hosts_for(bind), now=now),
            token_key=certificates.new_key(),
            admin_token=_new_token(),
        )

    @classmethod
    def kept(cls, directory: Path, bind: str, *, now: datetime) -> Identity:
        """The identity in a directory; what is missing or about to expire is created and written."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _load_pair(directory, _AUTHORITY)
        if authority is None or certificates.expired(authority, now):
            authority = certificates.new_authority(now)
            _write_pair(directory, _AUTHORITY, authority)
        hosts = certificates.hosts_for(bind)
        serving = _load_pair(directory, _SERVING)
        if serving is None or not certificates.serves(serving, authority, hosts=hosts, now=now):
            serving = certificates.new_serving(authority, hosts, now=now)
            _write_pair(directory, _SERVING, serving)
        return cls(
            authority=authority,
            serving=serving,
            token_key=_kept_key(directory / _TOKEN_KEY),
            admin_token=_kept_token(directory / _ADMIN_TOKEN),
        )

    def renewed(self, bind: str, *, now: datetime) -> Identity:
        """The same identity with a new serving certificate, for a server that outlives one."""
        return replace(self, serving=certificates.new_serving(self.authority, certificates.hosts_for(bind), now=now))

    def tls(self) -> ssl.SSLContext:
        """A TLS context that serves this identity and accepts client certificates of its authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.authority.certificate_pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        load_serving(context, self.serving)
        return context

    def kubeconfig(self, url: str) -> dict[str, Any]:
        """The kubeconfig of the admin."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "holdfast",
                    "cluster": {
                        "server": url,
                        "certificate-authority-data": base64.b64encode(self.authority.certificate_pem).decode(),
                    },
                }
            ],
            "users": [{"name": "holdfast-admin", "user": {"token": self.admin_token}}],
            "contexts": [{"name": "holdfast", "context": {"cluster": "holdfast", "user": "holdfast-admin"}}],
            "current-context": "holdfast",
        }


def load_serving(context: ssl.SSLContext, pair: Pair) -> None:
    """Make a TLS context serve a certificate from the next connection on."""
    load_chain(context, pair.certificate_pem + pair.key_pem)


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Make a TLS context serve certificates and their key from the next connection on; `ssl` reads files only."""
    with TemporaryDirectory(prefix="holdfast-") as directory:
        path = Path(directory) / "serving.pem"
        write_private(path, pem)
        context.load_cert_chain(path)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically even in case of a crash."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _load_pair(directory: Path, name: str) -> Pair | None:
    certificate, key = _paths(directory, name)
    if not (certificate.exists() and key.exists()):
        return None
    try:
        return Pair.load(certificate.read_bytes(), key.read_bytes())
    except CertificateError as error:
        # A new authority would silently invalidate every kubeconfig in use.
        raise IdentityError(f"{certificate}: {error}; restore it, or delete it to get a new one") from error


def _write_pair(directory: Path, name: str, pair: Pair) -> None:
    certificate, key = _paths(directory, name)
    # A key without its certificate does not count, so after a crash between the two both are created again.
    certificate.unlink(missing_ok=True)
    write_private(key, pair.key_pem)
    write_private(certificate, pair.certificate_pem)


def _paths(directory: Path, name: str) -> tuple[Path, Path]:
    return directory / f"{name}.crt", directory / f"{name}.key"


def _kept_key(path: Path) -> ec.EllipticCurvePrivateKey:
    if path.exists():
        try:
            return certificates.load_key(path.read_bytes())
        except CertificateError as error:
            raise IdentityError(f"{path}: {error}; restore it, or delete it to get a new one") from error
    key = certificates.new_key()
    write_private(path, certificates.key_pem(key))
    return key


def _kept_token(path: Path) -> str:
    if path.exists():
        token = path.read_text("utf-8", errors="replace").strip()
        if len(token) < 32 or not token.isascii():
            raise IdentityError(f"{path}: not a token of 32 or more characters; delete it to get a new one")
        return token
    token = _new_token()
    write_private(path, f"{token}\n".encode())
    return token


def _new_token() -> str:
    return secrets.token_hex(32)
