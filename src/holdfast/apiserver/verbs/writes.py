"""Writes: how an object gets into the store.

Create, update, all kinds of patch and every subresource end in the same two functions, so that defaulting,
validation, field ownership, generation and optimistic locking are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast.apiserver.apply import server_side
from holdfast.apiserver.crd import compiling
from holdfast.apiserver.http import bodies
from holdfast.apiserver.http.options import DeleteOptions, WriteOptions
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Draft, Entry, Put, Remove, Stale, Store
from holdfast.apiserver.verbs import changes, deletion, metadata
from holdfast.apiserver.verbs.versions import kept, prepared, shown, stored, wire
from holdfast.apiserver.workers import compute
from holdfast.meta.errors import (
    AlreadyExists,
    Conflict,
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    StatusError,
)
from holdfast.meta.exchange import User, encode
from holdfast.meta.objects import GVK
from holdfast.meta.schemas import walk

ATTEMPTS: Final = 8
"""How often a write without a resourceVersion is tried when other writes come in between."""


SERVER: Final = User("kube-apiserver", ("system:masters",))
"""The user of the server's own writes."""

UNCHECKED: Final = frozenset({"binding", "finalize"})
"""Subresources that may change immutable fields, and validate that themselves."""


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a write without its object; a deletion has its own options."""

    kind: ResourceType
    namespace: str
    user: User
    options: WriteOptions
    manager: str
    subresource: str = ""
    body: bytes = b""
    size: int = 0
    """The size of the request's body, in any encoding."""
    deletion: DeleteOptions | None = None


class Written(msgspec.Struct, frozen=True):
    """The result of a write: the object's bytes, whether it is new, and warnings."""

    value: bytes
    created: bool = False
    warnings: tuple[str, ...] = ()
    rv: int = 0


Admit = Callable[[Writing, Object, Object | None, str], Awaitable[tuple[Object, tuple[str, ...]]]]
"""Returns the admitted object, another one if it is changed, and warnings."""

Judge = Callable[[Writing, Object | None, Object | None, str], Awaitable[tuple[str, ...]]]
"""Returns warnings about a valid object, or refuses it (a DELETE has only an old object)."""

Change = Callable[[Object], Object]


async def admit_all(writing: Writing, obj: Object | None, old: Object | None, operation: str) -> tuple[str, ...]:
    """The default `judge`: no webhooks."""
    return ()


_Compiled = dict[GVK, tuple[Mapping[str, Any], walk.Schema]]
"""Compiled schemas with their source, so that a changed definition replaces its old one."""

_BUILT_IN: Final[_Compiled] = {}
"""Shared by all servers of the process, because compiling built-in kinds is most of the cost of a new server."""


