"""Events: records what happened to objects, often enough for users and no more often.

`Recorder` decides what to write: the same Event again is counted, many variants of one
reason are combined, and an object with very many Events is limited.  It is a plain data
structure; time is an argument.  `Events` writes what it decides, and never fails: an
Event that cannot be written is counted and dropped.

This module must not know why something is recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from holdfast.client.objects import Object
from holdfast.client.protocols import Unreachable, Writer
from holdfast.client.resources import EVENTS
from holdfast.kernel.outcomes import Failure
from holdfast.meta import names, times
from holdfast.meta.errors import AlreadyExists, Forbidden, NotFound, StatusError
from holdfast.meta.objects import GVK, Key, ObjectError
from holdfast.runtime.decisions import Notice
from holdfast.runtime.metrics import Metrics
from holdfast.runtime.recent import Recent

_log: Final = logging.getLogger("holdfast.runtime.passes.events")

WINDOW: Final = timedelta(minutes=10)
"""How long an Event is remembered since it was last recorded."""

VARIANTS: Final = 10
"""How many messages with one reason become Events of their own within the window."""

BURST: Final = 25
REFILL: Final = timedelta(minutes=5)
"""How many Events of one object and type are written at once, and after how long one more is.

Warnings have a budget of their own, so that no number of routine notices keeps one from being written.
"""

REMEMBERED: Final = 4096
"""How many objects, and how many of their Events, are remembered."""

MESSAGE_BYTES: Final = 1024
"""What the API takes for a message."""

COMBINED: Final = "(combined from similar events): "

_PATIENCE: Final = 5.0
"""Seconds for one Event.  A worker waits for it, and nothing depends on it."""

_ELLIPSIS: Final = "…"

About: TypeAlias = Object | Mapping[str, Any]


# --- values


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object of an Event, as the Event refers to it."""

    api_version: str
    kind: str
    key: Key
    uid: str
    version: str

    @classmethod
    def of(cls, about: About) -> Subject:
        if isinstance(about, Object):
            gvk, key, uid, version = about.resource.gvk, about.key, about.uid, about.version
        else:
            gvk, key, metadata = GVK.of(about), Key.of(about), about["metadata"]
            uid, version = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        return cls(api_version=gvk.api_version, kind=gvk.kind, key=key, uid=uid, version=version)

    @property
    def identity(self) -> tuple[str, ...]:
        """What stays the same when the object changes."""
        return self.api_version, self.kind, self.key.namespace, self.key.name, self.uid

    def to_wire(self) -> dict[str, str]:
        reference = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "resourceVersion": self.version,
        }
        return {name: value for name, value in reference.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventState:
    """An Event as it should be: a new one if its count is 1, else a change of an earlier one."""

    key: Key
    subject: Subject
    type: str
    reason: str
    message: str
    count: int
    first: datetime
    last: datetime

    def manifest(self, *, component: str, instance: str) -> dict[str, Any]:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": self.key.namespace, "name": self.key.name},
            "involvedObject": self.subject.to_wire(),
            "type": self.type,
            "reason": self.reason,
            "source": {"component": component},
            "firstTimestamp": times.format(self.first),
            "reportingComponent": component,
            "reportingInstance": instance,
            **self.change(),
        }

    def change(self) -> dict[str, Any]:
        """What is new about it, as a merge patch."""
        return {"message": self.message, "count": self.count, "lastTimestamp": times.format(self.last)}


# --- the decision


