"""Managed fields, as a client hands them back: a command changes a spec without becoming its owner.

A field manager that changes a field owns it from then on, and the next apply of its former owner conflicts.
`handed_back` computes the ``metadata.managedFields`` in which the former owners own the fields of the spec again.
Pure.  This module must not know requests or kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Entry = Mapping[str, Any]
Fields = Mapping[str, Any]

_SPEC: Final = "f:spec"


def handed_back(
    before: Sequence[Entry], after: Sequence[Entry], *, manager: str, restored: bool = False, subresource: str = ""
) -> list[Entry] | None:
    """The entries of an object whose spec `manager` has just changed; None if it owns nothing of the spec.

    Each field goes to the managers that owned it `before`.  A field that no manager owned has no owner, so that it
    survives the next apply; but where an earlier spec was `restored`, the one manager that applies the object owns it
    all, so that its next apply removes what it leaves out.  `subresource` is the one by which it was changed.
    """
    taken = next((each for each in after if _is_update_of(each, manager, subresource)), None)
    spec = None if taken is None else taken["fieldsV1"].get(_SPEC)
    if taken is None or spec is None:
        return None
    entries = {_identity(each): each for each in after if each is not taken}
    former = [each for each in before if not each.get("subresource") and each.get("manager") != manager]
    appliers = [each for each in former if each.get("operation") == "Apply"]
    for each in former:
        whole = restored and appliers == [each]
        fields = spec if whole else _common(spec, each.get("fieldsV1", {}).get(_SPEC))
        if fields is not None:
            kept = entries.get(_identity(each), {**each, "fieldsV1": {}})
            owned = {**kept["fieldsV1"], _SPEC: _united(kept["fieldsV1"].get(_SPEC, {}), fields)}
            entries[_identity(each)] = {**kept, "fieldsV1": owned}
    rest = {name: fields for name, fields in taken["fieldsV1"].items() if name != _SPEC}
    return [*entries.values(), *([{**taken, "fieldsV1": rest}] if rest else [])]


def _is_update_of(entry: Entry, manager: str, subresource: str) -> bool:
    named = entry.get("manager") == manager and entry.get("operation") == "Update"
    return named and entry.get("subresource", "") == subresource and isinstance(entry.get("fieldsV1"), dict)


def _identity(entry: Entry) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("manager", "operation", "apiVersion", "subresource"))


def _united(one: Fields, other: Fields) -> dict[str, Any]:
    return {name: _united(one.get(name, {}), other.get(name, {})) for name in _names(one, other)}


def _names(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))


def _common(one: Fields, other: Fields | None) -> dict[str, Any] | None:
    """The fields that both sets have; None if there are none.  A field without parts is owned as a whole."""
    if other is None:
        return None
    if not one or not other:
        return {}
    shared = {name: found for name in one if (found := _common(one[name], other.get(name))) is not None}
    return shared or None
