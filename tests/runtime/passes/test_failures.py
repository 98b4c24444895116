"""What a pass makes of what an API answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.client.protocols import Unreachable
from holdfast.kernel.outcomes import Failure, Permanent, Retry
from holdfast.meta import errors
from holdfast.runtime.passes.failures import Away, Refused, Stale, combined, failure_of

STALE = (errors.Conflict, errors.AlreadyExists, errors.NotFound)
REFUSED = (
    errors.BadRequest,
    errors.Invalid,
    errors.MethodNotAllowed,
    errors.NotAcceptable,
    errors.UnsupportedMediaType,
    errors.RequestEntityTooLarge,
)
ANSWERS = [
    cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.StatusError) and cls is not errors.StatusError
]


def expected(answer: type[errors.StatusError]) -> type[Failure]:
    if answer in STALE:
        return Stale
    return Refused if answer in REFUSED else Retry


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_of_an_api_is_stale_or_refused_or_worth_another_try(answer: type[errors.StatusError]) -> None:
    assert type(failure_of(answer("no"), "patching Pod a")) is expected(answer)


def test_an_api_that_did_not_answer_is_asked_again() -> None:
    failure = failure_of(Unreachable("connection refused"), "creating Pod a")
    assert (type(failure), failure.reason) == (Away, "Unreachable")
    assert failure.message == "creating Pod a: connection refused"


def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    failure = failure_of(errors.TooManyRequests.of("busy", retry_after_seconds=7), "evicting Pod a")
    assert isinstance(failure, Retry)
    assert failure.after == timedelta(seconds=7)


def test_a_refusal_in_a_namespace_that_is_going_is_no_failure_of_ours() -> None:
    going = errors.Cause(reason="NamespaceTerminating", message="namespace a is being terminated")
    refused = errors.Forbidden("no", details=errors.Details(causes=(going,)))
    assert type(failure_of(refused, "creating Pod a")) is Stale
    assert type(failure_of(errors.Forbidden("no"), "creating Pod a")) is Retry


def test_several_failures_are_one_that_says_all_and_is_tried_again_if_that_may_help_one_of_them() -> None:
    wrong, busy, stale = Permanent("Invalid", "a: wrong"), Retry("Busy", "b: busy"), Stale("Conflict", "c: changed")
    assert combined([wrong]) is wrong
    assert combined([stale, stale]) is stale
    both = combined([wrong, Permanent("Invalid", "d: wrong too")])
    assert (type(both), both.message) == (Permanent, "a: wrong; d: wrong too")
    assert type(combined([wrong, Refused("Invalid", "e: refused")])) is Refused
    assert isinstance(combined([wrong, busy]), Retry)
    again = combined([stale, wrong])
    assert (type(again), again.message) == (Retry, "a: wrong"), "what changed meanwhile is nothing to report"
    many = combined([Permanent("Invalid", f"{n}: wrong") for n in range(7)])
    assert many.message.endswith("4: wrong; and 2 more")


def test_the_name_that_was_generated_for_a_refused_object_is_not_in_the_message() -> None:
    def said(name: str) -> str:
        refused = errors.Invalid(f'Pod "{name}" is invalid: spec.containers[1].name: Duplicate value: "main"')
        return failure_of(refused, "creating Pod default/wl-0-a-…").message

    assert said("wl-0-a-x7k2f") == said("wl-0-a-9zzpq")
    assert 'Pod "wl-0-a-…" is invalid' in said("wl-0-a-x7k2f")
