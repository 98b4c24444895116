"""How an installation runs the processes of providers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final

from holdfast.operators.operator import Setting


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


def local_types() -> frozenset[str]:
    """The types of hypervisor that can run on this machine."""
    found = {"simulated"}
    if shutil.which("qemu-img") and any(shutil.which(f"qemu-system-{each}") for each in ("x86_64", "aarch64")):
        found.add("qemu")
    if find_spec("libvirt") is not None:
        found.add("libvirt")
    return frozenset(found)


# --- what a user sets

CONTAINERS: Final = "containers"
PROCESSES: Final = "processes"
NO_FOLDER: Final = "none"


def _runtime_problem(text: str) -> str | None:
    return None if text in (CONTAINERS, PROCESSES) else f"it is neither {CONTAINERS} nor {PROCESSES}"


RUNTIME: Final = Setting(
    name="virtualmachine.runtime",
    variable="VIRTUALMACHINE_RUNTIME",
    default=CONTAINERS,
    meaning="How the processes of Providers run: containers, or processes of the node that `holdfast up` runs on.",
    problem=_runtime_problem,
)


def _folder_problem(text: str) -> str | None:
    return None if text == NO_FOLDER or text.startswith("/") else "it is not an absolute path"


IMAGES_FOLDER: Final = Setting(
    name="virtualmachine.images",
    variable="VIRTUALMACHINE_IMAGES",
    default=NO_FOLDER,
    meaning="The folder with images that machines of QEMU may be made from, where Providers run as processes.",
    problem=_folder_problem,
)


STORAGE_FOLDER: Final = Setting(
    name="virtualmachine.storage",
    variable="VIRTUALMACHINE_STORAGE",
    default=NO_FOLDER,
    meaning="The folder with nfs/SERVER, in which NFS is mounted for migrations, where Providers run as processes.",
    problem=_folder_problem,
)
