"""Object metadata: the fields that the server sets, and validation of the others."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any, Final

from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import names, times, uids
from holdfast.meta.errors import MOST_PROBLEMS, BadRequest, FieldError
from holdfast.meta.patches.json import hashable

MAX_ANNOTATIONS: Final = 256 * 1024
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and similar characters, so that a generated name is no word."""

PATH_NAMES: Final = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
"""Kinds whose names may be any path segment."""

LABEL_NAMES: Final = frozenset({"namespaces"})
SERVICE_NAMES: Final = frozenset({"services"})
STANDARD_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def stamp_new(obj: Object, *, namespace: str, now: datetime, random: Random) -> None:
    """Set the server's metadata of a new object."""
    meta = obj["metadata"]
    if not meta.get("name") and meta.get("generateName"):
        suffix = "".join(random.choices(SUFFIX_LETTERS, k=5))
        meta["name"] = meta["generateName"][: 63 - len(suffix)] + suffix
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = uids.from_bits(random.getrandbits(128))
    meta["creationTimestamp"] = times.format(now)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        meta.pop(name, None)


def keep_server_owned(obj: Object, old: Object) -> None:
    """Keep the metadata that an update cannot change."""
    meta, stored = obj["metadata"], old["metadata"]
    for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if name in stored:
            meta[name] = stored[name]
        else:
            meta.pop(name, None)
    meta["name"] = stored["name"]
    if "generateName" in stored and "generateName" not in meta:
        meta["generateName"] = stored["generateName"]
    if "namespace" in stored:
        meta["namespace"] = stored["namespace"]
    else:
        meta.pop("namespace", None)
    meta.pop("selfLink", None)


def check_namespace(obj: Object, namespace: str) -> None:
    """Set the namespace of a new object from its request; a cluster-scoped object has none."""
    given = obj["metadata"].get("namespace")
    if given and namespace and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def check_target(obj: Object, name: str, namespace: str) -> None:
    """Check that the object of an update has the name and namespace of its request."""
    given, inside = obj["metadata"].get("name"), obj["metadata"].get("namespace")
    if not given:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if inside and namespace and inside != namespace:
        raise BadRequest(
            f"the namespace of the object ({inside}) does not match the namespace on the request ({namespace})"
        )


def problems(kind: ResourceType, obj: Object, old: Object | None) -> list[FieldError]:
    """All problems of the metadata of an object, in the order of Kubernetes."""
    meta, finalizers = obj["metadata"], obj["metadata"].get("finalizers") or []
    found = list(_name_problems(kind, meta)) if old is None else []
    if (labels := meta.get("labels")) and not names.are_labels(labels):
        found += _label_problems(labels)
    if annotations := meta.get("annotations"):
        found += _annotation_problems(annotations)
    if owners := meta.get("ownerReferences"):
        found += _owner_problems(owners)
    if finalizers:
        found += _finalizer_problems(kind, finalizers)
    if old is not None and old["metadata"].get("deletionTimestamp"):
        found += _late_finalizer_problems(finalizers, old["metadata"].get("finalizers") or [])
    return found


def warnings(kind: ResourceType, obj: Object, old: Object | None) -> tuple[str, ...]:
    """Warnings about metadata that is allowed but not recommended."""
    if not kind.custom:
        return ()
    before = (old["metadata"].get("finalizers") or []) if old is not None else []
    added = sorted(set(obj["metadata"].get("finalizers") or []) - set(before) - STANDARD_FINALIZERS)
    advice = "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other"
    return tuple(f'metadata.finalizers: "{name}": {advice} finalizer writers' for name in added if "/" not in name)


def drop_repeated_owners(obj: Object) -> tuple[str, ...]:
    """Keep each owner reference once, and warn of the others."""
    owners = obj["metadata"].get("ownerReferences") or []
    distinct = {hashable(owner): owner for owner in reversed(owners)}
    if len(distinct) == len(owners):
        return ()
    kept = list(reversed(distinct.values()))
    obj["metadata"]["ownerReferences"] = kept
    firsts = set(map(id, kept))
    uids = (str(owner.get("uid", "")) for owner in owners if id(owner) not in firsts)
    repeated = ", ".join(islice(uids, MOST_PROBLEMS))
    words = (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed"
    )
    return (f"{words}: {repeated}",)


