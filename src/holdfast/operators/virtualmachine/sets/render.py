"""The objects that the controller creates for a VMSet: VirtualMachines and ControllerRevisions.  Pure.

A `Template` holds everything that a machine is created from.  A revision is the hash of a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast.kinds import checks
from holdfast.kinds.virtrigaud import sets
from holdfast.meta import hashing
from holdfast.meta.names import LABEL_MAX, hash_suffix, make_name
from holdfast.meta.objects import owner_reference
from holdfast.meta.patches import merge
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import MACHINES

SET: Final = "virtrigaud.io/vmset"
REVISION: Final = "virtrigaud.io/vmset-revision"
"""The labels of the machines: the VMSet, and the revision."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation of a VMSet with the time of a restart: a new time is a new revision, to which machines reboot."""

_IN_PLACE: Final = ("classRef", "reconfigure")
"""The fields of a machine's spec that the controller changes in place: the class, and when it may restart for it."""

_GENERATED: Final = LABEL_MAX - 6


class Template(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the machines of a revision are created from, as a ControllerRevision keeps it.

    spec          the spec of the machines, with defaults
    metadata      their labels and annotations
    restarted_at  the time of the last restart; empty: none
    """

    spec: dict[str, Any]
    metadata: dict[str, dict[str, str]] = {}
    restarted_at: str = ""

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Template:
        template = wire["spec"]["template"]
        metadata = template.get("metadata") or {}
        return cls(
            spec=template["spec"],
            metadata={each: metadata[each] for each in ("labels", "annotations") if metadata.get(each)},
            restarted_at=(wire["metadata"].get("annotations") or {}).get(RESTARTED_AT, ""),
        ).defaulted()

    def defaulted(self) -> Template:
        """The same template with the defaults of this release."""
        filled = checks.defaulted(sets.KIND, {"spec": {"template": {"spec": self.spec}}})
        return msgspec.structs.replace(self, spec=filled["spec"]["template"]["spec"])

    @property
    def revision(self) -> str:
        """The hash; absent parts are left out, so that a part that a later release adds changes no revision."""
        return hashing.short_hash(msgspec.to_builtins(self))

    def reaches(self, other: Template) -> bool:
        """Whether a machine of this template can be changed to another one in place: by its class, or by a reboot."""
        return self.metadata == other.metadata and self._rest == other._rest

    @property
    def kept(self) -> str:
        """A hash of what cannot be changed in place."""
        return hashing.short_hash([self.metadata, self._rest])

    @property
    def _rest(self) -> dict[str, Any]:
        return {field: value for field, value in self.spec.items() if field not in _IN_PLACE}

    @property
    def changeable(self) -> dict[str, Any]:
        """The fields of the spec that can be changed in place."""
        return {field: value for field, value in self.spec.items() if field in _IN_PLACE}


def labels(name: str, revision: str = "") -> dict[str, str]:
    """The labels of the machines of one revision, or of all; a name that is too long for a label is shortened."""
    if len(name) > LABEL_MAX:
        mark = hash_suffix(name)
        name = f"{name[: LABEL_MAX - len(mark) - 1].rstrip('-.')}-{mark}"
    return {SET: name} | ({REVISION: revision} if revision else {})


def machine_name(name: str, ordinal: int) -> str:
    """The name of the machine with an ordinal."""
    return f"{name}-{ordinal}"


def machine(owner: Mapping[str, Any], template: Template, ordinal: int | None) -> dict[str, Any]:
    """One machine; without an ordinal it has a generated name, for a rehearsal."""
    metadata = owner["metadata"]
    name = metadata["name"]
    named = {"generateName": f"{name}-"} if ordinal is None else {"name": machine_name(name, ordinal)}
    made: dict[str, Any] = {
        **named,
        "namespace": metadata["namespace"],
        "labels": {**template.metadata.get("labels", {}), **labels(name, template.revision)},
        "ownerReferences": [owner_reference(owner)],
    }
    annotations = template.metadata.get("annotations")
    if annotations:
        made["annotations"] = dict(annotations)
    return {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": made, "spec": dict(template.spec)}


def change(before: Template, after: Template) -> dict[str, Any]:
    """The patch that changes a machine of one template in place to another one."""
    metadata: dict[str, Any] = {"labels": {REVISION: after.revision}}
    patch: dict[str, Any] = {"metadata": metadata}
    if before.restarted_at != after.restarted_at and after.restarted_at:
        metadata["annotations"] = {names.REBOOT: after.restarted_at}
    changed = merge.diff(before.changeable, after.changeable)
    return {**patch, "spec": changed} if changed else patch


def controller_revision(owner: Mapping[str, Any], template: Template, *, number: int) -> dict[str, Any]:
    """The ControllerRevision of a template."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            # A generated name does not collide with one that an earlier VMSet of this name left behind.
            "generateName": f"{make_name(metadata['name'], template.revision, max=_GENERATED)}-",
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"], template.revision),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": msgspec.to_builtins(template),
        "revision": number,
    }
