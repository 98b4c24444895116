"""Server-side apply, and the ownership that every other write leaves behind.

Each entry of ``metadata.managedFields`` says which fields one manager set, by which operation, in which version and
through which subresource.  An update takes what it changes; an apply claims what its configuration says, gives up
what it no longer says, and is refused where it would change what another manager owns, unless it is forced.

Functions here are pure: they get the time and give back objects.  They must not know the store, defaulting or
validation, and must be called before the server's own changes to an object and after its defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast.apiserver.apply import merging
from holdfast.apiserver.apply.fieldsets import (
    LEAF,
    FieldSetError,
    Tree,
    difference,
    intersection,
    ordered,
    parse,
    paths,
    show,
    union,
    union_all,
)
from holdfast.apiserver.apply.ownership import Comparison, Structure, compare, of_object, ownable, structure_of
from holdfast.apiserver.resources import Object
from holdfast.meta import times
from holdfast.meta.errors import MOST_PROBLEMS, BadRequest, Cause, Conflict, Details, MalformedError

Operation = Literal["Apply", "Update"]
Entry: TypeAlias = dict[str, Any]
"""One entry of managedFields, as it is on the wire."""

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT: Final = "ancient-changes"
_KUBECTL: Final = "kubectl"
_MOST_UPDATES: Final = 10
_MOST_BYTES: Final = 128
_IDENTITY: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})


def manager_of(user_agent: str) -> str:
    """The manager of a request that names none: the client's name, up to its version."""
    name = user_agent.partition("/")[0]
    if not name.isprintable():
        name = "".join(character for character in name if character.isprintable())
    return name.encode()[:_MOST_BYTES].decode(errors="ignore")


# --- Updates ---


def track(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    schema: Mapping[str, Any],
    api_version: str,
    now: datetime,
    operation: Operation = "Update",
    subresource: str = "",
    custom: bool = False,
) -> list[Entry] | None:
    """The managed fields of `new`, which replaces `old`; None if it has none.

    From now on the manager alone owns what changed.  A client may write managedFields too, and resets them with an
    empty list or ``[{}]``; from then on they are not tracked until the next apply.
    """
    entries = _starting_point(old, new, subresource)
    if old is not None and not entries:
        return None
    structure = structure_of(schema)
    changes = compare(_before(old, structure, custom=custom), new, structure)
    entries = _yielded(entries, changes)
    if changes.changed:
        entry = _entry(manager, operation, api_version, subresource=subresource)
        entries = _taken(entries, entry, changes.changed, times.format(now))
    return _sorted(_capped(entries)) or None


def _starting_point(old: Object | None, new: Object, subresource: str) -> list[Entry]:
    """The entries to start from: the client's, if it wrote valid ones; else the stored ones."""
    stored = _entries(old or {})
    given = new["metadata"].get("managedFields")
    if subresource or given is None or given == stored:
        return stored
    if given in ([], [{}]):
        return []
    try:
        return _read(given)
    except (MalformedError, RecursionError):
        return stored


def _before(old: Object | None, structure: Structure, *, custom: bool) -> Object:
    """The object that a write is compared with; a new object of a built-in kind has its empty structs already."""
    if old is not None:
        return old
    return {"metadata": {}} if custom else structure.blank()


def _yielded(entries: list[Entry], changes: Comparison) -> list[Entry]:
    """The entries without the fields that have another owner now or are gone; empty entries are dropped."""
    if not entries:
        return []
    gone = union(changes.changed, changes.removed)
    left = ((entry, difference(entry["fieldsV1"], gone)) for entry in entries)
    return [{**entry, "fieldsV1": fields} for entry, fields in left if fields]


def _taken(entries: list[Entry], entry: Entry, fields: Tree, time: str) -> list[Entry]:
    """The entries with `fields` added to the one that `entry` names."""
    if not entries:
        return [_filled(entry, fields, time)]
    previous = next((each for each in entries if _identity(each) == _identity(entry)), None)
    others = [each for each in entries if each is not previous]
    owned = union(previous["fieldsV1"], fields) if previous else fields
    return [*others, _filled(entry, owned, time)]


def _capped(entries: list[Entry]) -> list[Entry]:
    """The entries with at most ten of updates: the oldest of each version are merged."""
    updates = [entry for entry in entries if entry["operation"] != "Apply"]
    excess = len(updates) - _MOST_UPDATES
    if excess <= 0:
        return entries
    buckets: dict[str, list[Entry]] = {}
    for entry in sorted(updates, key=_age):
        bucket = buckets.setdefault(entry["apiVersion"], [])
        if bucket and not excess:
            break
        excess -= bool(bucket)
        bucket.append(entry)
    merged = [bucket for bucket in buckets.values() if len(bucket) > 1]
    joined = {id(entry) for bucket in merged for entry in bucket}
    return [*(entry for entry in entries if id(entry) not in joined), *map(_joined, merged)]


def _age(entry: Entry) -> tuple[Any, ...]:
    """Oldest first; merged entries come before all others."""
    return (entry.get("manager") != _ANCIENT, entry.get("time") or "", *_identity(entry))


