"""How an installation runs the processes of providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    processes  whether they run as processes of the node, without images
    command    how a process is started, before ``provider serve``
    env        the variables that it needs
    images     a folder with images that machines of QEMU may be made from
    storage    a folder in which NFS servers are mounted that migrations use
    local      the types of hypervisor that can run on this machine; others are simulated when they run as processes
    """

    processes: bool = False
    command: tuple[str, ...] = ("holdfast",)
    env: Mapping[str, str] = field(default_factory=dict)
    images: str = ""
    storage: str = ""
    local: frozenset[str] = frozenset({"simulated"})


DEFAULTS = Settings()
