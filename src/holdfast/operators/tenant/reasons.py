"""Why a Tenant is as it is: every reason that its conditions give, and what somebody can do about it.

One registry: a reason, its meaning, whether it stops everything (`BLOCKED`), and the next action (`NEXT`), which
is the end of every message that carries the reason.  The documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.kernel.reasons import Reason


class Why(Reason):
    """Reasons of a Tenant's conditions."""

    # All is well, or will be.
    SUCCEEDED = "ReconcileSucceeded", "Everything is as the spec asks for, and all servers are ready."
    NOT_RECONCILING = "NothingToDo", "Nothing is under way."
    HEALTHY = "Healthy", "Nothing is wrong that somebody has to know of."
    VALID = "Valid", "What was checked is in order."
    DEFAULT_CREDENTIALS = "DefaultCredentials", "No credsSecret is named, so the servers use the image's own."
    POOLS_READY = "PoolsReady", "Every pool is complete."
    WORKLOADS_READY = "WorkloadsReady", "Every StatefulSet has rolled out."

    # What the spec or its neighbours lack.
    INVALID_NAME = "InvalidTenantName", "Services cannot be named after the Tenant."
    INVALID_POOLS = "InvalidPoolSpec", "The pools contradict themselves or each other."
    INVALID_ROLLOUT = "InvalidRolloutSpec", "The limits of rollouts cannot be had."
    INVALID_SECURITY = "InvalidWorkloadSecurityProfile", "The security contexts contradict themselves."
    IMAGE_INCOMPATIBLE = "WorkloadSecurityIncompatible", "The image is not known to run under its seccomp profile."
    CREDENTIALS_NOT_FOUND = "CredentialSecretNotFound", "The Secret with the root credentials does not exist."
    CREDENTIALS_MISSING_KEY = "CredentialSecretMissingKey", "The Secret with the root credentials lacks a key."
    CREDENTIALS_NOT_TEXT = "CredentialSecretInvalidEncoding", "A root credential is not UTF-8 text."
    CREDENTIALS_TOO_SHORT = "CredentialSecretTooShort", "A root credential has fewer than eight characters."
    RPC_NOT_FOUND = "RpcSecretNotFound", "The Secret that servers know each other by does not exist."
    RPC_MISSING_KEY = "RpcSecretMissingKey", "The Secret that servers know each other by lacks its key."
    RPC_INVALID = "RpcSecretInvalid", "The secret that servers know each other by is blank, or no secret at all."
    POOL_DELETE_BLOCKED = "PoolDeleteBlocked", "A pool was taken out of the spec that has not been drained."
    IMMUTABLE = "ImmutableFieldModified", "A pool was taken out of the spec, and another put in, at once."
    UPDATE_INVALID = "StatefulSetUpdateValidationFailed", "A field of a pool differs that can never change."
    NOT_SUPPORTED_YET = "NotSupportedYet", "The spec asks for something that this version does not do yet."

    # What happens to the pools.
    ROLLOUT_IN_PROGRESS = "RolloutInProgress", "Servers are being made, or replaced by those of a new revision."
    ROLLOUT_FAILED = "RolloutFailed", "A rollout did not get further within its progress deadline."
    ROLLOUT_PAUSED = "RolloutPaused", "Somebody paused the rollout."
    ROLLOUT_BLOCKED = "RolloutBlocked", "The limits leave no server that may be replaced."
    POOL_DEGRADED = "PoolDegraded", "Servers of a pool are not ready although no rollout runs."
    PODS_NOT_READY = "PodsNotReady", "Not every server is as it should be."
    DECOMMISSIONING = "PoolDecommissioning", "A pool is being drained, or its StatefulSet removed."
    DECOMMISSIONED = "PoolDecommissioned", "A pool has been drained and is still in the spec."
    DECOMMISSION_FAILED = "PoolDecommissionFailed", "A pool could not be drained."
    DECOMMISSION_CANCELED = "PoolDecommissionCanceled", "The draining of a pool was canceled."

    # What the API did not let us do.
    APPLY_FAILED = "StatefulSetApplyFailed", "The API refuses what is to be applied."
    CHILD_CONFLICT = "ChildConflict", "An object of a name that is needed belongs to somebody else."
    API_ERROR = "KubernetesApiError", "The API did not answer, or not as it should; it is asked again."


