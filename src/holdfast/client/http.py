"""The transport over sockets: HTTP/1.1 with connections that are kept, TLS, proxies, credentials.

The only module that asks with aiohttp.  Whatever goes wrong on the way leaves it
as an `Unreachable` that says whether the request can have arrived.  It knows of a
request only whether its answer has an end.

::

    Unreachable           it may have arrived: the connection broke, or no answer came in time
    └── Unsent            it did not: there was no connection
        └── Untrusted     nor will it: certificates or credentials
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp import client_exceptions as failures
from aiohttp.http_exceptions import HttpProcessingError
from msgspec.structs import replace
from multidict import CIMultiDict
from yarl import URL

from holdfast.client.credentials import Credentials, Fixed, KeyPair, Proof
from holdfast.client.protocols import Unreachable, Unsent, Untrusted
from holdfast.meta.exchange import JSON, WEBSOCKET, Request, Response

USER_AGENT: Final = "holdfast"

_KEPT_SECONDS: Final = 60.0
"""How long an unused connection is kept; less than servers do, so that they seldom close one as we use it."""

_HEARTBEAT: Final = 30.0
"""Seconds between the pings on a WebSocket, by which a server that is gone is noticed."""

_ASKS: Final = ("upgrade", "connection", "sec-websocket-protocol")
"""The headers that ask for a WebSocket, which aiohttp writes itself."""

_WARNING: Final = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')

_PATH_SAFE: Final = "/:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: until a connection stands, until a whole answer is there, and how long a watch may be silent.

    Servers send bookmarks about every minute, so a watch that is silent for longer has lost its server.
    """

    connect: float = 10.0
    answer: float = 60.0
    stall: float = 90.0

    def of(self, request: Request) -> aiohttp.ClientTimeout:
        if request.flag("watch"):
            return aiohttp.ClientTimeout(sock_connect=self.connect, connect=self.connect, sock_read=self.stall)
        if request.flag("follow"):  # a log may be silent for as long as it likes
            return aiohttp.ClientTimeout(sock_connect=self.connect, connect=self.connect)
        return aiohttp.ClientTimeout(total=self.answer, sock_connect=self.connect, connect=self.connect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a server, and how its certificate is verified."""

    url: str
    authority: bytes = b""
    """Certificates in PEM that vouch for the server; those of the system, if there are none."""
    insecure: bool = False
    server_name: str = ""
    """The name that the server's certificate must have, if not the host of the URL."""
    proxy: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: as whom to act."""


class Http:
    """Sends requests to an endpoint; raises `ValueError` if what it is given to trust cannot be read."""

    def __init__(
        self, endpoint: Endpoint, credentials: Credentials | None = None, *, timeouts: Timeouts | None = None
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials or Fixed()
        self._timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._tls: tuple[KeyPair | None, ssl.SSLContext] = (None, tls_context(endpoint))

    async def send(self, request: Request) -> Response:
        if self._closed:
            raise Unsent("the client is closed; make another one")
        proof = await self._credentials.proof()
        response = await self._carried(request, proof)
        if response.status == 401 and self._credentials.refused(proof):
            # The server did nothing for an unknown user, so even a write may be sent again.
            response = await self._carried(request, await self._credentials.proof())
        return response

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _carried(self, request: Request, proof: Proof) -> Response:
        if request.headers.get("upgrade") == WEBSOCKET:
            return await self._connected(request, proof)
        endless = request.flag("watch") or request.flag("follow")
        try:
            answer = await self._opened().request(
                request.method,
                _url(self._endpoint.url, request),
                headers=self._headers(request, proof),
                data=request.body or None,
                timeout=self._timeouts.of(request),
                ssl=self._context(proof.pair),
                server_hostname=self._endpoint.server_name or None,
                proxy=self._endpoint.proxy or None,
                allow_redirects=False,
            )
            if endless and answer.status < 300:
                return _response(answer, stream=_Stream(answer, self._endpoint.url))
            async with answer:
                return _response(answer, body=await answer.read())
        except FAILURES as error:
            raise translated(error, self._endpoint.url) from error

    async def _connected(self, request: Request, proof: Proof) -> Response:
        """A connection with messages in both directions; where it is refused, the answer that says why."""
        protocols = request.headers.get("sec-websocket-protocol", "")
        plain = replace(request, headers={name: request.headers[name] for name in request.headers if name not in _ASKS})
        try:
            socket = await self._opened().ws_connect(
                _url(self._endpoint.url, request),
                protocols=[each.strip() for each in protocols.split(",")],
                headers=self._headers(plain, proof),
                ssl=self._context(proof.pair),
                server_hostname=self._endpoint.server_name or None,
                proxy=self._endpoint.proxy or None,
                heartbeat=_HEARTBEAT,
                max_msg_size=0,
            )
        except aiohttp.WSServerHandshakeError:
            return await self._carried(plain, proof)  # only the answer to a plain request has a body
        except FAILURES as error:
            raise translated(error, self._endpoint.url) from error
        return Response(101, duplex=_Socket(socket, self._endpoint.url))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": USER_AGENT}
            )
            # It would send a DELETE twice whose connection broke, and the second might meet another object.
            self._session._retry_connection = False
        return self._session

    def _headers(self, request: Request, proof: Proof) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept-Encoding": "gzip"})
        if proof.authorization:
            headers["Authorization"] = proof.authorization
        headers.extend(self._endpoint.headers)
        headers.update(request.headers)
        return headers

    def _context(self, pair: KeyPair | None) -> ssl.SSLContext:
        if self._tls[0] != pair:
            try:
                self._tls = (pair, tls_context(self._endpoint, pair))
            except ValueError as error:
                raise Untrusted(str(error)) from None
        return self._tls[1]


class _Socket:
    """A WebSocket as a `Duplex`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, url: str) -> None:
        self._socket = socket
        self._url = url

    @property
    def protocol(self) -> str:
        return self._socket.protocol or ""

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.ERROR:
            raise Unreachable(f"the connection to {self._url} broke: {message.data}")
        if message.type is aiohttp.WSMsgType.BINARY:
            return bytes(message.data)
        return str(message.data).encode() if message.type is aiohttp.WSMsgType.TEXT else None

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except FAILURES as error:
            raise translated(error, self._url) from error

    async def close(self) -> None:
        await self._socket.close()


