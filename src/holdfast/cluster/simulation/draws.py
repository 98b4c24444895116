"""Random numbers that can be repeated: the same purpose gets the same number, in any process and at any time.

A draw depends on a seed and on what it is for, and on nothing else, so nothing has
to be stored and a restart changes no result.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b


def draw(seed: int, *what: str) -> float:
    """A number in [0, 1)."""
    digest = blake2b("\0".join((str(seed), *what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def between(low: timedelta, high: timedelta, seed: int, *what: str) -> timedelta:
    """A time in [low, high)."""
    return low + (high - low) * draw(seed, *what)
