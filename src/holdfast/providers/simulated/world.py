"""The settings of a simulated hypervisor: its hosts, how long things take, what fails.  Values only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from holdfast.meta.sizes import GIB
from holdfast.providers.contract import Code, Datastore, Host, ResourcePool


class World(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts and datastores, and what else there is."""

    hosts: tuple[Host, ...] = ()
    datastores: tuple[Datastore, ...] = ()
    folders: tuple[str, ...] = ()
    resource_pools: tuple[ResourcePool, ...] = ()
    templates: tuple[str, ...] = ()
    """The templates that exist besides prepared images; if empty, every template exists."""
    any_place: bool = False
    """Whether hosts, clusters and datastores that do not exist are taken for others: it stands for any hypervisor."""
    cpu_overcommit: float = 4.0
    stubborn: tuple[str, ...] = ()
    """Patterns of names of machines whose guests ignore a request to shut down."""
    no_agent: tuple[str, ...] = ()
    """Patterns of names of machines without a guest agent: no addresses are known, and nothing can be quiesced."""

    @staticmethod
    def of(
        *,
        hosts: int = 3,
        clusters: int = 1,
        zones: int = 3,
        cpus: int = 64,
        memory_gib: int = 512,
        datastore_gib: int = 10_000,
    ) -> World:
        """A regular world: hosts in turn in clusters and zones, a datastore for each cluster."""
        stores = tuple(f"datastore-{n}" for n in range(clusters))
        names = tuple(f"host-{n}" for n in range(hosts))
        return World(
            hosts=tuple(
                Host(
                    name=name,
                    cluster=f"cluster-{n % clusters}",
                    zone=f"zone-{'abcdefghij'[n % zones % 10]}",
                    region="region-1",
                    cpus=cpus,
                    memory_mib=memory_gib * 1024,
                    datastores=(stores[n % clusters],),
                    networks=("default",),
                    features=("secure-boot", "tpm"),
                )
                for n, name in enumerate(names)
            ),
            datastores=tuple(
                Datastore(
                    name=name,
                    total_bytes=datastore_gib * GIB,
                    free_bytes=datastore_gib * GIB,
                    hosts=tuple(host for k, host in enumerate(names) if k % clusters == n),
                )
                for n, name in enumerate(stores)
            ),
        )


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take, in seconds; what takes no time is done when the call answers."""

    call: float = 0.0
    create: float = 2.0
    delete: float = 1.0
    power_on: float = 1.0
    power_off: float = 0.5
    boot: float = 3.0
    """From power on until the guest has its addresses."""
    shutdown: float = 2.0
    """What a guest needs to shut down by itself."""
    reconfigure: float = 1.0
    snapshot: float = 1.0
    revert: float = 1.0
    linked_clone: float = 1.0
    instant_clone: float = 0.2
    bytes_per_second: float = 256.0 * (1 << 20)
    """How fast disks, images and memory are copied; zero: at once."""
    jitter: float = 0.0
    """Which share of a duration varies, by the seed."""

    def copying(self, size: int) -> float:
        return size / self.bytes_per_second if self.bytes_per_second else 0.0


INSTANT: Final = Latencies(
    create=0, delete=0, power_on=0, power_off=0, boot=0, shutdown=0, reconfigure=0, snapshot=0, revert=0,
    linked_clone=0, instant_clone=0, bytes_per_second=0,
)  # fmt: skip
"""Everything is done when the call answers."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that fail: which, for which machines, how often, and when.

    Before: nothing was done.  After: it was done, and the answer is lost.  Task: the call answers, its task fails.
    """

    call: str = "*"
    name: str = "*"
    rate: float = 1.0
    times: int | None = None
    """How often at most; None is without limit."""
    code: Code = Code.RETRYABLE
    message: str = "injected"
    when: Literal["before", "after", "task"] = "before"

    def matches(self, call: str, name: str) -> bool:
        return fnmatchcase(call, self.call) and fnmatchcase(name, self.name)


def chance(seed: int, *of: object) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    digest = hashlib.blake2b(repr((seed, *of)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / (1 << 64)


def any_match(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def host_for(
    hosts: Mapping[str, Host], *, name: str, cluster: str, cpus: int, memory_mib: int, overcommit: float
) -> Host | str:
    """The host for a machine, that with most free memory; or a sentence that says why there is none."""
    if name:
        chosen = [host for host in hosts.values() if host.name == name]
        if not chosen:
            return f"host {name} does not exist"
    else:
        chosen = [host for host in hosts.values() if not cluster or host.cluster == cluster]
        if not chosen:
            return f"cluster {cluster} does not exist" if cluster else "there are no hosts"
    refused = []
    fitting = []
    for host in chosen:
        if host.maintenance:
            refused.append(f"{host.name} is in maintenance")
        elif host.memory_mib - host.memory_mib_used < memory_mib:
            refused.append(f"{host.name} has {host.memory_mib - host.memory_mib_used} MiB of memory left")
        elif host.cpus * overcommit - host.cpus_used < cpus:
            refused.append(f"{host.name} has {host.cpus * overcommit - host.cpus_used:.0f} virtual CPUs left")
        else:
            fitting.append(host)
    if not fitting:
        return f"no host has {cpus} CPUs and {memory_mib} MiB: {', '.join(refused[:5])}"
    return max(fitting, key=lambda host: (host.memory_mib - host.memory_mib_used, -list(hosts).index(host.name)))
