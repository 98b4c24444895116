"""The permissions that controllers need: derived from their declarations, and checked on a server.

Deriving is pure.  A missing permission does not keep the operator from starting: it is
logged, and an administrator can grant it while the controllers wait.  This module must
not know any particular controller.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.client.protocols import Unreachable, Writer
from holdfast.client.resources import DEFINITIONS, EVENTS, LEASES, PODS, SECRETS, Resource
from holdfast.kinds.model import Kind
from holdfast.meta.errors import StatusError
from holdfast.runtime.controllers import Controller

_READ: Final = frozenset({"get", "list", "watch"})
_WRITE: Final = frozenset({"create", "patch", "delete"})

_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

_ADMISSION: Final = "admissionregistration.k8s.io"
VALIDATING: Final = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MUTATING: Final = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)

_SIDE_BY_SIDE: Final = 16


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """To do something with a resource, or with a part of it such as ``status``; or only with objects of some names."""

    resource: Resource
    verb: str
    part: str = ""
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As a role names the resource."""
        return f"{self.resource.plural}/{self.part}" if self.part else self.resource.plural

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'/{self.part}' if self.part else ''}"


def needed(controllers: Iterable[Controller[Any]]) -> frozenset[Permission]:
    """What controllers need where their objects are."""
    found = set(_all(EVENTS, {"create", "patch"}))
    for controller in controllers:
        for resource in controller.resources:
            found |= _all(resource, _READ)
        for resource in (*controller.owns, *controller.writes):
            found |= _all(resource, _WRITE)
        if PODS in (*controller.owns, *controller.writes):
            # While a node is drained, pods are stopped by eviction.
            found |= _all(PODS, {"create"}, part="eviction")
        for grant in controller.grants:
            found |= _all(grant.resource, grant.verbs, part=grant.part)
        found |= _all(controller.resource, {"patch"})
        found |= _all(controller.resource, {"patch"}, part="status")
        # Servers may require this for owner references that block the deletion of the owner.
        found |= _all(controller.resource, {"update"}, part="finalizers")
    return frozenset(found)


def to_elect(lease: str) -> frozenset[Permission]:
    """What it takes, in the namespace of the lease, to choose a leader."""
    # A name cannot limit who may create.
    return _all(LEASES, {"get", "patch"}, names=(lease,)) | _all(LEASES, {"create"})


def to_keep_certificate(secret: str) -> frozenset[Permission]:
    """What it takes, in the namespace of the operator, to keep the certificate of its webhooks."""
    return _all(SECRETS, {"get", "patch"}, names=(secret,)) | _all(SECRETS, {"create"})


def to_register(name: str) -> frozenset[Permission]:
    """What it takes to have the server ask webhooks, whose configurations are installed with the operator."""
    return frozenset().union(*(_all(each, {"get", "patch"}, names=(name,)) for each in (MUTATING, VALIDATING)))


def to_install(kinds: Iterable[Kind]) -> frozenset[Permission]:
    """What it takes to install definitions and to wait until they are served."""
    names = tuple(sorted(kind.crd_name for kind in kinds))
    return _all(DEFINITIONS, _READ | {"create"}) | _all(DEFINITIONS, {"patch"}, names=names)


def rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Permissions as the rules of a role, as few as there can be, in a stable order."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for each in permissions:
        verbs[each.resource.group, each.name, each.names].add(each.verb)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, names), allowed in sorted(verbs.items()):
        resources[group, tuple(sorted(allowed)), names].append(resource)
    return [
        {"apiGroups": [group], "resources": found, "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, allowed, names), found in resources.items()
    ]


async def missing(
    client: Writer, permissions: Iterable[Permission], *, namespaces: Sequence[str] = ()
) -> tuple[Permission, ...]:
    """Those that we do not have, everywhere or in one of the namespaces; none, where the server does not say."""
    free = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def lacks(permission: Permission) -> bool:
        places = namespaces if permission.resource.namespaced and namespaces else ("",)
        async with free:
            asked = [(namespace, name) for namespace in places for name in permission.names or ("",)]
            return not all([await _allowed(client, permission, *each) for each in asked])

    asked = sorted(permissions)
    lacking = await asyncio.gather(*map(lacks, asked))
    return tuple(permission for permission, lacked in zip(asked, lacking, strict=True) if lacked)


async def _allowed(client: Writer, permission: Permission, namespace: str, name: str) -> bool:
    attributes = {
        "name": name,
        "group": permission.resource.group,
        "resource": permission.resource.plural,
        "subresource": permission.part,
        "verb": permission.verb,
        "namespace": namespace,
    }
    try:
        review = await client.create(_REVIEWS, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
    except (StatusError, Unreachable):
        return True  # not our answer to give: whatever is refused will say so itself
    return bool(review.wire().get("status", {}).get("allowed"))


def _all(
    resource: Resource, verbs: Iterable[str], *, part: str = "", names: tuple[str, ...] = ()
) -> frozenset[Permission]:
    return frozenset(Permission(resource, verb, part, names) for verb in verbs)
