"""Columns that many kinds show, and how their cells are written for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.apiserver.resources import Column, Object
from holdfast.meta import times
from holdfast.meta.selectors import LabelSelector, SelectorError

UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"
UNSET: Final = "<unset>"


def human_duration(elapsed: timedelta) -> str:
    """A duration as kubectl shows ages: two units at most, fewer as it grows."""
    seconds = int(elapsed.total_seconds())
    if seconds < -1:
        return "<invalid>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(text: str | None, now: float) -> str:
    """How long ago a time was; unknown if there is none."""
    if not text:
        return UNKNOWN
    return human_duration(datetime.fromtimestamp(now, UTC) - times.parse_micro(text))


def get(obj: Mapping[str, Any], *path: str, default: Any = None) -> Any:
    """The value at a path of fields, or the default where there is none."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return default if value is None else value


def age(obj: Object, now: float) -> str:
    return since(get(obj, "metadata", "creationTimestamp"), now)


NAME: Final = Column(name="Name", value=".metadata.name", format="name", description="Name of the object.")
AGE: Final = Column(name="Age", value=age, description="Time since the object was created.")
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
    """A column whose cells need no clock."""
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
    """The wide columns of what makes pods: their containers and images, and which pods are its own."""

    def containers(obj: Object, what: str) -> str:
        return joined(each.get(what, "") for each in get(obj, *template, "spec", "containers", default=()))

    shown = (
        column("Containers", lambda obj: containers(obj, "name"), wide=True),
        column("Images", lambda obj: containers(obj, "image"), wide=True),
    )
    if not selector:
        return shown
    return (*shown, column("Selector", lambda obj: selector_text(get(obj, *selector)), wide=True))