class _Stream(AsyncIterator[bytes]):
    """A body as it comes; its connection is of no further use."""

    def __init__(self, answer: aiohttp.ClientResponse, url: str) -> None:
        self._answer = answer
        self._url = url

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._answer.content.readany()
        except FAILURES as error:
            self._answer.close()
            raise translated(error, self._url) from error
        if not chunk:
            self._answer.release()
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        connection = self._answer.connection
        if connection is not None and connection.transport is not None:
            # Closing TLS takes a round trip, for which the caller may not wait.
            connection.transport.abort()
        self._answer.close()


def _response(answer: aiohttp.ClientResponse, **content: Any) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    warnings = tuple(_warning(each) for each in answer.headers.getall("Warning", ()))
    return Response(
        answer.status, content_type=headers.get("content-type", JSON), warnings=warnings, headers=headers, **content
    )


def _warning(header: str) -> str:
    """The text of ``299 - "text"``."""
    match = _WARNING.match(header)
    return re.sub(r"\\(.)", r"\1", match[1]) if match else header


def _url(server: str, request: Request) -> URL:
    query = urlencode(request.query, doseq=True)
    path = quote(request.path, safe=_PATH_SAFE)
    return URL(f"{server.rstrip('/')}{path}{'?' if query else ''}{query}", encoded=True)


def tls_context(endpoint: Endpoint, pair: KeyPair | None = None) -> ssl.SSLContext:
    """What a connection is made with; raises `ValueError` that names what cannot be read."""
    try:
        context = ssl.create_default_context(cadata=endpoint.authority.decode("ascii") or None)
    except (ssl.SSLError, UnicodeDecodeError):
        raise ValueError("the certificate authority is not a certificate in PEM") from None
    if endpoint.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        show(context, pair)
    return context


def show(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Have a context show a certificate; raises `ValueError` if there is none in the pair.

    `ssl` reads files alone, so it gets a temporary one that no other user can read.
    """
    with TemporaryDirectory(prefix="holdfast-") as directory:
        path = Path(directory) / "client.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.certificate + b"\n" + pair.key)
        try:
            # An encrypted key must not ask for its password on whatever terminal there is.
            context.load_cert_chain(path, password=lambda: b"")
        except ssl.SSLError as error:
            why = error.reason or "they cannot be read"
            raise ValueError(f"the client certificate and its key are no pair in PEM ({why})") from None


# What can go wrong.

FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError)

TRANSLATIONS: Final[Mapping[type[Exception], type[Unreachable]]] = {
    # Before there is a connection.
    failures.ClientConnectorError: Unsent,
    failures.ConnectionTimeoutError: Unsent,
    failures.ClientHttpProxyError: Unsent,
    failures.InvalidURL: Unsent,
    failures.NonHttpUrlClientError: Unsent,
    failures.ClientConnectorCertificateError: Untrusted,
    failures.ServerFingerprintMismatch: Untrusted,
    # On a connection.
    failures.ClientConnectionError: Unreachable,
    failures.ClientResponseError: Unreachable,
    failures.ClientPayloadError: Unreachable,
    failures.UploadAbortedError: Unreachable,
    failures.RedirectClientError: Unreachable,
    HttpProcessingError: Unreachable,
    OSError: Unreachable,
    asyncio.TimeoutError: Unreachable,
}
"""What a failure says of the request's fate; the nearest ancestor that stands here decides."""


def translated(error: Exception, server: str) -> Unreachable:
    """A failure on the way, in our words."""
    kind, why = fate(type(error)), cause(error)
    if kind is Untrusted:
        return kind(
            f"the certificate of {server} is not trusted: {why}; "
            "check certificate-authority-data and tls-server-name of this cluster in the kubeconfig"
        )
    if kind is Unsent:
        return kind(f"{server} cannot be reached: {why}; is the server running, and its address right?")
    return kind(f"no answer came from {server}: {why}")


def cause(error: Exception) -> str:
    """What went wrong, without what aiohttp adds for those who know its insides."""
    match error:
        case failures.ClientResponseError():
            return f"{error.status} {error.message}"
        case failures.ClientConnectorCertificateError():
            message = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return message.removesuffix(".")
        case failures.ClientSSLError():
            return str(error.os_error)
        case failures.ClientConnectorDNSError():
            return f"the name {error.host} is not known"
        case OSError() if error.errno and error.errno > 0:
            return os.strerror(error.errno)
        case failures.ClientPayloadError():
            return "the connection broke off in the middle of it"
        case _:
            return str(error) or type(error).__name__


def fate(error: type[Exception]) -> type[Unreachable]:
    return next((TRANSLATIONS[each] for each in error.__mro__ if each in TRANSLATIONS), Unreachable)
