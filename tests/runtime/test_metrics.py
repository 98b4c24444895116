"""What is counted, as Prometheus reads it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.client.api import Observed
from holdfast.runtime.metrics import CONTENT_TYPE, RESULTS, Backlog, Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    """Every number by its name and labels, as the text has them."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


COUNTED: dict[str, tuple[Callable[[Metrics], None], str]] = {
    "a pass": (
        lambda metrics: metrics.passed("w", "done", seconds=0.2),
        "holdfast_reconcile_total controller=w result=done",
    ),
    "its time": (
        lambda metrics: metrics.passed("w", "done", seconds=0.2),
        "holdfast_reconcile_duration_seconds_count controller=w",
    ),
    "a retry": (lambda metrics: metrics.passed("w", "retry", seconds=0.2), "holdfast_queue_retries_total controller=w"),
    "a failure": (
        lambda metrics: metrics.failed("w", "Forbidden"),
        "holdfast_reconcile_errors_total controller=w reason=Forbidden",
    ),
    "a key taken": (
        lambda metrics: metrics.taken("w", waited=0.1),
        "holdfast_queue_latency_seconds_count controller=w",
    ),
    "a write": (lambda metrics: metrics.wrote("w", "patch"), "holdfast_writes_total controller=w verb=patch"),
    "a watch": (
        lambda metrics: metrics.watch_restarted("pods", "expired"),
        "holdfast_watch_restarts_total reason=expired resource=pods",
    ),
    "a request": (
        lambda metrics: metrics.called("get", "pods", 200, 0.1),
        "holdfast_api_requests_total code=200 resource=pods verb=get",
    ),
    "a request without an answer": (
        lambda metrics: metrics.called("get", "pods", 0, 0.1),
        "holdfast_api_requests_total code=0 resource=pods verb=get",
    ),
    "a request's time": (
        lambda metrics: metrics.called("get", "pods", 200, 0.1),
        "holdfast_api_request_duration_seconds_count resource=pods verb=get",
    ),
    "an event": (
        lambda metrics: metrics.event_emitted("holdfast-w", "Normal"),
        "holdfast_events_emitted_total component=holdfast-w type=Normal",
    ),
    "an event that was dropped": (
        lambda metrics: metrics.event_dropped("holdfast-w", "Forbidden"),
        "holdfast_events_dropped_total component=holdfast-w reason=Forbidden",
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_happens_is_counted(case: str) -> None:
    happen, name = COUNTED[case]
    metrics = Metrics()
    assert name not in samples(metrics)
    happen(metrics)
    happen(metrics)
    assert samples(metrics)[name] == 2


@pytest.mark.parametrize("result", RESULTS)
def test_only_failures_that_may_pass_are_retries(result: str) -> None:
    metrics = Metrics()
    metrics.expect("w")
    metrics.passed("w", result, seconds=0)
    assert samples(metrics)["holdfast_queue_retries_total controller=w"] == (
        1 if result in ("stale", "retry", "timeout", "panic") else 0
    )


def test_an_unknown_result_is_a_defect() -> None:
    with pytest.raises(KeyError):
        Metrics().passed("w", "odd", seconds=0)


def test_a_controller_is_shown_before_anything_happened() -> None:
    metrics = Metrics()
    metrics.expect("w")
    shown = samples(metrics)
    assert {shown[f"holdfast_reconcile_total controller=w result={result}"] for result in RESULTS} == {0}
    assert shown["holdfast_queue_latency_seconds_count controller=w"] == 0


def test_the_time_of_a_watch_is_not_measured() -> None:
    metrics = Metrics()
    observed: Observed = metrics.called
    observed("watch", "pods", 200, 300.0)
    assert not [name for name in samples(metrics) if name.startswith("holdfast_api_request_duration")]


def test_queues_stores_and_leadership_are_computed_when_metrics_are_read() -> None:
    metrics = Metrics()
    assert not [name for name in samples(metrics) if name.startswith(("holdfast_queue", "holdfast_leader"))]
    backlogs = {"w": Backlog(3, (2.0, 5.5)), "idle": Backlog(0)}
    leads = False
    metrics.ask(queues=lambda: backlogs, stores=lambda: {"pods": 12})
    metrics.ask(leader=lambda: leads)
    shown = samples(metrics)
    assert shown["holdfast_queue_depth controller=w"] == 3
    assert shown["holdfast_queue_unfinished_seconds controller=w"] == 7.5
    assert shown["holdfast_queue_longest_running_seconds controller=w"] == 5.5
    assert shown["holdfast_queue_longest_running_seconds controller=idle"] == 0
    assert shown["holdfast_store_objects resource=pods"] == 12
    assert shown["holdfast_leader"] == 0
    backlogs, leads = {}, True
    shown = samples(metrics)
    assert "holdfast_queue_depth controller=w" not in shown
    assert shown["holdfast_leader"] == 1


def test_two_processes_in_one_share_no_numbers() -> None:
    one, other = Metrics(), Metrics()
    one.wrote("w", "create")
    assert "holdfast_writes_total controller=w verb=create" not in samples(other)


def test_every_family_is_ours_or_the_process_and_explains_itself() -> None:
    metrics = Metrics()
    metrics.expect("w")
    for family in text_string_to_metric_families(metrics.render().decode()):
        assert family.name.startswith(("holdfast_", "process_"))
        assert family.documentation or family.name.endswith("_created")
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_counting_takes_no_longer_for_what_was_counted_before() -> None:
    metrics = Metrics()

    def seconds() -> float:
        began = time.process_time()
        for _ in range(1_000):
            metrics.taken("w", waited=0.001)
            metrics.passed("w", "done", seconds=0.001)
            metrics.called("get", "pods", 200, 0.001)
        return time.process_time() - began

    first, *others = (seconds() for _ in range(20))
    assert min(others[10:]) <= 2 * max(first, *others[:5])
