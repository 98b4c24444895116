"""Table columns that many kinds share, and the formatting of their cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.apiserver.resources import Column, Object
from holdfast.meta.ages import UNKNOWN, age
from holdfast.meta.selectors import LabelSelector, SelectorError

NONE: Final = "<none>"
UNSET: Final = "<unset>"


def get(obj: Mapping[str, Any], *path: str, default: Any = None) -> Any:
    """The value at a path of fields, or the default where there is none."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return default if value is None else value


def _age(obj: Object, now: float) -> str:
    return age(get(obj, "metadata", "creationTimestamp"), now)


NAME: Final = Column(name="Name", value=".metadata.name", format="name", description="Name of the object.")
AGE: Final = Column(name="Age", value=_age, description="Time since the object was created.")
CREATED_AT: Final = Column(
    name="Created At",
    value=lambda obj, now: get(obj, "metadata", "creationTimestamp", default=UNKNOWN),
    type="date",
    description="When the object was created.",
)


def column(
    name: str,
    value: Callable[[Object], Any],
    *,
    type: str = "string",
    wide: bool = False,
    description: str = "",
) -> Column:
    """A column whose cells do not depend on the time."""
    return Column(
        name=name,
        value=lambda obj, now: value(obj),
        type=type,
        priority=1 if wide else 0,
        description=description,
    )


def field(name: str, *path: str, type: str = "string", wide: bool = False, default: Any = "") -> Column:
    """A column that shows one field."""
    return column(name, lambda obj: get(obj, *path, default=default), type=type, wide=wide)


def number(name: str, *path: str, wide: bool = False) -> Column:
    return field(name, *path, type="integer", wide=wide, default=0)


def joined(parts: Iterable[object], *, otherwise: str = "") -> str:
    return ",".join(map(str, parts)) or otherwise


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A selector object, or a plain map of labels, in the form of the command line."""
    if not selector:
        return NONE
    if not selector.keys() <= {"matchLabels", "matchExpressions"}:
        return joined((f"{key}={value}" for key, value in sorted(selector.items())), otherwise=NONE)
    try:
        return str(LabelSelector.from_object(selector)) or NONE
    except SelectorError:
        return UNKNOWN


def template_columns(*template: str, selector: Sequence[str] = ()) -> tuple[Column, ...]:
    """The wide columns of workloads: containers, images and selector."""

    def containers(obj: Object, what: str) -> str:
        return joined(each.get(what, "") for each in get(obj, *template, "spec", "containers", default=()))

    shown = (
        column("Containers", lambda obj: containers(obj, "name"), wide=True),
        column("Images", lambda obj: containers(obj, "image"), wide=True),
    )
    if not selector:
        return shown
    return (*shown, column("Selector", lambda obj: selector_text(get(obj, *selector)), wide=True))
