"""The world of one Tenant: the StatefulSets of its pools, their pods, and what else is decided by.

`observe` reads and does not judge.  The store itself (`admin`) is asked later, by `survey`.
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
from holdfast.client.resources import (
    BUDGETS,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holdfast.kernel import pod_problems
from holdfast.kernel.pod_problems import ReportedPod
from holdfast.kinds.rustfs import KINDS, Tenant
from holdfast.kinds.rustfs.pools import PoolStatus
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy
from holdfast.meta.nodes import Node
from holdfast.meta.objects import Key
from holdfast.operators.tenant import names
from holdfast.operators.tenant.admin import Survey
from holdfast.operators.tenant.down_nodes import PodOnDownNode
from holdfast.operators.tenant.pools import StatefulSet
from holdfast.runtime import disruption
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References

TENANTS: Final = Resource.of(KINDS[0])


class Sealed:
    """The content of a Secret, which is not shown when it is printed."""

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
    object           the Tenant as it came
    tenant           the same, typed
    sets             the StatefulSets of its pools, also of pools that the spec no longer has, by name of the pool
    pods             the servers, by name of the pool
    not_ready        those that are not ready, as they were reported, by name of the pool
    foreign_account  whether a ServiceAccount of the name of ours exists that is not ours
    secrets          the Secrets that the Tenant refers to, by name; those that do not exist are missing
    budgets          the PodDisruptionBudgets of its pools by name of the pool, or others of their names
    other_budgets    the pools whose servers a budget selects that is not ours
    cordoned         the nodes of its servers that are cordoned
    lost_nodes       the nodes of servers that are not ready that do not report, or do not exist
    on_down_nodes    servers that are being deleted on a node that is down
    survey           what the store reports of its pools, if it was asked
    """

    object: Object
    tenant: Tenant
    sets: Mapping[str, StatefulSet] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    not_ready: Mapping[str, tuple[ReportedPod, ...]] = field(default_factory=dict)
    foreign_account: bool = False
    secrets: Mapping[str, Sealed] = field(default_factory=dict)
    budgets: Mapping[str, Object] = field(default_factory=dict)
    other_budgets: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    lost_nodes: frozenset[str] = frozenset()
    on_down_nodes: tuple[PodOnDownNode, ...] = ()
    survey: Survey | None = None

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def namespace(self) -> str:
        return self.object.key.namespace

    @property
    def before(self) -> Mapping[str, PoolStatus]:
        """What the status has of each pool, by its name."""
        status = self.tenant.status
        if status is None:
            return {}
        prefix = f"{self.name}-"
        return {pool.name or pool.ss_name.removeprefix(prefix): pool for pool in status.pools}


def observe(view: View, key: Key) -> World | None:
    """The world of a Tenant; None when it is gone or being deleted: its owned objects are collected, volumes stay."""
    obj = view.get(TENANTS, key)
    if obj is None or obj.deleting:
        return None
    tenant = obj.decode(Tenant)
    sets = {
        each.meta.labels.get(names.POOL, ""): each
        for each in view.owned(STATEFUL_SETS, obj.uid)
        if each.is_controlled_by(obj.uid)
    }
    found = {pool: view.owned(PODS, each.uid) for pool, each in sets.items()}
    pods = {pool: tuple(map(Pod.of, each)) for pool, each in found.items()}
    account = view.get(SERVICE_ACCOUNTS, Key(key.namespace, names.account(key.name)))
    return World(
        object=obj,
        tenant=tenant,
        sets={pool: each.decode(StatefulSet) for pool, each in sets.items()},
        pods=pods,
        not_ready={
            pool: tuple(pod_problems.decode(each.raw) for each in objects if not Pod.of(each).ready)
            for pool, objects in found.items()
        },
        foreign_account=account is not None and not account.is_controlled_by(obj.uid),
        secrets=dict(_secrets(view, obj, tenant)),
        budgets=_budgets(view, obj, tenant),
        other_budgets=frozenset(
            pool.name
            for pool in tenant.spec.pools
            if disruption.foreign_budgets(
                view,
                obj,
                (
                    names.pool_labels(key.name, pool.name),
                    *(each.metadata.labels for each in pods.get(pool.name, ())),
                ),
            )
        ),
        cordoned=disruption.cordoned(view, (pod.spec.node_name for each in pods.values() for pod in each)),
        lost_nodes=frozenset(
            name
            for name in {pod.spec.node_name for each in pods.values() for pod in each if not pod.ready} - {""}
            if not _reports(_node(view, name))
        ),
        on_down_nodes=tuple(_on_down_nodes(view, tenant, (pod for each in found.values() for pod in each))),
    )


def _budgets(view: View, owner: Object, tenant: Tenant) -> dict[str, Object]:
    owned = {each.meta.labels.get(names.POOL, ""): each for each in view.owned(BUDGETS, owner.uid)}
    named = {
        pool.name: disruption.own_budget(view, owner, names.stateful_set(owner.key.name, pool.name))
        for pool in tenant.spec.pools
    }
    return owned | {pool: each for pool, each in named.items() if each is not None}


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


def _on_down_nodes(view: View, tenant: Tenant, pods: Iterable[Object]) -> Iterator[PodOnDownNode]:
    if tenant.spec.pod_deletion_policy_when_node_is_down in (None, PodDeletionPolicy.DO_NOTHING):
        return
    for pod in pods:
        if not pod.deleting:
            continue
        read = pod.decode(PodOnDownNode)
        node = _node(view, read.spec.node_name)
        if read.spec.node_name and not _reports(node):
            yield msgspec.structs.replace(read, node=node)


def _node(view: View, name: str) -> Node | None:
    found = view.get(NODES, Key("", name)) if name else None
    return None if found is None else found.decode(Node)


def _reports(node: Node | None) -> bool:
    return node is not None and node.ready


# --- which Tenants are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str]]:
    """The Secrets that a Tenant refers to, and the names of the objects that are created for it."""
    name, tenant = obj.key.name, obj.decode(Tenant)
    yield from ((SECRETS, each) for each in _secret_names(tenant))
    yield SERVICE_ACCOUNTS, names.account(name)
    yield from ((SERVICES, each) for each in (names.store(name), names.console(name), names.headless(name)))
    yield from ((STATEFUL_SETS, names.stateful_set(name, pool.name)) for pool in tenant.spec.pools)


REFERENCES: Final = References(TENANTS, _mentions)


def tenant_of(obj: Object) -> Key | None:
    """The Tenant that the labels of a server or of another object name."""
    name = obj.meta.labels.get(names.TENANT)
    return None if name is None else Key(obj.meta.namespace, name)
