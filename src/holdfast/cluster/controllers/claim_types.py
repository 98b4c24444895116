"""Storage as values: claims, volumes and classes, in the fields that bind them to each other.

Pure.  This module must not know who is bound to whom, nor when.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import FINISHED
from holdfast.client.resources import CLAIMS, Resource
from holdfast.meta.objects import Key
from holdfast.meta.quantities import Quantity

CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
PROVISIONER: Final = "holdfast.dev/directory"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"

STANDARD: Final = {
    "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
"""The class that a new cluster has, so that people can see and name it."""


# --- claims and volumes


class _Amounts(msgspec.Struct, frozen=True, gc=False):
    storage: str = "0"


class _Requests(msgspec.Struct, frozen=True, gc=False):
    requests: _Amounts = _Amounts()


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    resources: _Requests = _Requests()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: dict[str, Any] | None = None


class Claim(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    spec: _ClaimSpec = _ClaimSpec()

    @property
    def wants(self) -> Quantity:
        return Quantity.parse(self.spec.resources.requests.storage)


class _ClaimRef(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    capacity: _Amounts = _Amounts()
    access_modes: tuple[str, ...] = ()
    claim_ref: _ClaimRef | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"


class Volume(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    spec: _VolumeSpec = _VolumeSpec()

    @property
    def size(self) -> Quantity:
        return Quantity.parse(self.spec.capacity.storage)

    @property
    def ours(self) -> bool:
        return self.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER

    def reserved_for(self, claim: Meta) -> bool:
        """Whether it is kept for a claim: for this very one, or for whichever has its name."""
        ref = self.spec.claim_ref
        return (
            ref is not None
            and (ref.namespace, ref.name) == (claim.namespace, claim.name)
            and ref.uid in ("", claim.uid)
        )

    def belongs_to(self, claim: Meta) -> bool:
        ref = self.spec.claim_ref
        return ref is not None and ref.uid == claim.uid


class StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    provisioner: str = ""
    reclaim_policy: str = "Delete"


# --- the pods that use them


class _PodVolumeClaim(msgspec.Struct, frozen=True, rename="camel", gc=False):
    claim_name: str = ""


class _PodVolume(msgspec.Struct, frozen=True, rename="camel", gc=False):
    persistent_volume_claim: _PodVolumeClaim | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    volumes: tuple[_PodVolume, ...] = ()


class _PodStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


def runs(pod: Object) -> bool:
    """Whether a pod may have its volumes open."""
    read = pod.decode(_Pod)
    return bool(read.spec.node_name) and read.status.phase not in FINISHED


def used_claims(pod: Object) -> Iterator[Key]:
    """The claims that a pod names, there or not."""
    for volume in pod.decode(_Pod).spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield Key(pod.meta.namespace, volume.persistent_volume_claim.claim_name)


def reference(claim: Object) -> dict[str, str]:
    """How a volume names its claim."""
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "namespace": claim.meta.namespace,
        "name": claim.meta.name,
        "uid": claim.uid,
    }
