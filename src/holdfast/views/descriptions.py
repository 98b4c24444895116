"""The description of an object: metadata, what it waits for, spec, status, its children and its Events.

Pure: an object, its children and its Events in, lines of text out.  Fields that have
their usual default are left out; of the values in a Secret only the sizes are shown.
The caller passes a function that turns a time into an age.  This module must not know
any custom kind: tables of a kind's own come from its operator (`StatusTable`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from holdfast.meta.jsonpath import evaluate
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.views.columns import NOTHING, aligned
from holdfast.views.folding import folded
from holdfast.views.waits import because, conditions, waits

Object = Mapping[str, Any]
Age = Callable[[str | None], str]
"""Turns a time into an age, such as 5m."""

Rows = Iterable[Sequence[str]]
"""A table: the column titles first."""

USUAL: Final[Mapping[str, Any]] = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "imagePullPolicy": "IfNotPresent",
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
"""Defaults that are left out."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the object, with all secrets in it."""

_IN_HEAD: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_STATUS_ELSEWHERE: Final = frozenset(
    {"phase", "conditions", "initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}
)
"""Fields of a status that are shown at the top or in a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTable:
    """A part of a custom kind's status that is shown as a table.

    field  the field of the status that the table replaces
    rows   the table
    """

    title: str
    field: str
    rows: Callable[[Object, Age], Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is read beside an object.

    children  tables of the objects that it owns, each with its title
    events    its Events; None: do not show them
    pods      the pods on it, where it is a node
    tables    the tables that its operator declares
    """

    children: Sequence[tuple[str, Rows]] = ()
    events: Sequence[Object] | None = ()
    pods: Sequence[Object] = ()
    tables: Sequence[StatusTable] = ()


def describe(obj: Object, around: Surroundings, *, age: Age, width: int | None = None) -> list[str]:
    """The lines of the description, none of them wider than the screen where it has room."""
    parts: list[list[str]] = [list(_head(obj, age))]
    elsewhere = _STATUS_ELSEWHERE.union(table.field for table in around.tables)
    parts += [_member(title, value) for title, value in _body(obj, elsewhere)]
    if obj.get("kind") == "Pod":
        parts.append(_table("Containers", _container_rows(obj, age), width))
    parts += [_table(table.title, table.rows(obj, age), width) for table in around.tables]
    if obj.get("kind") == "Node":
        parts.append(_table("Requested", _requested(obj, around.pods), width))
    if conditions(obj):
        parts.append(_table("Conditions", _condition_rows(obj, age), width))
    parts += [_table(title, rows, width) for title, rows in around.children]
    if around.events is not None:
        parts.append(_table("Events", _event_rows(around.events, age) if around.events else [[NOTHING]], width))
    return folded((line for part in parts for line in part), width)


def _table(title: str, rows: Rows, width: int | None) -> list[str]:
    return [f"{title}:", *(f"  {line}".rstrip() for line in aligned(rows, None if width is None else width - 2))]


# The head.


def _head(obj: Object, age: Age) -> Iterator[str]:
    facts = [(title, values) for title, values in _facts(obj, age) if values]
    width = max(len(title) for title, _ in facts) + 3
    for title, values in facts:
        yield f"{title}:".ljust(width) + values[0]
        yield from (" " * width + value for value in values[1:])


def _facts(obj: Object, age: Age) -> Iterator[tuple[str, list[str]]]:
    meta = obj.get("metadata") or {}
    yield "Name", [str(meta.get("name", ""))]
    yield "Namespace", [meta["namespace"]] if meta.get("namespace") else []
    yield "Kind", [f"{obj.get('kind')} ({obj.get('apiVersion')})"]
    yield "Waits for", list(waits(obj))
    yield "Phase", [str(phase)] if (phase := (obj.get("status") or {}).get("phase")) else []
    yield "Age", [age(meta.get("creationTimestamp"))]
    yield "Deleted", [f"{age(meta['deletionTimestamp'])} ago"] if meta.get("deletionTimestamp") else []
    yield "Labels", _pairs(meta.get("labels"), "=")
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if name != _LAST_APPLIED}
    yield "Annotations", _pairs(annotations, ": ")
    yield "Owned by", [f"{each.get('kind')}/{each.get('name')}" for each in meta.get("ownerReferences") or ()]
    yield "Finalizers", list(meta.get("finalizers") or ())


def _pairs(values: Object | None, joint: str) -> list[str]:
    pairs = [f"{name}{joint}{value}".replace("\n", "↵") for name, value in sorted((values or {}).items())]
    return pairs or [NOTHING]


# The body.


def _body(obj: Object, elsewhere: Set[str]) -> Iterator[tuple[str, Any]]:
    secret = obj.get("kind") == "Secret"
    for name, value in obj.items():
        if name in _IN_HEAD:
            continue
        shown = _sizes(value) if secret and name in ("data", "stringData") else _without_usual(value)
        if shown not in (None, {}, [], ""):
            yield _title(name), shown
    status = {name: value for name, value in (obj.get("status") or {}).items() if name not in elsewhere}
    if shown := _without_usual(status):
        yield "Status", shown


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _sizes(data: Object) -> dict[str, str]:
    return {name: f"{_size(value)} bytes" for name, value in data.items()}


