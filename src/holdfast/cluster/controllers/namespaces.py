"""The deletion of namespaces: their content is deleted first, and conditions say what is waited for.

Pods are deleted before everything else, so that what protects or serves them outlives them.
A namespace waits for objects with finalizers and for pods in their grace period; the
one that it waits for wakes it up, so it is gone as soon as they are.

`conditions` and `patience` are pure; `NamespaceTerminator` asks and acts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.client.discovery import Discovery, Served, discover
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import NAMESPACES, PODS, Resource
from holdfast.kernel.outcomes import Again, Done, Outcome
from holdfast.meta import times
from holdfast.meta.errors import Conflict, MethodNotAllowed, NotFound, StatusError
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.work.keyed_work import KeyedWork

NAME: Final = "namespace"
FINALIZER: Final = "kubernetes"
"""What a namespace says it waits for while there may be something in it."""

WORKERS: Final = 5
SIDE_BY_SIDE: Final = 8
"""How many kinds of one namespace are emptied at a time."""

FINALIZING: Final = timedelta(seconds=15)
"""How long finalizers are expected to take."""


# --- what is found, and what is said of it


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of one resource: how many, waiting for which finalizers, with how much grace."""

    resource: Resource
    count: int
    finalizers: Mapping[str, int] = field(default_factory=dict)
    grace: timedelta = timedelta(0)

    @classmethod
    def of(cls, resource: Resource, objects: Sequence[Object]) -> Remains:
        grace = max((each.meta.deletion_grace_period_seconds or 0 for each in objects), default=0)
        finalizers = Counter(finalizer for each in objects for finalizer in each.meta.finalizers)
        return cls(resource, len(objects), finalizers, timedelta(seconds=grace))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What came of emptying a namespace.

    unknown   groups that could not be asked what they have
    failures  what was refused, by resource
    remains   what is left
    """

    unknown: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    remains: tuple[Remains, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.unknown or self.failures or self.remains)


def conditions(old: Iterable[Mapping[str, Any]], findings: Findings, now: datetime) -> list[dict[str, Any]]:
    """The conditions of a namespace that is being deleted; True means that it is held up."""
    kept = {each["type"]: dict(each) for each in old}
    for type, (reason, message) in _bad_news(findings).items():
        good_reason, good_message = _GOOD_NEWS[type]
        said = {
            "type": type,
            "status": "True" if message else "False",
            "reason": reason if message else good_reason,
            "message": message or good_message,
        }
        before = kept.get(type, {})
        if any(before.get(name) != value for name, value in said.items()):
            kept[type] = {"type": type, "status": said["status"], "lastTransitionTime": times.format(now), **said}
    return list(kept.values())


_GOOD_NEWS: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def _bad_news(findings: Findings) -> dict[str, tuple[str, str]]:
    """For each condition the reason and the message of what holds the deletion up; no message, if nothing does."""
    unknown, failures = findings.unknown, findings.failures
    left = sorted(f"{each.resource.plural}.{each.resource.group} has {each.count}" for each in findings.remains)
    held: Counter[str] = sum((Counter(each.finalizers) for each in findings.remains), Counter())
    return {
        "NamespaceDeletionDiscoveryFailure": (
            "DiscoveryFailed",
            f"Discovery failed for some groups, {len(unknown)} failing: {', '.join(unknown)}" if unknown else "",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": ("GroupVersionParsingFailed", ""),
        "NamespaceDeletionContentFailure": (
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}"
            if failures
            else "",
        ),
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(f'{each} resource instances' for each in left)}" if left else "",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            + ", ".join(f"{name} in {held[name]} resource instances" for name in sorted(held))
            if held
            else "",
        ),
    }


def patience(findings: Findings) -> timedelta:
    """When to look again at the latest: half of what is expected to be enough, and a second."""
    expected = max((each.grace or FINALIZING for each in findings.remains), default=FINALIZING)
    return expected / 2 + timedelta(seconds=1)


# --- the component


class NamespaceTerminator:
    """A `Component`."""

    name = NAME
    reads = (NAMESPACES,)

    async def run(self, environment: Environment) -> None:
        await _Termination(environment).run()


class _Termination:
    """One run of the terminator."""

    def __init__(self, environment: Environment) -> None:
        self._stores = environment.stores
        self._client = environment.client
        self._now = environment.now
        self._work: KeyedWork[str] = KeyedWork(NAME, self._terminate, workers=WORKERS)
        self._awaited: dict[str, list[Callable[[], None]]] = {}
        """What each namespace waits for, with the function that ends the subscription."""

    async def run(self) -> None:
        unsubscribe = self._stores.subscribe(NAMESPACES, self._changed)
        try:
            await self._work.run()
        finally:
            unsubscribe()
            for name in tuple(self._awaited):
                self._stop_waiting(name)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and new.deleting and (old is None or not old.deleting or old.uid != new.uid):
            self._work.add(new.meta.name)

    async def _terminate(self, name: str) -> Outcome:
        self._stop_waiting(name)
        try:
            namespace = await self._client.get(NAMESPACES, Key("", name))
        except NotFound:
            return Done()
        wire = namespace.wire()
        if not namespace.deleting or FINALIZER not in ((wire.get("spec") or {}).get("finalizers") or ()):
            return Done()
        findings = await self._emptied(name)
        if findings.empty:
            await self._finalize(wire)
            return Done()
        self._wait(name, findings)
        await self._say(namespace, wire.get("status") or {}, findings)
        return Again(patience(findings), "something in the namespace has not gone yet")

    # --- emptying it

    async def _emptied(self, name: str) -> Findings:
        """Delete everything; nothing but pods, while there are any."""
        discovery = await discover(self._client)
        served = [each for each in discovery.preferred() if _can_be_emptied(each)]
        pods = [each for each in served if each.resource.group_resource == PODS.group_resource]
        findings = await self._purge(name, pods, discovery)
        if findings.remains:
            return findings
        others = await self._purge(name, [each for each in served if each not in pods], discovery)
        return Findings(
            unknown=discovery.missing, failures=(*findings.failures, *others.failures), remains=others.remains
        )

    async def _purge(self, name: str, served: Sequence[Served], discovery: Discovery) -> Findings:
        waiting = iter(served)
        failures: list[str] = []
        remains: list[Remains] = []

        async def some() -> None:
            for each in waiting:
                try:
                    left = await self._purge_one(name, each)
                except (NotFound, MethodNotAllowed):
                    continue  # its kind has gone meanwhile, or cannot be emptied
                except StatusError as error:
                    failures.append(f"{each.resource.group_resource}: {error.message}")
                else:
                    remains.extend([left] if left.count else [])

        await asyncio.gather(*(some() for _ in range(min(SIDE_BY_SIDE, len(served)))))
        return Findings(
            unknown=discovery.missing,
            failures=tuple(sorted(failures)),
            remains=tuple(sorted(remains, key=lambda each: each.resource)),
        )

    async def _purge_one(self, name: str, served: Served) -> Remains:
        """Delete what is there of one resource, and see what is left of it."""
        resource, scope = served.resource, Scope(namespace=name)
        there = (await self._client.list(resource, scope, metadata_only=True)).objects
        if all(each.deleting for each in there):
            return Remains.of(resource, there)
        if "deletecollection" in served.verbs:
            body = encode({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
            await self._client.raw(Request("DELETE", resource.path(name), {}, {"content-type": JSON}, body))
        else:
            for each in there:
                await self._delete_one(each)
        return Remains.of(resource, (await self._client.list(resource, scope, metadata_only=True)).objects)

    async def _delete_one(self, obj: Object) -> None:
        try:
            await self._client.delete(obj.resource, obj.key, uid=obj.uid, propagation="Background")
        except (NotFound, Conflict):
            return  # it is gone, or another one has its name, which the next look will find

    # --- saying what it waits for, and letting it go

    async def _say(self, namespace: Object, status: Mapping[str, Any], findings: Findings) -> None:
        old = status.get("conditions") or []
        new = conditions(old, findings, self._now())
        if new != old:
            patch = {"metadata": {"resourceVersion": namespace.version}, "status": {"conditions": new}}
            await self._client.patch(NAMESPACES, namespace.key, patch, subresource="status")

    async def _finalize(self, wire: dict[str, Any]) -> None:
        left = [each for each in wire["spec"]["finalizers"] if each != FINALIZER]
        path = NAMESPACES.path(name=wire["metadata"]["name"], subresource="finalize")
        body = encode({**wire, "spec": {**wire["spec"], "finalizers": left}})
        await self._client.raw(Request("PUT", path, {}, {"content-type": JSON}, body))

    def _wait(self, name: str, findings: Findings) -> None:
        """Look again when an object that the namespace waits for is deleted."""

        def changed(old: Object | None, new: Object | None) -> None:
            if old is not None and new is None and old.meta.namespace == name:
                self._work.add(name)

        self._awaited[name] = [
            self._stores.subscribe(each.resource, changed, metadata_only=True) for each in findings.remains
        ]

    def _stop_waiting(self, name: str) -> None:
        for stop in self._awaited.pop(name, ()):
            stop()


def _can_be_emptied(served: Served) -> bool:
    return served.resource.namespaced and served.verbs >= {"list", "delete"}
