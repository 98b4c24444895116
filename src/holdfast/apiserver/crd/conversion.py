"""Conversion of custom objects between the versions of their definition.

With the strategy ``Webhook`` a ConversionReview is sent to the webhook of the definition, as Kubernetes does.  With
``None`` versions differ in their apiVersion alone, unless this process has a function for the kind (`Convert`).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.apiserver.admission.webhooks.calls import CallFailed, Calls
from holdfast.apiserver.admission.webhooks.matching import Client
from holdfast.apiserver.resources import Object
from holdfast.meta.errors import StatusError
from holdfast.meta.exchange import encode

Convert: TypeAlias = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""An object in another version, which is given as its name, such as ``v1beta1``."""

ConvertAll: TypeAlias = Callable[[Sequence[Object], str], Awaitable[list[Object]]]
"""Objects in the version that an apiVersion names."""

VERSIONS: Final = ("v1", "v1beta1")
"""The versions of ConversionReview that this server writes, the preferred one first."""

KIND: Final = "ConversionReview"
GROUP: Final = "apiextensions.k8s.io"
SECONDS: Final = 30

_OWN: Final = ("labels", "annotations")
"""What a conversion may change of the metadata."""


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    converted_objects: list[dict[str, Any]] = []
    result: _Result = _Result()


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


OwnConversions: TypeAlias = Callable[[str], Convert | None]
"""The function of this process that converts the objects of a definition, by its name; None where there is none."""


def no_conversion(definition: str) -> Convert | None:
    """The `OwnConversions` of a server that has none."""
    return None


def converter(definition: Object, calls: Calls, own: OwnConversions) -> ConvertAll | None:
    """How the objects of a definition are converted; None where only their apiVersion changes."""
    spec = definition["spec"]
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        return _Webhook(definition, calls).convert
    convert = own(definition["metadata"]["name"]) if len(spec["versions"]) > 1 else None
    return None if convert is None else _in_process(convert)


def _in_process(convert: Convert) -> ConvertAll:
    async def all_of(objects: Sequence[Object], api_version: str) -> list[Object]:
        version = api_version.rpartition("/")[2]
        return [_guarded(obj, convert(obj, version), api_version) for obj in objects]

    return all_of


class _Webhook:
    """The conversion webhook of one definition."""

    def __init__(self, definition: Object, calls: Calls) -> None:
        spec = definition["spec"]
        webhook = spec["conversion"].get("webhook") or {}
        self._kind = f"{spec['group']}/{{version}}, Kind={spec['names']['kind']}"
        self._client = Client.read(webhook.get("clientConfig") or {})
        given = webhook.get("conversionReviewVersions") or ()
        self._version = next((each for each in given if each in VERSIONS), "")
        self._calls = calls

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        uid = str(uuid.uuid4())
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)}
        review = {"kind": KIND, "apiVersion": f"{GROUP}/{self._version}", "request": request}
        try:
            body = await self._calls.send(self._client, encode(review), seconds=SECONDS)
            made = _checked(body, uid=uid, version=self._version, number=len(objects), api_version=api_version)
        except (CallFailed, ValueError) as error:
            version = str(objects[0].get("apiVersion")).rpartition("/")[2]
            why = str(error).removeprefix("failed to call webhook: ")
            raise StatusError(
                f"conversion webhook for {self._kind.format(version=version)} failed: {why}", code=500, reason=""
            ) from None
        return [_guarded(obj, each, api_version) for obj, each in zip(objects, made, strict=True)]


def _checked(body: bytes, *, uid: str, version: str, number: int, api_version: str) -> list[Object]:
    """The objects of a review; raises ValueError if it is not valid."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"invalid response: {error}") from None
    if (review.api_version, review.kind) != (f"{GROUP}/{version}", KIND):
        raise ValueError(f"invalid response: expected {GROUP}/{version}, Kind={KIND}")
    response = review.response
    if response is None:
        raise ValueError("invalid response: no response provided")
    if response.uid != uid:
        raise ValueError(f'invalid response: expected response.uid="{uid}", got "{response.uid}"')
    if response.result.status != "Success":
        raise ValueError(response.result.message or "the webhook did not say why")
    found = response.converted_objects
    if len(found) != number:
        raise ValueError(f"webhook returned {len(found)} objects, expected {number}")
    for index, each in enumerate(found):
        if each.get("apiVersion") != api_version:
            given = each.get("apiVersion")
            raise ValueError(f"webhook returned invalid converted object at index {index}: apiVersion {given}")
    return found


def _guarded(obj: Object, made: dict[str, Any], api_version: str) -> Object:
    """The converted object with the identity of the original; a conversion changes labels and annotations at most."""
    given = made.get("metadata")
    changed: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OWN}
    metadata |= {name: changed[name] for name in _OWN if changed.get(name)}
    rest = {name: value for name, value in made.items() if name not in ("kind", "apiVersion", "metadata")}
    return {"kind": obj["kind"], "apiVersion": api_version, "metadata": metadata, **rest}
