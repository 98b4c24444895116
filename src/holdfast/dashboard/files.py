"""The files that the page consists of: HTML, scripts and styles, which are read once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from aiohttp import web

from holdfast.dashboard.answers import Problem

TYPES: Final = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that the page consists of."""

    body: bytes
    type: str
    tag: str


def assets() -> dict[str, Asset]:
    """The files of the page, by name."""
    found = {}
    for each in (files("holdfast.dashboard") / "assets").iterdir():
        suffix = each.name.rpartition(".")[2]
        if suffix in TYPES:
            body = each.read_bytes()
            found[each.name] = Asset(body, TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found


class Files:
    """Serves the files to browsers, which ask whether theirs are still the same."""

    def __init__(self) -> None:
        self._assets = assets()

    async def index(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, "index.html")

    async def asset(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, request.match_info["name"])

    def _file(self, request: web.Request, name: str) -> web.StreamResponse:
        found = self._assets.get(name)
        if found is None:
            raise Problem(404, f"there is no file {name}")
        headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        response = web.Response(body=found.body, content_type=found.type, charset="utf-8", headers=headers)
        response.enable_compression()
        return response
