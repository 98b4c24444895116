"""The errors of the vocabulary: malformed text, and the refusals of an API server.

::

    MalformedError (ValueError)        a text that its parser cannot accept; each parser has its own subclass
    StatusError                        a refusal, as a Kubernetes ``Status`` object
    ├── BadRequest              400
    ├── Unauthorized            401
    ├── Forbidden               403
    ├── NotFound                404
    ├── MethodNotAllowed        405
    ├── NotAcceptable           406
    ├── AlreadyExists           409
    ├── Conflict                409
    ├── Gone                    410
    │   └── Expired             410    list again: the history asked for is compacted
    ├── RequestEntityTooLarge   413
    ├── UnsupportedMediaType    415
    ├── Invalid                 422    one `FieldError` per problem
    ├── TooManyRequests         429
    ├── InternalError           500
    ├── ServerTimeout           500    nothing was done; try again
    ├── ServiceUnavailable      503
    ├── Timeout                 504    it is unknown whether anything was done
    └── InsufficientStorage     507    the disk of the server is full

A server raises these and writes `to_status`; a client reads the answer with `from_status` and raises the same
class. ``of`` constructors speak in the words that Kubernetes' own clients and users know. This module must not
know how a Status travels, nor who retries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final

import msgspec

STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"


MOST_PROBLEMS: Final = 100
"""The most problems that one refusal lists."""

_LONGEST_VALUE: Final = 10_000
"""The most characters of a value that an error shows."""

_LONGEST_MESSAGE: Final = 100_000
"""The most characters of all problems together that a refusal lists."""


class MalformedError(ValueError):
    """A text or value that its parser cannot accept; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason among several for a refusal; `field` is a path such as ``spec.ports[0].name``."""

    reason: str = ""
    message: str = ""
    field: str = ""

    def to_wire(self) -> dict[str, Any]:
        return _without_empty({"reason": self.reason, "message": self.message, "field": self.field})


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a refusal is about. `kind` holds a resource (``pods``) or a kind (``Pod``), as Kubernetes has it."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0

    def to_wire(self) -> dict[str, Any]:
        return _without_empty(
            {
                "name": self.name,
                "group": self.group,
                "kind": self.kind,
                "uid": self.uid,
                "causes": [cause.to_wire() for cause in self.causes],
                "retryAfterSeconds": self.retry_after_seconds,
            }
        )


class StatusError(Exception):
    """A refusal by an API server. `code` and `reason` are the class's own unless the answer said otherwise."""

    code: int = 500
    reason: str = ""

    def __init__(
        self, message: str, *, details: Details | None = None, code: int | None = None, reason: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    @property
    def causes(self) -> tuple[Cause, ...]:
        return self.details.causes if self.details else ()

    @property
    def retry_after_seconds(self) -> int:
        """How long the server asked to wait; 0 if it did not."""
        return self.details.retry_after_seconds if self.details else 0

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later with nothing changed by the caller."""
        return self.code in _TRANSIENT_CODES

    def to_status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status |= _without_empty({"message": self.message, "reason": self.reason})
        if self.details is not None:
            status["details"] = self.details.to_wire()
        return status | {"code": self.code}


class BadRequest(StatusError):
    code, reason = 400, "BadRequest"


class Unauthorized(StatusError):
    code, reason = 401, "Unauthorized"

    @classmethod
    def of(cls) -> Unauthorized:
        return cls("Unauthorized")


class Forbidden(StatusError):
    code, reason = 403, "Forbidden"

    @classmethod
    def of(cls, resource: str, name: str, *, why: str, group: str = "") -> Forbidden:
        """`name` is empty where the request names no object, as a list does."""
        what = _qualified(resource, group)
        subject = f"{what} {_shown(name)}" if name else what
        return cls(f"{subject} is forbidden: {why}", details=Details(name=name, group=group, kind=resource))


class NotFound(StatusError):
    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, resource: str, name: str, *, group: str = "") -> NotFound:
        message = f"{_qualified(resource, group)} {_shown(name)} not found"
        return cls(message, details=Details(name=name, group=group, kind=resource))

    @classmethod
    def of_path(cls) -> NotFound:
        """The answer to a path that the server does not serve at all."""
        return cls("the server could not find the requested resource", details=Details())


class MethodNotAllowed(StatusError):
    code, reason = 405, "MethodNotAllowed"

    @classmethod
    def of(cls, resource: str, verb: str, *, group: str = "") -> MethodNotAllowed:
        message = f"{verb} is not supported on resources of kind {_shown(_qualified(resource, group))}"
        return cls(message, details=Details(group=group, kind=resource))

    @classmethod
    def of_path(cls) -> MethodNotAllowed:
        """The answer to a method that a path does not take."""
        return cls("the server does not allow this method on the requested resource", details=Details())


class NotAcceptable(StatusError):
    code, reason = 406, "NotAcceptable"

    @classmethod
    def of(cls, offered: Iterable[str]) -> NotAcceptable:
        return cls(f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}", details=Details())


class AlreadyExists(StatusError):
    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, resource: str, name: str, *, group: str = "") -> AlreadyExists:
        message = f"{_qualified(resource, group)} {_shown(name)} already exists"
        return cls(message, details=Details(name=name, group=group, kind=resource))


class Conflict(StatusError):
    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, resource: str, name: str, *, group: str = "", why: str = STALE) -> Conflict:
        message = f"Operation cannot be fulfilled on {_qualified(resource, group)} {_shown(name)}: {why}"
        return cls(message, details=Details(name=name, group=group, kind=resource))


class Gone(StatusError):
    code, reason = 410, "Gone"


class Expired(Gone):
    reason = "Expired"
    token: str = ""
    """Where a list can go on all the same, at a newer version."""

    @classmethod
    def of(cls, asked: int, oldest: int) -> Expired:
        return cls(f"too old resource version: {asked} ({oldest})")

    @classmethod
    def of_page(cls, token: str) -> Expired:
        """The answer to a token whose version is forgotten; `token` goes on at the newest one."""
        error = cls(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list."
        )
        error.token = token
        return error

    def to_status(self) -> dict[str, Any]:
        status = super().to_status()
        return status | {"metadata": {"continue": self.token}} if self.token else status


class RequestEntityTooLarge(StatusError):
    code, reason = 413, "RequestEntityTooLarge"

    @classmethod
    def of(cls, limit: int) -> RequestEntityTooLarge:
        return cls(f"Request entity too large: limit is {limit}")


class UnsupportedMediaType(StatusError):
    code, reason = 415, "UnsupportedMediaType"

    @classmethod
    def of(cls, accepted: Iterable[str]) -> UnsupportedMediaType:
        types = ", ".join(accepted)
        return cls(f"the body of the request was in an unknown format - accepted media types include: {types}")


class Invalid(StatusError):
    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, name: str, *, group: str = "", problems: Iterable[FieldError]) -> Invalid:
        """All problems at once, so that one round of corrections is enough; of very many, the first."""
        sentences: dict[str, None] = {}
        causes: list[Cause] = []
        length = 0
        for problem in problems:
            if len(causes) >= MOST_PROBLEMS or length > _LONGEST_MESSAGE:
                sentences["and more problems, which are listed once these are corrected"] = None
                break
            cause = problem.to_cause()
            causes.append(cause)
            sentences[f"{problem.field}: {cause.message}"] = None
            length += len(cause.message) + len(cause.field)
        subject = f"{_qualified(kind, group)} {_shown(name)} is invalid"
        details = Details(name=name, group=group, kind=kind, causes=tuple(causes))
        return cls(f"{subject}: {_joined(tuple(sentences))}" if sentences else subject, details=details)


class TooManyRequests(StatusError):
    code, reason = 429, "TooManyRequests"

    @classmethod
    def of(cls, why: str, *, retry_after_seconds: int) -> TooManyRequests:
        return cls(why, details=Details(retry_after_seconds=retry_after_seconds))


class InternalError(StatusError):
    code, reason = 500, "InternalError"

    @classmethod
    def of(cls, why: str) -> InternalError:
        return cls(f"Internal error occurred: {why}", details=Details(causes=(Cause(message=why),)))


class InsufficientStorage(StatusError):
    """The server has no space left to store an object."""

    code, reason = 507, "InsufficientStorage"


class ServerTimeout(StatusError):
    code, reason = 500, "ServerTimeout"

    @classmethod
    def of(cls, resource: str, verb: str, *, group: str = "", retry_after_seconds: int = 0) -> ServerTimeout:
        what = _qualified(resource, group)
        message = f"The {verb} operation against {what} could not be completed at this time, please try again."
        return cls(message, details=Details(group=group, kind=resource, retry_after_seconds=retry_after_seconds))


class ServiceUnavailable(StatusError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(StatusError):
    code, reason = 504, "Timeout"

    @classmethod
    def of(cls, why: str, *, retry_after_seconds: int = 0) -> Timeout:
        return cls(f"Timeout: {why}", details=Details(retry_after_seconds=retry_after_seconds))


_TRANSIENT_CODES: Final = frozenset({408, 429, 500, 502, 503, 504, 507})

# Where two classes share a code, an answer without a reason means the one whose remedy is safe: to read again.
_AMBIGUOUS_CODES: Final[dict[int, type[StatusError]]] = {409: Conflict, 410: Gone, 500: InternalError}
_CLASSES: Final[tuple[type[StatusError], ...]] = (*StatusError.__subclasses__(), Expired)
_BY_REASON: Final = {cls.reason: cls for cls in _CLASSES}
_BY_CODE: Final = {cls.code: cls for cls in _CLASSES} | _AMBIGUOUS_CODES | {408: Timeout}


def from_status(status: Mapping[str, Any], code: int) -> StatusError:
    """The error that an answer stands for, chosen by its reason, else by its code.

    `code` is the HTTP code, used where the body has none: proxies answer with anything, so whatever in the body
    has the wrong type counts as absent. An unknown reason is kept as it came.
    """
    code = _number(status, "code") or code
    reason = _text(status, "reason")
    fallback = InternalError if code >= 500 else StatusError
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code, fallback)
    message = _text(status, "message") or f"the server answered {code} without saying why"
    return cls(message, details=_read_details(status.get("details")), code=code, reason=reason)


class FieldProblem(Enum):
    """What can be wrong with a field: the reason for machines and the words for people."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


class _Omitted(Enum):
    """The type of `OMITTED`; None cannot do, for null is a value that users write."""

    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED


@dataclass(frozen=True, slots=True)
class FieldError:
    """One problem at one field. Use the constructors below: they know which problems show the value."""

    type: FieldProblem
    field: str
    value: Any = OMITTED
    detail: str = ""

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        return cls(FieldProblem.REQUIRED, field, detail=detail)

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        return cls(FieldProblem.FORBIDDEN, field, detail=detail)

    @classmethod
    def invalid(cls, field: str, value: Any, *, detail: str) -> FieldError:
        """`value` is `OMITTED` where it is too large to help, such as a whole spec."""
        return cls(FieldProblem.INVALID, field, value, detail)

    @classmethod
    def type_invalid(cls, field: str, value: Any, *, detail: str) -> FieldError:
        return cls(FieldProblem.TYPE_INVALID, field, value, detail)

    @classmethod
    def not_supported(cls, field: str, value: Any, *, supported: Iterable[str]) -> FieldError:
        supported = iter(supported)
        choices = ", ".join(_shown(choice) for choice in islice(supported, MOST_PROBLEMS))
        choices += ", ..." if any(True for _ in supported) else ""
        return cls(FieldProblem.NOT_SUPPORTED, field, value, f"supported values: {choices}" if choices else "")

    @classmethod
    def duplicate(cls, field: str, value: Any) -> FieldError:
        return cls(FieldProblem.DUPLICATE, field, value)

    @classmethod
    def not_found(cls, field: str, value: Any) -> FieldError:
        return cls(FieldProblem.NOT_FOUND, field, value)

    @classmethod
    def too_long(cls, field: str, max_bytes: int) -> FieldError:
        return cls(FieldProblem.TOO_LONG, field, detail=f"may not be more than {_counted(max_bytes, 'byte')}")

    @classmethod
    def too_many(cls, field: str, actual: int, *, max_items: int) -> FieldError:
        return cls(FieldProblem.TOO_MANY, field, actual, f"must have at most {_counted(max_items, 'item')}")

    @property
    def message(self) -> str:
        """The problem without its field, as causes carry it."""
        shown = "" if self.value is OMITTED else _shown(self.value)
        return ": ".join(part for part in (self.type.words, shown, self.detail) if part)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def to_cause(self) -> Cause:
        return Cause(reason=self.type.reason, message=self.message, field=self.field)


def _joined(sentences: tuple[str, ...]) -> str:
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def _read_details(details: object) -> Details | None:
    if not isinstance(details, Mapping):
        return None
    causes = details.get("causes")
    return Details(
        name=_text(details, "name"),
        group=_text(details, "group"),
        kind=_text(details, "kind"),
        uid=_text(details, "uid"),
        causes=tuple(
            Cause(reason=_text(cause, "reason"), message=_text(cause, "message"), field=_text(cause, "field"))
            for cause in (causes if isinstance(causes, list) else ())
            if isinstance(cause, Mapping)
        ),
        retry_after_seconds=_number(details, "retryAfterSeconds"),
    )


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _number(mapping: Mapping[str, Any], key: str) -> int:
    value = mapping.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shown(value: Any) -> str:
    """A value as JSON, which is also how a name is quoted; of a long one, the beginning."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."
