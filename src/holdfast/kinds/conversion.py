"""Conversion of objects between two versions of a kind, without loss in either direction.

A kind gives two projections: what the fields of one version are in the other.  What the other version cannot say is
kept in an annotation of the converted object, as the difference between the object and what would come back from the
conversion, and is put back when the object is converted again:

    older ── up ──► newer ── down ──► older'      kept: older' -> older

Fields that a client changed meanwhile win over what was kept: a kept field is put back only where the field beside it
is as it was, and only if it changes nothing that the object says in its own version.  Pure.  This module must not know
any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.meta import hashing

Content = dict[str, Any]
"""An object without apiVersion, kind and metadata."""

Projection = Callable[[Content], Content]

KEPT: Final = "conversion.holdfast.dev/"
"""The prefix of the annotation that keeps what only another version can say; the version follows."""

_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})
_ABSENT: Final[Any] = object()


class _Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that differs: where, what would come back, and what was there; absent values are left out.

    order  the names of a list of named items, in their order
    """

    path: tuple[str, ...]
    came: Any = msgspec.UNSET
    was: Any = msgspec.UNSET
    order: tuple[str, ...] = ()


class _Kept(msgspec.Struct, frozen=True):
    """What was kept: the hash of the object that it was kept with, and the changes."""

    of: str
    changes: tuple[_Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The conversion between two versions of a group.

    up    the fields of an object of the older version, as the newer one has them
    down  the fields of an object of the newer version, as the older one has them
    """

    group: str
    older: str
    newer: str
    up: Projection
    down: Projection

    def convert(self, obj: Mapping[str, Any], version: str) -> dict[str, Any]:
        """An object of either version in this version; the same one if that is its own."""
        own = str(obj.get("apiVersion")).rpartition("/")[2]
        if own == version:
            return dict(obj)
        if {own, version} != {self.older, self.newer}:
            raise ValueError(f"{obj.get('apiVersion')} cannot be converted to {self.group}/{version}")
        there, back = (self.up, self.down) if version == self.newer else (self.down, self.up)
        content = {name: value for name, value in obj.items() if name not in _HEAD}
        metadata = dict(obj.get("metadata") or {})
        annotations = dict(metadata.pop("annotations", None) or {})
        kept = _read(annotations.pop(KEPT + version, None))
        annotations.pop(KEPT + own, None)
        made = _restored(there(content), kept, unchanged=kept is not None and kept.of == _hash(content), back=back)
        rest = tuple(_changes(back(made), content))
        if rest:
            annotations[KEPT + own] = msgspec.json.encode(_Kept(_hash(made), rest)).decode()
        if annotations:
            metadata["annotations"] = annotations
        head = {"apiVersion": f"{self.group}/{version}", "kind": obj.get("kind"), "metadata": metadata}
        return head | made


def _hash(content: Content) -> str:
    return hashing.canonical_hash(content)


def _read(text: str | None) -> _Kept | None:
    """What an annotation keeps; nothing, where it is not what this module wrote."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=_Kept)
    except msgspec.MsgspecError:
        return None


# --- what is kept


def _changes(came: Any, was: Any, path: tuple[str, ...] = ()) -> Iterator[_Change]:
    """The differences from what would come back to what was there."""
    if isinstance(came, Mapping) and isinstance(was, Mapping):
        for name in dict.fromkeys((*came, *was)):
            yield from _change(came.get(name, _ABSENT), was.get(name, _ABSENT), (*path, name))
        return
    names, wanted = _names(came), _names(was)
    if names is None or wanted is None:
        yield from _change(came, was, path)
        return
    items, others = dict(zip(names, came, strict=True)), dict(zip(wanted, was, strict=True))
    for name in dict.fromkeys((*names, *wanted)):
        yield from _change(items.get(name, _ABSENT), others.get(name, _ABSENT), (*path, f"={name}"))
    if [name for name in names if name in others] + [name for name in wanted if name not in items] != wanted:
        yield _Change(path, order=tuple(wanted))


def _change(came: Any, was: Any, path: tuple[str, ...]) -> Iterator[_Change]:
    if came is _ABSENT or was is _ABSENT:
        unset = msgspec.UNSET
        yield _Change(path, unset if came is _ABSENT else came, unset if was is _ABSENT else was)
    elif _nested(came, was):
        yield from _changes(came, was, path)
    elif came != was:
        yield _Change(path, came, was)


def _nested(came: Any, was: Any) -> bool:
    if isinstance(came, Mapping) and isinstance(was, Mapping):
        return True
    return _names(came) is not None and _names(was) is not None


def _names(value: Any) -> list[str] | None:
    """The names of a list of items that are identified by them; None for any other value."""
    if not isinstance(value, list) or not value:
        return None
    names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return [str(name) for name in names]


# --- what is put back


def _restored(live: Content, kept: _Kept | None, *, unchanged: bool, back: Projection) -> Content:
    if kept is None:
        return live
    whole = _applied(live, kept.changes)
    if unchanged:
        return whole
    said = back(live)
    if back(whole) == said:
        return whole
    # What is added comes before what is taken away: a value may have been moved.
    for change in sorted(kept.changes, key=lambda change: change.was is msgspec.UNSET):
        changed = _applied(live, (change,))
        if changed != live and back(changed) == said:
            live = changed
    return live


def _applied(content: Content, changes: Sequence[_Change]) -> Content:
    """The content with those changes of which the value is still the one that came back."""
    for change in changes:
        content = _at(content, change.path, change)
    return content


def _at(value: Any, path: Sequence[str], change: _Change) -> Any:
    """The value with a change at a path; the same one where the path does not lead there any more."""
    if not path:
        return _ordered(value, change) if change.order else _swapped(value, change)
    step, rest = path[0], path[1:]
    if step.startswith("=") and isinstance(value, list):
        return _in_list(value, step[1:], rest, change)
    if not isinstance(value, Mapping):
        return value
    found = value.get(step, _ABSENT)
    if found is _ABSENT and rest:
        return value
    made = _at(found, rest, change)
    if made is found:
        return value
    if made is _ABSENT:
        return {name: item for name, item in value.items() if name != step}
    return {**value, step: made}


def _in_list(items: list[Any], name: str, rest: Sequence[str], change: _Change) -> list[Any]:
    place = next((at for at, item in enumerate(items) if isinstance(item, Mapping) and item.get("name") == name), None)
    if place is None:
        made = _at(_ABSENT, rest, change) if not rest else _ABSENT
        return items if made is _ABSENT else [*items, made]
    made = _at(items[place], rest, change)
    if made is _ABSENT:
        return [item for at, item in enumerate(items) if at != place]
    return items if made is items[place] else [*items[:place], made, *items[place + 1 :]]


def _swapped(value: Any, change: _Change) -> Any:
    came = _ABSENT if change.came is msgspec.UNSET else change.came
    if value is not came and value != came:
        return value
    return _ABSENT if change.was is msgspec.UNSET else change.was


def _ordered(value: Any, change: _Change) -> Any:
    """A list of named items in the order that it had; new ones come last."""
    if _names(value) is None:
        return value
    places = {name: place for place, name in enumerate(change.order)}
    return sorted(value, key=lambda item: places.get(item["name"], len(places)))