BLOCKED: Final[frozenset[str]] = frozenset(
    {
        Why.INVALID_NAME,
        Why.INVALID_POOLS,
        Why.INVALID_ROLLOUT,
        Why.INVALID_SECURITY,
        Why.IMAGE_INCOMPATIBLE,
        Why.CREDENTIALS_NOT_FOUND,
        Why.CREDENTIALS_MISSING_KEY,
        Why.CREDENTIALS_NOT_TEXT,
        Why.CREDENTIALS_TOO_SHORT,
        Why.RPC_NOT_FOUND,
        Why.RPC_MISSING_KEY,
        Why.RPC_INVALID,
        Why.POOL_DELETE_BLOCKED,
        Why.IMMUTABLE,
        Why.UPDATE_INVALID,
        Why.NOT_SUPPORTED_YET,
        Why.ROLLOUT_BLOCKED,
        Why.CHILD_CONFLICT,
        Why.DECOMMISSION_FAILED,
        Why.DECOMMISSION_CANCELED,
    }
)
"""Reasons after which nothing gets better unless somebody acts."""

NEXT: Final[Mapping[str, str]] = {
    Why.INVALID_NAME: "make a Tenant of another name",
    Why.INVALID_POOLS: "correct spec.pools",
    Why.INVALID_ROLLOUT: "correct spec.rollout",
    Why.INVALID_SECURITY: "correct securityContext and containerSecurityContext",
    Why.IMAGE_INCOMPATIBLE: (
        "use rustfs/rustfs:1.0.0-beta.9 or newer, or annotate the Tenant with "
        "operator.rustfs.com/runtime-default-image-ack and the exact name of the image"
    ),
    Why.CREDENTIALS_NOT_FOUND: "create it with the keys accesskey and secretkey, or correct spec.credsSecret.name",
    Why.CREDENTIALS_MISSING_KEY: "add the key to the Secret",
    Why.CREDENTIALS_NOT_TEXT: "write the credential as UTF-8 text",
    Why.CREDENTIALS_TOO_SHORT: "write a credential of at least 8 characters",
    Why.RPC_NOT_FOUND: "create it, or correct spec.rpcSecret.name",
    Why.RPC_MISSING_KEY: "add the key to the Secret, or correct spec.rpcSecret.key",
    Why.RPC_INVALID: "write a secret of its own there",
    Why.POOL_DELETE_BLOCKED: "put it back into spec.pools, and drain it with a decommission request first",
    Why.IMMUTABLE: "put it back into spec.pools; add the new pool, and then drain the old one",
    Why.UPDATE_INVALID: "put the old value back; a store grows by another pool, not by changing one",
    Why.NOT_SUPPORTED_YET: "take it out of the spec",
    Why.ROLLOUT_FAILED: "see why its servers are not ready (kubectl describe pod), and correct the spec",
    Why.ROLLOUT_PAUSED: "set spec.rollout.paused to false to go on",
    Why.ROLLOUT_BLOCKED: "correct spec.rollout",
    Why.POOL_DEGRADED: "see why its servers are not ready (kubectl describe pod)",
    Why.DECOMMISSIONED: "take the pool and its request out of the spec",
    Why.DECOMMISSION_FAILED: "take the request out of the spec, or write one with another requestId to try again",
    Why.DECOMMISSION_CANCELED: "take the request out of the spec",
    Why.APPLY_FAILED: "correct the spec",
    Why.CHILD_CONFLICT: "delete or rename the other object",
    Why.API_ERROR: "nothing: it is tried again",
}
"""What somebody can do; reasons that end by themselves have none."""


def advised(reason: Why, message: str) -> str:
    """A message that ends with what to do."""
    advice = NEXT.get(reason)
    return f"{message}; {advice}" if advice else message
