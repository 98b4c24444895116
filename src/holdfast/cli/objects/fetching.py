"""Fetching: a target's objects, or the table that the server makes of them, once or as they change.

Knows how tables are asked for, and nothing of how they are shown.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, Final, Literal
from urllib.parse import unquote

import msgspec

from holdfast.cli.objects.targets import Target
from holdfast.client import streams
from holdfast.client.protocols import Client, Scope, Unreachable
from holdfast.meta.ages import age
from holdfast.meta.errors import from_status
from holdfast.meta.exchange import JSON, Request
from holdfast.views.tables import Column, ListMeta, Row, Table

Include = Literal["Metadata", "Object"]
"""How much of each object comes with its row."""

_PAGE: Final = "500"
_ACCEPT: Final = {"accept": f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}"}
_SIMPLE: Final = [Column("Name", format="name"), Column("Age", type="date")]
_EMPTY: Final = msgspec.Raw(b"null")


async def objects(client: Client, target: Target) -> list[dict[str, Any]]:
    """The objects in full."""
    if target.name:
        return [(await client.get(target.resource, target.key)).wire()]
    return [each.wire() for each in (await client.list(target.resource, target.scope)).objects]


async def named(client: Client, found: Iterable[Target]) -> list[Target]:
    """The objects of targets, each by its name; a target with a name is not looked up."""
    every: list[Target] = []
    for target in found:
        if target.name:
            every.append(target)
            continue
        listing = await client.list(target.resource, target.scope, metadata_only=True)
        every += [target.of(each.meta.name, each.meta.namespace) for each in listing.objects]
    return every


async def table(client: Client, target: Target, *, include: Include = "Metadata") -> Table:
    """The target as the server shows it, all pages of it."""
    rows: list[Row] = []
    page = Table()
    while True:
        query = {"includeObject": include} | ({} if target.name else _listing(target.scope, page.metadata.continue_))
        request = Request("GET", unquote(target.path), _query(query), _ACCEPT)
        page = _table((await client.raw(request)).body)
        rows += page.rows or ()
        if not page.metadata.continue_:
            return Table(page.columns, rows, page.metadata, page.kind)


@contextlib.asynccontextmanager
async def table_changes(
    client: Client, target: Target, *, since: str, include: Include = "Metadata"
) -> AsyncGenerator[AsyncIterator[tuple[str, Table]], None]:
    """What happens to the target after a version: ``ADDED``, ``MODIFIED`` or ``DELETED``, and the rows of it."""
    query = {"watch": "true", "resourceVersion": since, "includeObject": include, **_selectors(target.watched)}
    path = unquote(target.resource.path(target.scope.namespace))
    response = await client.raw(Request("GET", path, _query(query), _ACCEPT))
    if response.stream is None:
        raise Unreachable(f"the watch of {target.resource} was answered without a stream; is this a Kubernetes API?")
    try:
        yield _changes(streams.lines(response.stream))
    finally:
        await streams.close(response.stream)


async def _changes(lines: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, Table], None]:
    async for line in lines:
        change = msgspec.json.decode(line, type=_Change)
        if change.type == "ERROR":
            raise from_status(msgspec.json.decode(change.object), 500)
        if change.type != "BOOKMARK":
            yield change.type, _table(bytes(change.object))


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw = _EMPTY


def _listing(scope: Scope, page: str) -> dict[str, str]:
    return {"limit": _PAGE, "continue": page, **_selectors(scope)}


def _selectors(scope: Scope) -> dict[str, str]:
    return {"labelSelector": scope.labels, "fieldSelector": scope.fields}


def _query(given: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: (value,) for name, value in given.items() if value}


def _table(body: bytes) -> Table:
    try:
        answered = msgspec.json.decode(body, type=Table)
        return answered if answered.kind == "Table" else _simple(msgspec.json.decode(body))
    except msgspec.DecodeError as error:
        raise Unreachable(f"the answer cannot be read ({error}); is this a Kubernetes API?") from None


def _simple(answered: dict[str, Any]) -> Table:
    """A table of what came from a server that makes none."""
    found = answered.get("items", [answered]) or []
    now = time.time()
    metas = [each.get("metadata") or {} for each in found]
    rows = [
        Row([meta.get("name"), age(meta.get("creationTimestamp"), now)], each)
        for meta, each in zip(metas, found, strict=True)
    ]
    return Table(_SIMPLE, rows, msgspec.convert(answered.get("metadata") or {}, ListMeta), "Table")
