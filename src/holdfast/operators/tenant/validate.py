"""What must be corrected before a Tenant is reconciled: in its spec, its Secrets, and against what runs already.

The API server refuses most of it by CEL rules.  It is checked here again, because a Tenant may be older than a
rule, and because rules see neither Secrets nor StatefulSets.  Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from holdfast.kernel.limits import InvalidLimits, Limits, resolve
from holdfast.kinds import Problem
from holdfast.kinds.rustfs.pools import Pool, PoolLifecycleState
from holdfast.kinds.rustfs.tenants import Rollout, Tenant
from holdfast.meta import durations
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.meta.signatures import Credentials
from holdfast.operators.tenant import names, render, security
from holdfast.operators.tenant.observe import Sealed, World
from holdfast.operators.tenant.pools import StatefulSet
from holdfast.operators.tenant.reasons import TenantReason
from holdfast.operators.tenant.render import Settings

PROGRESS_DEADLINE: Final = "10m"

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME_MAX: Final = 55
_SERVER_NAME_MAX: Final = 63
_SHORTEST: Final = 8
_WELL_KNOWN: Final = "rustfsadmin"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and the condition that reports it."""

    condition: str
    reason: TenantReason
    message: str


def findings(world: World, settings: Settings) -> tuple[Finding, ...]:
    """Everything that is wrong, the most fundamental first."""
    return (
        *_name(world),
        *_pools(world.tenant),
        *_rollout(world.tenant),
        *_security(world.tenant, settings),
        *_credentials(world),
        *_rpc(world),
        *_not_supported(world.tenant),
        *_removed(world),
        *_immutable(world),
    )


def problems(tenant: Tenant) -> tuple[Problem, ...]:
    """What is wrong with a spec, whatever else there is."""
    found = (*_pools(tenant), *_rollout(tenant))
    return tuple(Problem("spec.pools", each.message) for each in found)


# --- the spec


def _name(world: World) -> Iterator[Finding]:
    if not _NAME.fullmatch(world.name) or len(world.name) > _NAME_MAX:
        message = (
            f"the name {world.name} is not a DNS label of at most {_NAME_MAX} characters that begins with a letter"
        )
        yield Finding("SpecValid", TenantReason.INVALID_NAME, message)


def _pools(tenant: Tenant) -> Iterator[Finding]:
    counts = Counter(pool.name for pool in tenant.spec.pools)
    for name, number in counts.items():
        if number > 1:
            yield Finding("SpecValid", TenantReason.INVALID_POOLS, f"{number} pools are named {name}")
    for pool in tenant.spec.pools:
        longest = f"{names.stateful_set(tenant.metadata.name or '', pool.name)}-{pool.servers - 1}"
        if len(longest) > _SERVER_NAME_MAX:
            message = f"the name of server {longest} has more than {_SERVER_NAME_MAX} characters"
            yield Finding("SpecValid", TenantReason.INVALID_POOLS, message)


def _rollout(tenant: Tenant) -> Iterator[Finding]:
    for pool in tenant.spec.pools:
        try:
            limits(rollout_of(tenant), pool)
            deadline(pool)
        except (InvalidLimits, durations.DurationError) as error:
            yield Finding("SpecValid", TenantReason.INVALID_ROLLOUT, f"pool {pool.name}: {error}")


def rollout_of(tenant: Tenant) -> Rollout:
    """The rollout section of a spec, with its defaults."""
    return tenant.spec.rollout or Rollout()


def limits(rollout: Rollout, pool: Pool) -> Limits:
    """How many servers of a pool must stay ready: all but one, unless the rollout section has other numbers."""
    most = 1 if rollout.max_unavailable is None else rollout.max_unavailable
    return resolve(pool.servers, max_unavailable=most, min_available=rollout.min_available, can_surge=False)


def deadline(pool: Pool) -> timedelta:
    """How long a rollout of a pool may make no progress before it has failed."""
    return durations.parse(pool.progress_deadline or PROGRESS_DEADLINE)


