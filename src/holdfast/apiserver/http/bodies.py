"""Request bodies: decodes bytes into objects, with the error messages of Kubernetes for bytes that are not valid."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from holdfast.apiserver.builtins.types.decoding import json_name
from holdfast.apiserver.http import messages, protobuf, yaml_subset
from holdfast.apiserver.http.refusals import Undecodable
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.workers import compute
from holdfast.meta.errors import MOST_PROBLEMS, BadRequest, UnsupportedMediaType
from holdfast.meta.exchange import Request, encode
from holdfast.meta.schemas.constraints import Path, name_of

JSON_TYPES: Final = ("application/json", "")
YAML_TYPES: Final = ("application/yaml",)
ACCEPTED: Final = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
ACCEPTED_CUSTOM: Final = ("application/json", "application/yaml")
"""Custom kinds have no messages, since their fields have no numbers."""

_decoder = msgspec.json.Decoder()


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    """The value of a JSON text; raises ValueError with a reason."""
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("exceeded max depth") from None


async def read_body(request: Request, kind: ResourceType | None = None) -> Any:
    """The value in the body, by its media type; an object of `kind` if that is known."""
    given = media_type(request)
    if given in JSON_TYPES:
        return await compute(len(request.body), lambda: read_json(request.body))
    if given in YAML_TYPES:
        return await read_yaml(request.body)
    of = None if kind is None else (kind.api_version, kind.kind)
    if of is not None and of not in messages.type_names():
        raise UnsupportedMediaType.of(ACCEPTED_CUSTOM)
    if given != protobuf.MEDIA_TYPE:
        raise UnsupportedMediaType.of(ACCEPTED)
    return await compute(len(request.body), lambda: messages.decode(request.body, of))


async def read_yaml(body: bytes) -> Any:
    """The value of a YAML document; raises ValueError with a reason."""
    return await compute(len(body), lambda: yaml_subset.read(body))


async def read_object(request: Request, kind: ResourceType) -> Object:
    """The object in the body, of `kind`; apiVersion and kind are optional for built-in kinds."""
    try:
        value = await read_body(request, kind)
        if not isinstance(value, dict):
            raise ValueError(f"cannot unmarshal {json_name(value)} into an object")
    except ValueError as error:
        in_json = media_type(request) != protobuf.MEDIA_TYPE
        problem = f"couldn't get version/kind; json parse error: {error}" if in_json else str(error)
        raise _unrecognized(kind, problem) from None
    if kind.custom and not value.get("kind"):
        raise _unrecognized(kind, "Object 'Kind' is missing")
    if kind.custom and not value.get("apiVersion"):
        raise _unrecognized(kind, "Object 'apiVersion' is missing")
    return await compute(len(request.body), lambda: checked_object(value, kind))


def _unrecognized(kind: ResourceType, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind.kind}): {why}")


def checked_object(value: Object, kind: ResourceType) -> Object:
    """`value` with the apiVersion, kind and metadata of an object of `kind`, or BadRequest."""
    given_kind, given_version = value.get("kind") or kind.kind, value.get("apiVersion") or kind.api_version
    if not isinstance(given_kind, str) or not isinstance(given_version, str):
        raise refused(kind, "kind and apiVersion must be strings")
    if given_version != kind.api_version:
        why = f'no kind "{given_kind}" is registered for version "{given_version}" in this server'
        raise Undecodable(kind.kind, given_version, why=why, given=given_kind)
    if given_kind != kind.kind:
        why = f"converting ({kind.version}.{given_kind}) to ({kind.kind}): unknown conversion"
        raise Undecodable(kind.kind, kind.version, why=why, given=given_kind)
    meta = value.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        raise refused(kind, f"json: cannot unmarshal {json_name(meta)} into Go struct field {kind.kind}.metadata")
    for name, item in meta.items():
        if name not in _TEXTS or type(item) is not str:
            _check_metadata(kind, name, item)
    present = {name: item for name, item in meta.items() if item is not None}
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": present} | _rest(value)


def _rest(value: Object) -> Object:
    rest = dict(value)
    for name in ("kind", "apiVersion", "metadata"):
        rest.pop(name, None)
    return rest


_TEXTS: Final = frozenset({"name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"})
_MAPS: Final = frozenset({"labels", "annotations"})


def _check_metadata(kind: ResourceType, name: str, value: Any) -> None:
    """Check the types of the metadata that the rest of the server relies on."""
    if value is None:
        return
    where = f"Go struct field ObjectMeta.metadata.{name} of type"
    if name in _TEXTS and not isinstance(value, str):
        raise refused(kind, f"json: cannot unmarshal {json_name(value)} into {where} string")
    if name in _MAPS and not (isinstance(value, dict) and all(isinstance(item, str) for item in value.values())):
        raise refused(kind, f"json: cannot unmarshal {json_name(value)} into {where} map[string]string")
    if name == "finalizers" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise refused(kind, f"json: cannot unmarshal {json_name(value)} into {where} []string")
    if name in ("ownerReferences", "managedFields") and not (
        isinstance(value, list) and all(isinstance(item, dict) for item in value)
    ):
        raise refused(kind, f"json: cannot unmarshal {json_name(value)} into {where} []object")
    if name in ("generation", "deletionGracePeriodSeconds") and (isinstance(value, bool) or not isinstance(value, int)):
        raise refused(kind, f"json: cannot unmarshal {json_name(value)} into {where} int64")


def refused(kind: ResourceType, why: str) -> Undecodable:
    return Undecodable(kind.kind, kind.version, why=why)


class _Pairs(dict[str, Any]):
    """An object that records its duplicate keys."""

    repeated: frozenset[str] = frozenset()


def duplicate_keys(body: bytes) -> list[str]:
    """The paths of the keys that a JSON object repeats, for strict field validation; no more than can be reported."""
    with contextlib.suppress(ValueError):
        # Clients write JSON without spaces: what is the same after decoding and encoding repeats nothing.
        if encode(read_json(body)) == body.rstrip():
            return []
    found = False

    def pairs(items: list[tuple[str, Any]]) -> _Pairs:
        nonlocal found
        made = _Pairs(items)
        if len(made) < len(items):
            found = True
            said = Counter(key for key, _ in items)
            made.repeated = frozenset(key for key in made if said[key] > 1)
        return made

    try:
        value = json.loads(body, object_pairs_hook=pairs)
        return [name_of(path) for path in islice(_repeated(value, ()), MOST_PROBLEMS)] if found else []
    except (ValueError, RecursionError):
        return []


def _repeated(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, _Pairs):
        for key, item in value.items():
            if key in value.repeated:
                yield path, key
            if isinstance(item, dict | list):
                yield from _repeated(item, (path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _repeated(item, (path, index))


def strict_problems(unknown: Iterable[str], duplicates: Iterable[str]) -> list[str]:
    return [f'duplicate field "{name}"' for name in duplicates] + [f'unknown field "{name}"' for name in unknown]
