"""Why a server refuses a manifest, at the lines of the file: what is wrong, and what to write instead.

A server names the first problem, or fields without lines.  So the manifest is checked against the schema of its kind:
the declared one for Holdfast's kinds, and the one that the server publishes (OpenAPI v3) for all others.  This module
only explains refusals; the server alone decides what is valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.cli.connecting import Session
from holdfast.cli.errors import Complaint
from holdfast.cli.manifests.sources import Manifest
from holdfast.client.protocols import Unreachable
from holdfast.client.resources import NAMESPACES
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.exchange import JSON, Request
from holdfast.meta.objects import GVK
from holdfast.meta.schemas import hints, walk
from holdfast.meta.suggestions import nearest

Schema = Mapping[str, Any]

_ANYTHING: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_INT_OR_STRING: Final[Schema] = {"x-kubernetes-int-or-string": True}
_REFERENCE: Final = "#/components/schemas/"
_GVKS: Final = "x-kubernetes-group-version-kind"
_SUPPORTED: Final = re.compile(r'Unsupported value: "?(?P<value>[^":]*)"?: supported values: (?P<known>.*)')
_FIELD: Final = re.compile(r'(?:unknown|duplicate) field "(?P<path>[^"]+)"')
_DEEPEST: Final = 40
_OF_CONTENT: Final = (400, 422, 500)
"""The codes of refusals that may be about what is in the manifest; kube-apiserver has 500 for some of them."""


async def complaints(session: Session, manifest: Manifest, error: StatusError) -> list[Complaint]:
    """What is wrong with a manifest that a server refused; none where only the server knows."""
    if isinstance(error, NotFound) and _is_about(error, NAMESPACES.plural):
        return [_missing_namespace(manifest, error)]
    found = [_of_cause(manifest, cause.field, cause.message) for cause in error.causes if cause.field]
    if error.code not in _OF_CONTENT:
        return []
    known = {complaint.path for complaint in found}
    checked = [each for each in await _checked(session, manifest) if each.path not in known]
    named = [] if found or checked else list(_of_text(manifest, error.message))
    # Rules about several fields that were not checked, because one of them is invalid, say nothing new.
    telling = [each for each in found if each.path != "<nil>"]
    return [*checked, *telling, *named] or found


def _is_about(error: StatusError, plural: str) -> bool:
    details = error.details
    return details is not None and (details.kind == plural or error.message.startswith(f"{plural} "))


def _missing_namespace(manifest: Manifest, error: StatusError) -> Complaint:
    name = manifest.namespace or (error.details.name if error.details else "")
    message = f"there is no namespace {name!r}" if name else error.message
    hint = (
        f"put 'apiVersion: v1, kind: Namespace, metadata: {{name: {name or 'NAME'}}}' before it, or write another one"
    )
    return manifest.complaint(message, path="metadata.namespace", hint=hint)


def _of_cause(manifest: Manifest, field: str, message: str) -> Complaint:
    """A problem that the server names, with a suggestion where it lists what is possible."""
    match = _SUPPORTED.match(message)
    hint = None
    if match is not None:
        known = re.findall(r'"([^"]*)"', match["known"])
        meant = nearest(match["value"], known)
        hint = f"did you mean {meant}?" if meant else None
    return manifest.complaint(message, path=field, hint=hint)


def _of_text(manifest: Manifest, message: str) -> Iterator[Complaint]:
    """The fields that a message names in its text."""
    for match in _FIELD.finditer(message):
        yield manifest.complaint(match[0].partition(' "')[0], path=match["path"])


async def _checked(session: Session, manifest: Manifest) -> list[Complaint]:
    """What the schema of the kind does not accept."""
    from holdfast import kinds  # only where something is wrong
    from holdfast.kinds import checks

    kind = kinds.find(str(manifest.value.get("apiVersion")), manifest.gvk.kind)
    if kind is not None:
        found = list(checks.problems(kind, manifest.value))
    else:
        schema = await _published(session, manifest.gvk)
        found = [] if schema is None else list(hints.problems(walk.compile(schema), manifest.value))
    first: dict[str, hints.Problem] = {}
    for each in found:
        first.setdefault(each.path, each)
    return [manifest.complaint(each.message, path=each.path, hint=_short(each.hint)) for each in first.values()]


_LONG: Final = 160


def _short(hint: str | None) -> str | None:
    """A hint of a few words: a list of all fields of a pod is too long to help."""
    return hint if hint is None or len(hint) <= _LONG else f"{hint[:_LONG].rpartition(',')[0]}, ..."


# The schemas that a server publishes.


async def _published(session: Session, gvk: GVK) -> Schema | None:
    """The schema of a kind as the server publishes it; None where it does not."""
    place = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
    try:
        answer = await session.client.raw(Request("GET", f"/openapi/v3/{place}", headers={"accept": JSON}))
        document = msgspec.json.decode(answer.body, type=dict[str, Any])
        schemas = document["components"]["schemas"]
        name = next(name for name, each in schemas.items() if _declares(each, gvk))
        return _inlined(schemas[name], schemas, ())
    except (StatusError, Unreachable, msgspec.DecodeError, LookupError, TypeError, AttributeError, StopIteration):
        return None


def _declares(schema: Schema, gvk: GVK) -> bool:
    wanted = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return any({name: each.get(name, "") for name in wanted} == wanted for each in schema.get(_GVKS) or ())


def _inlined(schema: Schema, schemas: Mapping[str, Schema], above: tuple[str, ...]) -> Schema:
    """A schema without references, in the form of a CustomResourceDefinition."""
    whole = schema.get("allOf")
    if isinstance(whole, list) and len(whole) == 1:
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        return {**_inlined(whole[0], schemas, above), **rest}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(_REFERENCE)
        if name in above or len(above) > _DEEPEST or name not in schemas:
            return _ANYTHING
        return _inlined(schemas[name], schemas, (*above, name))
    if "oneOf" in schema or "anyOf" in schema:
        types = {each.get("type") for each in (*schema.get("oneOf", ()), *schema.get("anyOf", ()))}
        return _INT_OR_STRING if types == {"integer", "string"} else _ANYTHING
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {name: _inlined(each, schemas, above) for name, each in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        made["additionalProperties"] = _inlined(schema["additionalProperties"], schemas, above)
    if isinstance(schema.get("items"), Mapping):
        made["items"] = _inlined(schema["items"], schemas, above)
    if made.get("type") == "object" and not made.keys() & {"properties", "additionalProperties"}:
        return {**made, **_ANYTHING}
    return made
