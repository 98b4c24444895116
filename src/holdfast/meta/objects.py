"""How objects are named and who owns them: GVK, keys, references, owner references.

Objects on the wire are plain mappings; this module reads the few fields that all of them share. It must not know
any kind, nor whether a kind is namespaced: a key without a namespace simply has an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.meta.errors import MalformedError


class ObjectError(MalformedError):
    """A text or mapping that does not name an object."""


class GVK(msgspec.Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """Group, version and kind; the group of the core API is empty."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GVK:
        """Read ``apiVersion`` (``v1``, ``apps/v1``) and ``kind``."""
        group, slash, version = api_version.rpartition("/")
        if not version or "/" in group or (slash and not group):
            raise ObjectError(f"apiVersion: {api_version!r} is not a version; write 'v1' or 'apps/v1'")
        if not kind:
            raise ObjectError("kind: is empty; write a kind such as 'Pod'")
        return cls(group, version, kind)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GVK:
        return cls.parse(_text(obj, "apiVersion"), _text(obj, "kind"))

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """``Workload.cloudless.io``, or ``Pod``: the kind regardless of version, as error messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class Key(msgspec.Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """Namespace and name: one object among those of its kind."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Key:
        """Read ``namespace/name``, or ``name`` alone where the kind is cluster scoped."""
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ObjectError(f"{text!r} is not a key; write 'namespace/name', or 'name' if it is cluster scoped")
        return cls(namespace, name)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Key:
        metadata = _metadata(obj)
        return cls(_text(metadata, "namespace", at="metadata."), _required(metadata, "name", at="metadata."))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Ref(msgspec.Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """One object among all: its kind and its key."""

    gvk: GVK
    key: Key

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Ref:
        return cls(GVK.of(obj), Key.of(obj))

    def __str__(self) -> str:
        return f"{self.gvk.group_kind} {self.key}"


def owner_reference(
    owner: Mapping[str, Any], *, controller: bool = True, block_owner_deletion: bool = True
) -> dict[str, Any]:
    """The entry by which a child names `owner` in ``metadata.ownerReferences``.

    The owner must exist already: it is its UID that the garbage collector goes by. False flags are left out, as
    they mean the same absent and would otherwise make two spellings of one reference.
    """
    gvk = GVK.of(owner)
    metadata = _metadata(owner)
    reference: dict[str, Any] = {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "name": _required(metadata, "name", at="metadata."),
        "uid": _required(metadata, "uid", at="metadata."),
    }
    if controller:
        reference["controller"] = True
    if block_owner_deletion:
        reference["blockOwnerDeletion"] = True
    return reference


def controller_of(obj: Mapping[str, Any]) -> dict[str, Any] | None:
    """The one owner reference that manages `obj`, if any does."""
    return next((reference for reference in _owner_references(obj) if reference.get("controller") is True), None)


def _owner_references(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _metadata(obj).get("ownerReferences") or []


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _text(fields: Mapping[str, Any], field: str, *, at: str = "") -> str:
    value = fields.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ObjectError(f"{at}{field}: must be a string, not {value!r}")
    return value


def _required(fields: Mapping[str, Any], field: str, *, at: str) -> str:
    value = _text(fields, field, at=at)
    if not value:
        hint = "; it is given by the API server, so create the object first" if field == "uid" else ""
        raise ObjectError(f"{at}{field}: is missing{hint}")
    return value
