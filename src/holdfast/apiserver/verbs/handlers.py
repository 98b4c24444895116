"""The handlers: what each verb does with a request for a resource.

Requests arrive here authenticated, authorized and with a seat.  The handlers know resource types and the store, and
no particular kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.apiserver.admission import checks
from holdfast.apiserver.apply import server_side
from holdfast.apiserver.http import bodies, negotiation
from holdfast.apiserver.http.options import (
    DeleteOptions,
    WriteOptions,
    delete_options,
    get_version,
    list_options,
    write_options,
)
from holdfast.apiserver.resources import Object, Registry, ResourceType
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.storage.store import Draft, Entry, Put, Remove, Stale, Store
from holdfast.apiserver.verbs import deletion, metadata, patches, reads, served_paths, tables, versions
from holdfast.apiserver.verbs.versions import shown, wire
from holdfast.apiserver.verbs.watch import Stream
from holdfast.apiserver.verbs.writes import ATTEMPTS, SERVER, Admit, Judge, Writer, Writing, Written, admit_all
from holdfast.apiserver.workers import compute
from holdfast.meta import times
from holdfast.meta.errors import BadRequest, Conflict, NotFound
from holdfast.meta.exchange import Request, Response, User, encode
from holdfast.meta.selectors import FieldSelector, FieldTerm

Subresource = Callable[["Handlers", Request, RequestInfo, ResourceType], Awaitable[Response]]


class Removed(NamedTuple):
    """The result of a deletion: the bytes of the final or marked object, its uid, whether it is gone, and warnings."""

    value: bytes
    uid: str
    gone: bool
    warnings: tuple[str, ...] = ()


class Handlers:
    """Every verb on every resource type of the registry.

    `subresources` maps (verb, subresource) to a handler, for those with behaviour
    of their own; ``status`` is a write like any other.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        now: Callable[[], datetime],
        random: Random,
        admit: Admit,
        judge: Judge = admit_all,
        authorize: Callable[[User, RequestInfo], None] = lambda user, info: None,
        subresources: dict[tuple[str, str], Subresource] | None = None,
    ) -> None:
        self.store = store
        self.registry = registry
        self.now = now
        self.writer = Writer(store, now=now, random=random, admit=admit, judge=judge)
        self.authorize = authorize
        self.subresources = subresources or {}

    async def handle(self, request: Request, info: RequestInfo) -> Response:
        kind = self.registry.get(info.group, info.version, info.resource)
        if kind is None:
            raise NotFound.of_path()
        served_paths.check(request.method, info, kind, handled=self.subresources)
        if not kind.namespaced:
            info = replace(info, namespace="")
        response = await self._answer(request, info, kind)
        if kind.deprecation:
            response.warnings = (kind.deprecation, *response.warnings)
        return response

    async def _answer(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        if info.subresource and info.subresource != "status":
            return await self.subresources[info.verb, info.subresource](self, request, info, kind)
        if info.verb in ("create", "update", "patch"):
            negotiation.form_of(request)  # refuses a form that is not served before anything is written
        match info.verb:
            case "get":
                return await self.get(request, info, kind)
            case "list":
                return await self.list(request, info, kind)
            case "watch":
                return self.watch(request, info, kind)
            case "create":
                return await self.create(request, info, kind)
            case "update":
                return await self.update(request, info, kind)
            case "patch":
                return await self.patch(request, info, kind)
            case "delete":
                return await self.delete(request, info, kind)
            case _:
                return await self.delete_collection(request, info, kind)

    # Reads.

    async def get(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        if (asked := get_version(request)) > self.store.revision:
            raise reads.too_new(asked, self.store.revision)
        entry = self.entry(info, kind)
        await versions.prepared((entry,), kind)
        form = negotiation.form_of(request)
        return await _respond(form, self._formed(request, kind, form.kind, wire(entry, kind)))

    async def list(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        form = negotiation.form_of(request, many=True)
        options = list_options(request, watch=False)
        found = await reads.page(self.store, kind, info.namespace or None, options)
        if form.kind == "Table":
            meta: dict[str, Any] = {"resourceVersion": str(found.rv)}
            if found.token:
                meta |= {"continue": found.token}
                if found.remaining is not None:
                    meta["remainingItemCount"] = found.remaining
            include, now = tables.include_of(request), self.now().timestamp()
            size = sum(len(entry.value) for entry in found.entries)

            def table() -> bytes:
                objects = reads.decoded(found.entries, kind)
                return encode(tables.table(kind, objects, include=include, now=now, list_meta=meta))

            return await _respond(form, await compute(size, table))
        response = reads.list_response(found, kind, form.kind, self.now)
        return await _respond(form, response.body)

    def watch(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        form = negotiation.form_of(request, many=True)
        options = list_options(request, watch=True)
        if info.name:
            named = FieldSelector(frozenset({FieldTerm("metadata.name", info.name)}))
            options = replace(options, fields=options.fields & named)
        content_type = form.stream_content_type
        render = tables.watch_renderer(kind, form.kind, tables.include_of(request), now=lambda: self.now().timestamp())
        clock = asyncio.get_running_loop().time
        stream = Stream(self.store, kind, info.namespace or None, options, render=render, clock=clock)
        return Response(200, stream=stream, content_type=content_type)

    def entry(self, info: RequestInfo, kind: ResourceType) -> Entry:
        """The object that a request names, or 404."""
        entry = self.store.get(kind.key, info.namespace, info.name)
        if entry is None:
            raise NotFound.of(kind.plural, info.name, group=kind.group)
        return entry

    # Writes.

    async def create(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        writing = self.writing(request, info, kind, "CreateOptions")
        written = await self.writer.create(writing, await bodies.read_object(request, kind))
        return await self._written(request, kind, written)

    async def update(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        writing = self.writing(request, info, kind, "UpdateOptions")
        obj = await bodies.read_object(request, kind)
        metadata.check_target(obj, info.name, info.namespace)

        async def create() -> Written:
            return await self._created(request, info, writing, obj)

        written = await self.writer.update(
            writing,
            info.name,
            lambda old: _replacement(obj, old),
            create=create if kind.created_by_update and not info.subresource else None,
        )
        return await self._written(request, kind, written)

    async def patch(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        writing = self.writing(request, info, kind, "PatchOptions")
        given = patches.media_type(request, kind)
        apply = given == patches.APPLY_YAML
        patches.check_options(writing.options, apply=apply, force_given=bool(request.param("force")))
        if apply:
            return await self._written(request, kind, await self._apply(request, info, writing))
        with patches.refused_as_patch(request):
            change = await compute(len(request.body), lambda: patches.change_of(given, request.body, kind))
            written = await self.writer.update(writing, info.name, change)
        return await self._written(request, kind, written)

    async def _apply(self, request: Request, info: RequestInfo, writing: Writing) -> Written:
        kind, now = writing.kind, self.now()
        config = await patches.applied(request, kind, info.name)
        unknown = await compute(len(request.body), lambda: self.writer.prune(kind, config))
        server_side.check_declared(config, unknown, api_version=kind.api_version)

        def merged(live: Object | None) -> Object:
            return server_side.apply(
                live,
                config,
                manager=writing.manager,
                force=writing.options.force,
                schema=kind.schema,
                api_version=kind.api_version,
                now=now,
                subresource=writing.subresource,
                status=kind.status,
                custom=kind.custom,
            )

        async def create() -> Written:
            uid = config["metadata"].get("uid")
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise Conflict.of(kind.plural, info.name, group=kind.group, why=why)
            if writing.subresource:
                raise NotFound.of(kind.plural, info.name, group=kind.group)
            return await self._created(request, info, writing, merged(None), tracked=True)

        def change(old: Object) -> Object:
            obj = merged(old)
            if "resourceVersion" in config["metadata"]:
                obj["metadata"]["resourceVersion"] = config["metadata"]["resourceVersion"]
            return obj

        return await self.writer.update(writing, info.name, change, create=create, operation="Apply")

    async def _created(
        self, request: Request, info: RequestInfo, writing: Writing, obj: Object, *, tracked: bool = False
    ) -> Written:
        """Create by update or apply, which also requires the permission to create."""
        self.authorize(request.user, replace(info, verb="create"))
        obj["metadata"].pop("resourceVersion", None)
        return await self.writer.create(writing, obj, tracked=tracked)

    def writing(self, request: Request, info: RequestInfo, kind: ResourceType, options: str) -> Writing:
        parsed = write_options(request, options)
        return Writing(
            kind=kind,
            namespace=info.namespace,
            user=request.user,
            options=parsed,
            manager=parsed.field_manager or server_side.manager_of(request.headers.get("user-agent", "")),
            subresource=info.subresource,
            body=request.body if bodies.media_type(request) in bodies.JSON_TYPES else b"",
            size=len(request.body),
        )

    async def admitted(
        self, request: Request, info: RequestInfo, kind: ResourceType, obj: Object
    ) -> tuple[Object, tuple[str, ...]]:
        """Run admission for an object that is posted to a subresource and not stored."""
        writing = self.writing(request, info, kind, "CreateOptions")
        obj, said = await self.writer.admit(writing, obj, None, "CREATE")
        return obj, (*said, *await self.writer.judge(writing, obj, None, "CREATE"))

    def writing_by_server(
        self, kind: ResourceType, namespace: str, *, subresource: str = "", dry_run: bool = False
    ) -> Writing:
        """A write that the server does itself, on behalf of a subresource."""
        return Writing(
            kind=kind,
            namespace=namespace,
            user=SERVER,
            options=WriteOptions(field_validation="Ignore", dry_run=dry_run),
            manager=SERVER.name,
            subresource=subresource,
        )

    def stamp(self) -> str:
        """The current time, in the format of objects."""
        return times.format(self.now())

    # Deletion.

    async def delete(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        options = delete_options(request, await _delete_body(request))
        self.entry(info, kind)
        removed = await self.remove(kind, info.namespace, info.name, options, user=request.user)
        if removed.gone and not (kind.plural in deletion.RETURNED and not kind.group):
            details: dict[str, Any] = {"name": info.name, "kind": kind.plural, "uid": removed.uid}
            if kind.group:
                details["group"] = kind.group
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
            return Response.of(status, warnings=removed.warnings)
        return Response(200, removed.value, warnings=removed.warnings)

    async def delete_collection(self, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        options = delete_options(request, await _delete_body(request))
        found = await reads.page(self.store, kind, info.namespace or None, list_options(request, watch=False))
        warnings: tuple[str, ...] = ()
        for entry in found.entries:
            try:
                removed = await self.remove(kind, entry.namespace, entry.name, options, user=request.user)
            except NotFound:
                continue
            warnings += removed.warnings
        response = reads.list_response(found, kind, "", self.now)
        response.warnings = warnings
        return response

    async def remove(
        self, kind: ResourceType, namespace: str, name: str, options: DeleteOptions, *, user: User = SERVER
    ) -> Removed:
        """Delete or mark one object."""
        write = WriteOptions(dry_run=options.dry_run)
        writing = Writing(kind=kind, namespace=namespace, user=user, options=write, manager="", deletion=options)
        for _ in range(ATTEMPTS):
            entry = self.store.get(kind.key, namespace, name)
            if entry is None:
                raise NotFound.of(kind.plural, name, group=kind.group)
            checks.check_deletable(entry)
            await versions.prepared((entry,), kind)
            obj = shown(entry, kind)
            deletion.check_preconditions(kind, obj, options)
            warnings = deletion.advice(kind, options) + await self.writer.judge(writing, None, obj, "DELETE")
            kept = deletion.marked(kind, obj, options, now=self.now())
            uid = obj["metadata"]["uid"]
            if options.dry_run or kept == obj:
                return Removed(encode(kept or obj), uid, kept is None, warnings)
            change: Put | Remove
            draft = Draft.of(versions.kept(await versions.stored(obj if kept is None else kept, kind), kind))
            if kept is None:
                change = Remove(kind.key, namespace, name, expect=entry.rv, draft=draft)
            else:
                change = Put(kind.key, namespace, name, draft, expect=entry.rv)
            try:
                (written,) = await self.store.write(change)
            except Stale:
                continue
            await versions.prepared((written,), kind)
            return Removed(wire(written, kind), uid, kept is None, warnings)
        raise Conflict.of(kind.plural, name, group=kind.group)

    # Answers.

    async def _written(self, request: Request, kind: ResourceType, written: Written) -> Response:
        form = negotiation.form_of(request)
        response = await _respond(form, self._formed(request, kind, form.kind, written.value))
        response.status = 201 if written.created else 200
        response.warnings = written.warnings
        return response

    def _formed(self, request: Request, kind: ResourceType, form: str, value: bytes) -> bytes:
        if form == "Table":
            obj = bodies.read_json(value)
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return encode(
                tables.table(
                    kind, [obj], include=tables.include_of(request), now=self.now().timestamp(), list_meta=meta
                )
            )
        return tables.partial(value) if form == "PartialObjectMetadata" else value


def _replacement(obj: Object, old: Object) -> Object:
    """The object of a PUT, in the namespace of the stored one."""
    fresh = {**obj, "metadata": dict(obj["metadata"])}
    fresh["metadata"].setdefault("namespace", old["metadata"].get("namespace", ""))
    if not fresh["metadata"]["namespace"]:
        del fresh["metadata"]["namespace"]
    return fresh


async def _respond(form: negotiation.Form, body: bytes) -> Response:
    """The response with a JSON body; YAML is written by Python, and slowly."""
    size = len(body) if form.media_type == negotiation.YAML else 0
    return await compute(size, lambda: negotiation.respond(form, body))


async def _delete_body(request: Request) -> Any:
    if not request.body:
        return {}
    try:
        return await bodies.read_body(request)
    except ValueError as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from None
