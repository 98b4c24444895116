"""The reasons of a Tenant's conditions, what each means, and what a user can do about it.

One registry: a reason with its meaning, whether it blocks the Tenant (`BLOCKED`) or passes by itself
(`RECONCILING`), and the next action (`NEXT`), which ends every message that carries the reason.  The documentation
is checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.reasons import Reason


class TenantReason(Reason):
    """Reasons of a Tenant's conditions."""

    # Nothing is wrong.
    SUCCEEDED = "ReconcileSucceeded", "Everything is as the spec asks for, and all servers are ready."
    NOT_RECONCILING = "NothingToDo", "Nothing is being changed."
    HEALTHY = "Healthy", "No problem is known."
    VALID = "Valid", "The check succeeded."
    DEFAULT_CREDENTIALS = "DefaultCredentials", "No credsSecret is set, so the servers use the image's own credentials."
    POOLS_READY = "PoolsReady", "No pool has failed, is degraded, or could not be drained."
    WORKLOADS_READY = "WorkloadsReady", "Every StatefulSet has rolled out, and its pods are ready."

    # The spec or a Secret must be corrected.
    INVALID_NAME = "InvalidTenantName", "The Tenant's name cannot be the beginning of the names of Services."
    INVALID_POOLS = "InvalidPoolSpec", "Two pools have the same name, or the name of a server would be too long."
    INVALID_ROLLOUT = "InvalidRolloutSpec", "A limit or a deadline of the rollout is not a valid value."
    INVALID_SECURITY = (
        "InvalidWorkloadSecurityProfile",
        "The security contexts contradict each other, or a seccomp or AppArmor profile is not valid.",
    )
    IMAGE_INCOMPATIBLE = "WorkloadSecurityIncompatible", "The image is not known to run under its seccomp profile."
    CREDENTIALS_NOT_FOUND = "CredentialSecretNotFound", "The Secret with the root credentials does not exist."
    CREDENTIALS_MISSING_KEY = "CredentialSecretMissingKey", "The Secret with the root credentials lacks a key."
    CREDENTIALS_NOT_TEXT = "CredentialSecretInvalidEncoding", "A root credential is not UTF-8 text."
    CREDENTIALS_TOO_SHORT = "CredentialSecretTooShort", "A root credential has fewer than eight characters."
    RPC_NOT_FOUND = "RpcSecretNotFound", "The Secret with which servers authenticate to each other does not exist."
    RPC_MISSING_KEY = "RpcSecretMissingKey", "The Secret with which servers authenticate to each other lacks its key."
    RPC_INVALID = (
        "RpcSecretInvalid",
        "The secret with which servers authenticate to each other is blank, not text, or the well-known default.",
    )
    POOL_DELETE_BLOCKED = "PoolDeleteBlocked", "A pool was removed from the spec that has not been drained."
    IMMUTABLE = "ImmutableFieldModified", "A pool was removed from the spec and another one added in one change."
    UPDATE_INVALID = "StatefulSetUpdateValidationFailed", "A field of a pool was changed that is immutable."
    NOT_SUPPORTED_YET = "NotSupportedYet", "The spec asks for a feature that this version does not implement yet."

    # What happens to the pools.
    ROLLOUT_IN_PROGRESS = "RolloutInProgress", "Servers are being created, or replaced by those of a new revision."
    ROLLOUT_FAILED = "RolloutFailed", "A rollout made no progress within its progress deadline."
    ROLLOUT_PAUSED = "RolloutPaused", "The rollout is paused."
    ROLLOUT_BLOCKED = "RolloutBlocked", "The limits allow no server to be replaced."
    POOL_DEGRADED = "PoolDegraded", "Servers of a pool are not ready although no rollout is under way."
    PODS_NOT_READY = "PodsNotReady", "Not every server is of the desired revision and ready."
    DECOMMISSIONING = "PoolDecommissioning", "A pool is being drained, or its StatefulSet deleted."
    DECOMMISSIONED = "PoolDecommissioned", "A pool has been drained and is still in the spec."
    DECOMMISSION_FAILED = "PoolDecommissionFailed", "A pool could not be drained."
    DECOMMISSION_CANCELED = "PoolDecommissionCanceled", "The drain of a pool was canceled."

    # What the API server refused.
    APPLY_FAILED = "StatefulSetApplyFailed", "The API server refuses an object that is applied."
    CHILD_CONFLICT = "ChildConflict", "An object with a name that the Tenant needs has another owner, or none."
    API_ERROR = "KubernetesApiError", "The API server did not answer, or answered with an error; the write is retried."


