"""OpenAPI: the schemas of all served kinds, for clients that validate, explain and merge objects.

One document per group and version (v3), and one of everything (v2, as JSON and protocol buffers).  A document is
computed on its first request and kept until its kinds change, so that neither the start of the server nor a new
custom kind waits for the documents of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

from holdfast.apiserver.openapi import protobuf, v2
from holdfast.apiserver.openapi.discovery import GIT_VERSION, Version, groups
from holdfast.apiserver.openapi.documents import Document, accepted, must_read, page_not_found, per_revision
from holdfast.apiserver.openapi.paths import paths_of
from holdfast.apiserver.openapi.schemas import Components, Names
from holdfast.apiserver.resources import Registry, ResourceType
from holdfast.meta.errors import NotAcceptable
from holdfast.meta.exchange import JSON, Request, Response, encode

_INFO: Final = {"title": "Kubernetes", "version": GIT_VERSION}
_BEARER: Final = {
    "type": "apiKey",
    "name": "authorization",
    "in": "header",
    "description": "Bearer Token authentication",
}
_FOREVER: Final = {"Cache-Control": "public, immutable, max-age=31536000"}


def describe(types: Iterable[ResourceType], names: Names) -> dict[str, Any]:
    """The document of some resources, in version 3."""
    components = Components(names)
    paths = paths_of(types, components)
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": components.schemas, "securitySchemes": {"BearerToken": _BEARER}},
        "security": [{"BearerToken": []}],
    }


class _Documents:
    """The documents of a registry, each computed on first use and kept until its own resource types change."""

    def __init__(self) -> None:
        self.versions: dict[str, Version] = {}
        self.names = Names(())
        self._revision = -1
        self._builtins: tuple[ResourceType, ...] = ()
        self._made: dict[str, Document] = {}

    def follow(self, registry: Registry) -> None:
        """Drop documents of resource types that are no longer served."""
        if self._revision == registry.revision:
            return
        versions = {version.path: version for group in groups(registry) for version in group.versions}
        builtins = tuple(each for each in registry if not each.custom)
        if not _same(self._builtins, builtins):
            self._builtins, self.names = builtins, Names(builtins)
            self._made.clear()
        stale = [path for path in self._made if not _same(self.versions[path].types, _types(versions.get(path)))]
        for path in stale:
            del self._made[path]
        self._revision, self.versions = registry.revision, versions

    def of(self, path: str) -> Document:
        if path not in self._made:
            self._made[path] = Document(encode(describe(self.versions[path].types, self.names)))
        return self._made[path]


_documents: WeakKeyDictionary[Registry, _Documents] = WeakKeyDictionary()


def _documents_of(registry: Registry) -> _Documents:
    documents = _documents.setdefault(registry, _Documents())
    documents.follow(registry)
    return documents


def _types(version: Version | None) -> tuple[ResourceType, ...]:
    return version.types if version else ()


def _same(before: tuple[ResourceType, ...], now: tuple[ResourceType, ...]) -> bool:
    """Whether these are identical values; comparing their content would take longer than computing the document."""
    return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))


@per_revision
def _index(registry: Registry) -> Document:
    """The index of the v3 documents; each URL has a hash of its document, so clients can cache it for ever."""
    documents = _documents_of(registry)
    paths = {path: {"serverRelativeURL": _address(path, documents.of(path))} for path in documents.versions}
    return Document(encode({"paths": paths}))


def _address(path: str, document: Document) -> str:
    return f"/openapi/v3/{path}?hash={document.digest}"


def _swagger(registry: Registry) -> dict[str, Any]:
    """Everything in one document, in version 2."""
    documents = _documents_of(registry)
    types = [each for version in documents.versions.values() for each in version.types]
    whole = describe(types, documents.names)
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": v2.paths(whole["paths"]),
        "definitions": v2.definitions(whole["components"]["schemas"]),
        "securityDefinitions": {"BearerToken": _BEARER},
        "security": [{"BearerToken": []}],
    }


@per_revision
def _swagger_json(registry: Registry) -> Document:
    return Document(encode(_swagger(registry)))


@per_revision
def _swagger_protobuf(registry: Registry) -> Document:
    return Document(protobuf.encode(_swagger(registry)), protobuf.MEDIA_TYPE)


def _serve_v2(request: Request, registry: Registry) -> Response:
    for clause in accepted(request):
        if clause.takes(JSON):
            return _swagger_json(registry).answer(request)
        if clause.media_type in (protobuf.ASKED_AS, protobuf.MEDIA_TYPE):
            return _swagger_protobuf(registry).answer(request)
    raise NotAcceptable.of([JSON, protobuf.MEDIA_TYPE])


def _serve_v3(request: Request, registry: Registry, *, path: str) -> Response:
    documents = _documents_of(registry)
    if path and path not in documents.versions:
        return page_not_found()
    if not any(clause.takes(JSON) for clause in accepted(request)):
        raise NotAcceptable.of([JSON])
    if not path:
        return _index(registry).answer(request)
    document = documents.of(path)
    asked = request.param("hash")
    if asked and asked != document.digest:
        # This hash is outdated; a temporary redirect, because it may become current again.
        return Response(307, headers={"Location": _address(path, document), "Cache-Control": "no-store"})
    return document.answer(request, _FOREVER if asked else None)


def serve(request: Request, registry: Registry) -> Response | None:
    """Answer a request for OpenAPI; None if it is for something else."""
    prefix, _, rest = request.path.strip("/").partition("/")
    if prefix != "openapi":
        return None
    must_read(request)
    form, _, path = rest.partition("/")
    match form, path:
        case "v2", "":
            return _serve_v2(request, registry)
        case "v3", _:
            return _serve_v3(request, registry, path=path)
        case _:
            return page_not_found()
