"""Event, in the groups ``""`` and ``events.k8s.io``, with different names for the same fields.

Stored as the core group's; `to_core` and `from_core` convert between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.columns import column, field, get, joined
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.apiserver.resources import Column, Object, ResourceType
from holdfast.meta.ages import age
from holdfast.meta.errors import FieldError

_NEW_NAMES: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""What the fields of the core group are called in events.k8s.io."""

_CORE_NAMES: Final = {new: core for core, new in _NEW_NAMES.items()}


def from_core(event: Object) -> Object:
    """A stored event as events.k8s.io shows it."""
    shown = {_NEW_NAMES.get(name, name): value for name, value in event.items()}
    if shown.get("series"):
        shown["series"] = {"count": 0} | shown["series"]
    return shown | {"apiVersion": "events.k8s.io/v1"}


def to_core(event: Object) -> Object:
    """An event of events.k8s.io as it is stored."""
    stored = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    if stored.get("series") and not stored["series"].get("count"):
        # The core group leaves a zero out, events.k8s.io does not.
        stored["series"] = {name: value for name, value in stored["series"].items() if name != "count"}
    missing = {name: value for name, value in TYPES.blank("Event").items() if name not in stored}
    return stored | missing | {"apiVersion": "v1"}


def _validate_core(event: Object, old: Object | None) -> list[FieldError]:
    """An Event must be in the namespace of its object; for a cluster-scoped object, in the default namespace."""
    about = get(event, "involvedObject", "namespace", default="")
    namespace = get(event, "metadata", "namespace", default="")
    allowed = (about,) if about else ("", "default", "kube-system")
    if namespace in allowed:
        return []
    return [FieldError.invalid("involvedObject.namespace", about, detail="does not match event.namespace")]


def _validate_new(event: Object, old: Object | None) -> list[FieldError]:
    problems = list(checks.chosen(event.get("type"), "type", among=("Normal", "Warning")))
    for name in ("reportingController", "reportingInstance", "action", "reason"):
        problems += checks.required(event.get(name), name)
    if not event.get("eventTime") and not event.get("series"):
        problems.append(FieldError.required("eventTime"))
    return problems


def _last_seen(event: Object, now: float) -> str:
    series = get(event, "series", "lastObservedTime")
    return age(series or _first(event, "lastTimestamp", "deprecatedLastTimestamp") or event.get("eventTime"), now)


def _first_seen(event: Object, now: float) -> str:
    return age(_first(event, "firstTimestamp", "deprecatedFirstTimestamp") or event.get("eventTime"), now)


def _first(event: Object, *names: str) -> str | None:
    return next((event[name] for name in names if event.get(name)), None)


def _object(event: Object) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind = about.get("kind", "").lower()
    return f"{kind}/{about.get('name', '')}" if kind else about.get("name", "")


def _source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    teller = source.get("component") or event.get("reportingComponent") or event.get("reportingController")
    return joined(filter(None, (teller, source.get("host")))).replace(",", ", ")


def _count(event: Object) -> int:
    return int(get(event, "series", "count") or event.get("count") or event.get("deprecatedCount") or 1)


def _columns(*, about: str, text: str) -> tuple[Column, ...]:
    return (
        Column(name="Last Seen", value=_last_seen, description="Time of the last occurrence."),
        field("Type", "type"),
        field("Reason", "reason"),
        column("Object", _object, description="The object that the event is about."),
        field("Subobject", about, "fieldPath", wide=True),
        column("Source", _source, wide=True),
        column("Message", lambda event: event.get(text, "").strip()),
        Column(name="First Seen", value=_first_seen, priority=1),
        column("Count", _count, wide=True, type="integer"),
        Column(name="Name", value=".metadata.name", format="name", priority=1),
    )


_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

EVENT: Final = builtin(
    "Event",
    short_names=("ev",),
    generation=False,
    columns=_columns(about="involvedObject", text="message"),
    fields=(*(f"involvedObject.{name}" for name in _ABOUT), "reason", "reportingComponent", "source", "type"),
    validate=_validate_core,
    created_by_update=True,
    dependents="none",
)
NEW_EVENT: Final = builtin(
    "Event",
    group="events.k8s.io",
    type_name="NewEvent",
    short_names=("ev",),
    generation=False,
    columns=_columns(about="regarding", text="note"),
    fields=(*(f"regarding.{name}" for name in _ABOUT), "reason", "reportingController", "type"),
    validate=_validate_new,
    created_by_update=True,
    dependents="none",
)
RESOURCES: Final[tuple[ResourceType, ...]] = (EVENT, NEW_EVENT)
