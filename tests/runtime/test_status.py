"""Statuses: conditions, errors and Events from verdicts, whatever another client wrote before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel.conditions import Condition, Status, Verdict
from holdfast.kernel.outcomes import Permanent, Retry
from holdfast.meta import times
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Invalid, last_errors, present, prior_conditions, report

NOW = datetime(2025, 1, 15, 10, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
SERVING = Verdict.true("Serving", "All pods are ready.")
WAITING = Verdict.false("Waiting", "1 of 2 pods is ready.")


def obj(status: Any = None, generation: int = 3) -> Object:
    wire: dict[str, Any] = {"metadata": {"name": "a", "namespace": "default", "generation": generation}}
    return Object.of(PODS, wire if status is None else wire | {"status": status})


def ready(**changes: Any) -> dict[str, Any]:
    given = {"type": "Ready", "status": "True", "reason": "Serving", "message": "", "lastTransitionTime": None}
    return given | changes


ODD: dict[str, Any] = {
    "no status": None,
    "a status that is a string": "broken",
    "a status that is a list": ["broken"],
    "no conditions": {},
    "null conditions": {"conditions": None},
    "conditions that are an object": {"conditions": {"type": "Ready"}},
    "an entry that is a number": {"conditions": [5]},
    "an entry without a type": {"conditions": [{"status": "True"}]},
    "an entry with an empty type": {"conditions": [{"type": "", "status": "True"}]},
    "a type that is a number": {"conditions": [{"type": 5, "status": "True"}]},
    "a reason that is a number": {"conditions": [ready(reason=5)]},
    "a message that is a list": {"conditions": [ready(message=["a"])]},
    "a time that is not one": {"conditions": [ready(lastTransitionTime="yesterday")]},
    "a time that is a number": {"conditions": [ready(lastTransitionTime=5)]},
    "a generation that is a string": {"conditions": [ready(observedGeneration="3")]},
}


@pytest.mark.parametrize("status", ODD.values(), ids=ODD.keys())
def test_what_is_not_a_condition_is_left_out_and_replaced_by_the_report(status: Any) -> None:
    before = obj(status)
    assert prior_conditions(before) == ()
    assert last_errors(before, Retry("Away", "no answer"), NOW) == [
        {"code": "Away", "description": "no answer", "observedAt": times.format(NOW)}
    ]
    written, notices = report(before, {"Ready": SERVING}, now=NOW, fields={})
    assert written["conditions"][0]["lastTransitionTime"] == times.format(NOW)
    assert notices == ()
    invalid = Invalid().status(before, Permanent("InvalidSpec", "no"), NOW)
    assert [each["reason"] for each in invalid["conditions"]] == ["InvalidSpec"]


def test_one_odd_entry_hides_none_of_the_others() -> None:
    found = prior_conditions(obj({"conditions": [5, ready(), {"status": "True"}, ready(type="Other", status="Maybe")]}))
    assert found == (
        Condition(type="Ready", status=Status.TRUE, reason="Serving"),
        Condition(type="Other", status=Status.UNKNOWN, reason="Serving"),
    )


def test_a_report_is_a_whole_status_without_fields_that_are_none() -> None:
    written, _ = report(obj(), {"Ready": WAITING}, now=NOW, fields={"replicas": 2, "selector": None})
    assert written == {
        "observedGeneration": 3,
        "replicas": 2,
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "observedGeneration": 3,
                "lastTransitionTime": times.format(NOW),
                "reason": "Waiting",
                "message": "1 of 2 pods is ready.",
            }
        ],
    }


def test_the_same_verdicts_again_give_an_equal_status_and_no_event() -> None:
    announced: Any = {("Ready", "True"): "Normal"}
    first, notices = report(obj(), {"Ready": SERVING}, now=NOW, fields={}, announced=announced)
    assert notices == (Notice(type="Normal", reason="Serving", message="All pods are ready."),)
    assert report(obj(first), {"Ready": SERVING}, now=LATER, fields={}, announced=announced) == (first, ())


def test_only_announced_conditions_become_events_and_only_when_they_change() -> None:
    announced: Any = {("Ready", "False"): "Warning"}
    first, notices = report(obj(), {"Ready": SERVING, "Updated": WAITING}, now=NOW, fields={}, announced=announced)
    assert notices == ()
    second, notices = report(obj(first), {"Ready": WAITING}, now=LATER, fields={}, announced=announced)
    assert notices == (Notice(type="Warning", reason="Waiting", message="1 of 2 pods is ready."),)
    assert [(each["type"], each["lastTransitionTime"]) for each in second["conditions"]] == [
        ("Ready", times.format(LATER))
    ]


def test_an_error_keeps_its_time_while_it_stays_the_same_and_goes_after_a_success() -> None:
    failure = Retry("Away", "no answer")
    first = last_errors(obj(), failure, NOW)
    assert last_errors(obj({"lastErrors": first}), failure, LATER) == first
    other = last_errors(obj({"lastErrors": first}), Retry("Away", "refused"), LATER)
    assert other == [{"code": "Away", "description": "refused", "observedAt": times.format(LATER)}]
    assert last_errors(obj({"lastErrors": first}), None, LATER) is None


def test_fields_that_are_none_are_not_present_and_empty_ones_are() -> None:
    assert present({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}


def test_an_invalid_object_keeps_the_rest_of_its_status_and_its_other_conditions() -> None:
    kept = ready(type="Other", reason="two words", observedGeneration=1, lastTransitionTime=times.format(NOW))
    before = obj({"replicas": 2, "observedGeneration": 1, "conditions": [kept, ready()]})
    invalid = Invalid(fields={"phase": "Failed"})
    written = invalid.status(before, Permanent("InvalidSpec", "no number"), LATER)
    assert written == {
        "replicas": 2,
        "observedGeneration": 3,
        "phase": "Failed",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "observedGeneration": 3,
                "lastTransitionTime": times.format(LATER),
                "reason": "InvalidSpec",
                "message": "no number",
            },
            kept,
        ],
    }
    assert invalid.status(obj(written), Permanent("InvalidSpec", "no number"), LATER + timedelta(1)) == written
