"""Installs the definitions of kinds on a server, and waits until they are served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from holdfast.cli.operator import definitions
from holdfast.cli.operator.definitions import Foreign
from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS
from holdfast.kernel.outcomes import Permanent
from holdfast.kinds.model import Kind
from holdfast.meta.errors import Forbidden
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller
from holdfast.runtime.passes.pruning import Refusals

_log: Final = logging.getLogger("holdfast.operator")

PATIENCE: Final = 30.0

FOREIGN: Final = "ForeignDefinition"
"""The reason of objects that are not worked on because the definition of their kind is another project's."""


@dataclass(frozen=True, slots=True)
class Installed:
    """How many definitions had to be written, and the kinds whose definitions are another project's and unfit."""

    written: int
    unfit: tuple[Foreign, ...]


async def install(
    client: Client,
    kinds: Iterable[Kind],
    *,
    created: Collection[str] = (),
    adopts: bool = False,
    writes: bool = True,
    conversion: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> Installed:
    """Have the kinds served as they are declared here.

    A definition that is absent or ours is written; another project's is not, unless it is adopted.
    created   the names of definitions whose objects our controllers create, so that their specs must be kept too
    writes    whether anything is written at all
    conversion  how the server converts between versions; without it, older versions are not served
    annotations  further annotations of definitions whose objects are converted
    """
    kinds = tuple(kinds)
    try:
        there = {obj.key.name: obj for obj in (await client.list(DEFINITIONS)).objects}
    except Forbidden:
        if writes:
            raise
        # Whether statuses are kept is then seen when they are written.
        return Installed(0, ())
    written, unfit = [], []
    for kind in kinds:
        definition = definitions.marked(kind, conversion=conversion, annotations=annotations)
        found = there.get(kind.crd_name)
        if found is not None and not definitions.is_ours(found.wire()) and not (adopts and writes):
            foreign = definitions.foreign(kind, found.wire(), created=kind.crd_name in created)
            if foreign.dropped:
                unfit.append(foreign)
        elif writes and (found is None or not definitions.is_current(found.wire(), definition)):
            _warn_of_lost_versions(definition, {} if found is None else found.wire())
            await client.apply(DEFINITIONS, definition)
            written.append(kind)
    served = (kind for kind in kinds if kind in written or kind.crd_name in there)
    await asyncio.gather(*(_established(client, kind, there.get(kind.crd_name)) for kind in served))
    return Installed(len(written), tuple(unfit))


def _warn_of_lost_versions(definition: Mapping[str, Any], installed: Mapping[str, Any]) -> None:
    lost = definitions.no_longer_served(installed, definition)
    if lost:
        fields = {"definition": definition["metadata"]["name"], "versions": lost}
        _log.warning("versions no longer served", extra={"fields": {**fields, "hint": "--webhook-port converts them"}})


def refuse(unfit: Iterable[Foreign], controllers: Iterable[Controller[Any]], refusals: Refusals) -> None:
    """Have no object worked on whose kind, or whose children's kind, the server would not keep whole; log why."""
    resources = {each.group_resource: each for controller in controllers for each in controller.resources}
    for foreign in unfit:
        _log.error("kind refused", extra={"fields": {"kind": foreign.kind.name, "why": str(foreign)}})
        if (resource := resources.get(foreign.kind.crd_name)) is not None:
            refusals.add(resource, Permanent(FOREIGN, str(foreign)))


async def _established(client: Client, kind: Kind, there: Object | None) -> None:
    if not _is_established(there):
        await waiting.until(client, DEFINITIONS, Key("", kind.crd_name), _is_established, timeout=PATIENCE)


def _is_established(definition: Object | None) -> bool:
    if definition is None:
        return False
    conditions = (definition.wire().get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
