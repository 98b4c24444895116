"""Admission: what is wrong with an object that its schema cannot say, found before it is stored.

An operator declares a `Review` for each of its kinds: a pure function from the object alone to its problems.  The
embedded server calls them in process; on other servers a validating webhook does (`answered`).  An update is refused
only for problems that it brings: an object that was stored with a problem can still be changed.  This module must not
know any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast import kinds
from holdfast.kinds import DocumentError, Problem
from holdfast.kinds.model import Kind
from holdfast.meta.errors import Cause, Details, Invalid
from holdfast.operators.operator import Operator, Review

Wire = Mapping[str, Any]

KIND: Final = "AdmissionReview"
API: Final = "admission.k8s.io/v1"


class Admission:
    """The reviews of some operators."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        self._reviews: dict[tuple[str, str], Review] = {
            _named(kind): review for operator in operators for kind, review in operator.reviews.items()
        }

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that are reviewed."""
        return tuple(kind for kind in kinds.ALL if _named(kind) in self._reviews)

    def problems(self, new: Wire, old: Wire | None = None) -> tuple[Problem, ...]:
        """The problems of an object that the one before it did not have; none while it is being deleted."""
        kind = kinds.find(str(new.get("apiVersion")), str(new.get("kind")))
        review = None if kind is None else self._reviews.get(_named(kind))
        if kind is None or review is None or (new.get("metadata") or {}).get("deletionTimestamp"):
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

    def answered(self, review: Wire) -> dict[str, Any]:
        """An AdmissionReview with its response."""
        try:
            asked = msgspec.convert(review, _Review)
        except msgspec.ValidationError as error:
            return _response("", Invalid(f"not an {KIND}: {error}"))
        request = asked.request
        old = request.old_object if request.operation == "UPDATE" else None
        return _response(request.uid, self.refusal(request.object or {}, old))


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


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    operation: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _Review(msgspec.Struct, frozen=True):
    request: _Request


def _response(uid: str, refusal: Invalid | None) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": refusal is None}
    if refusal is not None:
        response["status"] = refusal.to_status()
    return {"apiVersion": API, "kind": KIND, "response": response}
