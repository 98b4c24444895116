"""Faults of pods and nodes: what goes wrong, from when and until when, as values.

Faults are kept in one ConfigMap, an entry each, so that any client with a
kubeconfig can add, list and end them, not only the process that runs the nodes:

    kube-system/holdfast-chaos
      crash-1f3a: {"kind": "crash", "since": "…", "namespace": "shop", "selector": "app=web", "share": 0.5}

They apply to simulated nodes only.  Pure: this module must not know how
a fault is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, Self, TypeAlias

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.cluster.simulation.draws import draw
from holdfast.meta.errors import MalformedError
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector

PLACE: Final = Key("kube-system", "holdfast-chaos")
"""The ConfigMap that holds the faults."""


_REMEMBERED: Final = timedelta(hours=1)
"""How long a fault is kept that is over: a pod may learn of it late."""


class FaultError(MalformedError):
    """An entry of the ConfigMap that is not a fault."""


class _Fault(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="kind"):
    """
    since  when it begins
    until  when it ends by itself; None: when it is taken away
    """

    since: datetime
    until: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.since <= now and (self.until is None or now < self.until)

    def edges(self, now: datetime) -> Iterator[datetime]:
        """When it will begin and end, as far as that is to come."""
        for edge in (self.since, self.until):
            if edge is not None and edge > now:
                yield edge


class _OfPods(_Fault, frozen=True, kw_only=True):
    """
    namespace  of the pods that it hits; all, if there is none
    selector   of their labels; all, if there is none
    share      how many of those: each pod by a draw of its own
    below      the draw below which a pod is hit, where it was fitted to the pods that there are; else the share
    seed       another seed hits others
    """

    namespace: str = ""
    selector: str = ""
    share: float = 1.0
    below: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share is {self.share}; write a number between 0 and 1")
        _selector(self.selector)

    def hits(self, pod: Meta) -> bool:
        return self.means(pod) and self._drawn(pod) < (self.share if self.below is None else self.below)

    def means(self, pod: Meta) -> bool:
        """Whether a pod is among those of which a share is hit."""
        return self.namespace in ("", pod.namespace) and _selector(self.selector).matches(pod.labels)

    def fitted(self, pods: Iterable[Meta]) -> Self:
        """The same, so that of these pods its very share is hit, to the nearest pod."""
        draws = sorted(self._drawn(pod) for pod in pods if self.means(pod))
        hit = round(self.share * len(draws))
        if hit == len(draws):
            return self
        return msgspec.structs.replace(self, below=draws[hit])

    def _drawn(self, pod: Meta) -> float:
        return draw(self.seed, "hit", pod.uid)


class Crash(_OfPods, frozen=True, kw_only=True, tag="crash"):
    """Containers crash: once at its beginning, or again and again if it has an end."""


class Hang(_OfPods, frozen=True, kw_only=True, tag="hang"):
    """Pods are not ready, though their containers run."""


class Slow(_OfPods, frozen=True, kw_only=True, tag="slow"):
    """Everything takes `factor` times as long."""

    factor: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor <= 1_000_000:
            raise ValueError(f"factor is {self.factor}; write a number above 0, such as 10")


class NodeDown(_Fault, frozen=True, kw_only=True, tag="node-down"):
    """Nodes are silent, and nothing happens on them."""

    nodes: tuple[str, ...] = ()


class NodeGone(_Fault, frozen=True, kw_only=True, tag="node-gone"):
    """Nodes do not exist."""

    nodes: tuple[str, ...] = ()


PodFault: TypeAlias = Crash | Hang | Slow
NodeFault: TypeAlias = NodeDown | NodeGone
Fault: TypeAlias = PodFault | NodeFault

_decoder: Final = msgspec.json.Decoder(Crash | Hang | Slow | NodeDown | NodeGone)


@lru_cache(maxsize=256)
def _selector(text: str) -> LabelSelector:
    return LabelSelector.parse(text)


# --- what there is


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults, by the names of their entries."""

    entries: tuple[tuple[str, Fault], ...] = ()

    def on(self, pod: Meta) -> tuple[PodFault, ...]:
        """Those that hit a pod, now or at another time."""
        return tuple(fault for _, fault in self.entries if isinstance(fault, PodFault) and fault.hits(pod))

    def of(self, node: str) -> tuple[NodeFault, ...]:
        """Those that concern a node, now or at another time."""
        return tuple(fault for _, fault in self.entries if isinstance(fault, NodeFault) and node in fault.nodes)


NONE: Final = Faults()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def faults_in(config_map: Object | None) -> Faults:
    """The faults of the ConfigMap, if it exists; entries that are none are left out (`parse` says what is wrong)."""
    return NONE if config_map is None else _faults(config_map.raw)


@lru_cache(maxsize=4)
def _faults(raw: bytes) -> Faults:
    found = []
    for name, text in sorted(msgspec.json.decode(raw, type=_ConfigMap).data.items()):
        try:
            found.append((name, parse(text)))
        except FaultError:
            continue
    return Faults(tuple(found))


def parse(text: str) -> Fault:
    """One entry."""
    try:
        fault: Fault = _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError) as error:
        raise FaultError(f"{text!r} is not a fault: {error}") from error
    return fault


def written(fault: Fault) -> str:
    """One entry, as `parse` reads it."""
    return msgspec.json.encode(fault).decode()


# --- changes of the ConfigMap, as merge patches


def name_of(fault: Fault) -> str:
    """A name for a fault: its kind and a few letters that tell it from others."""
    text = written(fault)
    kind = type(fault).__struct_config__.tag
    return f"{kind}-{blake2b(text.encode(), digest_size=3).hexdigest()}"


def added(name: str, fault: Fault) -> dict[str, Any]:
    return {"data": {name: written(fault)}}


def ended(names: Iterable[str]) -> dict[str, Any]:
    return {"data": dict.fromkeys(names)}


def up(faults: Faults, nodes: Collection[str]) -> dict[str, Any]:
    """Ends what is wrong with some nodes; others that were named together with them stay as they are."""
    data: dict[str, str | None] = {}
    for name, fault in faults.entries:
        if isinstance(fault, NodeFault) and not set(nodes).isdisjoint(fault.nodes):
            left = tuple(node for node in fault.nodes if node not in nodes)
            data[name] = written(msgspec.structs.replace(fault, nodes=left)) if left else None
    return {"data": data}


def spent(faults: Faults, now: datetime) -> tuple[str, ...]:
    """The faults that will do nothing more: their time is over, or they were one blow and it was long ago."""
    return tuple(name for name, fault in faults.entries if _is_spent(fault, now))


def _is_spent(fault: Fault, now: datetime) -> bool:
    if fault.until is not None:
        return fault.until + _REMEMBERED <= now
    return isinstance(fault, Crash) and fault.since + _REMEMBERED <= now
