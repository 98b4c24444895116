"""StorageClass, VolumeAttributesClass, CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment."""

from __future__ import annotations

from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import AGE, CREATED_AT, NAME, UNSET, column, field, get, joined
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta import names
from holdfast.meta.errors import FieldError

GROUP: Final = "storage.k8s.io"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def _validate_class(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_class_problems(obj), *(_class_changes(obj, old) if old is not None else ())]


def _class_problems(obj: Object) -> Problems:
    yield from checks.required(obj.get("provisioner"), "provisioner")
    yield from checks.maybe_chosen(obj.get("reclaimPolicy"), "reclaimPolicy", among=("Delete", "Retain"))
    among = ("Immediate", "WaitForFirstConsumer")
    yield from checks.chosen(obj.get("volumeBindingMode"), "volumeBindingMode", among=among)


def _class_changes(obj: Object, old: Object) -> Problems:
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if obj.get(name) != old.get(name):
            yield FieldError.forbidden(name, f"updates to {name} are forbidden.")
    yield from checks.unchanged(obj.get("volumeBindingMode"), old.get("volumeBindingMode"), path="volumeBindingMode")


def _marked_name(obj: Object) -> str:
    """The name of a StorageClass, with a mark for the default class."""
    chosen = get(obj, "metadata", "annotations", DEFAULT_CLASS) == "true"
    return f"{obj['metadata']['name']} (default)" if chosen else str(obj["metadata"]["name"])


def _validate_attachment(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    problems = [
        *checks.required(spec.get("attacher"), "spec.attacher"),
        *checks.required(spec.get("nodeName"), "spec.nodeName"),
    ]
    if not spec.get("source"):
        problems.append(
            FieldError.required("spec.source", "must specify one of inlineVolumeSpec and persistentVolumeName")
        )
    if old is not None:
        problems += checks.unchanged(spec, old["spec"], path="spec")
    return problems


def _validate_attributes(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_attribute_problems(obj), *(_attribute_changes(obj, old) if old is not None else ())]


def _attribute_problems(obj: Object) -> Problems:
    yield from checks.named((obj.get("driverName") or "").lower(), "driverName", rule=names.label_key)
    yield from checks.required(obj.get("parameters"), "parameters", detail="must contain at least one key/value pair")


def _attribute_changes(obj: Object, old: Object) -> Problems:
    for name in ("driverName", "parameters"):
        if obj.get(name) != old.get(name):
            yield FieldError.forbidden(name, f"updates to {name} are forbidden.")


def _validate_capacity(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_capacity_problems(obj), *(_capacity_changes(obj, old) if old is not None else ())]


def _capacity_problems(obj: Object) -> Problems:
    yield from checks.named(obj.get("storageClassName"), "storageClassName")
    yield from checks.label_selector(obj.get("nodeTopology"), "nodeTopology")
    for name in ("capacity", "maximumVolumeSize"):
        if name in obj and checks.quantity(obj[name]) < checks.quantity("0"):
            yield FieldError.invalid(name, obj[name], detail=checks.NOT_NEGATIVE)


def _capacity_changes(obj: Object, old: Object) -> Problems:
    for name in ("nodeTopology", "storageClassName"):
        yield from checks.unchanged(obj.get(name), old.get(name), path=name)


def _flag(name: str, *path: str) -> Column:
    return column(name, lambda obj: bool(get(obj, *path)), type="boolean")


def _audiences(obj: Object) -> str:
    return joined((each.get("audience", "") for each in get(obj, "spec", "tokenRequests", default=())), otherwise=UNSET)


STORAGE_CLASS: Final = builtin(
    "StorageClass",
    group=GROUP,
    plural="storageclasses",
    namespaced=False,
    short_names=("sc",),
    generation=False,
    columns=(
        Column(name="Name", value=lambda obj, now: _marked_name(obj), format="name"),
        field("Provisioner", "provisioner"),
        field("ReclaimPolicy", "reclaimPolicy"),
        field("VolumeBindingMode", "volumeBindingMode"),
        _flag("AllowVolumeExpansion", "allowVolumeExpansion"),
        AGE,
    ),
    validate=_validate_class,
)
CSI_DRIVER: Final = builtin(
    "CSIDriver",
    group=GROUP,
    namespaced=False,
    generation=False,
    columns=(
        NAME,
        _flag("AttachRequired", "spec", "attachRequired"),
        _flag("PodInfoOnMount", "spec", "podInfoOnMount"),
        _flag("StorageCapacity", "spec", "storageCapacity"),
        column("TokenRequests", _audiences),
        _flag("RequiresRepublish", "spec", "requiresRepublish"),
        column("Modes", lambda obj: joined(get(obj, "spec", "volumeLifecycleModes", default=()))),
        AGE,
    ),
    unconditional=False,
)
CSI_NODE: Final = builtin(
    "CSINode",
    group=GROUP,
    namespaced=False,
    generation=False,
    columns=(NAME, column("Drivers", lambda obj: len(get(obj, "spec", "drivers", default=())), type="integer"), AGE),
    unconditional=False,
)
CSI_STORAGE_CAPACITY: Final = builtin(
    "CSIStorageCapacity",
    group=GROUP,
    plural="csistoragecapacities",
    generation=False,
    columns=(NAME, CREATED_AT),
    validate=_validate_capacity,
    unconditional=False,
)
VOLUME_ATTRIBUTES_CLASS: Final = builtin(
    "VolumeAttributesClass",
    group=GROUP,
    plural="volumeattributesclasses",
    namespaced=False,
    short_names=("vac",),
    generation=False,
    columns=(NAME, field("DriverName", "driverName"), AGE),
    validate=_validate_attributes,
)
VOLUME_ATTACHMENT: Final = builtin(
    "VolumeAttachment",
    group=GROUP,
    namespaced=False,
    status=True,
    generation=False,
    columns=(
        NAME,
        field("Attacher", "spec", "attacher"),
        field("PV", "spec", "source", "persistentVolumeName"),
        field("Node", "spec", "nodeName"),
        _flag("Attached", "status", "attached"),
        AGE,
    ),
    validate=_validate_attachment,
    unconditional=False,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
)