class Writer:
    """Writes objects to the store; `admit` runs before an object is validated, `judge` before it is stored."""

    def __init__(
        self, store: Store, *, now: Callable[[], datetime], random: Random, admit: Admit, judge: Judge = admit_all
    ) -> None:
        self.store = store
        self.now = now
        self.random = random
        self.admit = admit
        self.judge = judge
        self._schemas: _Compiled = {}

    async def create(self, writing: Writing, obj: Object, *, tracked: bool = False) -> Written:
        """Create `obj`; `tracked`: it has its managed fields already."""
        kind = writing.kind
        if kind.terminating:
            error = MethodNotAllowed.of(kind.plural, "create", group=kind.group)
            raise MethodNotAllowed(
                "create not allowed while custom resource definition is terminating", details=error.details
            )
        if obj["metadata"].get("resourceVersion") and not writing.options.dry_run:
            # As Kubernetes answers, without a reason.
            raise StatusError("resourceVersion should not be set on objects to be created", code=500, reason="")
        metadata.check_namespace(obj, writing.namespace)
        warnings = await compute(writing.size, lambda: self._begin(writing, obj, tracked=tracked))
        admitted, said = await self.admit(writing, obj, None, "CREATE")
        await compute(writing.size, lambda: self._complete(kind, admitted, changed=admitted is not obj))
        obj = admitted
        said += metadata.warnings(kind, obj, None)
        said += await self.judge(writing, obj, None, "CREATE")
        name = obj["metadata"]["name"]
        if writing.options.dry_run:
            if self.store.get(kind.key, obj["metadata"].get("namespace", ""), name) is not None:
                raise AlreadyExists.of(kind.plural, name, group=kind.group)
            return Written(await compute(writing.size, partial(encode, obj)), created=True, warnings=(*warnings, *said))
        namespace = obj["metadata"].get("namespace", "")
        draft = await compute(writing.size, partial(_draft, await stored(obj, kind), kind))
        try:
            (entry,) = await self.store.write(Put(kind.key, namespace, name, draft, expect=0))
        except Stale:
            raise AlreadyExists.of(kind.plural, name, group=kind.group) from None
        await prepared((entry,), kind)
        return Written(wire(entry, kind), created=True, warnings=(*warnings, *said), rv=entry.rv)

    def _begin(self, writing: Writing, obj: Object, *, tracked: bool) -> tuple[str, ...]:
        """Prune, default and stamp a new object; returns warnings."""
        kind, now = writing.kind, self.now()
        warnings = () if tracked else self.check_fields(writing, obj)
        warnings += metadata.drop_repeated_owners(obj)
        if kind.status and not kind.keeps_status:
            obj.pop("status", None)
        self._default(kind, obj)
        if not tracked:
            # Before the server's own changes, which no field manager owns.
            self._track(writing, None, obj, now)
        if kind.generation:
            obj["metadata"]["generation"] = 1
        namespace = writing.namespace if kind.namespaced else ""
        metadata.stamp_new(obj, namespace=namespace, now=now, random=self.random)
        kind.on_create(obj)
        return warnings

    def _complete(self, kind: ResourceType, obj: Object, *, changed: bool) -> None:
        """Default a new object again if admission changed it, and validate it."""
        if changed:
            self._default(kind, obj)
            kind.on_create(obj)
        self._validate(kind, obj, None)

    async def update(
        self,
        writing: Writing,
        name: str,
        change: Change,
        *,
        create: Callable[[], Awaitable[Written]] | None = None,
        operation: str = "Update",
    ) -> Written:
        """Replace the object `name` by the result of `change`; `create` creates a missing one."""
        kind = writing.kind
        for _ in range(ATTEMPTS):
            entry = self.store.get(kind.key, writing.namespace, name)
            if entry is None:
                if create is not None:
                    return await create()
                raise NotFound.of(kind.plural, name, group=kind.group)
            await prepared((entry,), kind)
            size = max(writing.size, len(entry.value))
            old = await compute(size, partial(shown, entry, kind))
            # Decoded again, because a deep copy takes ten times as long.
            obj = await compute(size, partial(_changed, change, entry, kind))
            given = obj["metadata"].get("resourceVersion", "")
            self._check_identity(kind, name, obj, old)
            if given and given != str(entry.rv):
                raise Conflict.of(kind.plural, name, group=kind.group)
            if not given and not kind.unconditional:
                problem = FieldError.invalid("metadata.resourceVersion", 0, detail="must be specified for an update")
                raise Invalid.of(kind.plural, name, group=kind.group, problems=[problem])
            obj, warnings = await self._prepare(replace(writing, size=size), obj, old, operation)
            if await compute(size, partial(same, obj, old)):
                return Written(wire(entry, kind), warnings=warnings, rv=entry.rv)
            if writing.options.dry_run:
                return Written(await compute(size, partial(encode, obj)), warnings=warnings, rv=entry.rv)
            put = await compute(size, partial(self._change, kind, await stored(obj, kind), entry))
            try:
                written = await self.store.write(put)
            except Stale:
                continue
            await prepared(written, kind)
            return Written(wire(written[0], kind), warnings=warnings, rv=written[0].rv)
        raise Conflict.of(kind.plural, name, group=kind.group)

    async def _prepare(
        self, writing: Writing, obj: Object, old: Object, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        kind, size = writing.kind, writing.size
        proposed, warnings = await compute(size, lambda: self._begin_update(writing, obj, old, operation))
        admitted, said = await self.admit(writing, proposed, old, "UPDATE")
        changed = admitted is not proposed
        await compute(size, lambda: self._complete_update(writing, admitted, old, changed=changed))
        said += metadata.warnings(kind, admitted, old)
        admitted["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        said += await self.judge(writing, admitted, old, "UPDATE")
        return admitted, (*warnings, *said)

    def _begin_update(
        self, writing: Writing, obj: Object, old: Object, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        """Prune and default a changed object, and keep what the request cannot change; returns it and warnings."""
        kind, now = writing.kind, self.now()
        warnings: tuple[str, ...] = ()
        if operation != "Apply":
            warnings = self.check_fields(writing, obj, old)
        warnings += metadata.drop_repeated_owners(obj)
        metadata.keep_server_owned(obj, old)
        if writing.subresource == "status":
            obj = {**old, "status": obj.get("status"), "metadata": self._status_metadata(kind, obj, old)}
            if obj["status"] is None:
                del obj["status"]
        elif kind.status and not writing.subresource:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        self._default(kind, obj, old)
        if operation != "Apply":
            self._track(writing, old, obj, now)
        if writing.subresource not in UNCHECKED:
            kind.on_update(obj, old)
        return obj, warnings

    def _complete_update(self, writing: Writing, obj: Object, old: Object, *, changed: bool) -> None:
        """Default an object again if admission changed it, count its generation, and validate it."""
        kind, checked = writing.kind, writing.subresource not in UNCHECKED
        if changed:
            self._default(kind, obj, old)
            if checked:
                kind.on_update(obj, old)
        if kind.generation and _counted(kind, obj) != _counted(kind, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if checked:
            self._validate(kind, obj, old)

    @staticmethod
    def _status_metadata(kind: ResourceType, obj: Object, old: Object) -> dict[str, Any]:
        """The metadata after a write of the status, which changes it for some kinds only."""
        meta, stored = dict(obj["metadata"]), old["metadata"]
        for name in kind.status_leaves:
            meta.pop(name, None)
            if name in stored:
                meta[name] = stored[name]
        return meta

    @staticmethod
    def _check_identity(kind: ResourceType, name: str, obj: Object, old: Object) -> None:
        metadata.check_target(obj, name, old["metadata"].get("namespace", ""))
        uid = obj["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            raise Conflict.of(kind.plural, name, group=kind.group, why=why)

    @staticmethod
    def _change(kind: ResourceType, obj: Object, entry: Entry) -> Put | Remove:
        """The change for the store: an object that waited for its last finalizer is removed."""
        meta = obj["metadata"]
        gone = (
            meta.get("deletionTimestamp")
            and not meta.get("finalizers")
            and not meta.get("deletionGracePeriodSeconds")
            and not deletion.waits(kind, obj)
        )
        draft = _draft(obj, kind)
        if gone:
            return Remove(entry.resource, entry.namespace, entry.name, expect=entry.rv, draft=draft)
        return Put(entry.resource, entry.namespace, entry.name, draft, expect=entry.rv)

    def check_fields(self, writing: Writing, obj: Object, old: Object | None = None) -> tuple[str, ...]:
        """Drop unknown fields; warn or refuse, as the field validation of the request says."""
        options = writing.options
        unknown = self.prune(writing.kind, obj, old)
        if options.field_validation == "Ignore":
            return ()
        duplicates = bodies.duplicate_keys(writing.body) if writing.body else []
        said = bodies.strict_problems(unknown, duplicates)
        if said and options.strict:
            raise bodies.refused(writing.kind, f"strict decoding error: {', '.join(said)}")
        return tuple(said)

    def reshape(self, kind: ResourceType, obj: Object) -> None:
        """Prune and default an object that an admission webhook has changed."""
        self.prune(kind, obj)
        self._default(kind, obj)

    def prune(self, kind: ResourceType, obj: Object, old: Object | None = None) -> list[str]:
        """Drop unknown fields and return their paths."""
        return changes.of_update(kind, obj, old, self._schema(kind).prune) if kind.prune else []

    def _schema(self, kind: ResourceType) -> walk.Schema:
        compiled = self._schemas if kind.custom else _BUILT_IN
        known = compiled.get(kind.gvk)
        if known is None or known[0] is not kind.schema:
            known = compiled[kind.gvk] = (kind.schema, compiling.compiled(kind.schema))
        return known[1]

    def _default(self, kind: ResourceType, obj: Object, old: Object | None = None) -> None:
        def fill_in(part: Object) -> None:
            self._schema(kind).default(part)
            kind.settle(part)

        changes.of_update(kind, obj, old, fill_in)
        kind.default(obj)

    @staticmethod
    def _validate(kind: ResourceType, obj: Object, old: Object | None) -> None:
        problems: list[FieldError] = metadata.problems(kind, obj, old)
        problems += kind.validate(obj, old)
        if problems:
            raise Invalid.of(kind.kind, obj["metadata"].get("name", ""), group=kind.group, problems=problems)

    @staticmethod
    def _track(writing: Writing, old: Object | None, obj: Object, now: datetime) -> None:
        managed = server_side.track(
            old,
            obj,
            manager=writing.manager,
            schema=writing.kind.schema,
            api_version=writing.kind.api_version,
            now=now,
            subresource=writing.subresource,
            custom=writing.kind.custom,
        )
        if managed:
            obj["metadata"]["managedFields"] = managed
        else:
            obj["metadata"].pop("managedFields", None)


def same(obj: Object, old: Object) -> bool:
    """Whether a write changes nothing; times of managed fields do not count."""
    return _without_times(obj) == _without_times(old)


def _without_times(obj: Object) -> Object:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    managed = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in obj["metadata"].get("managedFields") or ()
    ]
    return {**obj, "metadata": {**meta, "managedFields": managed}}


def _counted(kind: ResourceType, obj: Object) -> Object:
    """The part of an object whose changes the generation counts: all but metadata and a status subresource."""
    apart = ("metadata", "kind", "apiVersion", "status") if kind.status else ("metadata", "kind", "apiVersion")
    return {name: value for name, value in obj.items() if name not in apart}


def _draft(obj: Object, kind: ResourceType) -> Draft:
    return Draft.of(kept(obj, kind))


def _changed(change: Change, entry: Entry, kind: ResourceType) -> Object:
    return change(shown(entry, kind))
