"""The manifest of an object on its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.views.pages.sections import Wire

_DROPPED: Final = frozenset({"managedFields"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def presentable(wire: Wire) -> dict[str, Any]:
    """An object as it is shown: without what servers keep for themselves, and without the values of a Secret."""
    shown = dict(wire)
    meta = {name: value for name, value in (wire.get("metadata") or {}).items() if name not in _DROPPED}
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name != _LAST_APPLIED}
    meta.pop("annotations", None)
    shown["metadata"] = {**meta, "annotations": annotations} if annotations else meta
    if wire.get("kind") == "Secret":
        for field in ("data", "stringData"):
            if isinstance(wire.get(field), Mapping):
                shown[field] = {name: _hidden(value) for name, value in wire[field].items()}
    return shown


def _hidden(value: Any) -> str:
    return f"<hidden, {len(str(value)):,} characters>"
