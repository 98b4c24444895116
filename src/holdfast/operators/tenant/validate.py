"""What keeps a Tenant from being worked on: found in the spec, in its Secrets, and in what runs already.

An API server refuses most of it by CEL rules; here it is found again, because a Tenant may be older than a rule,
and because rules see neither Secrets nor StatefulSets.  Every finding says which condition it belongs to.  Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from holdfast.kernel.limits import InvalidLimits, Limits, resolve
from holdfast.kinds.rustfs.pools import Pool, PoolLifecycleState
from holdfast.kinds.rustfs.tenants import Rollout, Tenant
from holdfast.meta import durations
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.operators.tenant import containers, names, security
from holdfast.operators.tenant.observe import Sealed, World
from holdfast.operators.tenant.pools import StatefulSet
from holdfast.operators.tenant.reasons import Why
from holdfast.operators.tenant.settings import Settings
from holdfast.operators.tenant.signing import Credentials

PROGRESS_DEADLINE: Final = "10m"

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME_MAX: Final = 55
_SERVER_NAME_MAX: Final = 63
_SHORTEST: Final = 8
_WELL_KNOWN: Final = "rustfsadmin"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and the condition that says so."""

    condition: str
    reason: Why
    message: str


def findings(world: World, settings: Settings) -> tuple[Finding, ...]:
    """Everything that is wrong, most fundamental first."""
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


# --- the spec


def _name(world: World) -> Iterator[Finding]:
    if not _NAME.fullmatch(world.name) or len(world.name) > _NAME_MAX:
        message = (
            f"the name {world.name} is not a DNS label of at most {_NAME_MAX} characters that begins with a letter"
        )
        yield Finding("SpecValid", Why.INVALID_NAME, message)


def _pools(tenant: Tenant) -> Iterator[Finding]:
    counts = Counter(pool.name for pool in tenant.spec.pools)
    for name, number in counts.items():
        if number > 1:
            yield Finding("SpecValid", Why.INVALID_POOLS, f"{number} pools are named {name}")
    for pool in tenant.spec.pools:
        longest = f"{names.stateful_set(tenant.metadata.name or '', pool.name)}-{pool.servers - 1}"
        if len(longest) > _SERVER_NAME_MAX:
            message = f"the name of server {longest} has more than {_SERVER_NAME_MAX} characters"
            yield Finding("SpecValid", Why.INVALID_POOLS, message)


def _rollout(tenant: Tenant) -> Iterator[Finding]:
    wish = tenant.spec.rollout or Rollout()
    for pool in tenant.spec.pools:
        try:
            limits(wish, pool)
            deadline(pool)
        except (InvalidLimits, durations.DurationError) as error:
            yield Finding("SpecValid", Why.INVALID_ROLLOUT, f"pool {pool.name}: {error}")


def limits(wish: Rollout, pool: Pool) -> Limits:
    """How far a rollout may disturb a pool: one server at a time, unless more is asked for."""
    most = 1 if wish.max_unavailable is None else wish.max_unavailable
    return resolve(pool.servers, max_unavailable=most, min_available=wish.min_available, can_surge=False)


def deadline(pool: Pool) -> timedelta:
    """How long a rollout of a pool may stand still before it has failed."""
    return durations.parse(pool.progress_deadline or PROGRESS_DEADLINE)


def _security(tenant: Tenant, settings: Settings) -> Iterator[Finding]:
    acknowledged = tenant.metadata.annotations.get(security.ACKNOWLEDGED, "")
    found: dict[Finding, None] = {}
    for pool in tenant.spec.pools:
        held = security.contexts(tenant, pool)
        for problem in security.problems(held):
            found[Finding("SpecValid", Why.INVALID_SECURITY, f"pool {pool.name}: {problem}")] = None
        incompatible = security.image_problem(tenant.spec.image or settings.image, held, acknowledged=acknowledged)
        if incompatible is not None:
            found[Finding("WorkloadsReady", Why.IMAGE_INCOMPATIBLE, incompatible)] = None
    yield from found


def _not_supported(tenant: Tenant) -> Iterator[Finding]:
    """Less protection than was asked for is worse than no store, so nothing is begun without it."""
    for condition, field in (("TlsReady", "spec.tls"), ("KmsReady", "spec.encryption")):
        if field in not_supported(tenant):
            message = f"{field} is asked for, and servers without it would be less safe than that"
            yield Finding(condition, Why.NOT_SUPPORTED_YET, message)


def not_supported(tenant: Tenant) -> tuple[str, ...]:
    """The fields that ask for something that is not done yet."""
    spec = tenant.spec
    asked = {
        "spec.tls": spec.tls is not None and spec.tls.mode not in (None, "disabled"),
        "spec.encryption": spec.encryption is not None and bool(spec.encryption.enabled),
        "spec.policies": bool(spec.policies),
        "spec.users": bool(spec.users),
        "spec.buckets": bool(spec.buckets),
    }
    return tuple(field for field, wanted in asked.items() if wanted)


# --- Secrets; what they hold is never part of a message


