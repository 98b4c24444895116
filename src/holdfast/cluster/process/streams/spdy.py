"""The framing of SPDY/3.1, as far as clients use it to forward ports: streams with headers, data, and their ends.

Bytes in, events out; what to send is returned as bytes.  Nothing here knows sockets.  Flow control is not part of it:
these clients do not use it, and the WebSocket below has its own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_NAMES: Final = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
]
_MORE: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
    "iso-8859-1,utf-,*,enq=0."
)


def _counted(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">I", len(data)) + data


DICTIONARY: Final = b"".join(map(_counted, (*_NAMES, *_MORE))) + _REST.encode()
"""The texts that compressed headers may refer to; the protocol fixes them."""

MOST: Final = 1024 * 1024
"""Bytes that a frame may have."""

_FIN: Final = 0x01
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_VERSION: Final = 3


class SpdyError(Exception):
    """The client does not speak the protocol."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The client has opened a stream."""

    stream: int
    headers: Mapping[str, str]
    ended: bool


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes on a stream; `ended`: no more come."""

    stream: int
    data: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """The client has dropped a stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes that must be sent, such as the answer to a ping."""

    data: bytes


Event = Opened | Data | Reset | Answer


@dataclass
class Framing:
    """One connection, on the side of the server."""

    _received: bytearray = field(default_factory=bytearray)
    _inflate: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(zdict=DICTIONARY))
    _deflate: zlib._Compress = field(default_factory=lambda: zlib.compressobj(zdict=DICTIONARY))

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events of bytes that were received; raises `SpdyError`."""
        self._received += data
        while len(self._received) >= 8:
            first, second = struct.unpack_from(">II", self._received)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > MOST:
                raise SpdyError(f"a frame of {length} bytes is too large")
            if len(self._received) < 8 + length:
                return
            body = bytes(self._received[8 : 8 + length])
            del self._received[: 8 + length]
            if first >> 31:
                yield from self._control(first >> 16 & 0x7FFF, first & 0xFFFF, flags, body)
            else:
                yield Data(first & 0x7FFFFFFF, body, bool(flags & _FIN))

    def _control(self, version: int, type: int, flags: int, body: bytes) -> Iterator[Event]:
        if version != _VERSION:
            raise SpdyError(f"version {version} is not spoken here")
        match type:
            case 1 if len(body) >= 10:
                (stream,) = struct.unpack_from(">I", body)
                yield Opened(stream & 0x7FFFFFFF, self._headers(body[10:]), bool(flags & _FIN))
            case 3 if len(body) >= 4:
                (stream,) = struct.unpack_from(">I", body)
                yield Reset(stream & 0x7FFFFFFF)
            case 6:
                yield Answer(_frame(_PING, 0, body))

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            data = self._inflate.decompress(block, MOST)
            (count,) = struct.unpack_from(">I", data)
            at, found = 4, {}
            for _ in range(count):
                name, at = _text(data, at)
                value, at = _text(data, at)
                found[name.lower()] = value
        except (zlib.error, struct.error, UnicodeDecodeError) as error:
            raise SpdyError(f"the headers of a stream cannot be read: {error}") from None
        return found

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _frame(_SYN_REPLY, 0, struct.pack(">I", stream) + block)

    def reset(self, stream: int) -> bytes:
        """Drop a stream."""
        return _frame(_RST_STREAM, 0, struct.pack(">II", stream, 5))

    def data(self, stream: int, data: bytes, *, ended: bool = False) -> bytes:
        """Bytes on a stream, and whether they are the last."""
        return struct.pack(">II", stream, (_FIN if ended else 0) << 24 | len(data)) + data


def _frame(type: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">II", 1 << 31 | _VERSION << 16 | type, flags << 24 | len(body)) + body


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", data, at)
    end = at + 4 + length
    if end > len(data):
        raise struct.error("a text ends too early")
    return data[at + 4 : end].decode(), end
