"""The options of a request: query parameters and DeleteOptions, validated as Kubernetes validates them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec

from holdfast.meta.errors import BadRequest, FieldError, Invalid, StatusError
from holdfast.meta.exchange import Request
from holdfast.meta.selectors import FieldSelector, LabelSelector, SelectorError

META: Final = "meta.k8s.io"
PROPAGATION: Final = ("Foreground", "Background", "Orphan")
FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
LONGEST_NUMBER: Final = 64


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a create, update, patch or apply."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False

    @property
    def strict(self) -> bool:
        return self.field_validation == "Strict"


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a deletion."""

    dry_run: bool = False
    propagation: str = ""
    grace_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a list, a watch or a deletecollection.

    `version` is None if the client sent none; `exact`: resourceVersionMatch=Exact.
    """

    labels: LabelSelector
    fields: FieldSelector
    limit: int = 0
    token: str = ""
    version: int | None = None
    exact: bool = False
    timeout: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def write_options(request: Request, kind: str) -> WriteOptions:
    """`kind` names the options in errors: CreateOptions, UpdateOptions, PatchOptions."""
    problems = _dry_run_problems(request)
    manager = request.param("fieldManager")
    if len(manager) > 128:
        problems.append(FieldError.too_long("fieldManager", 128))
    elif not manager.isprintable():
        problems.append(FieldError.invalid("fieldManager", manager, detail="should only contain printable characters"))
    validation = request.param("fieldValidation")
    if validation not in FIELD_VALIDATION:
        problems.append(FieldError.not_supported("fieldValidation", validation, supported=FIELD_VALIDATION))
    if problems:
        raise Invalid.of(kind, "", group=META, problems=problems)
    return WriteOptions(
        dry_run=bool(request.param("dryRun")),
        field_manager=manager,
        field_validation=validation or "Warn",
        force=request.flag("force"),
    )


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteBody(msgspec.Struct, rename="camel"):
    """A DeleteOptions object; unknown fields are ignored."""

    kind: Literal["DeleteOptions", ""] | None = None
    dry_run: list[str] | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    grace_period_seconds: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    preconditions: _Preconditions | None = None


def delete_options(request: Request, given: Any) -> DeleteOptions:
    """From the query and from the DeleteOptions object in the body; the body wins."""
    try:
        body = msgspec.convert(given, _DeleteBody)
    except msgspec.ValidationError as error:
        raise BadRequest(f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {error}') from None
    problems = _dry_run_problems(request)
    dry_run = bool(request.param("dryRun"))
    if body.dry_run:
        dry_run = True
        if body.dry_run != ["All"]:
            problems.append(FieldError.not_supported("dryRun", body.dry_run, supported=("All",)))
    propagation = body.propagation_policy or request.param("propagationPolicy")
    orphan = body.orphan_dependents
    if orphan is None and "orphanDependents" in request.query:
        orphan = request.flag("orphanDependents")
    if propagation and propagation not in PROPAGATION:
        problems.append(FieldError.not_supported("propagationPolicy", propagation, supported=(*PROPAGATION, "nil")))
    if propagation and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(FieldError.invalid("propagationPolicy", propagation, detail=detail))
    grace = body.grace_period_seconds
    if grace is None and request.param("gracePeriodSeconds"):
        grace = integer(request, "gracePeriodSeconds")
    if problems:
        raise Invalid.of("DeleteOptions", "", group=META, problems=problems)
    preconditions = body.preconditions or _Preconditions()
    if orphan is not None and not propagation:
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(
        dry_run=dry_run,
        propagation=propagation,
        grace_seconds=grace,
        uid=preconditions.uid or "",
        resource_version=preconditions.resource_version or "",
    )


def list_options(request: Request, *, watch: bool) -> ListOptions:
    version_text, match = request.param("resourceVersion"), request.param("resourceVersionMatch")
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
    problems = _watch_problems(request, match, initial) if watch else _list_problems(request, match, initial)
    if problems:
        raise Invalid.of("ListOptions", "", group=META, problems=problems)
    token = request.param("continue")
    if token and version_text not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    return ListOptions(
        labels=_labels(request),
        fields=_fields(request),
        limit=integer(request, "limit") or 0,
        token=token,
        version=_version(version_text, watch=watch),
        exact=match == "Exact" or (match == "" and bool(version_text) and bool(request.param("limit"))),
        timeout=integer(request, "timeoutSeconds"),
        bookmarks=request.flag("allowWatchBookmarks"),
        initial_events=initial,
    )


def get_version(request: Request) -> int:
    """The minimum version for the get of an object."""
    return _version(request.param("resourceVersion"), watch=False) or 0


def _list_problems(request: Request, match: str, initial: bool | None) -> list[FieldError]:
    problems, version = [], request.param("resourceVersion")
    if match and not version:
        problems.append(_no_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and request.param("continue"):
        problems.append(_no_match("resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        supported = ("Exact", "NotOlderThan", "")
        problems.append(FieldError.not_supported("resourceVersionMatch", match, supported=supported))
    if match == "Exact" and version == "0":
        problems.append(_no_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial is not None:
        problems.append(FieldError.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _watch_problems(request: Request, match: str, initial: bool | None) -> list[FieldError]:
    problems = []
    if initial is not None and match != "NotOlderThan":
        problems.append(_no_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and initial is None:
        problems.append(_no_match("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if match not in ("", "NotOlderThan"):
        problems.append(FieldError.not_supported("resourceVersionMatch", match, supported=("NotOlderThan",)))
    if match and request.param("continue"):
        problems.append(_no_match("resourceVersionMatch is forbidden when continue is provided"))
    return problems


def _no_match(why: str) -> FieldError:
    return FieldError.forbidden("resourceVersionMatch", why)


def integer(request: Request, name: str) -> int | None:
    text = request.param(name)
    if not text:
        return None
    if not re.fullmatch("[+-]?[0-9]+", text, re.ASCII):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # The length first: parsing a very long number takes long.
    if len(text) > LONGEST_NUMBER or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def _version(text: str, *, watch: bool) -> int | None:
    if not text:
        return None
    if not re.fullmatch("[0-9]+", text, re.ASCII):
        why = "invalid syntax"
    elif len(text) > LONGEST_NUMBER or int(text) >= 2**64:
        why = "value out of range"
    else:
        return int(text)
    problem = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
    if watch:
        # As Kubernetes answers a watch, without a reason.
        raise StatusError(problem, code=500, reason="")
    raise BadRequest(f"invalid resource version: {problem}")


def _labels(request: Request) -> LabelSelector:
    try:
        return LabelSelector.parse(request.param("labelSelector"))
    except SelectorError as error:
        raise BadRequest(f"unable to parse requirement: {error.problem}") from error


def _fields(request: Request) -> FieldSelector:
    try:
        return FieldSelector.parse(request.param("fieldSelector"))
    except SelectorError as error:
        raise BadRequest(str(error.problem)) from error


def _dry_run_problems(request: Request) -> list[FieldError]:
    asked = list(request.query.get("dryRun", ()))
    if not asked or asked == ["All"] or asked == [""]:
        return []
    return [FieldError.not_supported("dryRun", asked, supported=("All",))]
