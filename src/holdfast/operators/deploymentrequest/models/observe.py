"""The world of one DynamoModel: the Services of components that name its base model, and the pods behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import SERVICES, SLICES, Resource
from holdfast.kinds.nvidia import models
from holdfast.kinds.nvidia.models import DynamoModel, ModelEndpoint
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.runtime.controllers import Index, View, Watch

MODELS: Final = Resource.of(models.KIND)

_SERVICE: Final = "kubernetes.io/service-name"
_BASE: Final = "base"


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Target(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    addresses: tuple[str, ...] = ()
    conditions: _Conditions = _Conditions()
    target_ref: _Target | None = None


class _Port(msgspec.Struct, frozen=True):
    port: int | None = None


class _Slice(msgspec.Struct, frozen=True):
    endpoints: tuple[_Endpoint, ...] = ()
    ports: tuple[_Port, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    services   the Services of components that serve the base model
    endpoints  the pods behind them
    """

    object: Object
    model: DynamoModel
    services: tuple[str, ...] = ()
    endpoints: tuple[ModelEndpoint, ...] = ()


def observe(view: View, key: Key) -> World | None:
    obj = view.get(MODELS, key)
    if obj is None or obj.deleting:
        return None
    model = obj.decode(DynamoModel)
    wanted = {"matchLabels": {names.BASE_MODEL_HASH: names.model_hash(model.spec.base_model_name)}}
    found = view.list(SERVICES, namespace=key.namespace, labels=LabelSelector.from_object(wanted))
    services = tuple(each.key.name for each in found)
    endpoints = [each for service in services for each in _endpoints(view, key.namespace, service)]
    ordered = tuple(sorted(endpoints, key=lambda each: (each.pod_name or "", each.address)))
    return World(object=obj, model=model, services=services, endpoints=ordered)


def _endpoints(view: View, namespace: str, service: str) -> Iterator[ModelEndpoint]:
    wanted = LabelSelector.from_object({"matchLabels": {_SERVICE: service}})
    for found in view.list(SLICES, namespace=namespace, labels=wanted):
        read = found.decode(_Slice)
        port = next((each.port for each in read.ports if each.port), 0)
        for each in read.endpoints:
            pod = each.target_ref
            for address in each.addresses[:1]:
                host = f"[{address}]" if ":" in address else address
                name = pod.name if pod is not None and pod.kind == "Pod" else None
                ready = each.conditions.ready is not False
                yield ModelEndpoint(address=f"http://{host}:{port}", pod_name=name, ready=ready)


# --- which models are reconciled when a Service or its endpoints change


def _of_service(service: Object, view: View) -> Iterable[Key]:
    found = service.meta.labels.get(names.BASE_MODEL_HASH)
    if found:
        yield from (each.key for each in view.indexed(MODELS, _BASE, f"{service.key.namespace}/{found}"))


def _of_slice(part: Object, view: View) -> Iterable[Key]:
    service = view.get(SERVICES, Key(part.key.namespace, part.meta.labels.get(_SERVICE, "")))
    return () if service is None else _of_service(service, view)


def _bases(obj: Object) -> Iterable[str]:
    return (f"{obj.key.namespace}/{names.model_hash(obj.decode(DynamoModel).spec.base_model_name)}",)


WATCHES: Final = (Watch(resource=SERVICES, keys=_of_service), Watch(resource=SLICES, keys=_of_slice))
INDEXES: Final = (Index(resource=MODELS, name=_BASE, values=_bases),)
