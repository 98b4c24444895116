"""Validation of the volumes of a pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.resources import Object
from holdfast.meta import names
from holdfast.meta.errors import FieldError

MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
HOST_PATH_TYPES: Final = (
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
    "",
)


def volume_problems(volume: Object, path: str) -> Problems:
    """All problems of a volume, which must have a name and exactly one source."""
    yield from checks.named(volume.get("name"), f"{path}.name", rule=names.dns_label)
    sources = [name for name in volume if name != "name"]
    if not sources:
        yield FieldError.required(path, "must specify a volume type")
    for extra in sources[1:]:
        yield FieldError.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    for source in sources:
        check = _SOURCES.get(source)
        if check is not None:
            yield from check(volume[source], f"{path}.{source}")


def _mode(mode: int | None, path: str) -> Problems:
    if mode is not None and not 0 <= mode <= 0o777:
        yield FieldError.invalid(path, mode, detail=MODE_RULE)


def _relative(value: str | None, path: str) -> Problems:
    """A path inside a volume."""
    if not value:
        yield FieldError.required(path)
    elif value.startswith("/"):
        yield FieldError.invalid(path, value, detail="must be a relative path")
    elif value.startswith("..") or ".." in value.split("/"):
        yield FieldError.invalid(path, value, detail="must not contain '..'")


def _items(source: Object, path: str) -> Problems:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for place, item in each(source.get("items"), f"{path}.items"):
        yield from checks.required(item.get("key"), f"{place}.key")
        yield from _relative(item.get("path"), f"{place}.path")
        yield from _mode(item.get("mode"), f"{place}.mode")


def _config_map(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("name"), f"{path}.name")
    yield from _items(source, path)


def _secret(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("secretName"), f"{path}.secretName")
    yield from _items(source, path)


def _downward(source: Object, path: str) -> Problems:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for place, item in each(source.get("items"), f"{path}.items"):
        yield from _relative(item.get("path"), f"{place}.path")
        if not {"fieldRef", "resourceFieldRef"} & item.keys():
            yield FieldError.required(place, "one of fieldRef and resourceFieldRef is required")


def _empty_dir(source: Object, path: str) -> Problems:
    if "sizeLimit" in source and checks.quantity(source["sizeLimit"]).nanos < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        yield FieldError.forbidden(f"{path}.sizeLimit", detail)


def _host_path(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("path"), f"{path}.path")
    kind = source.get("type", "")
    if kind not in HOST_PATH_TYPES:
        yield FieldError.not_supported(f"{path}.type", kind, supported=HOST_PATH_TYPES)


def _claim(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("claimName"), f"{path}.claimName")


def _nfs(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("server"), f"{path}.server")
    where = source.get("path")
    if not where:
        yield FieldError.required(f"{path}.path")
    elif not where.startswith("/"):
        yield FieldError.invalid(f"{path}.path", where, detail="must be an absolute path")


def _csi(source: Object, path: str) -> Problems:
    yield from checks.required(source.get("driver"), f"{path}.driver")


def _projected(source: Object, path: str) -> Problems:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for place, projection in each(source.get("sources"), f"{path}.sources"):
        for extra in list(projection)[1:]:
            yield FieldError.forbidden(f"{place}.{extra}", "may not specify more than 1 volume type per source")
        if "configMap" in projection:
            yield from _config_map(projection["configMap"], f"{place}.configMap")
        if "secret" in projection:
            yield from checks.required(projection["secret"].get("name"), f"{place}.secret.name")
            yield from _items(projection["secret"], f"{place}.secret")
        if "downwardAPI" in projection:
            yield from _downward(projection["downwardAPI"], f"{place}.downwardAPI")
        if "serviceAccountToken" in projection:
            token = projection["serviceAccountToken"]
            yield from _relative(token.get("path"), f"{place}.serviceAccountToken.path")
            if token.get("expirationSeconds", 3600) < 600:
                at = f"{place}.serviceAccountToken.expirationSeconds"
                detail = "may not specify a duration less than 10 minutes"
                yield FieldError.invalid(at, token["expirationSeconds"], detail=detail)


_SOURCES: Final[Mapping[str, Callable[[Object, str], Problems]]] = {
    "configMap": _config_map,
    "csi": _csi,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "nfs": _nfs,
    "persistentVolumeClaim": _claim,
    "projected": _projected,
    "secret": _secret,
}
