"""Patches: each patch format as a function from the stored object to the new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from holdfast.apiserver.http import bodies
from holdfast.apiserver.http.options import META, WriteOptions
from holdfast.apiserver.http.refusals import Undecodable
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.verbs.writes import Change
from holdfast.meta.errors import BadRequest, Details, FieldError, Invalid, UnsupportedMediaType
from holdfast.meta.exchange import Request
from holdfast.meta.patches import json as jsonpatch
from holdfast.meta.patches import merge, strategic

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_YAML: Final = "application/apply-patch+yaml"

LONGEST_SHOWN: Final = 500
REJECTED: Final = "the server rejected our request due to an error in our request"


def media_type(request: Request, kind: ResourceType) -> str:
    """The media type of a patch; raises 415 with the supported ones."""
    accepted = [JSON_PATCH, MERGE_PATCH]
    if not kind.custom:
        accepted.append(STRATEGIC_PATCH)
    accepted.append(APPLY_YAML)
    given = bodies.media_type(request)
    if given not in accepted:
        if kind.custom:
            raise UnsupportedMediaType.of(accepted)
        # Kubernetes' router refuses it for a built-in kind, before the handler that knows the accepted ones.
        raise UnsupportedMediaType("415: Unsupported Media Type", details=Details())
    return given


def check_options(options: WriteOptions, *, apply: bool, force_given: bool) -> None:
    problems = []
    if apply and not options.field_manager:
        problems.append(FieldError.required("fieldManager", "is required for apply patch"))
    if not apply and force_given:
        problems.append(FieldError.forbidden("force", "may not be specified for non-apply patch"))
    if problems:
        raise Invalid.of("PatchOptions", "", group=META, problems=problems)


def change_of(given: str, body: bytes, kind: ResourceType) -> Change:
    """The change of a patch of media type `given`, except for apply."""
    try:
        patch = bodies.read_json(body)
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    if given == JSON_PATCH:
        if not isinstance(patch, list):
            raise BadRequest("error decoding patch: json: cannot unmarshal object into a list of operations")
        _check_operations(patch)
        return lambda obj: _object(_json_patched(obj, patch), kind)
    if not isinstance(patch, dict):
        raise BadRequest(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    if given == MERGE_PATCH:
        return lambda obj: _object(merge.apply(obj, patch), kind)
    schema = strategic.Schema(kind.schema)
    return lambda obj: _object(_strategic(obj, patch, schema), kind)


@contextmanager
def refused_as_patch(request: Request) -> Iterator[None]:
    """An object that cannot be decoded after a patch makes the patch Invalid."""
    try:
        yield
    except Undecodable as error:
        shown = request.body.decode(errors="replace")[:LONGEST_SHOWN]
        problem = FieldError.invalid("patch", shown, detail=error.why)
        raise Invalid.of("", "", problems=[problem]) from error


def _check_operations(operations: list[Any]) -> None:
    """Check the operations of a JSON patch before any object is read, as Kubernetes does."""
    for each in operations:
        if not isinstance(each, dict):
            raise BadRequest("error decoding patch: json: cannot unmarshal into an operation: it is not an object")
        for name in ("from", "path"):
            if not isinstance(each.get(name, ""), str):
                raise BadRequest(f"error decoding patch: json: cannot unmarshal into {name}: it is not a string")


def _json_patched(obj: Object, operations: list[Any]) -> Any:
    try:
        return jsonpatch.apply(obj, operations)
    except jsonpatch.PatchTooLarge as error:
        raise BadRequest(str(error)) from error
    except jsonpatch.JSONPatchError as error:
        # The message of Kubernetes, which has no details; the log has them.
        raise Invalid(REJECTED, details=Details()) from error


def _strategic(obj: Object, patch: Object, schema: strategic.Schema) -> Any:
    try:
        return strategic.apply(obj, patch, schema=schema)
    except strategic.StrategicPatchError as error:
        raise BadRequest(str(error)) from error


def _object(value: Any, kind: ResourceType) -> Object:
    if not isinstance(value, dict):
        raise bodies.refused(kind, "the result is not an object")
    return bodies.checked_object(value, kind)


async def applied(request: Request, kind: ResourceType, name: str) -> Object:
    """The configuration of an apply: YAML or JSON, with apiVersion, kind and name."""
    try:
        value = await bodies.read_yaml(request.body) if request.body[:1] != b"{" else bodies.read_json(request.body)
    except ValueError as error:
        raise BadRequest(f"error decoding YAML: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("error decoding YAML: the configuration is not an object")
    if not value.get("apiVersion") or not value.get("kind"):
        group, _, version = str(value.get("apiVersion") or "").rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={value.get('kind') or ''}")
    if isinstance(value.get("metadata"), dict) and value["metadata"].get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    obj = bodies.checked_object(value, kind)
    given = obj["metadata"].setdefault("name", name)
    if given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
    return obj
