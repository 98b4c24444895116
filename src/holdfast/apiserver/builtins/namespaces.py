"""Namespace, and what configures the pods of one: ConfigMap, Secret, ServiceAccount, LimitRange, ResourceQuota."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import AGE, CREATED_AT, NAME, column, field, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.errors import FieldError

MAX_DATA: Final = 1024 * 1024
NAME_LABEL: Final = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER: Final = "kubernetes"
IMMUTABLE: Final = "field is immutable when `immutable` is set"
SERVICE_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
REQUIRED_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that a Secret of a known type must have."""


def _default_namespace(obj: Object) -> None:
    name = obj["metadata"].get("name")
    if name:
        obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name


def _new_namespace(obj: Object) -> None:
    _default_namespace(obj)  # a generated name is known only now
    finalizers = obj["spec"].setdefault("finalizers", [])
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.append(NAMESPACE_FINALIZER)


def _keep_finalizers(obj: Object, old: Object) -> None:
    """Only the finalize subresource changes the finalizers of a Namespace."""
    obj["spec"] = dict(old.get("spec") or {})


def _end_namespace(obj: Object, now: datetime) -> None:
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}


def _default_secret(obj: Object) -> None:
    """Move stringData into data."""
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _data_problems(obj: Object, *, encoded: tuple[str, ...]) -> Problems:
    """Invalid keys, and more data than an object may hold."""
    size = 0
    for where in ("data", "binaryData"):
        values = obj.get(where) or {}
        yield from checks.config_keys(values, where)
        if where in encoded:
            size += sum(len(base64.b64decode(value)) for value in values.values())
        else:
            size += len("".join(values.values()).encode())
    for key in (obj.get("binaryData") or {}).keys() & (obj.get("data") or {}).keys():
        yield FieldError.invalid(f"data[{key}]", key, detail="duplicate of key present in binaryData")
    if size > MAX_DATA:
        yield FieldError.too_long("data" if "data" in encoded else "", MAX_DATA)


def _frozen_data(obj: Object, old: Object | None, *names: str) -> Problems:
    if old is None or not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield FieldError.forbidden("immutable", IMMUTABLE)
    for name in names:
        if obj.get(name) != old.get(name):
            yield FieldError.forbidden(name, IMMUTABLE)


def _validate_config_map(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_data_problems(obj, encoded=("binaryData",)))
    return [*problems, *_frozen_data(obj, old, "data", "binaryData")]


def _validate_secret(obj: Object, old: Object | None) -> list[FieldError]:
    return [*_secret_problems(obj), *_frozen_data(obj, old, "data"), *_same_type(obj, old)]


def _same_type(obj: Object, old: Object | None) -> Problems:
    if old is not None:
        yield from checks.unchanged(obj.get("type"), old.get("type"), path="type")


def _secret_problems(obj: Object) -> Problems:
    yield from _data_problems(obj, encoded=("data",))
    data, kind = obj.get("data") or {}, obj.get("type", "")
    if kind == SERVICE_ACCOUNT_TOKEN and not get(obj, "metadata", "annotations", SERVICE_ACCOUNT_NAME):
        yield FieldError.required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield FieldError.required("data[username]")
        yield FieldError.required("data[password]")
    for key in REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield FieldError.required(f"data[{key}]")


def _validate_quota(obj: Object, old: Object | None) -> list[FieldError]:
    return [
        FieldError.invalid(f"spec.hard[{name}]", amount, detail=checks.NOT_NEGATIVE)
        for name, amount in get(obj, "spec", "hard", default={}).items()
        if checks.quantity(amount).nanos < 0
    ]


def _count(obj: Object, *names: str) -> int:
    return sum(len(obj.get(name) or ()) for name in names)


def _used(obj: Object, *, limits: bool) -> str:
    """What is used of what may be, of the limits or of the rest."""
    hard: Mapping[str, Any] = get(obj, "status", "hard", default={})
    used: Mapping[str, Any] = get(obj, "status", "used", default={})
    shown = (
        f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard) if name.startswith("limits") == limits
    )
    return ", ".join(shown)


NAMESPACE: Final = builtin(
    "Namespace",
    namespaced=False,
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    status=True,
    generation=False,
    subresources=("finalize",),
    columns=(NAME, field("Status", "status", "phase"), AGE),
    fields=("status.phase",),
    default=_default_namespace,
    on_create=_new_namespace,
    on_update=_keep_finalizers,
    on_delete=_end_namespace,
)
CONFIG_MAP: Final = builtin(
    "ConfigMap",
    short_names=("cm",),
    generation=False,
    columns=(NAME, column("Data", lambda obj: _count(obj, "data", "binaryData")), AGE),
    validate=_validate_config_map,
)
SECRET: Final = builtin(
    "Secret",
    generation=False,
    columns=(NAME, field("Type", "type"), column("Data", lambda obj: _count(obj, "data")), AGE),
    fields=("type",),
    default=_default_secret,
    validate=_validate_secret,
)
SERVICE_ACCOUNT: Final = builtin(
    "ServiceAccount",
    short_names=("sa",),
    generation=False,
    subresources=("token",),
    columns=(NAME, column("Secrets", lambda obj: _count(obj, "secrets")), AGE),
)
LIMIT_RANGE: Final = builtin(
    "LimitRange", short_names=("limits",), generation=False, columns=(NAME, CREATED_AT), created_by_update=True
)
RESOURCE_QUOTA: Final = builtin(
    "ResourceQuota",
    short_names=("quota",),
    status=True,
    generation=False,
    columns=(
        NAME,
        column("Request", lambda obj: _used(obj, limits=False)),
        column("Limit", lambda obj: _used(obj, limits=True)),
        AGE,
    ),
    validate=_validate_quota,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (
    NAMESPACE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    LIMIT_RANGE,
    RESOURCE_QUOTA,
)
