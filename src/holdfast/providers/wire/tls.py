"""Certificates of both sides: files that are read again when they change."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import grpc
import msgspec

from holdfast.providers.contract import Code, ProviderError

log: Final = logging.getLogger(__name__)


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one side: its certificate and key, and the authorities that it believes of the other side."""

    cert: Path
    key: Path
    ca: Path
    server_name: str = ""
    """The name in the provider's certificate, where it is not the host of the address."""

    @staticmethod
    def in_folder(folder: Path, server_name: str = "") -> Tls:
        """The files of a mounted Secret of type kubernetes.io/tls."""
        return Tls(cert=folder / "tls.crt", key=folder / "tls.key", ca=folder / "ca.crt", server_name=server_name)

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """What changes when a file does."""
        return tuple((found.st_mtime_ns, found.st_ino) for found in (path.stat() for path in self.files))

    @property
    def files(self) -> tuple[Path, Path, Path]:
        return self.cert, self.key, self.ca

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Certificate, key and authorities."""
        try:
            cert, key, ca = (path.read_bytes() for path in self.files)
        except OSError as error:
            raise ProviderError(
                Code.INVALID, f"the TLS file {error.filename} cannot be read: {error.strerror}"
            ) from None
        return cert, key, ca


def server_credentials(tls: Tls) -> Any:
    """Credentials of a server that demands a certificate of its clients; new files count for new connections."""
    seen = tls.stamp()

    def configuration() -> Any:
        cert, key, ca = tls.read()
        return grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=ca)

    def changed() -> Any:
        nonlocal seen
        try:
            stamp = tls.stamp()
            if stamp == seen:
                return None
            fresh = configuration()
        except (OSError, ProviderError) as error:
            log.warning("the TLS files cannot be read again, the old ones stay in use: %s", error)
            return None
        seen = stamp
        log.info("TLS files read again")
        return fresh

    return grpc.dynamic_ssl_server_credentials(configuration(), changed, require_client_authentication=True)


def channel_credentials(tls: Tls) -> Any:
    cert, key, ca = tls.read()
    return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=cert)
