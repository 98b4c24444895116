"""Storage tenants: the ``Tenant`` kind of ``rustfs.com/v1alpha1``.

A Tenant (`tenants`) is an object store made of pools (`pools`); a pool is
servers with volumes, run as one StatefulSet.  TLS, encryption and what is created
inside the store (`tls`, `encryption`, `provisioning`) are optional.
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.model import Kind
from holdfast.kinds.rustfs import tenants
from holdfast.kinds.rustfs.pools import PoolState
from holdfast.kinds.rustfs.tenants import Tenant

KINDS: Final[tuple[Kind, ...]] = (tenants.KIND,)

__all__ = ["KINDS", "PoolState", "Tenant"]