BLOCKED: Final[frozenset[str]] = frozenset(
    {
        TenantReason.INVALID_NAME,
        TenantReason.INVALID_POOLS,
        TenantReason.INVALID_ROLLOUT,
        TenantReason.INVALID_SECURITY,
        TenantReason.IMAGE_INCOMPATIBLE,
        TenantReason.CREDENTIALS_NOT_FOUND,
        TenantReason.CREDENTIALS_MISSING_KEY,
        TenantReason.CREDENTIALS_NOT_TEXT,
        TenantReason.CREDENTIALS_TOO_SHORT,
        TenantReason.RPC_NOT_FOUND,
        TenantReason.RPC_MISSING_KEY,
        TenantReason.RPC_INVALID,
        TenantReason.POOL_DELETE_BLOCKED,
        TenantReason.IMMUTABLE,
        TenantReason.UPDATE_INVALID,
        TenantReason.NOT_SUPPORTED_YET,
        TenantReason.ROLLOUT_BLOCKED,
        TenantReason.CHILD_CONFLICT,
        TenantReason.DECOMMISSION_FAILED,
        TenantReason.DECOMMISSION_CANCELED,
    }
)
"""Reasons that end only when a user changes something."""

RECONCILING: Final[frozenset[str]] = frozenset(
    {
        TenantReason.ROLLOUT_IN_PROGRESS,
        TenantReason.ROLLOUT_PAUSED,
        TenantReason.PODS_NOT_READY,
        TenantReason.DECOMMISSIONING,
        TenantReason.DECOMMISSIONED,
        TenantReason.API_ERROR,
    }
)
"""Reasons of a Tenant that is not ready and not degraded either: the controller is at work, or paused."""

NEXT: Final[Mapping[str, str]] = {
    TenantReason.INVALID_NAME: "create a Tenant with another name",
    TenantReason.INVALID_POOLS: "correct spec.pools",
    TenantReason.INVALID_ROLLOUT: "correct spec.rollout",
    TenantReason.INVALID_SECURITY: "correct securityContext and containerSecurityContext",
    TenantReason.IMAGE_INCOMPATIBLE: (
        "use rustfs/rustfs:1.0.0-beta.9 or newer, or a seccompProfile of type Localhost that allows io_uring"
    ),
    TenantReason.CREDENTIALS_NOT_FOUND: (
        "create it with the keys accesskey and secretkey, or correct spec.credsSecret.name"
    ),
    TenantReason.CREDENTIALS_MISSING_KEY: "add the key to the Secret",
    TenantReason.CREDENTIALS_NOT_TEXT: "write the credential as UTF-8 text",
    TenantReason.CREDENTIALS_TOO_SHORT: "write a credential of at least 8 characters",
    TenantReason.RPC_NOT_FOUND: "create it, or correct spec.rpcSecret.name",
    TenantReason.RPC_MISSING_KEY: "add the key to the Secret, or correct spec.rpcSecret.key",
    TenantReason.RPC_INVALID: "write another secret into the key",
    TenantReason.POOL_DELETE_BLOCKED: "put it back into spec.pools, and drain it with a decommission request first",
    TenantReason.IMMUTABLE: "put it back into spec.pools; add the new pool, and then drain the old one",
    TenantReason.UPDATE_INVALID: "put the old value back; add a pool instead of changing one",
    TenantReason.NOT_SUPPORTED_YET: "remove it from the spec",
    TenantReason.ROLLOUT_FAILED: "see why its servers are not ready (kubectl describe pod), and correct the spec",
    TenantReason.ROLLOUT_PAUSED: "set spec.rollout.paused to false to go on",
    TenantReason.ROLLOUT_BLOCKED: "correct spec.rollout",
    TenantReason.POOL_DEGRADED: "see why its servers are not ready (kubectl describe pod)",
    TenantReason.DECOMMISSIONED: "remove the pool and its request from the spec",
    TenantReason.DECOMMISSION_FAILED: (
        "remove the request from the spec, or write one with another requestId to try again"
    ),
    TenantReason.DECOMMISSION_CANCELED: "remove the request from the spec",
    TenantReason.APPLY_FAILED: "correct the spec",
    TenantReason.CHILD_CONFLICT: "delete or rename the other object",
    TenantReason.API_ERROR: "nothing to do: it is retried",
}
"""What a user can do; reasons that pass by themselves have none."""


def advised(reason: TenantReason, message: str) -> str:
    """A message that ends with what to do."""
    advice = NEXT.get(reason)
    return f"{message}; {advice}" if advice else message


def false(reason: TenantReason, message: str) -> Verdict:
    """A condition that is False, with what to do."""
    return Verdict.false(reason, advised(reason, message))
