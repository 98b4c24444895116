"""API Status errors: their words, their tree, and the way there and back."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.places import ROOT

from holdfast.meta import errors
from holdfast.meta.errors import (
    OMITTED,
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Details,
    Expired,
    FieldError,
    FieldProblem,
    Forbidden,
    Gone,
    InsufficientStorage,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    StatusError,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    from_status,
)

WORDS: list[tuple[StatusError, str]] = [
    (NotFound.of("pods", "x"), 'pods "x" not found'),
    (NotFound.of("workloads", "web", group="cloudless.io"), 'workloads.cloudless.io "web" not found'),
    (NotFound.of_path(), "the server could not find the requested resource"),
    (AlreadyExists.of("configmaps", "a"), 'configmaps "a" already exists'),
    (
        Conflict.of("configmaps", "a"),
        (
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again"
        ),
    ),
    (Conflict.of("pods", "a", why="it is gone"), 'Operation cannot be fulfilled on pods "a": it is gone'),
    (Forbidden.of("configmaps", "", why="not you"), "configmaps is forbidden: not you"),
    (Forbidden.of("jobs", "a", why="not you", group="batch"), 'jobs.batch "a" is forbidden: not you'),
    (Unauthorized.of(), "Unauthorized"),
    (MethodNotAllowed.of("nodes", "patch"), 'patch is not supported on resources of kind "nodes"'),
    (
        NotAcceptable.of(["application/json", "application/yaml"]),
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml",
    ),
    (
        UnsupportedMediaType.of(["application/json"]),
        "the body of the request was in an unknown format - accepted media types include: application/json",
    ),
    (RequestEntityTooLarge.of(3145728), "Request entity too large: limit is 3145728"),
    (Expired.of(5, 90), "too old resource version: 5 (90)"),
    (TooManyRequests.of("slow down", retry_after_seconds=2), "slow down"),
    (InternalError.of("disk full"), "Internal error occurred: disk full"),
    (Timeout.of("no answer in 60s"), "Timeout: no answer in 60s"),
    (
        ServerTimeout.of("pods", "list"),
        "The list operation against pods could not be completed at this time, please try again.",
    ),
    (Invalid.of("Pod", "x", problems=[]), 'Pod "x" is invalid'),
    (
        Invalid.of(
            "Workload",
            "web",
            group="cloudless.io",
            problems=[FieldError.invalid("spec.replicas", -1, detail="must be 0 or more")],
        ),
        'Workload.cloudless.io "web" is invalid: spec.replicas: Invalid value: -1: must be 0 or more',
    ),
    (
        Invalid.of("Pod", "", problems=[FieldError.required("a"), FieldError.forbidden("b", "not now")]),
        'Pod "" is invalid: [a: Required value, b: Forbidden: not now]',
    ),
    (
        Invalid.of("Pod", "x", problems=[FieldError.required("a"), FieldError.required("a")]),
        'Pod "x" is invalid: a: Required value',
    ),
]


@pytest.mark.parametrize(("error", "message"), WORDS, ids=[message[:40] for _, message in WORDS])
def test_constructors_speak_in_the_words_of_kubernetes(error: StatusError, message: str) -> None:
    assert str(error) == error.message == message


FIELD_WORDS = [
    (FieldError.required("spec"), "Required value"),
    (FieldError.required("spec", "name it"), "Required value: name it"),
    (FieldError.invalid("spec", 'tw"o', detail="is immutable"), 'Invalid value: "tw\\"o": is immutable'),
    (FieldError.invalid("spec", None, detail="is unset"), "Invalid value: null: is unset"),
    (FieldError.invalid("spec", True, detail="no"), "Invalid value: true: no"),
    (FieldError.invalid("spec", OMITTED, detail="more tags than size"), "Invalid value: more tags than size"),
    (FieldError.type_invalid("spec", "string", detail="must be a number"), 'Invalid value: "string": must be a number'),
    (
        FieldError.not_supported("spec", "green", supported=["red", "blue"]),
        'Unsupported value: "green": supported values: "red", "blue"',
    ),
    (
        FieldError.not_supported("spec", ["Some"], supported=["All"]),
        'Unsupported value: ["Some"]: supported values: "All"',
    ),
    (FieldError.not_supported("spec", "x", supported=[]), 'Unsupported value: "x"'),
    (FieldError.forbidden("spec", "not on update"), "Forbidden: not on update"),
    (FieldError.duplicate("spec", {"port": 1}), 'Duplicate value: {"port":1}'),
    (FieldError.not_found("spec", "a"), 'Not found: "a"'),
    (FieldError.too_long("spec", 5), "Too long: may not be more than 5 bytes"),
    (FieldError.too_many("spec", 3, max_items=2), "Too many: 3: must have at most 2 items"),
    (FieldError.too_many("spec", 3, max_items=1), "Too many: 3: must have at most 1 item"),
]


@pytest.mark.parametrize(("error", "message"), FIELD_WORDS, ids=[message for _, message in FIELD_WORDS])
def test_field_errors_speak_in_the_words_of_kubernetes(error: FieldError, message: str) -> None:
    assert error.message == message
    assert str(error) == f"spec: {message}"
    assert error.to_cause() == Cause(reason=error.type.reason, message=message, field="spec")


def test_every_field_problem_has_a_constructor() -> None:
    assert {error.type for error, _ in FIELD_WORDS} == set(FieldProblem)


def test_a_status_is_written_as_kubernetes_writes_it() -> None:
    error = Invalid.of("Widget", "bad", group="oracle.example", problems=[FieldError.duplicate("spec.tags[1]", "a")])
    assert error.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Widget.oracle.example "bad" is invalid: spec.tags[1]: Duplicate value: "a"',
        "reason": "Invalid",
        "details": {
            "name": "bad",
            "group": "oracle.example",
            "kind": "Widget",
            "causes": [{"reason": "FieldValueDuplicate", "message": 'Duplicate value: "a"', "field": "spec.tags[1]"}],
        },
        "code": 422,
    }


def test_details_are_absent_when_there_are_none_and_empty_when_there_are_none_to_tell() -> None:
    assert "details" not in BadRequest("no").to_status()
    assert NotFound.of_path().to_status()["details"] == {}


def test_every_duplicate_problem_is_a_cause_though_said_once() -> None:
    assert len(Invalid.of("Pod", "x", problems=[FieldError.required("a")] * 2).causes) == 2


CLASSES = [
    (BadRequest, 400, "BadRequest"),
    (Unauthorized, 401, "Unauthorized"),
    (Forbidden, 403, "Forbidden"),
    (NotFound, 404, "NotFound"),
    (MethodNotAllowed, 405, "MethodNotAllowed"),
    (NotAcceptable, 406, "NotAcceptable"),
    (AlreadyExists, 409, "AlreadyExists"),
    (Conflict, 409, "Conflict"),
    (Gone, 410, "Gone"),
    (Expired, 410, "Expired"),
    (RequestEntityTooLarge, 413, "RequestEntityTooLarge"),
    (UnsupportedMediaType, 415, "UnsupportedMediaType"),
    (Invalid, 422, "Invalid"),
    (TooManyRequests, 429, "TooManyRequests"),
    (InternalError, 500, "InternalError"),
    (ServerTimeout, 500, "ServerTimeout"),
    (ServiceUnavailable, 503, "ServiceUnavailable"),
    (Timeout, 504, "Timeout"),
    (InsufficientStorage, 507, "InsufficientStorage"),
]


@pytest.mark.parametrize(("cls", "code", "reason"), CLASSES, ids=[reason for _, _, reason in CLASSES])
def test_a_reason_names_its_class(cls: type[StatusError], code: int, reason: str) -> None:
    assert (cls.code, cls.reason) == (code, reason)
    assert type(from_status({"reason": reason, "message": "m"}, code)) is cls


def test_the_tree_at_the_top_of_the_file_is_complete() -> None:
    tree = errors.__doc__ or ""
    drawn = {
        line.split("── ")[1].split()[0]: int(line.split("── ")[1].split()[1])
        for line in tree.splitlines()
        if "── " in line
    }
    assert drawn == {cls.__name__: code for cls, code, _ in CLASSES}


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (404, NotFound),
        (408, Timeout),
        (409, Conflict),
        (410, Gone),
        (418, StatusError),
        (500, InternalError),
        (502, InternalError),
        (504, Timeout),
    ],
)
def test_an_unknown_reason_is_mapped_by_code_and_kept(code: int, cls: type[StatusError]) -> None:
    error = from_status({"reason": "Novelty", "message": "m"}, code)
    assert type(error) is cls
    assert (error.reason, error.code) == ("Novelty", code)


def test_the_body_knows_its_code_better_than_the_transport() -> None:
    assert from_status({"code": 409, "message": "m"}, 500).code == 409


@pytest.mark.parametrize(
    "body",
    [{}, {"message": 3, "code": "x", "details": []}, {"details": {"causes": {}, "retryAfterSeconds": True, "name": 1}}],
)
def test_an_answer_of_the_wrong_shape_still_becomes_an_error(body: dict[str, Any]) -> None:
    error = from_status(body, 503)
    assert type(error) is ServiceUnavailable
    assert error.message == "the server answered 503 without saying why"
    assert error.retry_after_seconds == 0
    assert error.causes == ()


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (TooManyRequests.of("m", retry_after_seconds=1), True),
        (ServiceUnavailable("m"), True),
        (from_status({}, 502), True),
        (Conflict.of("pods", "x"), False),
        (NotFound.of("pods", "x"), False),
        (from_status({}, 501), False),
    ],
)
def test_transient_means_that_waiting_alone_may_help(error: StatusError, transient: bool) -> None:
    assert error.transient is transient


def test_a_handler_of_gone_handles_expired_too() -> None:
    assert issubclass(Expired, Gone)


def test_an_error_survives_pickling() -> None:
    error = NotFound.of("pods", "x")
    assert pickle.loads(pickle.dumps(error)).to_status() == error.to_status()


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
causes = st.builds(Cause, reason=texts, message=texts, field=texts)
details_values = st.builds(
    Details,
    name=texts,
    group=texts,
    kind=texts,
    uid=texts,
    causes=st.lists(causes, max_size=3).map(tuple),
    retry_after_seconds=st.integers(0, 100),
)


@given(
    cls=st.sampled_from([cls for cls, _, _ in CLASSES]),
    message=texts.filter(bool),
    details=st.none() | details_values,
)
def test_every_error_round_trips_through_its_status(
    cls: type[StatusError], message: str, details: Details | None
) -> None:
    error = cls(message, details=details)
    again = from_status(error.to_status(), 599)
    assert type(again) is cls
    assert again.to_status() == error.to_status()
    assert again.details == details


@given(reason=texts, code=st.integers(400, 599), message=texts.filter(bool))
def test_every_status_round_trips_through_its_error(reason: str, code: int, message: str) -> None:
    status = StatusError(message, code=code, reason=reason).to_status()
    assert from_status(status, 0).to_status() == status


RECORDED = ROOT.parent / "shared" / "oracle" / "cases"


def failures_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("kind") == "Status" and value.get("status") == "Failure":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from failures_in(item)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers of a real API server are not here")
def test_every_refusal_that_a_real_server_gave_is_kept_word_for_word() -> None:
    recorded = [
        status for case in sorted(RECORDED.glob("*.json")) for status in failures_in(json.loads(case.read_text()))
    ]
    assert recorded
    for status in recorded:
        assert from_status(status, 0).to_status() == status
