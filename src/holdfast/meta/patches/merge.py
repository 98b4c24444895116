"""JSON Merge Patch (RFC 7386): apply one, and make one from two or three documents.

A merge patch is a document in which null means "remove" and a list means "this list instead". Values are never
changed in place; results share what was not touched. `create_three_way` is what `kubectl apply` computes for custom
resources: it removes only what the user once applied and no longer wants, and leaves other people's fields alone.

This module knows JSON values. It must not know schemas: lists are atoms here (see `strategic` for the other way).
"""

from __future__ import annotations

from typing import Any

from holdfast.meta.patches.json import json_equal

__all__ = ["apply", "create_three_way", "diff"]


def apply(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged in.

    >>> apply({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply(merged.get(key), value)
    return merged


def diff(before: Any, after: Any) -> Any:
    """Return the smallest patch that leads from `before` to `after`.

    A merge patch cannot set a member to null: null members of `after` are taken as absent.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        return create_three_way(before, after, current=before)
    return after


def create_three_way(
    last_applied: dict[str, Any], modified: dict[str, Any], *, current: dict[str, Any]
) -> dict[str, Any]:
    """Return the patch for `current` that makes it say what `modified` says.

    Removes what is in `last_applied` and not in `modified`, sets what `modified` has and `current` has not, and does
    not mention the rest. A removal is written even where `current` lacks the field: it may have come back since it
    was read.
    """
    patch: dict[str, Any] = {key: None for key in last_applied if modified.get(key) is None}
    for key, wanted in modified.items():
        live = current.get(key)
        if wanted is None:
            if live is not None:
                patch[key] = None
        elif isinstance(wanted, dict):
            nested = create_three_way(_object(last_applied.get(key)), wanted, current=_object(live))
            if nested or not isinstance(live, dict):
                patch[key] = nested
        elif not json_equal(live, wanted):
            patch[key] = wanted
    return patch


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
