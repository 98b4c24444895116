"""Documents about the server: computed from the registry, kept until it changes, served with an ETag.

Discovery and OpenAPI are read by every client before its first request, so their bytes are computed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from holdfast.apiserver.http.negotiation import Clause, clauses
from holdfast.apiserver.resources import Registry
from holdfast.meta.errors import MethodNotAllowed
from holdfast.meta.exchange import JSON, Request, Response

T = TypeVar("T")

READING: Final = frozenset({"GET", "HEAD"})


def per_revision(make: Callable[[Registry], T]) -> Callable[[Registry], T]:
    """A function of the registry whose value is cached until the registry changes."""
    kept: WeakKeyDictionary[Registry, tuple[int, T]] = WeakKeyDictionary()

    @wraps(make)
    def value(registry: Registry) -> T:
        found = kept.get(registry)
        if found is None or found[0] != registry.revision:
            kept[registry] = found = (registry.revision, make(registry))
        return found[1]

    return value


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes with a content type and an ETag."""

    body: bytes
    content_type: str = JSON
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha256(self.body).hexdigest()[:32].upper())

    @property
    def etag(self) -> str:
        return f'"{self.digest}"'

    def answer(self, request: Request, headers: Mapping[str, str] | None = None) -> Response:
        """The document, or 304 to a client that has it."""
        headers = {"ETag": self.etag, "Vary": "Accept", **(headers or {})}
        if _has(request.headers.get("if-none-match", ""), self.etag):
            return Response(304, content_type=self.content_type, headers=headers)
        return Response(200, self.body, content_type=self.content_type, headers=headers)


def _has(known: str, etag: str) -> bool:
    """Whether an ``If-None-Match`` names the tag; a weak one will do, since the bytes are the same."""
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in known.split(","))


def accepted(request: Request) -> tuple[Clause, ...]:
    """The media types that the client accepts, best first; any, if it does not say."""
    return clauses(request.headers.get("accept", "").strip() or "*/*")


def must_read(request: Request) -> None:
    """Refuse methods other than GET and HEAD."""
    if request.method not in READING:
        raise MethodNotAllowed.of_path()


def page_not_found() -> Response:
    """The response for a group or version that is not served: plain text, as Kubernetes answers, not a Status."""
    return Response(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")
