"""The randomness of uids and generated names."""

from __future__ import annotations

import os
from random import SystemRandom
from typing import Final

_PORTION: Final = 4096
"""Bytes that are taken from the operating system at once."""


class PooledRandom(SystemRandom):
    """The randomness of the operating system, taken in portions.

    A call of the system gives up the interpreter, which another thread may keep for a while.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pool = b""
        self._at = 0

    def getrandbits(self, k: int, /) -> int:
        many = (k + 7) // 8
        begin, self._at = self._at, self._at + many
        if self._at > len(self._pool):
            begin, self._at, self._pool = 0, many, os.urandom(max(_PORTION, many))
        return int.from_bytes(self._pool[begin : self._at]) >> (many * 8 - k)
