"""The world of one Tenant: the StatefulSets of its pools, their pods, and what else has a say.

`observe` reads and judges nothing.  What the store itself says (`admin`) is asked later, by `survey`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, STATEFUL_SETS, Resource
from holdfast.kinds.rustfs import KINDS, Tenant
from holdfast.kinds.rustfs.pools import PoolStatus
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy
from holdfast.meta.objects import Key
from holdfast.operators.tenant import names
from holdfast.operators.tenant.admin import Survey
from holdfast.operators.tenant.pools import StatefulSet
from holdfast.operators.tenant.stranded import Node, Stranded
from holdfast.runtime.controllers import Index, View

TENANTS: Final = Resource.of(KINDS[0])


class Sealed:
    """The content of a Secret, which does not show itself."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, bytes]) -> None:
        self._data = data

    def get(self, key: str) -> bytes | None:
        return self._data.get(key)

    def __repr__(self) -> str:
        return f"<{len(self._data)} keys>"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object    the Tenant as it came
    tenant    the same, typed
    sets      the StatefulSets of its pools, also of pools that the spec no longer has, by name of the pool
    pods      the servers, by name of the pool
    account   whether a ServiceAccount of the name of ours exists that is not ours
    secrets   the Secrets that the Tenant refers to, by name; those that do not exist are missing
    stranded  servers that are to go and cannot, because their node is down
    survey    what the store says of its pools, if it was asked
    """

    object: Object
    tenant: Tenant
    sets: Mapping[str, StatefulSet] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    foreign_account: bool = False
    secrets: Mapping[str, Sealed] = field(default_factory=dict)
    stranded: tuple[Stranded, ...] = ()
    survey: Survey | None = None

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def namespace(self) -> str:
        return self.object.key.namespace

    @property
    def before(self) -> Mapping[str, PoolStatus]:
        """What was last said of each pool, by its name."""
        status = self.tenant.status
        if status is None:
            return {}
        prefix = f"{self.name}-"
        return {pool.name or pool.ss_name.removeprefix(prefix): pool for pool in status.pools}


def observe(view: View, key: Key) -> World | None:
    """The world of a Tenant; None when it is gone, or going: then what it owns goes with it, but for its volumes."""
    obj = view.get(TENANTS, key)
    if obj is None or obj.deleting:
        return None
    tenant = obj.decode(Tenant)
    sets = {
        each.meta.labels.get(names.POOL, ""): each
        for each in view.owned(STATEFUL_SETS, obj.uid)
        if each.controller is not None and each.controller.uid == obj.uid
    }
    pods = {pool: view.owned(PODS, found.uid) for pool, found in sets.items()}
    return World(
        object=obj,
        tenant=tenant,
        sets={pool: found.decode(StatefulSet) for pool, found in sets.items()},
        pods={pool: tuple(map(Pod.of, found)) for pool, found in pods.items()},
        foreign_account=_foreign(view.get(SERVICE_ACCOUNTS, Key(key.namespace, names.account(key.name))), obj),
        secrets=dict(_secrets(view, obj, tenant)),
        stranded=tuple(_stranded(view, tenant, (pod for found in pods.values() for pod in found))),
    )


def _foreign(account: Object | None, owner: Object) -> bool:
    return account is not None and (account.controller is None or account.controller.uid != owner.uid)


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def _secrets(view: View, owner: Object, tenant: Tenant) -> Iterator[tuple[str, Sealed]]:
    for name in _secret_names(tenant):
        found = view.get(SECRETS, Key(owner.key.namespace, name))
        if found is not None:
            yield name, Sealed({key: _decoded(text) for key, text in found.decode(_Secret).data.items()})


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _secret_names(tenant: Tenant) -> tuple[str, ...]:
    references = (tenant.spec.creds_secret, tenant.spec.rpc_secret)
    return tuple(dict.fromkeys(each.name for each in references if each is not None))


def _stranded(view: View, tenant: Tenant, pods: Iterable[Object]) -> Iterator[Stranded]:
    policy = tenant.spec.pod_deletion_policy_when_node_is_down
    if policy is None or policy is PodDeletionPolicy.DO_NOTHING:
        return
    for pod in pods:
        if not pod.deleting:
            continue
        stranded = pod.decode(Stranded)
        node = view.get(NODES, Key("", stranded.spec.node_name)) if stranded.spec.node_name else None
        found = msgspec.structs.replace(stranded, node=None if node is None else node.decode(Node))
        if stranded.spec.node_name and (found.node is None or not found.node.ready):
            yield found


# --- whose world changes when something else does


def _mentions(obj: Object) -> Iterable[str]:
    """The Secrets that a Tenant refers to."""
    return (f"{obj.key.namespace}/{name}" for name in _secret_names(obj.decode(Tenant)))


def mentioned(obj: Object, view: View) -> Iterable[Key]:
    """The Tenants that refer to a Secret."""
    return [tenant.key for tenant in view.indexed(TENANTS, "mentions", str(obj.key))]


def _names_needed(obj: Object) -> Iterable[str]:
    """The names of what a Tenant makes."""
    name, tenant = obj.key.name, obj.decode(Tenant)
    needed = [f"ServiceAccount/{names.account(name)}"]
    needed += [f"Service/{each}" for each in (names.store(name), names.console(name), names.headless(name))]
    needed += [f"StatefulSet/{names.stateful_set(name, pool.name)}" for pool in tenant.spec.pools]
    return (f"{obj.key.namespace}/{each}" for each in needed)


def in_the_way(obj: Object, view: View) -> Iterable[Key]:
    """The Tenants that need the name of an object, whoever it belongs to."""
    name = f"{obj.key.namespace}/{obj.resource.kind}/{obj.key.name}"
    return [tenant.key for tenant in view.indexed(TENANTS, "names", name)]


def tenant_of(obj: Object, view: View) -> Iterable[Key]:
    """The Tenant of a server."""
    name = obj.meta.labels.get(names.TENANT)
    return () if name is None else (Key(obj.meta.namespace, name),)


def _node_of(obj: Object) -> Iterable[str]:
    if names.TENANT not in obj.meta.labels:
        return ()
    node = Pod.of(obj).spec.node_name
    return (node,) if node else ()


def on_node(obj: Object, view: View) -> Iterable[Key]:
    """The Tenants that have servers on a node."""
    pods = view.indexed(PODS, "tenant-node", obj.key.name)
    return {Key(pod.meta.namespace, pod.meta.labels[names.TENANT]) for pod in pods}


INDEXES: Final = (
    Index(resource=TENANTS, name="mentions", values=_mentions),
    Index(resource=TENANTS, name="names", values=_names_needed),
    Index(resource=PODS, name="tenant-node", values=_node_of),
)
