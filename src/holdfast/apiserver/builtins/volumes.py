"""PersistentVolume and PersistentVolumeClaim."""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import AGE, NAME, UNSET, column, field, get, joined
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta.errors import FieldError

ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
CLAIM_FORBIDDEN: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_NOT_SOURCES: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def _access_modes(modes: list[str] | None, path: str) -> Problems:
    if not modes:
        yield FieldError.required(path, "at least 1 access mode is required")
    for mode in modes or ():
        yield from checks.chosen(mode, path, among=ACCESS_MODES)


def claim_spec_problems(spec: Object, path: str) -> Problems:
    """All problems of a claim spec, in a claim or in a template."""
    yield from _access_modes(spec.get("accessModes"), f"{path}.accessModes")
    storage = get(spec, "resources", "requests", "storage")
    at = f"{path}.resources[storage]"
    if storage is None:
        yield FieldError.required(at)
    elif checks.quantity(storage).nanos <= 0:
        yield FieldError.invalid(at, storage, detail=checks.POSITIVE)
    yield from checks.label_selector(spec.get("selector"), f"{path}.selector")
    if spec.get("storageClassName"):
        yield from checks.named(spec["storageClassName"], f"{path}.storageClassName")
    yield from checks.maybe_chosen(spec.get("volumeMode"), f"{path}.volumeMode", among=("Block", "Filesystem"))


def _validate_claim(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(claim_spec_problems(obj["spec"], "spec"))
    return problems if old is None else [*problems, *_claim_changes(obj["spec"], old)]


def _claim_changes(spec: Object, old: Object) -> Problems:
    """A claim may be bound once, get a class if it has none, grow, and change its VolumeAttributesClass."""
    before = old["spec"]
    bound = get(old, "status", "phase") == "Bound"
    mutable = {"resources", "volumeAttributesClassName"}
    mutable |= {"volumeName"} if not before.get("volumeName") else set()
    mutable |= {"storageClassName"} if before.get("storageClassName") is None else set()
    if {k: v for k, v in spec.items() if k not in mutable} != {k: v for k, v in before.items() if k not in mutable}:
        yield FieldError.forbidden("spec", CLAIM_FORBIDDEN)
        return
    asked, had = (get(each, "resources", "requests", "storage") for each in (spec, before))
    if asked != had and not bound:
        yield FieldError.forbidden("spec", CLAIM_FORBIDDEN)
    elif asked and had and checks.quantity(asked) < checks.quantity(had):
        detail = "field can not be less than status.capacity"
        yield FieldError.forbidden("spec.resources.requests.storage", detail)


def _validate_volume(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_volume_problems(obj["spec"]))
    if old is not None:
        for name in sorted({*obj["spec"], *old["spec"]} - _NOT_SOURCES):
            if obj["spec"].get(name) != old["spec"].get(name):
                detail = "spec.persistentvolumesource is immutable after creation"
                problems.append(FieldError.forbidden("spec.persistentvolumesource", detail))
        problems += checks.unchanged(
            obj["spec"].get("volumeMode"), old["spec"].get("volumeMode"), path="spec.volumeMode"
        )
    return problems


def _volume_problems(spec: Object) -> Problems:
    yield from _access_modes(spec.get("accessModes"), "spec.accessModes")
    storage = get(spec, "capacity", "storage")
    if storage is None:
        yield FieldError.required("spec.capacity")
    elif checks.quantity(storage).nanos <= 0:
        yield FieldError.invalid("spec.capacity[storage]", storage, detail=checks.POSITIVE)
    sources = [name for name in spec if name not in _NOT_SOURCES]
    if not sources:
        yield FieldError.required("spec", "must specify a volume type")
    for extra in sources[1:]:
        yield FieldError.forbidden(f"spec.{extra}", "may not specify more than 1 volume type")
    if "local" in spec and not get(spec, "nodeAffinity", "required"):
        yield FieldError.required("spec.nodeAffinity", "Local volume requires node affinity")
    among = ("Delete", "Recycle", "Retain")
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from checks.maybe_chosen(policy, "spec.persistentVolumeReclaimPolicy", among=among)


def _modes(modes: list[str]) -> str:
    return joined(ACCESS_MODES.get(mode, mode) for mode in modes)


def _phase(obj: Object) -> str:
    phase: str = get(obj, "status", "phase", default="")
    return "Terminating" if get(obj, "metadata", "deletionTimestamp") else phase


def _claim_of(obj: Object) -> str:
    claim = get(obj, "spec", "claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


def _if_bound(obj: Object, *path: str) -> object:
    return get(obj, *path, default="") if get(obj, "spec", "volumeName") else ""


def _class_columns() -> tuple[Column, ...]:
    return (
        field("StorageClass", "spec", "storageClassName"),
        field("VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET),
    )


CLAIM: Final = builtin(
    "PersistentVolumeClaim",
    short_names=("pvc",),
    status=True,
    generation=False,
    columns=(
        NAME,
        column("Status", _phase),
        field("Volume", "spec", "volumeName"),
        column("Capacity", lambda obj: _if_bound(obj, "status", "capacity", "storage")),
        column("Access Modes", lambda obj: _modes(get(obj, "status", "accessModes", default=[]))),
        *_class_columns(),
        AGE,
        field("VolumeMode", "spec", "volumeMode", wide=True, default=UNSET),
    ),
    validate=_validate_claim,
)
VOLUME: Final = builtin(
    "PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    status=True,
    generation=False,
    columns=(
        NAME,
        field("Capacity", "spec", "capacity", "storage"),
        column("Access Modes", lambda obj: _modes(get(obj, "spec", "accessModes", default=[]))),
        field("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
        column("Status", _phase),
        column("Claim", _claim_of),
        *_class_columns(),
        field("Reason", "status", "reason"),
        AGE,
        field("VolumeMode", "spec", "volumeMode", wide=True, default=UNSET),
    ),
    validate=_validate_volume,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (VOLUME, CLAIM)