def _security(tenant: Tenant, settings: Settings) -> Iterator[Finding]:
    acknowledged = tenant.metadata.annotations.get(security.ACKNOWLEDGED, "")
    found: dict[Finding, None] = {}
    for pool in tenant.spec.pools:
        contexts = security.contexts(tenant, pool)
        for problem in security.problems(contexts):
            found[Finding("SpecValid", TenantReason.INVALID_SECURITY, f"pool {pool.name}: {problem}")] = None
        incompatible = security.image_problem(tenant.spec.image or settings.image, contexts, acknowledged=acknowledged)
        if incompatible is not None:
            found[Finding("WorkloadsReady", TenantReason.IMAGE_INCOMPATIBLE, incompatible)] = None
    yield from found


def _not_supported(tenant: Tenant) -> Iterator[Finding]:
    """Servers with less protection than the spec asks for are never created."""
    for condition, field in (("TlsReady", "spec.tls"), ("KmsReady", "spec.encryption")):
        if field in not_supported(tenant):
            message = f"{field} is set and not implemented yet, so no server is created without it"
            yield Finding(condition, TenantReason.NOT_SUPPORTED_YET, message)


def not_supported(tenant: Tenant) -> tuple[str, ...]:
    """The fields of the spec that ask for features that are not implemented yet."""
    spec = tenant.spec
    asked = {
        "spec.tls": spec.tls is not None and spec.tls.mode not in (None, "disabled"),
        "spec.encryption": spec.encryption is not None and bool(spec.encryption.enabled),
        "spec.policies": bool(spec.policies),
        "spec.users": bool(spec.users),
        "spec.buckets": bool(spec.buckets),
    }
    return tuple(field for field, wanted in asked.items() if wanted)


# --- Secrets; their content is never part of a message


def credentials(world: World) -> Credentials | Finding | None:
    """The root credentials, or what is wrong with them; None where the Tenant names none."""
    reference = world.tenant.spec.creds_secret
    if reference is None:
        return None
    secret = world.secrets.get(reference.name)
    if secret is None:
        return _bad_credentials(TenantReason.CREDENTIALS_NOT_FOUND, f"Secret {reference.name} does not exist")
    texts = []
    for key in (render.ACCESS_KEY, render.SECRET_KEY):
        text = _text(secret, key)
        if isinstance(text, TenantReason):
            return _bad_credentials(text, f"key {key} of Secret {reference.name} {_WRONG[text]}")
        texts.append(text)
    return Credentials(*texts)


_WRONG: Final[Mapping[TenantReason, str]] = {
    TenantReason.CREDENTIALS_MISSING_KEY: "is missing",
    TenantReason.CREDENTIALS_NOT_TEXT: "is not UTF-8 text",
    TenantReason.CREDENTIALS_TOO_SHORT: f"has fewer than {_SHORTEST} characters",
}


def _text(secret: Sealed, key: str) -> str | TenantReason:
    value = secret.get(key)
    if value is None:
        return TenantReason.CREDENTIALS_MISSING_KEY
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return TenantReason.CREDENTIALS_NOT_TEXT
    return text if len(text) >= _SHORTEST else TenantReason.CREDENTIALS_TOO_SHORT


def _bad_credentials(reason: TenantReason, message: str) -> Finding:
    return Finding("CredentialsReady", reason, message)


def _credentials(world: World) -> Iterator[Finding]:
    found = credentials(world)
    if isinstance(found, Finding):
        yield found


def _rpc(world: World) -> Iterator[Finding]:
    reference = world.tenant.spec.rpc_secret
    if reference is None:
        return
    secret = world.secrets.get(reference.name)
    value = None if secret is None else secret.get(reference.key)
    if secret is None:
        yield Finding("RpcAuthReady", TenantReason.RPC_NOT_FOUND, f"Secret {reference.name} does not exist")
    elif value is None:
        yield Finding(
            "RpcAuthReady", TenantReason.RPC_MISSING_KEY, f"Secret {reference.name} has no key {reference.key}"
        )
    elif (wrong := _wrong_rpc(value)) is not None:
        message = f"key {reference.key} of Secret {reference.name} {wrong}"
        yield Finding("RpcAuthReady", TenantReason.RPC_INVALID, message)