def _joined(bucket: list[Entry]) -> Entry:
    entry = _entry(_ANCIENT, "Update", bucket[0]["apiVersion"])
    fields = union_all(each["fieldsV1"] for each in bucket)
    return _filled(entry, fields, bucket[-1].get("time"))


# --- Applies ---


def apply(
    live: Object | None,
    config: Object,
    *,
    manager: str,
    force: bool,
    schema: Mapping[str, Any],
    api_version: str,
    now: datetime,
    subresource: str = "",
    status: bool = False,
    custom: bool = False,
) -> Object:
    """The object that `live` becomes when `manager` applies `config`, with its managed fields.

    `status` says that the kind has a status subresource, so that a plain apply leaves the status alone.  Raises
    Conflict if other managers own fields that would change, and BadRequest if the configuration cannot be merged.
    The result shares unchanged values with `live`, and nothing with `config`.
    """
    structure = structure_of(schema)
    said = _scoped(_checked(config, structure, api_version), subresource=subresource, status=status)
    stored = live or {"metadata": {}}
    own = _entry(manager, "Apply", api_version, subresource=subresource)
    entries = _entries(stored)
    if live is not None and not entries:
        entries = _first_entries(live, structure, api_version, times.format(now), custom=custom)
    previous = next((entry for entry in entries if _identity(entry) == _identity(own)), None)
    others = [entry for entry in entries if entry is not previous]

    applied = of_object(said, structure)
    merged = merging.merge(stored, said, structure)
    if previous is not None and previous["fieldsV1"] != applied:
        merged = _given_up(merged, previous["fieldsV1"], applied, others, structure)
    changes = compare(stored, merged, structure)
    if not force:
        _refuse_conflicts(stored, others, changes, structure, manager=manager, api_version=api_version)
    entries = _yielded(others, changes)
    if applied:
        # As in Kubernetes, an apply that changes nothing does not set a new time.
        same = ownable(merged) == ownable(stored)
        time = (previous or {}).get("time") if same else times.format(now)
        entries.append(_filled(own, applied, time))
    return _finished(merged, entries, config if manager == _KUBECTL else None)


def _checked(config: Object, structure: Structure, api_version: str) -> Object:
    metadata = config.get("metadata") or {}
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if config.get("apiVersion") != api_version:
        given = config.get("apiVersion")
        problem = f"Specified patch version: {given}, expected: {api_version}"
        raise BadRequest(f"Incorrect version specified in apply patch. {problem}")
    try:
        merging.check(config, structure)
    except merging.UnmergeableError as error:
        raise _untyped(config, str(error), api_version=api_version) from error
    return config


def check_declared(config: Object, unknown: Iterable[str], *, api_version: str) -> None:
    """Refuse a configuration with fields that its kind does not have."""
    problems = [f".{path}: field not declared in schema" for path in unknown]
    if problems:
        said = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        raise _untyped(config, said, api_version=api_version)


def _untyped(config: Object, why: str, *, api_version: str) -> BadRequest:
    metadata = config.get("metadata") or {}
    group, _, version = api_version.rpartition("/")
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    where = f"{name}; {group}/{version}, Kind={config.get('kind')}"
    return BadRequest(f"failed to create typed patch object ({where}): {why}")


def _scoped(config: Object, *, subresource: str, status: bool) -> Object:
    """The part of a configuration that the resource or subresource can set."""
    if subresource == "status":
        metadata = {name: value for name, value in (config.get("metadata") or {}).items() if name in _IDENTITY}
        kept = {name: value for name, value in config.items() if name in ("apiVersion", "kind", "status")}
        return {**kept, "metadata": metadata}
    if status and not subresource:
        return {name: value for name, value in config.items() if name != "status"}
    return config


def _first_entries(live: Object, structure: Structure, api_version: str, time: str, *, custom: bool) -> list[Entry]:
    """Before the first apply nothing was tracked: all existing fields get one manager."""
    fields = compare(_before(None, structure, custom=custom), live, structure).changed
    return [_filled(_entry(_BEFORE_FIRST_APPLY, "Update", api_version), fields, time)] if fields else []


def _given_up(merged: Object, last: Tree, applied: Tree, others: list[Entry], structure: Structure) -> Object:
    """The object without the fields that the manager applied before, applies no more, and no other manager owns."""
    claimed = [applied, *(entry["fieldsV1"] for entry in others if entry["operation"] == "Apply")]
    kept = union_all(claimed)
    owned = union_all((applied, {"f:metadata": LEAF}, *(entry["fieldsV1"] for entry in others)))
    gone = difference(merging.with_parents(last, structure), merging.with_parents(owned, structure))
    return merging.without(merged, gone, structure, kept=kept) if gone else merged


