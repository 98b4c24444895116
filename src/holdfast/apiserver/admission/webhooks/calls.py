"""Calls of webhooks: sends an AdmissionReview over verified TLS, and validates the response.

Every failure is `CallFailed`, in the words of Kubernetes; the caller decides what follows from it.  Objects and
certificates are never part of an error or a log line.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import os
import posixpath
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from holdfast.apiserver.admission.webhooks.matching import Client, Hook, Question
from holdfast.apiserver.admission.webhooks.services import Resolve, Unresolved
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.exchange import JSON, encode
from holdfast.meta.objects import GVK

VERSION: Final = "v1"
API_VERSION: Final = f"admission.k8s.io/{VERSION}"
KIND: Final = "AdmissionReview"
JSON_PATCH: Final = "JSONPatch"
LARGEST_ANSWER: Final = 3 * 1024 * 1024

_HEADERS: Final = {"Content-Type": JSON, "Accept": f"{JSON}, */*", "User-Agent": "kube-apiserver-admission"}
_REFUSALS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow this method on the requested resource",
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
}


class CallFailed(Exception):
    """The webhook could not be called, or its response is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response of a webhook: whether it allows the request, its status, patch and warnings."""

    allowed: bool
    status: Object
    patch: tuple[Object, ...] = ()
    warnings: tuple[str, ...] = ()


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_patch = msgspec.json.Decoder(list[dict[str, Any]]).decode


def request_of(
    question: Question, kind: ResourceType, obj: Object | None, old: Object | None, *, uid: str
) -> dict[str, Any]:
    """The request of a review; `kind` is the version of the resource that the webhook sees."""
    shown = obj if obj is not None else old
    assert shown is not None, "a request is about an object"
    seen = GVK.of(shown)
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(seen),
        "resource": _resource(kind),
        # An object of a subresource, such as a Scale, is passed on as it was sent.
        "requestKind": _kind(question.kind.gvk if seen.kind == question.kind.kind else seen),
        "requestResource": _resource(question.kind),
        "name": question.name,
        "operation": question.operation,
        "userInfo": _user_info(question),
        "object": obj,
        "oldObject": old,
        "dryRun": question.dry_run,
        "options": question.options,
    }
    if question.subresource:
        request |= {"subResource": question.subresource, "requestSubResource": question.subresource}
    if question.namespace:
        request["namespace"] = question.namespace
    return request


def _kind(gvk: GVK) -> dict[str, str]:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(kind: ResourceType) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user_info(question: Question) -> dict[str, Any]:
    user = question.user
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info


class Calls:
    """Calls webhooks over pooled connections."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, hook: Hook, request: Object, *, mutating: bool) -> Answer:
        """Call a webhook and return its response; raises `CallFailed`."""
        if hook.problem:
            raise CallFailed(hook.problem)
        if VERSION not in hook.versions:
            raise CallFailed(f"webhook does not accept known AdmissionReview versions ({VERSION})")
        body = await self.send(
            hook.client, encode({"kind": KIND, "apiVersion": API_VERSION, "request": request}), seconds=hook.seconds
        )
        try:
            return checked(body, uid=request["uid"], mutating=mutating)
        except ValueError as error:
            raise CallFailed(f"received invalid webhook response: {error}") from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, client: Client, body: bytes, *, seconds: int) -> bytes:
        """Post a body to a webhook and return the body of its response; raises `CallFailed`."""
        query = f"timeout={seconds}s"
        host = f"{client.service}.{client.namespace}.svc" if client.service else None
        shown = f"https://{host}:{client.port}{_cleaned(client.path)}" if host else _checked_url(client.url)
        headers = _HEADERS | ({"Host": f"{host}:{client.port}"} if host else {})
        try:
            async with asyncio.timeout(seconds):
                url = f"{self._url(client) if host else shown}?{query}"
                options = {"headers": headers, "ssl": _tls(client.authority), "server_hostname": host}
                try:
                    return await self._exchange(url, body, **options)
                except aiohttp.ClientConnectorError:
                    raise
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    # A pooled connection may have just been closed; try again with a new one.
                    return await self._exchange(url, body, **options)
        except (aiohttp.ClientError, OSError, Unresolved) as error:
            raise CallFailed(f'failed to call webhook: Post "{shown}?{query}": {_why(error)}') from None

    async def _exchange(self, url: str, body: bytes, **options: Any) -> bytes:
        # As a file, because aiohttp accepts large bodies only as one.
        posted = self._connected().post(url, data=io.BytesIO(body), allow_redirects=False, **options)
        async with posted as response:
            return await _read(response)

    def _url(self, client: Client) -> str:
        return self._resolve(client.namespace, client.service, client.port, _cleaned(client.path))

    def _connected(self) -> aiohttp.ClientSession:
        """The one session, created on first use because it belongs to the running event loop."""
        if self._session is None:
            # Each call has its own timeout, so the session has none.
            forever = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(timeout=forever, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def _checked_url(url: str) -> str:
    if not url:
        raise CallFailed("could not get REST client: webhook configuration must have either service or URL")
    try:
        parts = urlsplit(url)
        bare = parts.scheme == "https" and parts.hostname and not (parts.username or parts.query or parts.fragment)
    except ValueError:
        bare = False
    if not bare:
        raise CallFailed("could not get REST client: clientConfig.url must have the form https://host[:port]/path")
    return parts._replace(path=_cleaned(parts.path)).geturl()


def _cleaned(path: str) -> str:
    """A path without repeated slashes, as Kubernetes requests it: servers redirect from such a path."""
    return f"/{posixpath.normpath(f'/{path}').lstrip('/')}"


@lru_cache(maxsize=64)
def _tls(authority: str) -> ssl.SSLContext:
    """A TLS context that trusts the given certificates alone; without some, the authorities of the system.

    As in Kubernetes, a certificate in the bundle is trusted whether it is an authority or the webhook's own.
    """
    try:
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode("ascii") or None)
    except (ssl.SSLError, binascii.Error, UnicodeError):
        raise CallFailed("could not get REST client: clientConfig.caBundle has no certificate in PEM") from None
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


