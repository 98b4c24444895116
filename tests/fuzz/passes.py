"""Passes of every controller over objects of which one is mutated: whatever it says, nothing is raised.

A story is played to its end on an embedded cluster, its objects are copied, and one of
them at a time is mutated and put before the controllers, past the checks of the server.
A pass may end with a failure; then the status of its object has conditions with reasons.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from random import Random
from typing import Any

from tests.fuzz.mutations import Mutation, Path, applied, drawn, fields, schema_fields

from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType, Propagation
from holdfast.client.resources import Resource
from holdfast.kernel.outcomes import Permanent
from holdfast.kinds import crds
from holdfast.kinds.model import Kind
from holdfast.meta.objects import Key
from holdfast.meta.patches import merge
from holdfast.runtime.controllers import Controller
from holdfast.runtime.decisions import Notice
from holdfast.runtime.passes.reconcile import Ending, Pass
from holdfast.testing.clusters import Cluster
from holdfast.testing.snapshots import Snapshot

Wire = dict[str, Any]


@dataclass
class Recorder:
    """A `Writer` that accepts everything, and keeps the statuses that it was given."""

    statuses: dict[Key, Any] = field(default_factory=dict)

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        return _accepted(resource, Key("", ""))

    async def apply(
        self, resource: Resource, manifest: Mapping[str, Any], *, force: bool = True, subresource: str = ""
    ) -> Object:
        return _accepted(resource, Key.of(manifest))

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        if subresource == "status":
            json.dumps(patch)
            self.statuses[key] = patch["status"]
        return _accepted(resource, key)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Object | None:
        return None

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        return b"{}"


def _accepted(resource: Resource, key: Key) -> Object:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": "1", "resourceVersion": "1"}
    return Object.of(resource, {"metadata": metadata})


async def _unheard(about: Object, notices: Sequence[Notice]) -> None:
    for notice in notices:
        assert notice.reason, f"an Event of {about} without a reason: {notice}"


@dataclass(frozen=True)
class Place:
    """The objects of a cluster at one moment, and the controllers that look at them."""

    objects: Mapping[tuple[Resource, Key], Wire]
    controllers: Sequence[Controller[Any]]
    now: datetime
    schemas: Mapping[Resource, Any]

    @classmethod
    async def of(cls, cluster: Cluster, controllers: Sequence[Controller[Any]], kinds: Iterable[Kind]) -> Place:
        """Copy what the controllers see of a cluster."""
        resources = dict.fromkeys(resource for each in controllers for resource in each.resources)
        objects = {}
        for resource in resources:
            for obj in (await cluster.client.list(resource)).objects:
                wire = {"apiVersion": resource.api_version, "kind": resource.kind, **obj.wire()}
                wire["metadata"].pop("managedFields", None)
                objects[resource, obj.key] = wire
        schemas = {Resource.of(kind): _schema(kind) for kind in kinds}
        return cls(objects, controllers, cluster.now(), schemas)

    def fuzzed(self, kinds: Iterable[Resource], *, seed: int, rounds: int) -> list[str]:
        """What went wrong in so many rounds, each with the mutation that did it."""
        return asyncio.run(self._fuzzed(tuple(kinds), Random(seed), rounds))

    async def _fuzzed(self, kinds: Sequence[Resource], random: Random, rounds: int) -> list[str]:
        places = {kind: [place for place in self.objects if place[0] == kind] for kind in kinds}
        paths = {place: self._paths(place) for each in places.values() for place in each}
        found: list[str] = []
        for number in range(rounds):
            place = random.choice(places[kinds[number % len(kinds)]])
            mutations = drawn(random, paths[place])
            problem = await self._tried(place, mutations)
            if problem:
                found.append(f"{place[0].kind} {place[1]} with {', '.join(map(str, mutations))}:\n{problem}")
        return found

    def _paths(self, place: tuple[Resource, Key]) -> list[Path]:
        return list(dict.fromkeys((*fields(self.objects[place]), *schema_fields(self.schemas.get(place[0], {})))))

    async def _tried(self, place: tuple[Resource, Key], mutations: Sequence[Mutation]) -> str:
        """What is wrong when one object is mutated; empty if nothing is."""
        view = Snapshot(indexes=[index for each in self.controllers for index in each.indexes])
        for obj in self._decoded.values():
            view.insert(obj)
        mutated = applied(self.objects[place], mutations)
        view.insert(Object(place[0], json.dumps(mutated).encode()))
        for controller in self.controllers:
            if place[0] in controller.resources:
                problem = await self._passed(controller, view, near=place)
                if problem:
                    return f"controller {controller.name}, {problem}"
        return ""

    async def _passed(self, controller: Controller[Any], view: Snapshot, *, near: tuple[Resource, Key]) -> str:
        """One pass over each key; over the object itself alone, if that is what is mutated."""
        recorder = Recorder()
        passing = Pass(controller, view, recorder, now=lambda: self.now, emit=_unheard)
        for resource, key in [near] if near[0] == controller.resource else self.objects:
            if resource != controller.resource:
                continue
            try:
                ending = await passing.run(key, [])
            except Exception:
                return f"{key}: {traceback.format_exc(limit=-4)}"
            problem = _unexplained(view.get(resource, key), ending, recorder.statuses.get(key))
            if problem and resource in self.schemas:
                return f"{key}: {problem}"
        return ""

    @cached_property
    def _decoded(self) -> dict[tuple[Resource, Key], Object]:
        return {place: Object(place[0], json.dumps(wire).encode()) for place, wire in self.objects.items()}


def _unexplained(primary: Object | None, ending: Ending, written: Any) -> str:
    """What is missing in the status of an object whose pass failed for good."""
    if not isinstance(ending, Permanent) or primary is None:
        return ""
    before = json.loads(primary.raw).get("status")
    status = merge.apply(before if isinstance(before, dict) else {}, written or {})
    conditions = status.get("conditions") if isinstance(status, dict) else None
    reasons = [each.get("reason") for each in conditions or () if isinstance(each, dict)]
    return "" if any(reasons) else f"no reason in the status after {ending.reason}: {ending.message}"


def _schema(kind: Kind) -> Any:
    return crds.crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