def _size(value: Any) -> int:
    try:
        return len(base64.b64decode(str(value)))
    except binascii.Error:
        return len(str(value))


def _without_usual(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _without_usual(each) for name, each in value.items() if USUAL.get(name, NOTHING) != each}
        return {name: each for name, each in kept.items() if each not in ({}, [], "")}
    return [_without_usual(each) for each in value] if isinstance(value, list) else value


def tree(value: Any) -> list[str]:
    """A value as indented lines, much as YAML has it."""
    if isinstance(value, Mapping):
        return [line for name, each in value.items() for line in _member(str(name), each)]
    if isinstance(value, list):
        return [line for each in value for line in _item(each)]
    return str(evaluate.text_of(value)).splitlines() or [""]


def _member(name: str, value: Any) -> list[str]:
    if isinstance(value, list) and value and not any(isinstance(each, Mapping | list) for each in value):
        return [f"{name}: {', '.join(map(evaluate.text_of, value))}"]
    lines = tree(value)
    if isinstance(value, Mapping | list) or len(lines) > 1:
        return [f"{name}:", *(f"  {line}" for line in lines)]
    return [f"{name}: {lines[0]}".rstrip()]


def _item(value: Any) -> list[str]:
    first, *rest = tree(value) or [""]
    return [f"- {first}", *(f"  {line}" for line in rest)]


# Tables.


def _condition_rows(obj: Object, age: Age) -> Iterator[list[str]]:
    yield ["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]
    for each in conditions(obj):
        since = age(each.get("lastTransitionTime"))
        cells = [each.get("type"), each.get("status"), since, each.get("reason"), each.get("message")]
        yield [_cell(cell) for cell in cells]


def _container_rows(obj: Object, age: Age) -> Iterator[list[str]]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    yield ["NAME", "READY", "RESTARTS", "STATE", "SINCE", "IMAGE"]
    for kind, mark in (("initContainer", " (init)"), ("container", ""), ("ephemeralContainer", " (ephemeral)")):
        statuses = {each.get("name"): each for each in status.get(f"{kind}Statuses") or ()}
        for container in spec.get(f"{kind}s") or ():
            each = statuses.get(container.get("name"), {})
            state, since = _container_state(each.get("state") or {})
            cells = [
                f"{container.get('name')}{mark}",
                str(each.get("ready", False)).lower(),
                each.get("restartCount", 0),
                state + _last(each.get("lastState") or {}),
                age(since) if since else NOTHING,
                container.get("image"),
            ]
            yield [_cell(cell) for cell in cells]


def _container_state(state: Object) -> tuple[str, str | None]:
    """The state of a container, and since when it is in it."""
    if "running" in state:
        return "running", state["running"].get("startedAt")
    if "terminated" in state:
        ended = state["terminated"]
        return f"ended with {ended.get('exitCode')}{_in_brackets(because(ended))}", ended.get("finishedAt")
    return f"waiting{_in_brackets(because(state.get('waiting') or {}))}", None


def _last(state: Object) -> str:
    ended = state.get("terminated")
    return "" if ended is None else f", before: ended with {ended.get('exitCode')}{_in_brackets(because(ended))}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _event_rows(events: Sequence[Object], age: Age) -> Iterator[list[str]]:
    yield ["TYPE", "REASON", "AGE", "FROM", "MESSAGE"]
    for each in sorted(events, key=_when):
        times = each.get("count") or (each.get("series") or {}).get("count") or 1
        often = f" (x{times})" if times > 1 else ""
        source = (each.get("source") or {}).get("component") or each.get("reportingComponent")
        cells = [each.get("type"), each.get("reason"), age(_when(each) or None) + often, source, each.get("message")]
        yield [_cell(cell) for cell in cells]


def _when(event: Object) -> str:
    """When it was last observed."""
    series = (event.get("series") or {}).get("lastObservedTime")
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or created or "")


def _requested(node: Object, pods: Sequence[Object]) -> Iterator[list[str]]:
    """What the pods on a node request, against what it can allocate."""
    yield ["RESOURCE", "REQUESTED", "OF", "SHARE"]
    for name, has in ((node.get("status") or {}).get("allocatable") or {}).items():
        total = sum((_asked(pod, name) for pod in pods), Quantity(0))
        given = Quantity.parse(has)
        asked = str(len(pods)) if name == "pods" else str(total)
        share = 100 * (len(pods) * 10**9 if name == "pods" else total.nanos) // given.nanos if given else 0
        yield [name, asked, str(has), f"{share}%"]


def _asked(pod: Object, resource: str) -> Quantity:
    total = Quantity(0)
    for container in (pod.get("spec") or {}).get("containers") or ():
        asked = ((container.get("resources") or {}).get("requests") or {}).get(resource, "0")
        try:
            total = Quantity.parse(asked) + total
        except QuantityError:
            continue
    return total


def _cell(value: Any) -> str:
    text = "" if value is None else str(evaluate.text_of(value))
    return " ".join(text.split()) or NOTHING