def credentials(world: World) -> Credentials | Finding | None:
    """The root credentials, or what is wrong with them; None where the Tenant names none."""
    reference = world.tenant.spec.creds_secret
    if reference is None:
        return None
    secret = world.secrets.get(reference.name)
    if secret is None:
        return _bad_credentials(Why.CREDENTIALS_NOT_FOUND, f"Secret {reference.name} does not exist")
    texts = []
    for key in (containers.ACCESS_KEY, containers.SECRET_KEY):
        text = _text(secret, key)
        if isinstance(text, Why):
            return _bad_credentials(text, f"key {key} of Secret {reference.name} {_WRONG[text]}")
        texts.append(text)
    return Credentials(*texts)


_WRONG: Final[Mapping[Why, str]] = {
    Why.CREDENTIALS_MISSING_KEY: "is missing",
    Why.CREDENTIALS_NOT_TEXT: "is not UTF-8 text",
    Why.CREDENTIALS_TOO_SHORT: f"has fewer than {_SHORTEST} characters",
}


def _text(secret: Sealed, key: str) -> str | Why:
    value = secret.get(key)
    if value is None:
        return Why.CREDENTIALS_MISSING_KEY
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return Why.CREDENTIALS_NOT_TEXT
    return text if len(text) >= _SHORTEST else Why.CREDENTIALS_TOO_SHORT


def _bad_credentials(reason: Why, message: str) -> Finding:
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
        yield Finding("RpcAuthReady", Why.RPC_NOT_FOUND, f"Secret {reference.name} does not exist")
    elif value is None:
        yield Finding("RpcAuthReady", Why.RPC_MISSING_KEY, f"Secret {reference.name} has no key {reference.key}")
    elif (wrong := _wrong_rpc(value)) is not None:
        message = f"key {reference.key} of Secret {reference.name} {wrong}"
        yield Finding("RpcAuthReady", Why.RPC_INVALID, message)


def _wrong_rpc(value: bytes) -> str | None:
    try:
        text = value.decode().strip()
    except UnicodeDecodeError:
        return "is not UTF-8 text"
    if not text:
        return "is blank"
    if "\0" in text:
        return "has a NUL in it"
    return "is the one that everybody knows" if text == _WELL_KNOWN else None


# --- what runs already


def _removed(world: World) -> Iterator[Finding]:
    """Pools whose servers run and that the spec no longer has."""
    wanted = [pool.name for pool in world.tenant.spec.pools]
    removed = sorted(pool for pool in world.sets if pool not in wanted and not is_drained(world, pool))
    if not removed:
        return
    added = [pool for pool in wanted if pool not in world.sets and not is_drained(world, pool)]
    for pool in removed:
        if added:
            message = f"pool {pool} was taken out of the spec, and {', '.join(added)} put in, at once"
            yield Finding("SpecValid", Why.IMMUTABLE, message)
        else:
            message = f"pool {pool} was taken out of the spec and still holds data"
            yield Finding("SpecValid", Why.POOL_DELETE_BLOCKED, message)


def is_drained(world: World, pool: str) -> bool:
    """Whether nothing is left in a pool."""
    before = world.before.get(pool)
    return before is not None and before.lifecycle_state is PoolLifecycleState.DECOMMISSIONED


def _immutable(world: World) -> Iterator[Finding]:
    for pool in world.tenant.spec.pools:
        found = world.sets.get(pool.name)
        if found is None:
            continue
        for field, old, new in _differences(world.tenant, pool, found):
            message = f"pool {pool.name}: {field} is {old} and can never become {new}"
            yield Finding("WorkloadsReady", Why.UPDATE_INVALID, message)


def _differences(tenant: Tenant, pool: Pool, found: StatefulSet) -> Iterator[tuple[str, Any, Any]]:
    """What differs between a pool and its StatefulSet that the API, or the store, would never let change."""
    name = tenant.metadata.name or ""
    if found.servers != pool.servers:
        yield "servers", found.servers, pool.servers
    if found.spec.service_name != names.headless(name):
        yield "the Service of its servers", found.spec.service_name, names.headless(name)
    policy = containers.pod_management_policy(tenant)
    if found.spec.pod_management_policy != policy:
        yield "podManagementPolicy", found.spec.pod_management_policy, policy
    selector = names.selector(name, pool.name)
    if found.spec.selector.get("matchLabels") != selector:
        yield "the selector of its servers", found.spec.selector.get("matchLabels"), selector
    old = {each["metadata"]["name"]: each for each in found.spec.volume_claim_templates}
    new = {each["metadata"]["name"]: each for each in containers.claims(tenant, pool)}
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
        held, wanted = old["metadata"].get(field) or {}, new["metadata"].get(field) or {}
        if held != wanted:
            yield f"the {field} of {volume}", _written(held), _written(wanted)


def _size(claim: Mapping[str, Any]) -> Quantity | str:
    """Sizes are compared as quantities, because 1Gi and 1024Mi are the same."""
    asked = ((claim.get("resources") or {}).get("requests") or {}).get("storage", "")
    try:
        return Quantity.parse(asked)
    except QuantityError:
        return str(asked)


def _written(pairs: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(pairs.items())) or "none"


def _listed(volumes: Mapping[str, Any]) -> str:
    return ", ".join(sorted(volumes)) or "none"
