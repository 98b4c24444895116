"""The names and labels of the objects of a Tenant.

They are part of the API: objects that exist are found by them.
"""

from __future__ import annotations

from typing import Final

TENANT: Final = "rustfs.tenant"
POOL: Final = "rustfs.pool"
"""The labels by which objects of a Tenant, and of one of its pools, are found."""

MANAGED_BY: Final = "rustfs-operator"


def labels(tenant: str) -> dict[str, str]:
    """The labels of every object that is created for a Tenant."""
    return {
        "app.kubernetes.io/name": "rustfs",
        "app.kubernetes.io/instance": tenant,
        "app.kubernetes.io/managed-by": MANAGED_BY,
        TENANT: tenant,
    }


def pool_labels(tenant: str, pool: str) -> dict[str, str]:
    """The labels of every object that is created for one pool."""
    return labels(tenant) | {POOL: pool, "app.kubernetes.io/component": "storage"}


def selector(tenant: str, pool: str = "") -> dict[str, str]:
    """The labels that select the servers of a Tenant, or of one pool."""
    return {TENANT: tenant} | ({POOL: pool} if pool else {})


def stateful_set(tenant: str, pool: str) -> str:
    return f"{tenant}-{pool}"


def account(tenant: str) -> str:
    """The ServiceAccount that is created where the Tenant names none."""
    return f"{tenant}-sa"


def store(tenant: str) -> str:
    """The Service of the S3 API."""
    return f"{tenant}-io"


def console(tenant: str) -> str:
    return f"{tenant}-console"


def headless(tenant: str) -> str:
    """The headless Service with the DNS names of the servers."""
    return f"{tenant}-hl"
