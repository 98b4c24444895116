"""Heads of requests and responses: reads what a client sent before its body, and writes what precedes ours.

Functions of values alone: nothing here reads or writes a socket.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote

from aiohttp.web import BaseRequest

from holdfast.apiserver.http.gate import PEER
from holdfast.meta.errors import BadRequest
from holdfast.meta.exchange import Response

SERVER: Final = "holdfast"

CLOSING: Final = frozenset({408, 413, 431})
"""Responses to requests whose remaining body is not read."""

REASONS: Final = {
    status.value: status.phrase for status in HTTPStatus if status >= 200 and status not in (204, 304, *CLOSING)
}
"""The phrases of the responses that have a body and leave the connection open."""


def head(response: Response, now: int) -> bytes:
    """The status line and the headers of a response; control characters would end a header early."""
    lines = [
        f"HTTP/1.1 {response.status} {REASONS[response.status]}",
        *(f"{name}: {_CONTROL.sub(' ', value)}" for name, value in response.headers.items()),
        f"Content-Type: {response.content_type}",
        "Cache-Control: no-cache, private",
        f"Content-Length: {len(response.body)}",
        f"Date: {_date(now)}",
        f"Server: {SERVER}",
        "\r\n",
    ]
    return "\r\n".join(lines).encode()


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    return formatdate(now, usegmt=True)


def target(raw: str, most: int) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """Path and query of a request's target, decoded."""
    if not raw.startswith("/"):
        raise BadRequest("the request target must be a path")
    path, _, text = raw.partition("?")
    path = _text(unquote(path, errors="replace"))
    if not text:
        return path, {}
    query: dict[str, tuple[str, ...]] = {}
    try:
        pairs = parse_qsl(text.partition("#")[0], keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise BadRequest(f"too many query parameters: limit is {most}") from None
    for name, value in pairs:
        query[_text(name)] = (*query.get(name, ()), _text(value))
    return path, query


def headers(incoming: BaseRequest) -> dict[str, str]:
    """Headers by their lower-case name.

    Repeated headers are joined by commas; those of impersonation by lines, since names may contain commas.
    """
    headers: dict[str, str] = {}
    for key, raw in incoming.headers.items():
        name, value = key.lower(), _text(raw)
        if name in headers:
            separator = "\n" if name.startswith("impersonate-") else ", "
            value = f"{headers[name]}{separator}{value}"
        headers[name] = value
    headers[PEER] = incoming.remote or ""
    return headers


def _text(value: str) -> str:
    """Text with bytes that are not UTF-8 replaced."""
    return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")


def takes_gzip(incoming: BaseRequest) -> bool:
    return any(
        each.split(";")[0].strip() == "gzip" and not each.replace(" ", "").endswith(";q=0")
        for each in incoming.headers.get("Accept-Encoding", "").split(",")
    )


def gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(level=1, wbits=31)
    return compressor.compress(body) + compressor.flush()


_MOST_WARNING: Final = 4096
_SHORT_WARNING: Final = 256
"""The characters of all warnings together; where they have more, each has at most as many as the second says."""


def shortened(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings as far as clients read headers, cut as Kubernetes cuts them."""
    if sum(map(len, warnings)) <= _MOST_WARNING:
        yield from warnings
        return
    left = _MOST_WARNING
    for warning in warnings:
        text = warning[:_SHORT_WARNING]
        left -= len(text)
        if left < 0:
            return
        yield text


def warning(text: str) -> str:
    """A warning in the form of the Warning header: one line, quoted."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
