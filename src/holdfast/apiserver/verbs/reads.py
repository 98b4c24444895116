"""Reads: get and list, served from the committed bytes without decoding them where possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.apiserver.http.options import ListOptions
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Entry, Store
from holdfast.apiserver.storage.store import Expired as StoreExpired
from holdfast.apiserver.verbs import metadata, tables
from holdfast.apiserver.verbs.versions import prepared, shown, wire
from holdfast.meta.errors import BadRequest, Cause, Details, Expired, StatusError, Timeout
from holdfast.meta.exchange import Response, encode
from holdfast.meta.selectors import FieldSelector, field_value


@dataclass(frozen=True, slots=True)
class Filter:
    """The selection of a list or a watch."""

    kind: ResourceType
    options: ListOptions

    def __post_init__(self) -> None:
        known = ("metadata.name", "metadata.namespace", *self.kind.fields)
        for field in self.options.fields.fields:
            if field not in known:
                listed = ", ".join(f'"{name}"' for name in known)
                raise BadRequest(f'"{field}" is not a known field selector: only {listed}')

    @property
    def everything(self) -> bool:
        return not (self.options.labels.requirements or self.options.fields.terms)

    @property
    def reads_objects(self) -> bool:
        """Whether it selects by fields beside the name and the namespace."""
        return not self.options.fields.fields <= {"metadata.name", "metadata.namespace"}

    def __call__(self, entry: Entry) -> bool:
        if not self.options.labels.matches(entry.labels):
            return False
        fields: FieldSelector = self.options.fields
        if not fields.terms:
            return True
        values = {"metadata.name": entry.name, "metadata.namespace": entry.namespace}
        if any(field not in values for field in fields.fields):
            obj = shown(entry, self.kind)
            values |= {field: self._value(obj, field) for field in self.kind.fields}
        return fields.matches_fields(values)

    def _value(self, obj: Object, field: str) -> str:
        special = self.kind.field_values.get(field)
        return special(obj) if special is not None else field_value(obj, field)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: its entries, their version, and the continue token."""

    entries: list[Entry]
    rv: int
    token: str = ""
    remaining: int | None = None


async def page(store: Store, kind: ResourceType, namespace: str | None, options: ListOptions) -> Page:
    """The page that a list requests."""
    wanted = Filter(kind, options)
    rv, after = store.revision, None
    if options.token:
        asked, after = metadata.read_continue_token(options.token)
        rv = asked or rv
    elif options.version and options.exact:
        rv = options.version
    elif options.version and options.version > store.revision:
        raise too_new(options.version, store.revision)
    if rv > store.revision:
        raise too_new(rv, store.revision)
    try:
        if rv >= store.changed_at(kind.key):
            entries = store.list(kind.key, namespace)
        else:
            entries = await store.list_at(kind.key, namespace, rv)
    except StoreExpired:
        if after is None:
            raise Expired("The resourceVersion for the provided list is too old.") from None
        raise Expired.of_page(metadata.continue_token(0, after)) from None
    if after is not None:
        entries = [entry for entry in entries if (entry.namespace, entry.name) > after]
    if not wanted.everything:
        if wanted.reads_objects:
            await prepared(entries, kind)
        entries = [entry for entry in entries if wanted(entry)]
    if options.limit <= 0 or len(entries) <= options.limit:
        await prepared(entries, kind)
        return Page(entries, rv)
    kept = entries[: options.limit]
    await prepared(kept, kind)
    token = metadata.continue_token(rv, (kept[-1].namespace, kept[-1].name))
    return Page(kept, rv, token, len(entries) - len(kept) if wanted.everything else None)


def too_new(asked: int, found: int) -> StatusError:
    """The error for a version that does not exist yet."""
    error = Timeout.of(f"Too large resource version: {asked}, current: {found}", retry_after_seconds=1)
    cause = Cause(reason="ResourceVersionTooLarge", message="Too large resource version")
    return Timeout(error.message, details=Details(causes=(cause,), retry_after_seconds=1))


def list_response(found: Page, kind: ResourceType, form: str, now: Callable[[], datetime]) -> Response:
    """A page in the requested form: list, table or metadata."""
    meta: dict[str, Any] = {"resourceVersion": str(found.rv)}
    if found.token:
        meta["continue"] = found.token
        if found.remaining is not None:
            meta["remainingItemCount"] = found.remaining
    if form == "PartialObjectMetadata":
        return Response(200, tables.partial_list([entry.value for entry in found.entries], meta))
    begin = {"kind": kind.list_kind or f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta}
    return Response(200, b"".join((encode(begin)[:-1], b',"items":[', *_items(found.entries, kind), b"]}")))


def _items(entries: list[Entry], kind: ResourceType) -> Iterator[bytes | memoryview]:
    """The objects of a list, in pieces: items of built-in kinds have no kind and apiVersion.

    Views of the stored bytes, so that a list is copied only once, as a whole.
    """
    begin = kind.head
    opening, cut = (b"", 0) if kind.custom else (b"{", len(begin))
    for number, entry in enumerate(entries):
        value = entry.value if entry.value.startswith(begin) else wire(entry, kind)
        yield b"," + opening if number else opening
        yield memoryview(value)[cut:]


def decoded(entries: list[Entry], kind: ResourceType) -> list[Object]:
    return [shown(entry, kind) for entry in entries]
