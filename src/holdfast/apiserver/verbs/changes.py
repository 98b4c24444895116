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
    the object was written, and that of another version differs.
    """
    if old is None or kind.custom or kind.from_stored is not None:
        return do(obj)
    metadata = obj.pop("metadata")
    same = _taken(obj, old)
    inner = {
        name: _taken(value, before)
        for name, value in obj.items()
        if isinstance(value, dict) and isinstance(before := old.get(name), dict)
    }
    obj["metadata"] = metadata
    done = do(obj)
    for name, fields in inner.items():
        if fields:
            obj.setdefault(name, {}).update(fields)
    obj.update(same)
    return done


def _taken(fields: Object, before: Object) -> Object:
    """The fields that are the same as before, which are removed from `fields`."""
    same = {name: value for name, value in fields.items() if name in before and _is_same(value, before[name])}
    for name in same:
        del fields[name]
    return same


def _is_same(value: object, before: object) -> bool:
    """Whether two values are the same JSON: in Python, True equals 1."""
    return value is before or (value == before and encode(value) == encode(before))
