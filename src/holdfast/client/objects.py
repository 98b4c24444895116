"""Objects as they came: bytes, with the metadata decoded.

Most of what a process holds is never read in full, so an object stays the bytes
that the server sent.  Its metadata is decoded once, because selectors, indexes
and owners need it; a reader decodes the rest, into as small a type as it needs.  No
reader can change what another one sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.client.resources import Resource
from holdfast.meta.objects import Key, Ref

T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The metadata that all objects share."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages the object, if any does."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Undecodable(msgspec.ValidationError):
    """An object is stored in a form that its type does not allow; the message ends with the JSON path."""

    def __init__(self, ref: Ref, problem: str) -> None:
        super().__init__(f"{ref}: {problem}")
        self.ref = ref
        self.problem = problem


class _Head(msgspec.Struct, gc=False):
    metadata: Meta = Meta()


_head = msgspec.json.Decoder(_Head)

_eager: dict[Resource, msgspec.json.Decoder[Any]] = {}


def decode_at_once(resource: Resource, type: type[msgspec.Struct]) -> None:
    """Have objects of a resource decoded as a frozen type when they come, because every watcher of it reads them so.

    The type has the metadata of all objects (`Meta`), so that an object is read once and not twice.
    """
    _eager[resource] = decoder(type)


class Object:
    """One object of a resource at one version; immutable."""

    __slots__ = ("_derived", "_read", "meta", "raw", "resource")

    def __init__(self, resource: Resource, raw: bytes, meta: Meta | None = None) -> None:
        self.resource = resource
        self.raw = raw
        self._read: tuple[Any, ...] = ()
        self.meta = self._decoded_meta() if meta is None else meta
        self._derived: dict[Callable[[Object], Any], Any] | None = None

    def _decoded_meta(self) -> Meta:
        eager = _eager.get(self.resource)
        if eager is not None:
            try:
                decoded = eager.decode(self.raw)
            except msgspec.ValidationError:
                pass  # its metadata may be readable all the same
            else:
                self._read = (decoded,)
                meta: Meta = decoded.metadata
                return meta
        return _head.decode(self.raw).metadata

    @classmethod
    def of(cls, resource: Resource, wire: dict[str, Any]) -> Object:
        """From a decoded object, as tests and builders write it."""
        return cls(resource, msgspec.json.encode(wire))

    @property
    def key(self) -> Key:
        return Key(self.meta.namespace, self.meta.name)

    @property
    def ref(self) -> Ref:
        return Ref(self.resource.gvk, self.key)

    @property
    def uid(self) -> str:
        return self.meta.uid

    @property
    def version(self) -> str:
        return self.meta.resource_version

    @property
    def deleting(self) -> bool:
        return self.meta.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages it, if any does."""
        return self.meta.controller

    def is_controlled_by(self, uid: str) -> bool:
        """Whether the object with this UID manages it."""
        controller = self.controller
        return controller is not None and controller.uid == uid

    def decode(self, type: type[T]) -> T:
        """The object, or as much of it as `type` declares.

        A frozen type is decoded once: a controller reads all its pods again whenever one of them changes, and
        several controllers read one object, each as a type of its own.  Raises `Undecodable`.
        """
        for read in self._read:
            if read.__class__ is type:
                return read
        try:
            decoded = decoder(type).decode(self.raw)
        except msgspec.ValidationError as error:
            raise Undecodable(self.ref, str(error)) from None
        if isinstance(decoded, msgspec.Struct) and decoded.__struct_config__.frozen:
            self._read = (*self._read, decoded)
        return decoded

    def derive(self, function: Callable[[Object], T]) -> T:
        """What a pure function makes of the object; it is called once, as `decode` decodes once."""
        derived = self._derived
        if derived is None:
            derived = self._derived = {}
        elif function in derived:
            found: T = derived[function]
            return found
        made = derived[function] = function(self)
        return made

    def head(self) -> dict[str, Any]:
        """The object as far as owner references are made from it, without decoding the rest."""
        meta = self.meta
        metadata = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        if meta.deletion_timestamp is not None:
            metadata["deletionTimestamp"] = meta.deletion_timestamp
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": metadata}

    def wire(self) -> dict[str, Any]:
        """The whole object as a mapping of the caller's own, with its kind, which items of lists leave out."""
        decoded: dict[str, Any] = msgspec.json.decode(self.raw)
        if "kind" not in decoded:
            decoded = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **decoded}
        return decoded

    def __repr__(self) -> str:
        return f"<{self.ref} at {self.version}>"


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(type: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, made once."""
    made = _decoders.get(type)
    if made is None:
        made = _decoders[type] = msgspec.json.Decoder(type)
    return made
