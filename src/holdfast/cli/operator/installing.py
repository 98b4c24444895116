"""Installs the definitions of kinds on a server, and waits until they are served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS
from holdfast.kinds import crds
from holdfast.kinds.model import Kind
from holdfast.meta import hashing
from holdfast.meta.objects import Key

HASH: Final = "holdfast.dev/definition-hash"
"""The annotation that says which definition was installed, so that the same one is not written again."""

PATIENCE: Final = 30.0


async def install(client: Client, kinds: Iterable[Kind]) -> int:
    """Have the kinds served as they are declared here; returns how many definitions had to be written."""
    installed = {obj.key.name: obj for obj in (await client.list(DEFINITIONS)).objects}
    written = 0
    for kind in kinds:
        definition = _marked(crds.crd_of(kind))
        there = installed.get(kind.crd_name)
        if there is None or there.meta.annotations.get(HASH) != definition["metadata"]["annotations"][HASH]:
            await client.apply(DEFINITIONS, definition)
            written += 1
    await asyncio.gather(*(_established(client, kind, installed.get(kind.crd_name)) for kind in kinds))
    return written


def _marked(definition: Mapping[str, Any]) -> dict[str, Any]:
    annotations = {HASH: hashing.canonical_hash(definition)}
    return {**definition, "metadata": {**definition["metadata"], "annotations": annotations}}


async def _established(client: Client, kind: Kind, there: Object | None) -> None:
    if not _is_established(there):
        await waiting.until(client, DEFINITIONS, Key("", kind.crd_name), _is_established, timeout=PATIENCE)


def _is_established(definition: Object | None) -> bool:
    if definition is None:
        return False
    conditions = (definition.wire().get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
