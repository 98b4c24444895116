"""Credentials: how a request proves its user.

A token or a certificate that is given, or one in a file that is renewed.  `plugins` has
those that a command gives out.  This module must not know where credentials are
configured, nor how they travel; no secret is ever in a ``repr``.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from holdfast.client.protocols import Untrusted

REREAD_SECONDS: Final = 60.0
"""How long the content of a token file is used before it is read again; it is renewed minutes before it expires."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, both in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What one request shows: the value of its ``Authorization``, and the certificate of its connection."""

    authorization: str = field(default="", repr=False)
    pair: KeyPair | None = None


class Credentials(Protocol):
    """Where proofs come from."""

    async def proof(self) -> Proof:
        """What to show now; raises `Untrusted` where there is nothing to show."""
        ...

    def refused(self, proof: Proof) -> bool:
        """The server did not take `proof`; whether there may be another one now."""
        ...


def bearer(token: str) -> str:
    """A token as a header carries it; raises `Untrusted` where none can."""
    if not (token.isascii() and token.isprintable()):
        raise Untrusted("the token has characters that no header can carry; was it cut or copied wrongly?")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A proof that stays as it is."""

    known: Proof = Proof()

    async def proof(self) -> Proof:
        return self.known

    def refused(self, proof: Proof) -> bool:
        return False


class TokenFile:
    """A bearer token in a file, which is read again now and then, as the token of a service account must be."""

    def __init__(self, path: Path, *, pair: KeyPair | None = None) -> None:
        self._path = path
        self._pair = pair
        self._known: Proof | None = None
        self._read_at = 0.0

    async def proof(self) -> Proof:
        now = asyncio.get_running_loop().time()
        if self._known is None or now - self._read_at >= REREAD_SECONDS:
            self._known, self._read_at = self._read(), now
        return self._known

    def refused(self, proof: Proof) -> bool:
        if proof == self._known:
            self._known = None
        return True

    def _read(self) -> Proof:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Untrusted(f"the token file {self._path} cannot be read: {error}") from None
        if not token:
            raise Untrusted(f"the token file {self._path} is empty; write the token into it")
        return Proof(authorization=bearer(token), pair=self._pair)
