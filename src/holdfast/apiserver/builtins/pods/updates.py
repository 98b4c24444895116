"""Validation of updates: which fields of an existing pod may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.resources import Object
from holdfast.meta.errors import FieldError
from holdfast.meta.schemas.walk import copied

FORBIDDEN: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def update_problems(pod: Object, old: Object) -> Problems:
    """The immutable fields that an update of a pod changes."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    if new_spec == old_spec:
        return
    for listed in ("containers", "initContainers"):
        if len(new_spec.get(listed) or ()) != len(old_spec.get(listed) or ()):
            yield FieldError.forbidden(f"spec.{listed}", "pod updates may not add or remove containers")
            return
    yield from _deadline(new_spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    yield from _tolerations(new_spec, old_spec)
    yield from _gates(new_spec, old_spec)
    changed = sorted(_differences(_fixed(new_spec, old_spec), old_spec, "spec"))
    if changed:
        yield FieldError.forbidden("spec", f"{FORBIDDEN}\nchanged: {', '.join(changed)}")


def _fixed(spec: Object, old: Object) -> Object:
    """The new spec with its mutable fields as in the old one."""
    fixed: Object = copied(spec)
    for listed in ("containers", "initContainers"):
        for container, before in zip(fixed.get(listed) or (), old.get(listed) or (), strict=True):
            if before.get("image"):
                container["image"] = before["image"]
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        fixed.pop(name, None)
        fixed |= {name: old[name]} if name in old else {}
    before = old.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before
    return fixed


def _deadline(new: int | None, old: int | None) -> Problems:
    path = "spec.activeDeadlineSeconds"
    if old is not None and new is None:
        yield FieldError.invalid(path, None, detail="must not update from a positive integer to nil value")
    elif old is not None and new is not None and new > old:
        yield FieldError.invalid(path, new, detail="must be less than or equal to previous value")


def _tolerations(new: Object, old: Object) -> Problems:
    kept = new.get("tolerations") or []
    if any(each not in kept for each in old.get("tolerations") or ()):
        yield FieldError.forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _gates(new: Object, old: Object) -> Problems:
    before = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    for gate in new.get("schedulingGates") or ():
        if gate.get("name") not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield FieldError.forbidden("spec.schedulingGates", detail)


def _differences(new: Any, old: Any, path: str) -> Iterator[str]:
    """The paths at which two values differ."""
    if isinstance(new, dict) and isinstance(old, dict):
        for name in new.keys() | old.keys():
            yield from _differences(new.get(name), old.get(name), f"{path}.{name}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, (one, other) in enumerate(zip(new, old, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif new != old:
        yield path
