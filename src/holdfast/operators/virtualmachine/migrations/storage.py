"""The storage that a disk passes through on its way: which claim, at which URL, and the transfers of it.  Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.kinds.virtrigaud.migrations import MigrationStorage, NFSStorageConfig, S3StorageConfig, VMMigration
from holdfast.kinds.virtrigaud.providers import Provider, ProviderStatus, ReportedCapabilities
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.secrets import Sealed
from holdfast.providers.contract import ProviderError, Transfer
from holdfast.providers.staging import HostPolicy

PVC: Final = "pvc"
NFS: Final = "nfs"
NATIVE: Final = "qcow2"
_KEYS: Final = ("accessKeyID", "secretAccessKey", "sessionToken")


def settings(migration: VMMigration) -> MigrationStorage:
    return migration.spec.storage or MigrationStorage()


def backend(migration: VMMigration) -> str:
    return settings(migration).type or PVC


# --- claims


def claim_name(migration: VMMigration, name: str, source: Provider | None, target: Provider | None) -> str:
    """The claim for the disk: the one that the spec names, one that both providers have mounted, or a temporary one."""
    given = settings(migration).pvc
    if given is not None and given.name:
        return given.name
    shared = set(mounted(source) or ()) & set(mounted(target) or ())
    return min(shared) if shared else temporary(name)


def temporary(name: str) -> str:
    return f"{name}-storage"


def mounted(provider: Provider | None) -> tuple[str, ...] | None:
    """The claims that the process of a provider has mounted; None where that is not known."""
    status = (provider.status if provider else None) or ProviderStatus()
    return status.mounted_claims


def is_mounted_on_demand(provider: Provider | None, backend: str) -> bool:
    """Whether the operator mounts such a storage for a provider when a migration needs it."""
    status = (provider.status if provider else None) or ProviderStatus()
    return {PVC: status.mounted_claims, NFS: status.mounted_exports}.get(backend) is not None


def lacks(provider: Provider, claim: str) -> bool:
    """Whether a provider is known not to have mounted a claim."""
    found = mounted(provider)
    return found is not None and claim not in found


def nfs_export(server: str, path: str) -> str:
    """An export of an NFS server, as it is usually written: ``files.example.com:/srv/vms``."""
    return f"{server}:/{path.strip('/')}"


def export_of(migration: VMMigration) -> str | None:
    """The NFS export that the disk passes through, if it does."""
    given = settings(migration).nfs
    return None if given is None else nfs_export(given.server, given.export)


def lacks_export(provider: Provider, export: str) -> bool:
    """Whether a process for which exports are mounted lacks one, or has not said yet that it can use it."""
    status = provider.status or ProviderStatus()
    able = status.reported_capabilities or ReportedCapabilities()
    if status.mounted_exports is None:
        return False
    return export not in status.mounted_exports or NFS not in able.supported_export_backends


def claim(migration: VMMigration, *, key: Key, uid: str, size_gib: int) -> dict[str, Any]:
    """The temporary claim: with the size of the spec, or one in which the disk has room."""
    given = settings(migration).pvc
    spec: dict[str, Any] = {
        "accessModes": [(given.access_mode if given else None) or "ReadWriteMany"],
        "resources": {"requests": {"storage": (given.size if given else None) or f"{size_gib}Gi"}},
    }
    if given is not None and given.storage_class_name:
        spec["storageClassName"] = given.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": temporary(key.name),
            "namespace": key.namespace,
            "labels": {names.STORAGE: names.STORAGE_VALUE},
            "annotations": {names.MIGRATION: key.name, names.MIGRATION_UID: uid},
        },
        "spec": spec,
    }


# --- formats and modes


def format_of(
    migration: VMMigration, exports: ReportedCapabilities, imports: ReportedCapabilities, native: str
) -> str | None:
    """The format in the storage: that of the spec, or of the disk itself; None if the two providers share none."""
    wanted = migration.spec.options.disk_format if migration.spec.options else None
    both = [
        each
        for each in (wanted, native, NATIVE, *exports.supported_export_formats)
        if each
        and each in (exports.supported_export_formats or (each,))
        and each in (imports.supported_import_formats or (each,))
    ]
    if wanted and wanted not in both:
        return None
    return both[0] if both else None


def mode(migration: VMMigration, exports: ReportedCapabilities, imports: ReportedCapabilities) -> str | None:
    """How the bytes travel; None if it is to be directly and a provider cannot."""
    asked = settings(migration).transfer_mode or "auto"
    direct = all("direct" in each.supported_transfer_modes for each in (exports, imports))
    if asked == "direct":
        return "direct" if direct else None
    return "direct" if asked == "auto" and direct and backend(migration) == NFS else "relay"


# --- transfers


def url(migration: VMMigration, *, namespace: str, name: str, claim: str, format: str) -> str:
    """Where the disk is stored; never with credentials."""
    spec = settings(migration)
    if spec.s3 is not None:
        prefix = (spec.s3.prefix or "").strip("/")
        key = f"{prefix}/" if prefix else ""
        return f"s3://{spec.s3.bucket}/{key}vmmigrations/{namespace}/{name}/export.{format}"
    if spec.nfs is not None:
        folders = [part for text in (spec.nfs.export, spec.nfs.path or "") for part in text.split("/") if part]
        return "/".join((f"nfs://{spec.nfs.server}", *folders, f"vmmigrations-{namespace}-{name}-export.{format}"))
    return f"pvc://{claim}/vmmigrations/{namespace}/{name}/export.{format}"


def staged_format(url: str) -> str:
    return url.rpartition(".")[2]


def transfer(migration: VMMigration, stored: str, credentials: Sealed | None) -> Transfer:
    """What a transfer to or from the storage has in both directions."""
    spec = settings(migration)
    options: dict[str, Any] = {}
    if spec.s3 is not None:
        options = _s3_options(spec.s3)
    elif spec.nfs is not None:
        options = _nfs_options(spec.nfs)
    return Transfer(
        url=stored,
        format=staged_format(stored),
        backend=backend(migration),
        credentials=_credentials(credentials) if spec.s3 is not None else {},
        options_json=msgspec.json.encode(options).decode() if options else "",
    )


def _s3_options(spec: S3StorageConfig) -> dict[str, Any]:
    return {"endpoint": spec.endpoint or "", "region": spec.region or "", "usePathStyle": bool(spec.use_path_style)}


def _nfs_options(spec: NFSStorageConfig) -> dict[str, Any]:
    given = {"server": spec.server, "export": spec.export, "path": spec.path, "uid": spec.uid, "gid": spec.gid}
    return {name: value for name, value in given.items() if value is not None}


def _credentials(sealed: Sealed | None) -> dict[str, str]:
    found = {key: sealed.get(key) for key in _KEYS} if sealed else {}
    return {key: value.decode(errors="replace") for key, value in found.items() if value}


def missing_keys(sealed: Sealed) -> tuple[str, ...]:
    """The keys that a Secret for S3 lacks."""
    return tuple(key for key in _KEYS[:2] if not sealed.get(key))


def forbidden(endpoint: str) -> str:
    """Why providers do not connect to an endpoint; empty if they may."""
    try:
        HostPolicy().check(endpoint)
    except ProviderError as error:
        return error.message
    return ""