async def _read(response: aiohttp.ClientResponse) -> bytes:
    status = response.status
    if not 200 <= status <= 206:
        unknown = 'an error on the server ("unknown") has prevented the request from succeeding'
        moved = f"the server answered {status}, and redirects are not followed"
        raise CallFailed(f"failed to call webhook: {_REFUSALS.get(status, moved if status < 400 else unknown)}")
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise CallFailed(f"failed to call webhook: the answer is larger than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _why(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case aiohttp.ClientConnectorCertificateError():
            problem = error.certificate_error
            said = problem.verify_message if isinstance(problem, ssl.SSLCertVerificationError) else str(problem)
            return f"tls: failed to verify certificate: {said}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            said = os.strerror(number).lower() if number else str(error.os_error)
            return f"dial tcp {error.host}:{error.port}: connect: {said}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(error) or type(error).__name__


def checked(body: bytes, *, uid: str, mutating: bool) -> Answer:
    """The response in a review; raises ValueError if it is not valid."""
    try:
        review = _decode_review(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"couldn't decode it: {error}") from None
    response = review.response
    if response is None:
        raise ValueError("webhook response was absent")
    if response.uid != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{response.uid}"')
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        group, _, version = review.api_version.rpartition("/")
        got = f"{group}/{version}, Kind={review.kind}"
        raise ValueError(f"expected webhook response of {API_VERSION}, Kind={KIND}, got {got}")
    return Answer(
        allowed=response.allowed,
        status=response.status or {},
        patch=_patch(response, mutating=mutating),
        warnings=tuple(response.warnings or ()),
    )


def _patch(response: _Response, *, mutating: bool) -> tuple[Object, ...]:
    given = [name for name, value in (("patch", response.patch), ("patchType", response.patch_type)) if value]
    if not mutating:
        if given:
            raise ValueError(f"validating webhook may not return response.{given[0]}")
        return ()
    if not response.patch:
        if response.patch_type is not None:
            raise ValueError("webhook returned response.patchType but not response.patch")
        return ()
    if response.patch_type is None:
        raise ValueError("webhook returned response.patch but not response.patchType")
    if response.patch_type != JSON_PATCH:
        raise ValueError(f'unsupported patch type "{response.patch_type}"')
    try:
        return tuple(_decode_patch(response.patch))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"undecodable patch: {error}") from None