def _refuse_conflicts(
    live: Object, others: list[Entry], changes: Comparison, structure: Structure, *, manager: str, api_version: str
) -> None:
    conflicts = [(entry, intersection(entry["fieldsV1"], changes.changed)) for entry in others]
    if manager == _KUBECTL and any(fields for _, fields in conflicts):
        inherited = _applied_by_client(live, structure, api_version)
        conflicts = [(entry, difference(fields, inherited)) for entry, fields in conflicts]
    found = [
        (_shown(entry), show(path))
        for entry, fields in sorted(conflicts, key=lambda conflict: _identity(conflict[0]))
        for path in islice(paths(fields), MOST_PROBLEMS)
    ]
    if found:
        causes = tuple(Cause("FieldManagerConflict", f"conflict with {who}", field) for who, field in found)
        raise Conflict(_conflict_message(found), details=Details(causes=causes))


def _conflict_message(found: list[tuple[str, str]]) -> str:
    if len(found) == 1:
        return f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    fields: dict[str, list[str]] = {}
    for who, field in found:
        fields.setdefault(who, []).append(f"- {field}")
    lines = (line for who, theirs in fields.items() for line in (f"conflicts with {who}:", *theirs))
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _applied_by_client(live: Object, structure: Structure, api_version: str) -> Tree:
    """Fields that client-side ``kubectl apply`` set and that have not changed since: kubectl may take them over."""
    try:
        config = msgspec.json.decode((live["metadata"].get("annotations") or {}).get(LAST_APPLIED, ""))
    except msgspec.DecodeError:
        return LEAF
    if not isinstance(config, dict) or config.get("apiVersion") != api_version:
        return LEAF
    drift = compare(config, live, structure)
    return difference(of_object(config, structure), union(drift.changed, drift.removed))


def _finished(merged: Object, entries: list[Entry], kubectl: Object | None) -> Object:
    metadata = {name: value for name, value in merged["metadata"].items() if name != "managedFields"}
    annotations = metadata.get("annotations") or {}
    if kubectl is not None and annotations.get(LAST_APPLIED):
        # kubectl uses this annotation if it returns to client-side apply, so it has to stay correct.
        metadata["annotations"] = {**annotations, LAST_APPLIED: _last_applied(kubectl)}
    if entries:
        metadata["managedFields"] = _sorted(entries)
    return {**merged, "metadata": metadata}


def _last_applied(config: Object) -> str:
    metadata = dict(config.get("metadata") or {})
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    return msgspec.json.encode({**config, "metadata": metadata}, order="sorted").decode() + "\n"


# --- Entries ---


def _entries(obj: Object) -> list[Entry]:
    """The entries of a stored object, which this module wrote."""
    return (obj.get("metadata") or {}).get("managedFields") or []


def _entry(manager: str, operation: Operation, api_version: str, *, subresource: str = "") -> Entry:
    """An entry that owns nothing yet."""
    entry: Entry = {"manager": manager} if manager else {}
    entry |= {"operation": operation, "apiVersion": api_version}
    return entry | {"subresource": subresource} if subresource else entry


def _filled(entry: Entry, fields: Tree, time: str | None) -> Entry:
    filled = dict(entry)
    subresource = filled.pop("subresource", "")
    if time:
        filled["time"] = time
    filled["fieldsType"] = "FieldsV1"
    filled["fieldsV1"] = ordered(fields)
    if subresource:
        filled["subresource"] = subresource
    return filled


def _identity(entry: Entry) -> tuple[str, str, str, str]:
    """The identity of an entry: applies of one manager share an entry across versions, updates do not."""
    operation = entry["operation"]
    version = "" if operation == "Apply" else entry["apiVersion"]
    return (entry.get("manager") or "", operation, version, entry.get("subresource") or "")


def _sorted(entries: list[Entry]) -> list[Entry]:
    def rank(entry: Entry) -> tuple[str, ...]:
        manager, operation, _, subresource = _identity(entry)
        return (operation, entry.get("time") or "", manager, entry["apiVersion"], subresource)

    return sorted(entries, key=rank) if len(entries) > 1 else entries


def _shown(entry: Entry) -> str:
    """A manager as messages show it: ``"two"``, or ``"kubectl" with subresource "status" using apps/v1``."""
    words = _quoted(entry.get("manager") or "")
    if entry.get("subresource"):
        words += f" with subresource {_quoted(entry['subresource'])}"
    return words if entry["operation"] == "Apply" else f"{words} using {entry['apiVersion']}"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class _Written(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """An entry as a client may write it."""

    operation: Operation
    api_version: str
    fields_type: Literal["FieldsV1"]
    manager: str = ""
    time: str | None = None
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)
    subresource: str = ""


def _read(entries: Any) -> list[Entry]:
    """The entries that a client wrote, in canonical form."""
    try:
        written = msgspec.convert(entries, list[_Written])
    except msgspec.ValidationError as error:
        raise FieldSetError(f"metadata.managedFields: {error}") from error
    read: dict[tuple[str, ...], Entry] = {}
    for each in written:
        time = times.format(times.parse(each.time)) if each.time else None
        entry = _entry(each.manager, each.operation, each.api_version, subresource=each.subresource)
        read[_identity(entry)] = _filled(entry, parse(each.fields_v1), time)
    return list(read.values())