class Recorder:
    """The Events of the last while, and so what the next notice becomes."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._recorded: Recent[tuple[Any, ...], EventState] = Recent(remembered)
        self._variants: Recent[tuple[Any, ...], dict[bytes, datetime]] = Recent(remembered)
        self._buckets: Recent[tuple[str, ...], _Bucket] = Recent(remembered)

    def record(self, subject: Subject, notice: Notice, *, now: datetime) -> EventState | None:
        """The Event that a notice becomes; None if its object has had too many.

        A notice that is not written is counted all the same, so the next Event has the right count.
        """
        kind = (*subject.identity, notice.type, notice.reason)
        digest = _digest(notice.message)
        combined = self._has_many_variants(kind, digest, now)
        message = bounded(f"{COMBINED}{notice.message}" if combined else notice.message)
        what = (*kind, b"" if combined else digest)
        before = self._recorded.get(what)
        if before is not None and now - before.last < WINDOW:
            state = replace(before, subject=subject, message=message, count=before.count + 1, last=now)
        else:
            state = EventState(
                key=_key(subject, what, now),
                subject=subject,
                type=notice.type,
                reason=notice.reason,
                message=message,
                count=1,
                first=now,
                last=now,
            )
        self._recorded.put(what, state)
        return state if self._has_room((*subject.identity, notice.type), now) else None

    def _has_many_variants(self, kind: tuple[str, ...], digest: bytes, now: datetime) -> bool:
        known = self._variants.get(kind) or {}
        recent = {each: when for each, when in known.items() if each != digest and now - when < WINDOW}
        recent[digest] = now
        if len(recent) > VARIANTS + 1:
            del recent[min(recent, key=recent.__getitem__)]
        self._variants.put(kind, recent)
        return len(recent) > VARIANTS

    def _has_room(self, of: tuple[str, ...], now: datetime) -> bool:
        bucket = (self._buckets.get(of) or _Bucket(BURST, now)).at(now)
        has_room = bucket.tokens >= 1
        self._buckets.put(of, replace(bucket, tokens=bucket.tokens - 1) if has_room else bucket)
        return has_room


@dataclass(frozen=True, slots=True)
class _Bucket:
    """How many Events of an object and of one type may still be written."""

    tokens: float
    since: datetime

    def at(self, now: datetime) -> _Bucket:
        gained = max(now - self.since, timedelta(0)) / REFILL
        return _Bucket(min(self.tokens + gained, BURST), now)


def bounded(message: str) -> str:
    """The message, or as much of it as fits, cut between characters."""
    encoded = message.encode()
    if len(encoded) <= MESSAGE_BYTES:
        return message
    return encoded[: MESSAGE_BYTES - len(_ELLIPSIS.encode())].decode(errors="ignore") + _ELLIPSIS


def _key(subject: Subject, what: tuple[Any, ...], now: datetime) -> Key:
    """Where the Event is kept: beside its object; of an object without a namespace, in the default one.

    The name follows from the object, the notice and the time, so a request that is sent twice makes one Event.
    """
    suffix = blake2b(f"{what} {now.isoformat()}".encode(), digest_size=8).hexdigest()
    name = f"{subject.key.name}.{suffix}"
    return Key(subject.key.namespace or "default", suffix if names.dns_subdomain(name) else name)


def _digest(message: str) -> bytes:
    return blake2b(message.encode(), digest_size=16).digest()


# --- writing


class Events:
    """Records Events of objects, as one component such as ``holdfast-workload``."""

    def __init__(
        self, client: Writer, component: str, *, now: Callable[[], datetime], metrics: Metrics, instance: str = ""
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance or component
        self._now = now
        self._metrics = metrics
        self._recorder = Recorder()

    async def emit(self, about: About, notices: Iterable[Notice]) -> None:
        """Record notices of an object, or of the one that they name; never fails."""
        for notice in notices:
            self._metrics.noticed(self._component, notice.type, notice.reason)
            try:
                subject = Subject.of(about if notice.about is None else notice.about)
            except ObjectError as error:
                self._drop(notice, "Malformed", why=str(error))
            else:
                await self._emit(subject, notice)

    async def _emit(self, subject: Subject, notice: Notice) -> None:
        state = self._recorder.record(subject, notice, now=self._now())
        if state is None:
            self._metrics.event_dropped(self._component, "TooMany")
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._write(state)
        except StatusError as error:
            # Its message may repeat what we sent; reason and code say enough.
            self._drop(notice, error.reason or "Refused", code=error.code, expected=_is_ending(error))
        except Failure as error:
            self._drop(notice, error.reason)
        except (Unreachable, TimeoutError) as error:
            self._drop(notice, "Unreachable" if isinstance(error, Unreachable) else "Timeout")
        else:
            self._metrics.event_emitted(self._component, notice.type)

    async def _write(self, state: EventState) -> None:
        if state.count > 1:
            try:
                await self._client.patch(EVENTS, state.key, state.change())
                return
            except NotFound:
                pass  # It has expired, or could not be written before.
        with suppress(AlreadyExists):  # An answer was lost, not the Event.
            await self._client.create(EVENTS, state.manifest(component=self._component, instance=self._instance))

    def _drop(self, notice: Notice, reason: str, *, expected: bool = False, **fields: Any) -> None:
        self._metrics.event_dropped(self._component, reason)
        level = logging.DEBUG if expected else logging.WARNING
        said = {"component": self._component, "event": notice.reason, "reason": reason, **fields}
        _log.log(level, "event dropped", extra={"fields": said})


def _is_ending(error: StatusError) -> bool:
    """Whether it was refused because its namespace is being deleted, where it would be deleted with it."""
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)
