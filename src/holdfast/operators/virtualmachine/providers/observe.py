"""The world of one Provider: the objects of its process, its machines, and what the hypervisor answers.

`survey` asks the process, and issues certificates where the Secret has none or old ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec

from holdfast.client.objects import Object, Undecodable
from holdfast.client.pods import Pod
from holdfast.client.resources import CLAIMS, DEPLOYMENTS, PODS, SECRETS, Resource
from holdfast.kinds.virtrigaud.migrations import Artifact, VMMigration
from holdfast.kinds.virtrigaud.providers import Provider, ProviderStatus
from holdfast.meta import durations
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import (
    CA,
    CERTIFICATE,
    KEY,
    Connections,
    Target,
    server_name,
    target_of,
)
from holdfast.operators.virtualmachine.machines.observe import REFERENCES
from holdfast.operators.virtualmachine.migrations.observe import of_reference
from holdfast.operators.virtualmachine.migrations.storage import nfs_export
from holdfast.operators.virtualmachine.providers.validate import unreadable
from holdfast.operators.virtualmachine.resources import CLASSES, MACHINES, MIGRATIONS, PROVIDERS
from holdfast.operators.virtualmachine.secrets import Sealed, read
from holdfast.providers.contract import Capabilities, Code, Hypervisor, Inventory, Listed, ProviderError
from holdfast.runtime.controllers import View
from holdfast.runtime.references import References

INSTANCE: Final = "app.kubernetes.io/instance"
NAME: Final = "app.kubernetes.io/name"
APP: Final = "virtrigaud-provider"
STORAGE_VOLUME: Final = "storage-"
NFS_VOLUME: Final = "nfs-"
"""How the names of volumes begin that are mounted for migrations: claims, and exports of NFS servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the process answered to a health check."""

    capabilities: Capabilities | None = None
    inventory: Inventory | None = None
    machines: tuple[Listed, ...] = ()
    error: ProviderError | None = None


class _DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class Deployment(msgspec.Struct, frozen=True):
    """The Deployment of a process, as far as it is read."""

    status: _DeploymentStatus = _DeploymentStatus()


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None


class _Container(msgspec.Struct, frozen=True):
    state: _State = _State()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    message: str = ""
    container_statuses: tuple[_Container, ...] = ()


class _ClaimSource(msgspec.Struct, frozen=True, rename="camel"):
    claim_name: str = ""


class _NfsSource(msgspec.Struct, frozen=True):
    server: str = ""
    path: str = ""


class _Volume(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    nfs: _NfsSource | None = None


class _PodSpec(msgspec.Struct, frozen=True):
    volumes: tuple[_Volume, ...] = ()


class RuntimePod(msgspec.Struct, frozen=True):
    """A pod of a process."""

    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def claims(self) -> frozenset[str]:
        """The claims that it has mounted for migrations."""
        return frozenset(
            each.persistent_volume_claim.claim_name
            for each in self.spec.volumes
            if each.name.startswith(STORAGE_VOLUME) and each.persistent_volume_claim is not None
        )

    @property
    def exports(self) -> frozenset[str]:
        """The NFS exports that it has mounted for migrations."""
        sources = (each.nfs for each in self.spec.volumes if each.name.startswith(NFS_VOLUME))
        return frozenset(nfs_export(each.server, each.path) for each in sources if each is not None)

    @property
    def trouble(self) -> str:
        """Why it cannot run; empty if nothing is known to keep it from running."""
        for container in self.status.container_statuses:
            waiting = container.state.waiting
            if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
                return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
        return self.status.message if self.status.phase == "Failed" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the Provider as it came
    provider    the same, typed
    deployment  the Deployment of its process, if it exists
    pods        the pods of its process: names, whether each is ready, and their status
    secret      the certificates, from the Secret of the spec or from ours
    target      how the process is reached
    machines    the VirtualMachines that refer to it
    taken       the names of all VirtualMachines in its namespace, where machines are adopted
    classes     the names of all VMClasses there
    claims      the names of the claims in its namespace that are for migrations
    shared      the claim that all Providers of its namespace mount, if it exists
    migrations  the migrations to or from it that are not complete
    issued      new certificates, where they are needed
    answers     what the process answered, if it was asked
    """

    object: Object
    provider: Provider
    deployment: Deployment | None = None
    pods: tuple[tuple[str, bool, RuntimePod], ...] = ()
    secret: Sealed | None = None
    target: Target | None = None
    machines: tuple[Object, ...] = ()
    taken: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    claims: tuple[str, ...] = ()
    shared: Object | None = None
    migrations: tuple[VMMigration, ...] = ()
    issued: Mapping[str, bytes] | None = None
    answers: Answers | None = None

    @property
    def before(self) -> ProviderStatus:
        return self.provider.status or ProviderStatus()

    @property
    def external(self) -> str:
        """The address of a process that runs already; empty where the process is ours."""
        scheme, _, rest = self.provider.spec.endpoint.partition("://")
        return rest.partition("/")[0] if scheme in ("grpc", "tcp") else ""

    @property
    def secure(self) -> bool:
        tls = self.provider.spec.runtime.service.tls if self.provider.spec.runtime.service else None
        return tls is None or tls.enabled is not False

    @property
    def own_certificates(self) -> bool:
        """Whether the certificates are issued by us."""
        tls = self.provider.spec.runtime.service.tls if self.provider.spec.runtime.service else None
        return self.secure and not self.external and not (tls and tls.secret_ref)

    @property
    def idle(self) -> bool:
        """Whether the process is not started, because no machine needs it yet, and none is on its way."""
        on_demand = self.object.meta.annotations.get(names.ON_DEMAND) == "true"
        return on_demand and not self.machines and not self.migrations

    @property
    def nfs(self) -> tuple[tuple[str, str], ...]:
        """The NFS servers that migrations to or from it use, with what they export."""
        stores = (each.spec.storage.nfs for each in self.migrations if each.spec.storage)
        return tuple(sorted({(each.server, f"/{each.export.strip('/')}") for each in stores if each is not None}))

    @property
    def is_needed(self) -> bool:
        """Whether something on the hypervisor is deleted through the process: machines, and disks of migrations."""
        made = (each.status.artifacts for each in self.migrations if each.status)
        return bool(self.machines) or any(Artifact.DISK in each for each in made)

    @property
    def port(self) -> int:
        service = self.provider.spec.runtime.service
        return (service.port if service else None) or 9443


