"""What an update changes: the fields that must be brought into their stored form again.

What an update leaves as it was stored is pruned, defaulted and of the right types already.  Most updates change a few
fields of a large object, such as a status, so that most of the work of a write would be done on what stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.exchange import encode

T = TypeVar("T")


def of_update(kind: ResourceType, obj: Object, old: Object | None, do: Callable[[Object], T]) -> T:
    """Call `do` with `obj`, in place, without the fields that are the same as in `old`, and put these back afterwards.

    Fields are those of the object and those of its parts, such as spec.  `do` works on each field by itself.  All
    fields count as changed where the stored form may be another one: the schema of a custom kind may have changed since
    the object was written, and that of another version differs.  The fields keep their order, which messages show.
    """
    if old is None or kind.custom or kind.from_stored is not None:
        return do(obj)
    order = list(obj)
    same = _taken(obj, old)
    inner = {
        name: (list(value), _taken(value, before))
        for name, value in obj.items()
        if name != "metadata" and isinstance(value, dict) and isinstance(before := old.get(name), dict)
    }
    done = do(obj)
    for name, (names, fields) in inner.items():
        if fields:
            _put_back(obj.setdefault(name, {}), fields, names)
    _put_back(obj, same, order)
    return done


def _taken(fields: Object, before: Object) -> Object:
    """The fields that are the same as before, which are removed from `fields`."""
    same = {
        name: value
        for name, value in fields.items()
        if name != "metadata" and name in before and _is_same(value, before[name])
    }
    for name in same:
        del fields[name]
    return same


def _put_back(fields: Object, same: Object, order: list[str]) -> None:
    """Put the fields that were taken back to their places; the others stay in the order in which they came."""
    known = {name: fields[name] for name in order if name in fields} | same
    rest = {name: value for name, value in fields.items() if name not in known}
    fields.clear()
    fields.update({name: known[name] for name in order if name in known} | rest)


def _is_same(value: object, before: object) -> bool:
    """Whether two values are the same JSON: in Python, True equals 1."""
    return value is before or (value == before and encode(value) == encode(before))
