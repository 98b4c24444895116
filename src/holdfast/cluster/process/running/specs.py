"""From a container to the process that it becomes: its arguments, variables and directory.

Pure.  What cannot be honoured is refused with a reason and a remedy before
anything is started, and never silently left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from holdfast.client.resources import SLICES
from holdfast.cluster.process.lifecycle.pods import RUNTIME_CLASS, Container, Mount, Pod
from holdfast.cluster.process.running.env import Lookup, Refused, Surroundings, expand, variables
from holdfast.cluster.process.storage.directories import Directories, Mounted, rewriting
from holdfast.cluster.process.storage.volumes import located, within
from holdfast.meta.objects import Key

DAEMONS: Final = "holdfast.dev/daemons"
"""The annotation of a pod whose daemons outlive a crash of their container, with the value Keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to be started.

    argv       the command and its arguments, all of them expanded
    env        all its variables; they may hold secrets, so they are not shown
    directory  where it starts
    needed     directories that have to be there before
    mounts     the paths of the container, and where they are
    shown      the directories of the node that the process may reach
    spares     whether daemons that it starts outlive its crash
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    directory: Path
    needed: tuple[Path, ...] = ()
    mounts: tuple[Mounted, ...] = ()
    shown: tuple[Path, ...] = ()
    spares: bool = False

    def command(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """The command of a probe or a hook, as it is run here; ``$(VAR)`` means nothing in it, as in Kubernetes."""
        return tuple(map(rewriting(self.mounts), written))


def launch(
    pod: Pod,
    container: Container,
    *,
    directories: Directories,
    lookup: Lookup,
    around: Surroundings,
    machine: Mapping[str, str],
) -> Launch:
    """What to run for a container; raises `Refused` if it cannot be.

    `machine` holds the few variables of the machine that every process is given.
    """
    check(pod, container)
    work, scratch = directories.work(pod.uid, container.name), directories.scratch(pod.uid, container.name)
    given = {
        **machine,
        **api_server(lookup),
        "HOSTNAME": pod.spec.hostname or pod.metadata.name,
        "HOME": str(work),
        "TMPDIR": str(scratch),
        **{
            volume_variable(mount.name): str(_volume(pod, mount, directories=directories, lookup=lookup))
            for mount in container.volume_mounts
        },
    }
    message = Mounted(container.termination_message_path, directories.message(pod.uid, container.name))
    # A subPathExpr needs the variables, so that variables can speak of every mount but those.
    fixed = [
        _mounted(pod, mount, directories=directories, lookup=lookup, env=given)
        for mount in container.volume_mounts
        if not mount.sub_path_expr
    ]
    env = variables(pod, container, lookup=lookup, around=around, given=given, placed=rewriting((*fixed, message)))
    mounts = tuple(
        _mounted(pod, mount, directories=directories, lookup=lookup, env=env) for mount in container.volume_mounts
    )
    placed = rewriting((*mounts, message))
    return Launch(
        argv=tuple(expand(placed(text), env) for text in (*container.command, *container.args)),
        env=env,
        directory=Path(expand(placed(container.working_dir), env)) if container.working_dir else work,
        needed=(work, scratch, *_directories(pod, container, mounts)),
        mounts=(*mounts, message),
        shown=(directories.pod(pod.uid), *_claims(pod, container, directories=directories, lookup=lookup)),
        spares=pod.metadata.annotations.get(DAEMONS) == "Keep",
    )


class _Port(msgspec.Struct, frozen=True):
    port: int = 0


class _Endpoint(msgspec.Struct, frozen=True):
    addresses: tuple[str, ...] = ()


class _Slice(msgspec.Struct, frozen=True):
    """The addresses of the API server."""

    endpoints: tuple[_Endpoint, ...] = ()
    ports: tuple[_Port, ...] = ()


def api_server(lookup: Lookup) -> dict[str, str]:
    """The variables by which programs in a pod find the API: the server's own address, since no proxy runs here."""
    found = lookup(SLICES, Key("default", "kubernetes"))
    if found is None:
        return {}
    read = found.decode(_Slice)
    hosts = [address for each in read.endpoints for address in each.addresses]
    if not hosts or not read.ports:
        return {}
    host = _LOOPBACK.get(hosts[0], hosts[0])
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(read.ports[0].port)}


_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a server is reached that listens on all addresses."""


def volume_variable(name: str) -> str:
    """The variable that says where a volume is."""
    return f"HOLDFAST_VOLUME_{name.upper().replace('-', '_')}"


def check(pod: Pod, container: Container) -> None:
    """Refuse what the process runtime cannot do."""
    if pod.spec.runtime_class_name != RUNTIME_CLASS:
        raise Refused(
            "this node runs commands as processes of the machine, without any isolation; to agree to that, set "
            f"spec.runtimeClassName to {RUNTIME_CLASS}"
        )
    if not container.command:
        raise Refused("the process runtime runs commands, not images; set command")
    probes = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    if any(probe is not None and probe.grpc is not None for probe in probes):
        raise Refused("the process runtime has no grpc probes; use exec, httpGet or tcpSocket")


def _volume(pod: Pod, mount: Mount, *, directories: Directories, lookup: Lookup) -> Path:
    volume = pod.volume(mount.name)
    if volume is None:
        raise Refused(f"volumeMount {mount.mount_path}: there is no volume {mount.name}; add it to spec.volumes")
    return located(pod, volume, directories=directories, lookup=lookup)


def _mounted(pod: Pod, mount: Mount, *, directories: Directories, lookup: Lookup, env: Mapping[str, str]) -> Mounted:
    if not mount.mount_path.strip("/"):
        raise Refused(f"volumeMount {mount.name}: a process keeps the root of the machine; mount at another path")
    beneath = expand(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
    directory = _volume(pod, mount, directories=directories, lookup=lookup)
    return Mounted(mount.mount_path, directory / within(beneath) if beneath else directory)


def _claims(pod: Pod, container: Container, *, directories: Directories, lookup: Lookup) -> tuple[Path, ...]:
    """The directories of the claims that a container mounts: those of its volumes that are not the pod's own."""
    mounted = {mount.name for mount in container.volume_mounts}
    return tuple(
        located(pod, volume, directories=directories, lookup=lookup)
        for volume in pod.spec.volumes
        if volume.name in mounted and volume.persistent_volume_claim is not None
    )


def _directories(pod: Pod, container: Container, mounts: tuple[Mounted, ...]) -> tuple[Path, ...]:
    """The directories of mounts, unless the files there are written, or the machine's own."""
    own = []
    for mount, placed in zip(container.volume_mounts, mounts, strict=True):
        volume = pod.volume(mount.name)
        if volume is not None and (volume.empty_dir is not None or volume.persistent_volume_claim is not None):
            own.append(placed.real)
    return tuple(own)