def labels(key: Key) -> dict[str, str]:
    return {NAME: APP, INSTANCE: key.name}


def observe(view: View, key: Key) -> World | None:
    obj = view.get(PROVIDERS, key)
    if obj is None:
        return None
    provider = obj.decode(Provider)
    if not obj.deleting and (found := unreadable(provider)):
        raise Undecodable(obj.ref, "; ".join(map(str, found)))
    deployment = view.get(DEPLOYMENTS, Key(key.namespace, names.runtime(key.namespace, key.name)))
    chosen = LabelSelector.from_object({"matchLabels": labels(key)})
    pods = [each for each in view.list(PODS, namespace=key.namespace, labels=chosen) if not each.deleting]
    tls = provider.spec.runtime.service.tls if provider.spec.runtime.service else None
    secret = tls.secret_ref.name if tls and tls.secret_ref else names.certificate(key.namespace, key.name)
    adopts = obj.meta.annotations.get(names.ADOPT) == "true"
    world = World(
        object=obj,
        provider=provider,
        deployment=None
        if deployment is None or not deployment.is_controlled_by(obj.uid)
        else deployment.decode(Deployment),
        pods=tuple((each.key.name, Pod.of(each).ready, _read(each)) for each in pods),
        secret=read(view, SECRETS, Key(key.namespace, secret)),
        machines=REFERENCES.of(view, obj),
        taken=_names(view, MACHINES, key.namespace) if adopts else frozenset(),
        classes=_names(view, CLASSES, key.namespace) if adopts else frozenset(),
        claims=tuple(
            each.key.name for each in view.list(CLAIMS, namespace=key.namespace, labels=_STORAGE) if not each.deleting
        ),
        shared=view.get(CLAIMS, Key(key.namespace, names.SHARED_STORAGE)),
        migrations=tuple(_migrations(view, obj)),
    )
    return replace(world, target=target_of(view, key, provider, endpoint(world)))


