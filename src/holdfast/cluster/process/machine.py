"""This machine as a Node: what it has, where its pods are reached, and the object that says so.

Measuring is the only thing here that looks at the machine; the rest is made of what
was measured.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from holdfast.client.resources import LEASES, NODES
from holdfast.cluster.nodes.lifecycle import KUBELET
from holdfast.cluster.process.running.containers import Hiding, hiding
from holdfast.meta import times
from holdfast.meta.quantities import Format, Quantity

HOST_IP: Final = "127.0.0.1"
MAX_PODS: Final = 110
LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40

RUNTIME_LABEL: Final = "holdfast.dev/runtime"

OWN_ADDRESSES: Final = sys.platform == "linux"
"""Whether each pod can have a loopback address of its own.

Linux answers on all of 127.0.0.0/8; elsewhere every address but one must be set up by an administrator.
"""

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH")
"""The variables of the machine that processes are given, besides PATH; the rest may be secrets."""

_ARCHITECTURES: Final = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "NotWatched", "The process runtime does not watch the memory of the machine."),
    ("DiskPressure", "False", "NotWatched", "The process runtime does not watch the disks of the machine."),
    ("PIDPressure", "False", "NotWatched", "The process runtime does not watch the processes of the machine."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What was measured.

    own_addresses  whether each pod can have a loopback address of its own
    hiding         how directories are hidden from processes, or why they cannot be
    """

    capacity: Mapping[str, Quantity]
    hostname: str
    system: str
    architecture: str
    kernel: str
    variables: Mapping[str, str]
    own_addresses: bool
    hiding: Hiding


def measure(directory: Path) -> Machine:
    """The machine that this is run on; `directory` is where pods will keep their files."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        capacity={
            "cpu": Quantity.parse(os.cpu_count() or 1),
            "memory": _bytes(memory),
            "ephemeral-storage": _bytes(shutil.disk_usage(directory).total),
            "pods": Quantity.parse(MAX_PODS),
        },
        hostname=platform.node(),
        system=sys.platform,
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        variables={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"PATH": _path()},
        own_addresses=OWN_ADDRESSES,
        hiding=hiding(directory),
    )


def _path() -> str:
    """Where commands are found: as on the machine, and last where this program is, so that pods can run it."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)))


def _bytes(number: int) -> Quantity:
    # In whole Ki, as nodes report them.
    return Quantity(number // 1024 * 1024 * 10**9, Format.BINARY_SI)


def node_manifest(name: str, machine: Machine) -> dict[str, Any]:
    """The Node, without its status."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": machine.system,
        "kubernetes.io/arch": machine.architecture,
        RUNTIME_LABEL: "process",
    }
    return {"apiVersion": NODES.api_version, "kind": NODES.kind, "metadata": {"name": name, "labels": labels}}


def node_status(name: str, machine: Machine, now: datetime) -> dict[str, Any]:
    amounts = {resource: str(amount) for resource, amount in machine.capacity.items()}
    moment = times.format(now)
    reached = f"which can read its data directory, because that cannot be hidden: {machine.hiding.problem}"
    hidden = f"which cannot reach its data directory ({machine.hiding.means})"
    ready = f"Commands of pods are run as processes of this machine, {hidden if machine.hiding.means else reached}."
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [{"type": "InternalIP", "address": HOST_IP}, {"type": "Hostname", "address": name}],
        "conditions": [
            {
                "type": type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": moment,
            }
            for type, status, reason, message in (*_CONDITIONS, ("Ready", "True", "ProcessesCanRun", ready))
        ],
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kernelVersion": machine.kernel,
            "osImage": machine.hostname,
            "containerRuntimeVersion": "process://1",
            "kubeletVersion": KUBELET,
            "kubeProxyVersion": KUBELET,
            "operatingSystem": machine.system,
            "architecture": machine.architecture,
        },
    }


def lease_manifest(name: str, now: datetime) -> dict[str, Any]:
    """The Lease by whose renewal a node is heard from."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": LEASE_NAMESPACE, "name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": times.format_micro(now)},
    }


class Addresses:
    """Loopback addresses, one for each pod where the machine has them, so that two pods can use one port.

    Two nodes on one machine, with directories of their own, use different ones as a rule.
    """

    def __init__(self, machine: Machine, directory: Path) -> None:
        digest = blake2b(str(directory).encode(), digest_size=1).digest()[0]
        self._prefix = f"127.{64 + digest % 128}" if machine.own_addresses else ""

    def free(self, taken: Iterable[str], *, wanted: str = "") -> str:
        """A free address: `wanted`, if it is one of ours and free."""
        if not self._prefix:
            return HOST_IP
        used = set(taken)
        if wanted.startswith(f"{self._prefix}.") and wanted not in used:
            return wanted
        every = (f"{self._prefix}.{high}.{low}" for high in range(256) for low in range(1, 255))
        return next((address for address in every if address not in used), HOST_IP)