def _wrong_rpc(value: bytes) -> str | None:
    try:
        text = value.decode().strip()
    except UnicodeDecodeError:
        return "is not UTF-8 text"
    if not text:
        return "is blank"
    if "\0" in text:
        return "has a NUL in it"
    return "is the well-known default" if text == _WELL_KNOWN else None


# --- what runs already


def _removed(world: World) -> Iterator[Finding]:
    """Pools that the spec no longer has and whose servers still run."""
    wanted = [pool.name for pool in world.tenant.spec.pools]
    removed = sorted(pool for pool in world.sets if pool not in wanted and not is_drained(world, pool))
    if not removed:
        return
    added = [pool for pool in wanted if pool not in world.sets and not is_drained(world, pool)]
    for pool in removed:
        if added:
            message = f"pool {pool} was removed from the spec, and {', '.join(added)} added, in one change"
            yield Finding("SpecValid", TenantReason.IMMUTABLE, message)
        else:
            message = f"pool {pool} was removed from the spec and still holds data"
            yield Finding("SpecValid", TenantReason.POOL_DELETE_BLOCKED, message)


def is_drained(world: World, pool: str) -> bool:
    """Whether the store has moved all data off a pool."""
    before = world.before.get(pool)
    return before is not None and before.lifecycle_state is PoolLifecycleState.DECOMMISSIONED


def _immutable(world: World) -> Iterator[Finding]:
    for pool in world.tenant.spec.pools:
        found = world.sets.get(pool.name)
        if found is None:
            continue
        for field, old, new in _differences(world.tenant, pool, found):
            message = f"pool {pool.name}: {field} is immutable: it is {old} and the spec asks for {new}"
            yield Finding("WorkloadsReady", TenantReason.UPDATE_INVALID, message)


def _differences(tenant: Tenant, pool: Pool, found: StatefulSet) -> Iterator[tuple[str, Any, Any]]:
    """The immutable fields in which a pool differs from its StatefulSet."""
    name = tenant.metadata.name or ""
    if found.servers != pool.servers:
        yield "servers", found.servers, pool.servers
    if found.spec.service_name != names.headless(name):
        yield "the Service of its servers", found.spec.service_name, names.headless(name)
    policy = render.pod_management_policy(tenant)
    if found.spec.pod_management_policy != policy:
        yield "podManagementPolicy", found.spec.pod_management_policy, policy
    selector = names.selector(name, pool.name)
    if found.spec.selector.get("matchLabels") != selector:
        yield "the selector of its servers", found.spec.selector.get("matchLabels"), selector
    old = {each["metadata"]["name"]: each for each in found.spec.volume_claim_templates}
    new = {each["metadata"]["name"]: each for each in render.claims(tenant, pool)}
    if old.keys() != new.keys():
        yield "the volumes of each server", _listed(old), _listed(new)
    for volume in sorted(old.keys() & new.keys()):
        yield from _claim_differences(volume, old[volume], new[volume])


def _claim_differences(volume: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    was, asked = old["spec"], new["spec"]
    if _size(was) != _size(asked):
        yield f"the size of {volume}", _size(was), _size(asked)
    for field, what in (("accessModes", "access modes"), ("storageClassName", "StorageClass")):
        if (was.get(field) or None) != (asked.get(field) or None):
            yield f"the {what} of {volume}", was.get(field) or "unset", asked.get(field) or "unset"
    for field in ("labels", "annotations"):
        present, wanted = old["metadata"].get(field) or {}, new["metadata"].get(field) or {}
        if present != wanted:
            yield f"the {field} of {volume}", _written(present), _written(wanted)


def _size(claim: Mapping[str, Any]) -> Quantity | str:
    """Sizes are compared as quantities, because 1Gi and 1024Mi are the same."""
    asked: Any = claim
    for field in ("resources", "requests", "storage"):
        asked = asked.get(field) if isinstance(asked, Mapping) else None
    try:
        return Quantity.parse(asked or "")
    except QuantityError:
        return str(asked or "")


def _written(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(pairs.items())) or "none"


def _listed(volumes: Mapping[str, Any]) -> str:
    return ", ".join(sorted(volumes)) or "none"