_STORAGE: Final = LabelSelector.from_object({"matchLabels": {names.STORAGE: names.STORAGE_VALUE}})


def _migrations(view: View, provider: Object) -> Iterator[VMMigration]:
    for key in sorted(of_reference(provider, view)):
        found = view.get(MIGRATIONS, key)
        migration = None if found is None else found.decode(VMMigration)
        if migration is not None and not (migration.status and migration.status.completion_time):
            yield migration


def mounted(world: World, what: Callable[[RuntimePod], frozenset[str]]) -> list[str] | None:
    """What every process that is ready has mounted for migrations; None where the process is not ours."""
    found = [what(pod) for _, ready, pod in world.pods if ready]
    if world.external:
        return None
    return sorted(frozenset.intersection(*found)) if found else []


def _names(view: View, resource: Resource, namespace: str) -> frozenset[str]:
    return frozenset(each.key.name for each in view.list(resource, namespace=namespace))


_pod: Final = msgspec.json.Decoder(RuntimePod)


def _read(obj: Object) -> RuntimePod:
    # Read past the object, which keeps the type that it was last read as.
    return _pod.decode(obj.raw)


def endpoint(world: World) -> str:
    """Where the process answers: at the address of a ready pod, or where the spec says that it runs already."""
    if world.external:
        return world.external
    address = next((pod.status.pod_ip for _, ready, pod in world.pods if ready and pod.status.pod_ip), "")
    return f"{address}:{world.port}" if address else ""


def _mentions(obj: Object) -> Iterator[tuple[Resource, str | Key]]:
    service = obj.decode(Provider).spec.runtime.service
    if service is not None and service.tls is not None and service.tls.secret_ref is not None:
        yield SECRETS, service.tls.secret_ref.name


PROVIDERS_OF: Final = References(PROVIDERS, _mentions)
"""The Providers that refer to a Secret with certificates."""


# --- the process


async def survey(world: World, *, connections: Connections, clock: Callable[[], datetime]) -> World:
    """The world with new certificates, where they are needed, and with what the process answers."""
    if world.own_certificates and not world.idle and _is_old(world.secret, clock()):
        host = names.runtime(world.object.key.namespace, world.object.key.name)
        short = f"{host}.{world.object.key.namespace}"
        alternatives = (server_name(world.object.key), host, short, f"{short}.svc", "localhost")
        from holdfast.operators.virtualmachine.providers import certificates  # as in `_is_old`

        world = replace(world, issued=certificates.issue(alternatives, now=clock()))
    if world.target is None or world.object.deleting:
        return world
    check = world.provider.spec.health_check
    limit = durations.parse((check.timeout if check else None) or "10s").total_seconds()
    try:
        async with asyncio.timeout(limit):
            return replace(world, answers=await _asked(connections, world.target))
    except TimeoutError:
        error = ProviderError(Code.RETRYABLE, f"no answer within {limit:g} s")
        return replace(world, answers=Answers(error=error))


async def _asked(connections: Connections, target: Target) -> Answers:
    answers = Answers()
    try:
        hypervisor = connections.to(target)
        await hypervisor.validate()
        answers = replace(answers, capabilities=await _capabilities(hypervisor))
        answers = replace(answers, machines=await hypervisor.machines())
        if answers.capabilities is not None and answers.capabilities.inventory:
            answers = replace(answers, inventory=await hypervisor.inventory())
    except ProviderError as error:
        return replace(answers, error=error)
    return answers


async def _capabilities(hypervisor: Hypervisor) -> Capabilities | None:
    """What a provider can do; None where it cannot say that, as early ones of VirtRigaud cannot."""
    try:
        return await hypervisor.capabilities()
    except ProviderError as error:
        if error.code is Code.UNSUPPORTED:
            return None
        raise


def _is_old(secret: Sealed | None, now: datetime) -> bool:
    """Whether certificates are missing or are to be renewed."""
    if secret is None or any(secret.get(key) is None for key in (CA, CERTIFICATE, KEY)):
        return True
    from holdfast.operators.virtualmachine.providers import certificates  # only who issues some pays for it

    until = certificates.expires(secret.get(CERTIFICATE) or b"")
    return until is None or until - now < certificates.RENEWED_BEFORE
