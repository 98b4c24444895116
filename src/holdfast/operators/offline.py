"""Planning a manifest without a cluster: settings in place of its fields, and the rollout that it then describes.

Pure.  This module must not know any kind, nor where settings come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.operators.rollouts import OfflineRollout, RolloutKind


def rollout(kind: RolloutKind, manifest: Any, settings: Mapping[str, Any]) -> OfflineRollout:
    """The rollout of a manifest with these settings in place of its own; raises `kinds.DocumentError`.

    Another strategy leaves out the fields of the one before.
    """
    assert kind.offline is not None, "only kinds that can be planned offline are"
    changed = _with_fields(manifest, {kind.settings[each]: value for each, value in settings.items()})
    if "strategy" in settings:
        other = (path for path, owner in kind.offline.only_with.items() if owner != settings["strategy"])
        changed = _without_fields(changed, other)
    return kind.offline.rollout(changed)


def _with_fields(value: Any, fields: Mapping[str, Any]) -> Any:
    """``value`` with fields set by JSON path; a parent that is no object is left for the schema to refuse."""
    for path, setting in fields.items():
        value = _set(value, path.split("."), setting)
    return value


def _set(value: Any, path: list[str], setting: Any) -> Any:
    if not path:
        return setting
    if value is None:
        value = {}
    return {**value, path[0]: _set(value.get(path[0]), path[1:], setting)} if isinstance(value, dict) else value


def _without_fields(value: Any, paths: Iterable[str]) -> Any:
    for path in paths:
        value = _removed(value, path.split("."))
    return value


def _removed(value: Any, path: list[str]) -> Any:
    first, *rest = path
    if not isinstance(value, dict) or first not in value:
        return value
    if rest:
        return {**value, first: _removed(value[first], rest)}
    return {field: held for field, held in value.items() if field != first}
