"""Rehearsals: the API is asked whether it accepts a replacement, before what is replaced is deleted.

A dry run passes everything that a creation does (schema, admission, security policies)
and stores nothing.  What was accepted is remembered, so it costs one request for each
template and process.  A refusal that only a change can end is remembered for a minute.

Two refusals are none: a quota that is used up, because what is deleted makes room, and
a webhook that does not support dry runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.client.protocols import Unreachable, Writer
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.meta import hashing
from holdfast.meta.errors import BadRequest, Forbidden, StatusError
from holdfast.meta.objects import Ref
from holdfast.runtime.decisions import Decision, Delete, Evict, Rehearsal
from holdfast.runtime.passes.failures import failure_of
from holdfast.runtime.recent import Recent

REMEMBERED: Final = 1024
"""How many answers are remembered."""

REFUSED_FOR: Final = timedelta(minutes=1)
"""For how long a refusal is believed."""


class Rehearsals:
    """Asks the API, and remembers what it said."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._answers: Recent[str, tuple[Failure | None, datetime]] = Recent(REMEMBERED)

    async def refused(self, decision: Decision, now: datetime) -> tuple[list[Failure], frozenset[Ref]]:
        """The refusals that keep a decision from deleting anything, and the children that are not written for them."""
        failures: list[Failure] = []
        held: set[Ref] = set()
        deletes = any(isinstance(write, Delete | Evict) for write in decision.writes)
        for rehearsal in decision.rehearse:
            if deletes or rehearsal.holds:
                failure = await self._answer(rehearsal, now)
                if failure is not None:
                    failures.append(failure)
                    held.update(rehearsal.holds)
        return failures, frozenset(held)

    async def _answer(self, rehearsal: Rehearsal, now: datetime) -> Failure | None:
        manifest = _without_owners(rehearsal.manifest)
        key = hashing.canonical_hash(manifest)
        known = self._answers.get(key)
        if known is not None and (known[0] is None or now - known[1] < REFUSED_FOR):
            return known[0]
        failure = await self._ask(rehearsal, manifest)
        if failure is None or isinstance(failure, Permanent):
            self._answers.put(key, (failure, now))
        return failure

    async def _ask(self, rehearsal: Rehearsal, manifest: Mapping[str, Any]) -> Failure | None:
        try:
            await self._writer.create(rehearsal.resource, manifest, dry_run=True)
        except (StatusError, Unreachable) as error:
            if _is_no_objection(error):
                return None
            return failure_of(error, f"{rehearsal.about} is not rolled out and nothing is deleted, the API refuses it")
        return None


def _is_no_objection(error: StatusError | Unreachable) -> bool:
    match error:
        case Forbidden(message=message):
            return "exceeded quota" in message
        case BadRequest(message=message):
            return "does not support dry run" in message
        case _:
            return False


def _without_owners(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without its owners, which may not exist yet."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "ownerReferences"}
    return {**manifest, "metadata": metadata}


def pod_of_stateful_set(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A pod as the controller of StatefulSets creates it from a StatefulSet, with its claims as volumes."""
    metadata, template = manifest["metadata"], manifest["spec"]["template"]
    claims = [claim["metadata"]["name"] for claim in manifest["spec"].get("volumeClaimTemplates") or ()]
    volumes = [
        {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{metadata['name']}-0"}} for claim in claims
    ]
    kept = [volume for volume in template["spec"].get("volumes") or () if volume.get("name") not in claims]
    return {
        "metadata": {
            **(template.get("metadata") or {}),
            "namespace": metadata["namespace"],
            "generateName": f"{metadata['name']}-",
        },
        "spec": {**template["spec"], "volumes": [*kept, *volumes]},
    }
