"""Admission: the defaults and the problems of an object that its schema cannot say, before it is stored.

An operator declares a `Review` for each of its kinds, a pure function from the object alone to its problems, and a
`Defaulting` where a default is written into the object.  The embedded server calls them in process; on other servers
webhooks do (`reviewed`, `completed`).  An update is refused only for problems that it brings: an object that was stored
with a problem can still be changed.  This module must not know any kind.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast import kinds
from holdfast.kinds import DocumentError, Problem
from holdfast.kinds.model import Kind
from holdfast.meta.errors import Cause, Details, Invalid
from holdfast.meta.patches import json as jsonpatch
from holdfast.operators.operator import Defaulting, Operator, Review

Wire = Mapping[str, Any]

KIND: Final = "AdmissionReview"
API: Final = "admission.k8s.io/v1"


class Admission:
    """The reviews and the defaults of some operators."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        operators = tuple(operators)
        self._reviews: dict[tuple[str, str], Review] = {
            _named(kind): review for operator in operators for kind, review in operator.reviews.items()
        }
        self._defaulting: dict[tuple[str, str], Defaulting] = {
            _named(kind): defaulting for operator in operators for kind, defaulting in operator.defaulting.items()
        }

    @property
    def reviewed_kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in kinds.ALL if _named(kind) in self._reviews)

    @property
    def defaulted_kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in kinds.ALL if _named(kind) in self._defaulting)

    # --- defaults

    def defaulted(self, new: Wire, old: Wire | None = None) -> Wire:
        """An object with its defaults: itself, if it lacks none."""
        patch = self._patch(new, old)
        completed: Wire = jsonpatch.apply(new, patch) if patch else new
        return completed

    def completed(self, review: Wire) -> dict[str, Any]:
        """An AdmissionReview of the mutating webhook with its response: a patch that adds the defaults."""
        asked = _asked(review)
        if isinstance(asked, Invalid):
            return _response("", asked)
        return _response(asked.uid, None, patch=self._patch(asked.object or {}, asked.replaced))

    def _patch(self, new: Wire, old: Wire | None) -> list[dict[str, Any]]:
        kind = _kind_of(new)
        defaulting = None if kind is None else self._defaulting.get(_named(kind))
        if kind is None or defaulting is None or _is_deleting(new):
            return []
        try:
            before = None if old is None else msgspec.convert(old, kind.model)
            filled = tuple(defaulting(msgspec.convert(new, kind.model), before))
        except (DocumentError, msgspec.ValidationError):
            return []  # the server says itself what its schema refuses
        return [
            {"op": "add", "path": jsonpatch.format_pointer([str(each) for each in one.path]), "value": one.value}
            for one in filled
        ]

    # --- problems

    def problems(self, new: Wire, old: Wire | None = None) -> tuple[Problem, ...]:
        """The problems of an object that the one before it did not have; none while it is being deleted."""
        kind = _kind_of(new)
        review = None if kind is None else self._reviews.get(_named(kind))
        if kind is None or review is None or _is_deleting(new):
            return ()
        found = _found(review, kind, new)
        if not found or old is None:
            return found
        known = {(problem.path, problem.message) for problem in _found(review, kind, old)}
        return tuple(problem for problem in found if (problem.path, problem.message) not in known)

    def refusal(self, new: Wire, old: Wire | None = None) -> Invalid | None:
        """The answer of an API server to an object with problems."""
        found = self.problems(new, old)
        if not found:
            return None
        group = str(new.get("apiVersion")).rpartition("/")[0]
        name, kind = str((new.get("metadata") or {}).get("name", "")), str(new.get("kind"))
        causes = tuple(Cause("FieldValueInvalid", _said(each), each.path) for each in found)
        said = [f"{cause.field}: {cause.message}" for cause in causes]
        listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
        message = f'{kind}.{group} "{name}" is invalid: {listed}'
        return Invalid(message, details=Details(name=name, group=group, kind=kind, causes=causes))

    def reviewed(self, review: Wire) -> dict[str, Any]:
        """An AdmissionReview of the validating webhook with its response."""
        asked = _asked(review)
        if isinstance(asked, Invalid):
            return _response("", asked)
        return _response(asked.uid, self.refusal(asked.object or {}, asked.replaced))


def _said(problem: Problem) -> str:
    return problem.message if problem.hint is None else f"{problem.message}; {problem.hint}"


def _found(review: Review, kind: Kind, wire: Wire) -> tuple[Problem, ...]:
    """What a review says; nothing of an object that the schema refuses, which the server says itself."""
    try:
        return tuple(review(msgspec.convert(wire, kind.model)))
    except DocumentError as error:
        return error.problems
    except msgspec.ValidationError:
        return ()


def _named(kind: Kind) -> tuple[str, str]:
    return kind.api_version, kind.name


def _kind_of(wire: Wire) -> Kind | None:
    return kinds.find(str(wire.get("apiVersion")), str(wire.get("kind")))


def _is_deleting(wire: Wire) -> bool:
    metadata = wire.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("deletionTimestamp"))


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None

    @property
    def replaced(self) -> dict[str, Any] | None:
        return self.old_object if self.operation == "UPDATE" else None


class _Review(msgspec.Struct, frozen=True):
    request: _Request


def _asked(review: Wire) -> _Request | Invalid:
    try:
        return msgspec.convert(review, _Review).request
    except msgspec.ValidationError as error:
        return Invalid(f"not an {KIND}: {error}")


def _response(uid: str, refusal: Invalid | None, *, patch: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": refusal is None}
    if refusal is not None:
        response["status"] = refusal.to_status()
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(patch)).decode()}
    return {"apiVersion": API, "kind": KIND, "response": response}
