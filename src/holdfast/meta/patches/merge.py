"""JSON Merge Patch (RFC 7386): apply one, and make one from two documents.

A merge patch is a document in which null means "remove" and a list means "this list instead". Values are never
changed in place; results share what was not touched.

This module knows JSON values. It must not know schemas: lists are atoms here (see `strategic` for the other way).
"""

from __future__ import annotations

from typing import Any

from holdfast.meta.patches.json import json_equal

__all__ = ["apply", "diff"]


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
    if not isinstance(after, dict):
        return after
    held = before if isinstance(before, dict) else {}
    patch: dict[str, Any] = {key: None for key in held if after.get(key) is None}
    for key, wanted in after.items():
        if wanted is None:
            continue
        live = held.get(key)
        if isinstance(wanted, dict):
            nested = diff(live, wanted)
            if nested or not isinstance(live, dict):
                patch[key] = nested
        elif not json_equal(live, wanted):
            patch[key] = wanted
    return patch
