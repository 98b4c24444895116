"""Object metadata: what the server owns of it, and what it checks of the rest."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import names, times
from holdfast.meta.errors import BadRequest, FieldError

MAX_ANNOTATIONS: Final = 256 * 1024
SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes: a generated name spells nothing."""

PATH_NAMES: Final = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
"""Kinds whose names may be any path segment."""

LABEL_NAMES: Final = frozenset({"namespaces"})
SERVICE_NAMES: Final = frozenset({"services"})


def stamp_new(obj: Object, *, namespace: str, now: datetime) -> None:
    """Give a new object what only the server can give."""
    meta = obj["metadata"]
    if not meta.get("name") and meta.get("generateName"):
        suffix = "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))
        meta["name"] = meta["generateName"][: 63 - len(suffix)] + suffix
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = times.format(now)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        meta.pop(name, None)


def keep_server_owned(obj: Object, old: Object) -> None:
    """What an update cannot change comes from the stored object."""
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
    """A new object is for the namespace of its request; where that has none, the object's is dropped."""
    given = obj["metadata"].get("namespace")
    if given and namespace and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def check_target(obj: Object, name: str, namespace: str) -> None:
    """An object that replaces another says which."""
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
    """What is wrong with the metadata of an object that is about to be written."""
    meta = obj["metadata"]
    found = list(_name_problems(kind, meta)) if old is None else []
    found += _label_problems(meta.get("labels") or {})
    found += _annotation_problems(meta.get("annotations") or {})
    found += _finalizer_problems(meta.get("finalizers") or [], old)
    found += _owner_problems(meta.get("ownerReferences") or [])
    return found


def _name_problems(kind: ResourceType, meta: Mapping[str, Any]) -> Iterable[FieldError]:
    name = meta.get("name")
    if not name:
        yield FieldError.required("metadata.name", "name or generateName is required")
        return
    if kind.plural in PATH_NAMES:
        said = names.path_segment(name)
    elif kind.plural in LABEL_NAMES:
        said = names.dns_label(name)
    elif kind.plural in SERVICE_NAMES:
        said = names.dns_1035_label(name)
    else:
        said = names.dns_subdomain(name)
    for problem in said:
        yield FieldError.invalid("metadata.name", name, detail=problem)


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


def _finalizer_problems(finalizers: list[str], old: Object | None) -> Iterable[FieldError]:
    for index, name in enumerate(finalizers):
        for problem in names.label_key(name):
            yield FieldError.invalid(f"metadata.finalizers[{index}]", name, detail=problem)
    if old is None or not old["metadata"].get("deletionTimestamp"):
        return
    before = set(old["metadata"].get("finalizers") or [])
    added = [name for name in finalizers if name not in before]
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        detail = (
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{"
            + listed
            + "}"
        )
        yield FieldError.forbidden("metadata.finalizers", detail)


def _owner_problems(owners: list[dict[str, Any]]) -> Iterable[FieldError]:
    controllers = 0
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield FieldError.invalid(f"{path}.{name}", "", detail=f"{name} must not be empty")
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        detail = "Only one reference can have Controller set to true"
        yield FieldError.invalid("metadata.ownerReferences", owners, detail=detail)


def continue_token(rv: int, after: tuple[str, str]) -> str:
    """Where a list goes on: at which version, 0 for whatever is the newest then, behind which key."""
    return base64.urlsafe_b64encode(f"{rv}\n{after[0]}\n{after[1]}".encode()).decode()


def read_continue_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = base64.urlsafe_b64decode(token.encode()).decode().split("\n")
        if len(version) > 20 or int(version) < 0:
            raise ValueError(version)
        return int(version), (namespace, name)
    except ValueError:
        raise BadRequest("invalid continue token: continue key is not valid") from None
