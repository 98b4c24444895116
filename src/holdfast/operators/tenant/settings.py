"""What an installation of the operator decides for all Tenants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    image           of servers whose Tenant names none
    cluster_domain  that ends the DNS names of Services
    """

    image: str = "rustfs/rustfs:1.0.0-beta.10"
    cluster_domain: str = "cluster.local"


DEFAULTS = Settings()
