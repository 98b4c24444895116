"""ConversionReviews: what an API server asks a conversion webhook, and the answer.

Pure.  A review that cannot be read, or an object of a kind without an older version, is answered with what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast import kinds

KIND: Final = "ConversionReview"


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    desired_api_version: str = msgspec.field(default="", name="desiredAPIVersion")
    objects: tuple[dict[str, Any], ...] = ()


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = ""
    request: _Request = _Request()


def answered(review: Mapping[str, Any]) -> dict[str, Any]:
    """The review with its response."""
    try:
        asked = msgspec.convert(review, _Review)
    except msgspec.ValidationError as error:
        return _review("apiextensions.k8s.io/v1", "", (), f"not a {KIND}: {error}")
    try:
        made = tuple(_converted(each, asked.request.desired_api_version) for each in asked.request.objects)
    except ValueError as error:
        return _review(asked.api_version, asked.request.uid, (), str(error))
    return _review(asked.api_version, asked.request.uid, made, "")


def _converted(obj: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    group, _, version = api_version.rpartition("/")
    kind = kinds.find(str(obj.get("apiVersion")), str(obj.get("kind")))
    convert = None if kind is None else kinds.conversion(kind.crd_name)
    if convert is None or kind is None or kind.group != group:
        raise ValueError(f"{obj.get('apiVersion')} {obj.get('kind')} cannot be converted to {api_version}")
    return convert(obj, version)


def _review(api_version: str, uid: str, objects: tuple[dict[str, Any], ...], problem: str) -> dict[str, Any]:
    result = {"status": "Failed", "message": problem} if problem else {"status": "Success"}
    response = {"uid": uid, "convertedObjects": list(objects), "result": result}
    return {"apiVersion": api_version, "kind": KIND, "response": response}
