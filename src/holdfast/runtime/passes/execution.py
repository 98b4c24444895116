"""Execution: carries out a decision, one request for each write, and records what was written.

Every write has a precondition (that nothing of this name exists, or that the
object is still the one that was seen), so a decision on an old view does nothing.
This module must not know why something is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeAlias, assert_never

from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Unreachable, Writer
from holdfast.client.resources import PODS, Resource
from holdfast.kernel import children
from holdfast.kernel.children import Desired, Observed
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.meta.errors import NotFound, StatusError, TooManyRequests
from holdfast.meta.objects import Key, Ref
from holdfast.meta.patches import merge
from holdfast.runtime.controllers import View
from holdfast.runtime.decisions import Create, Delete, Evict, Patch, Write
from holdfast.runtime.passes.failures import Away, combined, failure_of, outcome_unknown
from holdfast.runtime.passes.pruning import Kept
from holdfast.runtime.recent import Recent
from holdfast.runtime.status import stored_status

Versions: TypeAlias = Mapping[Ref, tuple[str, str]]
"""Of objects, which there are and in which version."""

_SETTLED: Final = 64
"""How many owners are remembered, with the manifests of all their children; others are compared in each pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One object, as a write left it; without a version if it is gone or about to go.

    unknown  no reply came, so the write may have been done or not; a created object may have no name yet
    """

    verb: str
    resource: Resource
    key: Key
    uid: str = ""
    version: str = ""
    unknown: bool = False

    @classmethod
    def of(cls, verb: str, obj: Object) -> Written:
        return cls(verb=verb, resource=obj.resource, key=obj.key, uid=obj.uid, version=obj.version)


class Settled:
    """Owners whose children were found as they should be, so that they are not compared again before one changes."""

    def __init__(self) -> None:
        self._known: Recent[str, tuple[tuple[Desired, ...], Versions]] = Recent(_SETTLED)

    def knows(self, uid: str, wanted: tuple[Desired, ...], present: Versions) -> bool:
        """Whether an owner was found with these children, in these versions, as they should be."""
        return self._known.get(uid) == (wanted, present)

    def add(self, uid: str, wanted: tuple[Desired, ...], present: Versions) -> None:
        self._known.put(uid, (wanted, present))


class Executor:
    """Writes for one pass, and adds each write to `written` as soon as the server has answered it.

    A write whose reply does not come (the connection breaks, a proxy or the server fails, the pass is cancelled)
    is added too, as one of unknown outcome.  With `kept`, a status that the server does not keep is a failure.
    """

    def __init__(
        self,
        writer: Writer,
        written: list[Written] | None = None,
        *,
        side_by_side: int = 16,
        kept: Kept | None = None,
        settled: Settled | None = None,
    ) -> None:
        self._writer = writer
        self._settled = Settled() if settled is None else settled
        self._kept = kept
        self._written = [] if written is None else written
        self._side_by_side = side_by_side
        self.not_evicted: list[str] = []
        """What disruption budgets said of evictions that they did not allow."""

    async def carry_out(self, writes: Sequence[Write]) -> None:
        """All writes, wave by wave.  A wave is finished even if one of its writes fails; the next is not begun."""
        for _, wave in groupby(sorted(writes, key=lambda write: write.wave), key=lambda write: write.wave):
            await self._all(tuple(wave))

    async def settle(
        self,
        wanted: Iterable[Desired],
        *,
        owner: Object,
        owned: Sequence[Resource],
        view: View,
        held: Collection[Ref] = (),
        deletes: bool = True,
    ) -> None:
        """Make an owner's children what they should be.

        A child that is refused, or that has another owner, does not stop the others; the failure that is raised in
        the end names each of them.  After a refusal nothing is deleted: the successor may be what was refused.
        Children that are `held` are left as they are.
        """
        wanted = tuple(wanted)
        resources = {resource.gvk: resource for resource in owned}
        present = {child.ref: child for resource in owned for child in view.owned(resource, owner.uid)}
        for child in wanted:
            resource = resources.get(child.ref.gvk)
            if resource is None:
                raise TypeError(f"{child.ref} is wanted as a child, but {child.ref.gvk} is not among what is owned")
            found = view.get(resource, child.ref.key)
            if found is not None:
                present[found.ref] = found
        versions = {ref: (child.uid, child.version) for ref, child in present.items()}
        if self._settled.knows(owner.uid, wanted, versions):
            return
        steps = children.diff(wanted, (Observed.of(child.wire()) for child in present.values()), owner=owner.head())
        if all(isinstance(step, children.Keep) for step in steps):
            self._settled.add(owner.uid, wanted, versions)
            return
        refused: list[Failure] = []
        for step in steps:
            if step.ref in held or (isinstance(step, children.Delete) and (refused or not deletes)):
                continue
            try:
                await self._step(step, resources[step.ref.gvk])
            except Away:
                raise
            except Failure as failure:
                refused.append(failure)
        conflicts = [step.message for step in steps if isinstance(step, children.Conflict)]
        failures = [*refused, *(Permanent("ChildConflict", message) for message in conflicts)]
        if failures:
            raise combined(failures)

    async def _step(self, step: children.Step, resource: Resource) -> None:
        match step:
            case children.Create(manifest=manifest):
                await self._apply(resource, manifest)
            case children.Apply(ref=ref, manifest=manifest, uid=uid, replace=replace):
                if replace:
                    await self._patch(resource, ref.key, list(replace), type=PatchType.JSON)
                await self._apply(resource, manifest, uid=uid)
            case children.Delete(ref=ref, uid=uid):
                await self._delete(Delete(because="", resource=resource, key=ref.key, uid=uid))
            case children.Conflict() | children.Wait() | children.Keep():
                pass
            case _:
                assert_never(step)

    async def status(self, obj: Object, status: Mapping[str, Any]) -> bool:
        """Write what differs of a status, on condition that the object has not changed since; whether anything did."""
        difference = merge.diff(stored_status(obj), status)
        if not difference:
            return False
        patch = {"metadata": {"resourceVersion": obj.version}, "status": difference}
        patched = await self._patch(obj.resource, obj.key, patch, subresource="status")
        if self._kept is not None:
            self._kept.check(difference, patched)
        return True

    async def finalizers(self, obj: Object, finalizers: Sequence[str]) -> None:
        """Set the finalizers, on condition that the object has not changed since; with the last one it may go."""
        patch = {"metadata": {"resourceVersion": obj.version, "finalizers": list(finalizers) or None}}
        await self._patch(obj.resource, obj.key, patch, gone=obj.deleting and not finalizers)

    # --- one request each

    async def _one(self, write: Write) -> None:
        match write:
            case Create(resource=resource, manifest=manifest):
                await self._create(resource, manifest)
            case Patch():
                patch = _conditional(write)
                await self._patch(write.resource, write.key, patch, type=write.type, subresource=write.subresource)
            case Delete():
                await self._delete(write)
            case Evict():
                await self._evict(write)
            case _:
                assert_never(write)

    async def _all(self, writes: Sequence[Write]) -> None:
        """All of them, so many side by side; the failure of one stops no other."""
        if len(writes) == 1:
            await self._one(writes[0])
            return
        failed: list[Exception] = []
        left = iter(writes)

        async def work() -> None:
            for write in left:
                try:
                    await self._one(write)
                except Exception as error:
                    failed.append(error)

        await asyncio.gather(*(work() for _ in range(min(self._side_by_side, len(writes)))))
        if failed:
            # The one that says most: what cannot succeed before what may.
            raise min(failed, key=lambda error: (not isinstance(error, Permanent), not isinstance(error, Failure)))

    async def _create(self, resource: Resource, manifest: Mapping[str, Any]) -> None:
        ref = _ref(resource, manifest)
        with self._sent("create", resource, ref.key, f"creating {ref}"):
            made = await self._writer.create(resource, manifest)
        self._written.append(Written.of("create", made))

    async def _apply(self, resource: Resource, manifest: Mapping[str, Any], *, uid: str = "") -> None:
        """Apply a child; one that is new (without `uid`) too, because an apply takes away only what one has given.

        An object that was created by another client since the view was read is not overwritten.
        """
        guarded = {**manifest, "metadata": {**manifest["metadata"], **({"uid": uid} if uid else {})}}
        verb, doing = ("apply", "applying") if uid else ("create", "creating")
        ref = _ref(resource, manifest)
        with self._sent(verb, resource, ref.key, f"{doing} {ref}"):
            applied = await self._writer.apply(resource, guarded, force=bool(uid))
        self._written.append(Written.of(verb, applied))

    async def _patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
        gone: bool = False,
    ) -> Object:
        part = f" ({subresource})" if subresource else ""
        with self._sent("patch", resource, key, f"patching {Ref(resource.gvk, key)}{part}"):
            patched = await self._writer.patch(resource, key, patch, type=type, subresource=subresource)
        version = "" if gone else patched.version
        self._written.append(Written(verb="patch", resource=resource, key=key, uid=patched.uid, version=version))
        return patched

    async def _delete(self, write: Delete) -> None:
        left: Object | None = None
        with (
            self._sent("delete", write.resource, write.key, f"deleting {Ref(write.resource.gvk, write.key)}"),
            contextlib.suppress(NotFound),
        ):
            left = await self._writer.delete(
                write.resource,
                write.key,
                uid=write.uid,
                version=write.version,
                propagation=write.propagation,
                grace_seconds=write.grace_seconds,
            )
        # One that was gone already is waited for as well: the stores still show it.
        version = "" if left is None else left.version
        self._written.append(
            Written(verb="delete", resource=write.resource, key=write.key, uid=write.uid, version=version)
        )

    async def _evict(self, write: Evict) -> None:
        metadata = {"name": write.key.name, "namespace": write.key.namespace}
        options = {"preconditions": {"uid": write.uid}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        with self._sent("evict", PODS, write.key, f"evicting {Ref(PODS.gvk, write.key)}"):
            try:
                await self._writer.post(PODS, write.key, "eviction", body)
            except NotFound:
                pass
            except TooManyRequests as refusal:
                self.not_evicted.append(refusal.message)
                return
        self._written.append(Written(verb="evict", resource=PODS, key=write.key, uid=write.uid))

    @contextlib.contextmanager
    def _sent(self, verb: str, resource: Resource, key: Key, doing: str) -> Iterator[None]:
        """Around one request: a refusal is raised as the failure it means, and an unknown outcome is recorded."""
        try:
            yield
        except asyncio.CancelledError:
            self._written.append(Written(verb=verb, resource=resource, key=key, unknown=True))
            raise
        except (StatusError, Unreachable) as error:
            if outcome_unknown(error):
                self._written.append(Written(verb=verb, resource=resource, key=key, unknown=True))
            raise failure_of(error, doing) from error


def _conditional(write: Patch) -> Any:
    """The patch with its preconditions inside."""
    if write.type is PatchType.JSON:
        tests = [{"op": "test", "path": "/metadata/uid", "value": write.uid}]
        if write.version:
            tests.append({"op": "test", "path": "/metadata/resourceVersion", "value": write.version})
        return [*tests, *write.patch]
    conditions = {"uid": write.uid} | ({"resourceVersion": write.version} if write.version else {})
    return {**write.patch, "metadata": {**(write.patch.get("metadata") or {}), **conditions}}


def _ref(resource: Resource, manifest: Mapping[str, Any]) -> Ref:
    """What a manifest is the manifest of; the name of one that is to be generated ends with an ellipsis."""
    metadata = manifest["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName', '')}…"
    return Ref(resource.gvk, Key(metadata.get("namespace", ""), name))