def _name_problems(kind: ResourceType, meta: Mapping[str, Any]) -> Iterable[FieldError]:
    name, base, check = meta.get("name"), meta.get("generateName"), _name_check(kind)
    if base:
        # A prefix may end in a dash, because letters follow it.
        prefix = base[:-1] + "a" if len(base) > 1 and base.endswith("-") else base
        for problem in check(prefix):
            yield FieldError.invalid("metadata.generateName", base, detail=problem)
    if not name:
        yield FieldError.required("metadata.name", "name or generateName is required")
        return
    for problem in check(name):
        yield FieldError.invalid("metadata.name", name, detail=problem)


def _name_check(kind: ResourceType) -> Callable[[str], list[str]]:
    if kind.plural in PATH_NAMES:
        return names.path_segment
    if kind.plural in LABEL_NAMES:
        return names.dns_label
    return names.dns_1035_label if kind.plural in SERVICE_NAMES else names.dns_subdomain


def _label_problems(labels: Mapping[str, Any]) -> Iterable[FieldError]:
    for key, value in labels.items():
        for problem in names.label_key(key):
            yield FieldError.invalid("metadata.labels", key, detail=problem)
        for problem in names.label_value(value):
            yield FieldError.invalid("metadata.labels", value, detail=problem)


def _annotation_problems(annotations: Mapping[str, Any]) -> Iterable[FieldError]:
    size = 0
    for key, value in annotations.items():
        for problem in names.annotation_key(key):
            yield FieldError.invalid("metadata.annotations", key, detail=problem)
        size += len(key.encode()) + len(value.encode())
    if size > MAX_ANNOTATIONS:
        yield FieldError.too_long("metadata.annotations", MAX_ANNOTATIONS)


def _finalizer_problems(kind: ResourceType, finalizers: list[str]) -> Iterable[FieldError]:
    path = "metadata.finalizers"
    for name in finalizers:
        for problem in names.label_key(name):
            yield FieldError.invalid(path, name, detail=problem)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield FieldError.invalid(path, finalizers, detail=detail)
    for index, name in enumerate(finalizers):
        if not kind.custom and "/" not in name and name not in STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldError.invalid(f"{path}[{index}]", name, detail=detail)


def _late_finalizer_problems(finalizers: list[str], before: list[str]) -> Iterable[FieldError]:
    added = sorted(set(finalizers) - set(before))
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield FieldError.forbidden("metadata.finalizers", f"{why} []string{{{listed}}}")


def _owner_problems(owners: list[dict[str, Any]]) -> Iterable[FieldError]:
    path, controller = "metadata.ownerReferences", ""
    for index, owner in enumerate(owners):
        version, kind = str(owner.get("apiVersion") or ""), str(owner.get("kind") or "")
        if not version or version.count("/") > 1 or version.endswith("/"):
            yield FieldError.invalid(f"{path}.apiVersion", version, detail="version must not be empty")
        for name in ("kind", "name"):
            if not owner.get(name):
                yield FieldError.invalid(f"{path}.{name}", "", detail="must not be empty")
        if not owner.get("uid"):
            yield FieldError.required(f"{path}[{index}].uid", "must not be empty")
        if (version, kind) == ("v1", "Event"):
            yield FieldError.invalid(path, owner, detail="/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            this = f"{kind}/{owner.get('name', '')}"
            if controller:
                what = f'Found "true" in references for {controller} and {this}'
                detail = f"Only one reference can have Controller set to true. {what}"
                yield FieldError.invalid(path, owners, detail=detail)
            controller = controller or this


def continue_token(rv: int, after: tuple[str, str]) -> str:
    """A continue token: the version of the list (0: the newest at that time) and the last key."""
    return base64.urlsafe_b64encode(f"{rv}\n{after[0]}\n{after[1]}".encode()).decode()


def read_continue_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = base64.urlsafe_b64decode(token.encode()).decode().split("\n")
        if len(version) > 20 or int(version) < 0:
            raise ValueError(version)
        return int(version), (namespace, name)
    except ValueError:
        raise BadRequest("invalid continue token: continue key is not valid") from None
