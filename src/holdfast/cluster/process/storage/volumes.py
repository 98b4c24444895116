"""Volumes: where each one is, and which files those have that are made of other objects.

Pure: objects are looked up, directories are named and contents are computed, and
nothing is written.  What a process cannot be given (a block device, storage of
another system) is refused with what to use instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, TypeAlias

from holdfast.client.resources import CLAIMS
from holdfast.cluster.process.lifecycle.pods import (
    ConfigMap,
    ConfigMapSource,
    DownwardSource,
    Item,
    NameRef,
    Pod,
    Projection,
    Secret,
    SecretSource,
    TokenSource,
    Volume,
)
from holdfast.cluster.process.running.env import Lookup, Refused, Surroundings, amount, config_map, field, secret
from holdfast.cluster.process.storage.directories import Directories
from holdfast.meta.objects import Key

_USUAL_MODE: Final = 0o644
_OWNER_ONLY: Final = 0o700
"""The bits that a secret's file may have: only its owner reads it, whatever mode was asked for."""

_KINDS: Final = "emptyDir, configMap, secret, downwardAPI, projected, persistentVolumeClaim and hostPath"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    data: bytes
    mode: int

    def __repr__(self) -> str:
        return f"File({len(self.data)} bytes, {self.mode:o})"


Contents: TypeAlias = Mapping[str, File]
"""Files by their paths within a volume."""


def located(pod: Pod, volume: Volume, *, directories: Directories, lookup: Lookup) -> Path:
    """The directory of a volume; refused, if there can be none."""
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
        claim = lookup(CLAIMS, Key(pod.metadata.namespace, name))
        if claim is None:
            raise Refused(f'volume {volume.name}: persistentvolumeclaim "{name}" not found')
        return directories.claim(pod.metadata.namespace, claim.uid)
    if volume.host_path is not None:
        if not directories.host_paths:
            raise Refused(
                f"volume {volume.name}: hostPath is not allowed on this node, because nothing would keep the process "
                "within it; use an emptyDir, or name the path in the command"
            )
        return Path(volume.host_path.path)
    made = (volume.empty_dir, volume.config_map, volume.secret, volume.downward_api, volume.projected)
    if all(source is None for source in made):
        raise Refused(f"volume {volume.name}: the process runtime has {_KINDS}; this volume is none of these")
    return directories.volume(pod.uid, volume.name)


Tokens: TypeAlias = Mapping[TokenSource, str]
"""Tokens of service accounts, by what asks for them."""


def contents(
    pod: Pod, volume: Volume, *, lookup: Lookup, around: Surroundings, tokens: Tokens = MappingProxyType({})
) -> Contents | None:
    """The files of a volume that is made of other objects; None where the files are the containers' own."""
    if volume.config_map is not None:
        return dict(_config_map(pod, volume.config_map, lookup, mode=_USUAL_MODE))
    if volume.secret is not None:
        return dict(_secret(pod, volume.secret, lookup, mode=_USUAL_MODE))
    if volume.downward_api is not None:
        return dict(_downward(pod, volume.downward_api, around, mode=_USUAL_MODE))
    if volume.projected is not None:
        mode = volume.projected.default_mode or _USUAL_MODE
        return {
            path: file
            for source in volume.projected.sources
            for path, file in _projected(
                pod, source, lookup, around=around, mode=mode, volume=volume.name, tokens=tokens
            )
        }
    return None


def _projected(
    pod: Pod, source: Projection, lookup: Lookup, *, around: Surroundings, mode: int, volume: str, tokens: Tokens
) -> Iterator[tuple[str, File]]:
    if source.config_map is not None:
        return _config_map(pod, source.config_map, lookup, mode=mode)
    if source.secret is not None:
        return _secret(pod, source.secret, lookup, mode=mode)
    if source.downward_api is not None:
        return _downward(pod, source.downward_api, around, mode=mode)
    if source.service_account_token is not None:
        return _token(source.service_account_token, tokens, mode=mode)
    raise Refused(
        f"volume {volume}: the process runtime projects serviceAccountToken, configMap, secret and downwardAPI; "
        "this source is none of these"
    )


def _token(source: TokenSource, tokens: Tokens, *, mode: int) -> Iterator[tuple[str, File]]:
    if source not in tokens:
        raise Refused("the token of the service account is not there yet")
    yield within(source.path), File(tokens[source].encode(), mode & _OWNER_ONLY)


def _config_map(pod: Pod, source: ConfigMapSource, lookup: Lookup, *, mode: int) -> Iterator[tuple[str, File]]:
    found = config_map(pod, NameRef(source.name, source.optional), lookup)
    return _chosen(found, source, name=source.name, mode=source.default_mode or mode)


def _secret(pod: Pod, source: SecretSource, lookup: Lookup, *, mode: int) -> Iterator[tuple[str, File]]:
    name = source.secret_name or source.name
    found = secret(pod, NameRef(name, source.optional), lookup)
    for path, file in _chosen(found, source, name=name, mode=source.default_mode or mode):
        yield path, File(file.data, file.mode & _OWNER_ONLY)


def _chosen(
    found: ConfigMap | Secret | None, source: ConfigMapSource | SecretSource, *, name: str, mode: int
) -> Iterator[tuple[str, File]]:
    if found is None:
        return
    entries = found.entries
    for item in source.items or tuple(Item(key, key) for key in entries):
        data = entries.get(item.key)
        if data is not None:
            yield within(item.path), File(data, item.mode or mode)
        elif not source.optional:
            raise Refused(f"{name} has no key {item.key}, of which a volume is to have a file; add it to the object")


def _downward(pod: Pod, source: DownwardSource, around: Surroundings, *, mode: int) -> Iterator[tuple[str, File]]:
    for item in source.items:
        if item.field_ref is not None:
            text = field(pod, item.field_ref, around)
        elif item.resource_field_ref is not None:
            text = amount(pod, item.resource_field_ref, around, own=None)
        else:
            raise Refused(f"downwardAPI {item.path}: write a fieldRef or a resourceFieldRef")
        yield within(item.path), File(text.encode(), item.mode or source.default_mode or mode)


def within(path: str) -> str:
    """A path that cannot leave the volume it is of."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part.startswith("..") for part in parts):
        raise Refused(f"{path!r} is not a path within a volume; it must be relative, and no part may begin with '..'")
    return str(PurePosixPath(path))
