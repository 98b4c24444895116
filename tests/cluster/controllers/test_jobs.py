"""Jobs: one pass at a time, from a world to a decision; then whole stories on an embedded cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.resources import EVENTS, JOBS, PODS
from holdfast.cluster.controllers.jobs import CONTROLLER, decide, observe
from holdfast.cluster.controllers.jobs import indexes as job_indexes
from holdfast.cluster.controllers.jobs.types import FAILURES, IGNORED_FAILURES, INDEX, NAME, TRACKING
from holdfast.kernel.outcomes import Again, Done
from holdfast.meta import times
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
LABELS = {"app": "j"}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
}


def job(*, status: Mapping[str, Any] | None = None, deleting: bool = False, **spec: Any) -> dict[str, Any]:
    """As the server has it, with its defaults."""
    metadata: dict[str, Any] = {"name": "j", "namespace": "n", "uid": "job", "resourceVersion": "9"}
    if deleting:
        metadata["deletionTimestamp"] = times.format(NOW)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            **spec,
        },
        "status": {"startTime": times.format(LONG_AGO), **(status or {})},
    }


OWNER = owner_reference(job())


def pod(
    name: str,
    phase: str = "Running",
    *,
    index: int | None = None,
    failures: int | None = None,
    ready: bool = False,
    tracked: bool = True,
    going: bool = False,
    ended: datetime = LONG_AGO,
    exit_code: int = 1,
    restarts: int = 0,
    owner: Mapping[str, Any] | None = OWNER,
    conditions: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "n", "uid": f"uid-{name}", "labels": {**LABELS, NAME: "j"}}
    metadata["creationTimestamp"] = times.format(LONG_AGO)
    metadata["annotations"] = {} if index is None else {INDEX: str(index)}
    if failures is not None:
        metadata["annotations"][FAILURES] = str(failures)
    if tracked:
        metadata["finalizers"] = [TRACKING]
    if going:
        metadata["deletionTimestamp"] = times.format(NOW)
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    container: dict[str, Any] = {"name": "main", "restartCount": restarts}
    if phase in ("Succeeded", "Failed"):
        code = 0 if phase == "Succeeded" else exit_code
        container["state"] = {"terminated": {"exitCode": code, "finishedAt": times.format(ended)}}
    ready_condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": times.format(LONG_AGO)}
    status = {"phase": phase, "conditions": [ready_condition, *conditions], "containerStatuses": [container]}
    return {"metadata": metadata, "spec": {}, "status": status}


def decided(owner: Mapping[str, Any] | None, *pods: Mapping[str, Any]) -> Decision:
    held = [(PODS, each) for each in pods]
    view = Snapshot(held if owner is None else [(JOBS, owner), *held], indexes=CONTROLLER.indexes)
    world = observe(view, Key("n", "j"))
    assert world is not None
    return decide(world, NOW)


def asked(decision: Decision) -> list[str]:
    """The writes in short, wave by wave: `+` starts a pod, `-` stops one, `~` takes its finalizer away."""
    short = []
    for write in sorted(decision.writes, key=lambda write: write.wave):
        match write:
            case Create():
                short.append("+")
            case Delete(key=key):
                short.append(f"-{key.name}")
            case Patch(key=key):
                short.append(f"~{key.name}")
    return short


def started(decision: Decision) -> list[Mapping[str, Any]]:
    return [write.manifest for write in decision.writes if isinstance(write, Create)]


def said(decision: Decision) -> Mapping[str, Any]:
    assert decision.status is not None
    return decision.status


def conditions(decision: Decision) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in said(decision).get("conditions", ())}


def condition(type: str, reason: str = "", message: str = "", *, at: datetime = NOW) -> dict[str, Any]:
    when = times.format(at)
    said = {"type": type, "status": "True", "reason": reason, "message": message}
    return {**said, "lastProbeTime": when, "lastTransitionTime": when}


def ids(*names: str) -> list[str]:
    return [f"uid-{name}" for name in names]


# --- starting and stopping


def test_there_is_nothing_to_do_about_a_job_that_does_not_exist() -> None:
    assert observe(Snapshot(indexes=CONTROLLER.indexes), Key("n", "j")) is None


def test_a_new_job_starts_a_pod_that_is_tracked_and_says_so() -> None:
    owner = job()
    del owner["status"]
    decision = decided(owner)
    (made,) = started(decision)
    name = made["metadata"]["name"]
    assert made["metadata"] == {
        "name": name,
        "generateName": "j-",
        "namespace": "n",
        "labels": LABELS,
        "ownerReferences": [OWNER],
        "finalizers": [TRACKING],
    }
    assert name.startswith("j-")
    assert len(name) == len("j-") + 5
    assert said(decision) == {
        "startTime": times.format(NOW),
        "active": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert [(each.reason, each.message) for each in decision.notices] == [("SuccessfulCreate", f"Created pod: {name}")]


def test_a_decision_that_is_made_twice_makes_the_same_pods() -> None:
    owner = job(parallelism=3, completions=3)
    assert started(decided(owner)) == started(decided(owner))
    assert len({made["metadata"]["name"] for made in started(decided(owner))}) == 3


@pytest.mark.parametrize(
    ("spec", "pods", "writes"),
    [
        pytest.param({"parallelism": 2, "completions": 5}, [], ["+", "+"], id="as many as are to run side by side"),
        pytest.param({"parallelism": 5, "completions": 2}, [], ["+", "+"], id="no more than have to succeed"),
        pytest.param({"parallelism": 2, "completions": 5}, [pod("a")], ["+"], id="those that run count"),
        pytest.param({"parallelism": 0}, [], [], id="none where none is to run"),
        pytest.param(
            {"parallelism": 1, "completions": 5}, [pod("a", ready=True), pod("b")], ["~b", "-b"], id="too many"
        ),
        pytest.param({"parallelism": 2, "completions": None}, [], ["+", "+"], id="a work queue: all workers"),
        pytest.param(
            {"parallelism": 3, "completions": None}, [pod("a", "Succeeded"), pod("b")], [], id="a queue that runs dry"
        ),
        pytest.param({}, [pod("a", going=True)], ["+"], id="one that goes is replaced"),
        pytest.param({"podReplacementPolicy": "Failed"}, [pod("a", going=True)], [], id="or waited for, if so wanted"),
        pytest.param({"suspend": True}, [pod("a")], ["~a", "-a"], id="suspended: pods are stopped, and do not count"),
        pytest.param({"suspend": True}, [], [], id="suspended: none is started"),
        pytest.param({"managedBy": "example.com/other"}, [], [], id="a job of another manager"),
    ],
)
def test_pods_are_started_and_stopped(spec: dict[str, Any], pods: list[dict[str, Any]], writes: list[str]) -> None:
    assert asked(decided(job(**spec), *pods)) == writes


@pytest.mark.parametrize(
    ("failures", "wait"),
    [([0], 10), ([0, 5], 20), ([0, 0, 0], 40), ([0] * 6, 320), ([0] * 9, 600), ([10], None)],
)
def test_after_failures_in_a_row_the_next_pod_waits_ever_longer(failures: list[int], wait: int | None) -> None:
    """`failures` are seconds since each pod failed, and `wait` the seconds since the last one."""
    pods = [pod(f"p{n}", "Failed", ended=NOW - timedelta(seconds=s)) for n, s in enumerate(failures)]
    decision = decided(job(backoffLimit=100), *pods)
    if wait is None:
        assert len(started(decision)) == 1
    else:
        assert started(decision) == []
        expected = timedelta(seconds=wait - min(failures))
        assert decision.outcome == Again(expected, "pods that fail are started again ever later")


def test_a_success_ends_a_row_of_failures() -> None:
    early, late = NOW - timedelta(seconds=9), NOW - timedelta(seconds=3)
    pods = [pod("a", "Failed", ended=early), pod("b", "Succeeded", ended=late)]
    assert len(started(decided(job(completions=3), *pods))) == 1


# --- counting


@pytest.mark.parametrize(("phase", "kind"), [("Succeeded", "succeeded"), ("Failed", "failed")])
def test_an_end_is_named_then_let_go_then_counted(phase: str, kind: str) -> None:
    spec: dict[str, Any] = {"completions": 3, "parallelism": 0}
    named = decided(job(**spec), pod("a", phase))
    assert asked(named) == []
    assert said(named)["uncountedTerminatedPods"] == {kind: ids("a")}
    assert kind not in said(named)

    let_go = decided(job(status=said(named), **spec), pod("a", phase))
    assert asked(let_go) == ["~a"]
    assert said(let_go) == said(named)

    counted = decided(job(status=said(let_go), **spec), pod("a", phase, tracked=False))
    assert asked(counted) == []
    assert said(counted)["uncountedTerminatedPods"] == {}
    assert said(counted)[kind] == 1


def test_a_pod_that_vanished_after_it_was_named_is_counted() -> None:
    status = {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ids("gone"), "failed": ids("lost")}}
    decision = decided(job(completions=5, parallelism=0, status=status))
    assert (said(decision)["succeeded"], said(decision)["failed"]) == (2, 1)


def test_a_finalizer_goes_by_a_patch_that_holds_whatever_else_changed() -> None:
    status = {"uncountedTerminatedPods": {"failed": ids("a")}}
    (patch,) = decided(job(parallelism=0, status=status), pod("a", "Failed")).writes
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
    assert (patch.uid, patch.version) == ("uid-a", "")


def test_the_status_counts_pods_that_run_that_are_ready_and_that_go() -> None:
    pods = [pod("a", ready=True), pod("b"), pod("c", going=True)]
    decision = decided(job(parallelism=3, completions=3, podReplacementPolicy="Failed"), *pods)
    assert [said(decision)[field] for field in ("active", "ready", "terminating")] == [2, 1, 1]


# --- success


REACHED = ("True", "CompletionsReached")


def test_a_job_completes_when_its_last_pod_has_been_counted() -> None:
    announced = decided(job(), pod("a", "Succeeded"))
    assert conditions(announced) == {"SuccessCriteriaMet": REACHED}
    let_go = decided(job(status=said(announced)), pod("a", "Succeeded"))
    assert asked(let_go) == ["~a"]
    assert conditions(let_go) == {"SuccessCriteriaMet": REACHED}
    over = decided(job(status=said(let_go)), pod("a", "Succeeded", tracked=False))
    assert conditions(over) == {"SuccessCriteriaMet": REACHED, "Complete": REACHED}
    assert said(over)["completionTime"] == times.format(NOW)
    assert said(over)["succeeded"] == 1
    assert [(each.type, each.reason, each.message) for each in over.notices] == [
        ("Normal", "Completed", "Job completed")
    ]
    assert said(over)["conditions"][1]["message"] == "Reached expected number of succeeded pods"


def test_pods_that_are_left_when_enough_have_succeeded_are_stopped_and_do_not_count_as_failed() -> None:
    decision = decided(job(parallelism=2), pod("a", "Succeeded"), pod("b"))
    assert asked(decision) == ["~b", "-b"]
    assert conditions(decision) == {"SuccessCriteriaMet": REACHED}
    assert said(decision)["uncountedTerminatedPods"] == {"succeeded": ids("a")}
    assert said(decision)["terminating"] == 1


def test_a_job_is_not_over_while_a_pod_goes() -> None:
    status = {"succeeded": 1, "conditions": [condition("SuccessCriteriaMet", "CompletionsReached")]}
    assert "Complete" not in conditions(decided(job(status=status), pod("b", going=True, tracked=False)))


def test_a_work_queue_is_done_when_one_has_succeeded_and_all_have_ended() -> None:
    spec: dict[str, Any] = {"completions": None, "parallelism": 2}
    assert conditions(decided(job(**spec), pod("a", "Succeeded"), pod("b"))) == {}
    assert conditions(decided(job(**spec), pod("a", "Succeeded"), pod("b", "Failed"))) == {
        "SuccessCriteriaMet": REACHED
    }


# --- failure


def test_a_job_fails_when_too_many_pods_have_and_takes_the_others_with_it() -> None:
    status = {"failed": 1}
    spec: dict[str, Any] = {"backoffLimit": 1, "parallelism": 2, "completions": 5}
    announced = decided(job(status=status, **spec), pod("a", "Failed"), pod("b", ready=True))
    assert asked(announced) == ["-b"]
    assert conditions(announced) == {"FailureTarget": ("True", "BackoffLimitExceeded")}
    assert said(announced)["uncountedTerminatedPods"] == {"failed": ids("a", "b")}
    assert [said(announced).get(field) for field in ("active", "ready", "terminating")] == [None, 0, 1]

    let_go = decided(job(status=said(announced), **spec), pod("a", "Failed"), pod("b", going=True))
    assert asked(let_go) == ["~a", "~b"]

    over = decided(job(status=said(let_go), **spec), pod("a", "Failed", tracked=False))
    assert conditions(over)["Failed"] == ("True", "BackoffLimitExceeded")
    assert said(over)["failed"] == 3
    assert "completionTime" not in said(over)
    assert [(each.type, each.reason, each.message) for each in over.notices] == [
        ("Warning", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    ]


@pytest.mark.parametrize(("restarts", "limit", "fails"), [(2, 3, False), (3, 3, True), (0, 0, False), (1, 0, True)])
def test_where_containers_restart_in_place_their_restarts_are_the_failures(
    restarts: int, limit: int, fails: bool
) -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}
    decision = decided(job(backoffLimit=limit, template=template), pod("a", restarts=restarts))
    assert ("FailureTarget" in conditions(decision)) == fails


def test_a_job_that_is_active_for_too_long_fails() -> None:
    early = decided(job(activeDeadlineSeconds=3700), pod("a"))
    assert early.outcome == Again(timedelta(seconds=100), "the job may be active until then")
    late = decided(job(activeDeadlineSeconds=3600), pod("a"))
    assert conditions(late) == {"FailureTarget": ("True", "DeadlineExceeded")}
    assert said(late)["conditions"][0]["message"] == "Job was active longer than specified deadline"
    assert decided(job(activeDeadlineSeconds=3600, suspend=True)).outcome == Done()


# --- suspension


def test_a_suspended_job_says_so_and_begins_anew_when_it_is_resumed() -> None:
    asleep = decided(job(suspend=True, status={"startTime": None}))
    assert conditions(asleep) == {"Suspended": ("True", "JobSuspended")}
    assert "startTime" not in said(asleep)
    assert [(each.reason, each.message) for each in asleep.notices] == [("Suspended", "Job suspended")]

    still = decided(job(suspend=True, status={**said(asleep), "startTime": None}))
    assert (said(still), still.notices) == (said(asleep), ())

    status = {**said(asleep), "startTime": times.format(LONG_AGO)}
    awake = decided(job(status=status, activeDeadlineSeconds=60))
    assert conditions(awake) == {"Suspended": ("False", "JobResumed")}
    assert said(awake)["startTime"] == times.format(NOW)
    assert [each.reason for each in awake.notices] == ["SuccessfulCreate", "Resumed"]


# --- indexes


def indexed(**spec: Any) -> dict[str, Any]:
    return job(**{"completionMode": "Indexed", "completions": 3, "parallelism": 3, **spec})


@pytest.mark.parametrize(
    ("text", "indexes"), [("", set()), ("0", {0}), ("0,1", {0, 1}), ("0-2,4,6,7", {0, 1, 2, 4, 6, 7})]
)
def test_indexes_are_written_as_ranges_and_read_back(text: str, indexes: set[int]) -> None:
    assert job_indexes.write(indexes) == text
    assert job_indexes.parse(text, 100) == indexes


def test_indexes_beyond_the_completions_are_not_read() -> None:
    assert job_indexes.parse("1-9,20", 4) == {1, 2, 3}


def test_a_pod_of_an_indexed_job_knows_its_index() -> None:
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    manifests = started(decided(indexed()))
    assert [made["metadata"]["labels"][INDEX] for made in manifests] == ["0", "1", "2"]
    first = manifests[0]
    assert first["metadata"]["annotations"] == {INDEX: "0"}
    assert first["metadata"]["generateName"] == "j-0-"
    assert first["spec"]["hostname"] == "j-0"
    assert first["spec"]["containers"] == [{"name": "main", "env": [variable]}]


def test_long_names_leave_room_for_the_index() -> None:
    owner = indexed(completions=1)
    owner["metadata"]["name"] = "j" * 63
    view = Snapshot([(JOBS, owner)], indexes=CONTROLLER.indexes)
    world = observe(view, Key("n", "j" * 63))
    assert world is not None
    (made,) = started(decide(world, NOW))
    assert made["metadata"]["generateName"] == "j" * 55 + "-0-"
    assert len(made["metadata"]["name"]) == 63


def test_the_lowest_indexes_without_a_pod_come_next() -> None:
    status = {"completedIndexes": "1", "succeeded": 1}
    decision = decided(indexed(completions=5, parallelism=2, status=status), pod("a", index=0))
    assert [made["metadata"]["labels"][INDEX] for made in started(decision)] == ["2"]


def test_indexes_that_succeed_are_said_before_their_pods_are_let_go() -> None:
    named = decided(indexed(parallelism=1), pod("a", "Succeeded", index=0))
    assert (said(named)["completedIndexes"], said(named)["succeeded"]) == ("0", 1)
    assert asked(named) == ["+"]
    let_go = decided(indexed(parallelism=1, status=said(named)), pod("a", "Succeeded", index=0), pod("b", index=1))
    assert asked(let_go) == ["~a"]


def test_of_two_pods_with_one_index_one_goes_and_so_does_one_without() -> None:
    pods = [pod("a", index=0, ready=True), pod("b", index=0), pod("c"), pod("d", index=9)]
    assert sorted(asked(decided(indexed(), *pods))) == ["-b", "-c", "-d", "~b", "~c", "~d"]


# --- limits of an index


def test_an_index_starts_again_after_its_own_failures_and_its_pod_is_kept_until_then() -> None:
    spec: dict[str, Any] = {"backoffLimitPerIndex": 2, "completions": 2, "parallelism": 2, "backoffLimit": 2**31 - 1}
    recent = NOW - timedelta(seconds=4)
    held = decided(indexed(**spec), pod("a", "Failed", index=0, failures=1, ended=recent), pod("b", index=1))
    assert asked(held) == []
    assert held.outcome == Again(timedelta(seconds=16), "pods that fail are started again ever later")
    assert said(held)["uncountedTerminatedPods"] == {}
    assert said(held)["failedIndexes"] == ""

    due = decided(indexed(**spec), pod("a", "Failed", index=0, failures=1), pod("b", index=1))
    (made,) = started(due)
    assert made["metadata"]["annotations"] == {INDEX: "0", FAILURES: "2"}

    pods = [pod("a", "Failed", index=0, failures=1), pod("b", index=1), pod("c", index=0, failures=2)]
    assert said(decided(indexed(**spec), *pods))["uncountedTerminatedPods"] == {"failed": ids("a")}


def test_an_index_that_failed_too_often_has_failed_while_others_go_on() -> None:
    spec: dict[str, Any] = {"backoffLimitPerIndex": 0, "completions": 2, "parallelism": 2, "backoffLimit": 2**31 - 1}
    one = decided(indexed(**spec), pod("a", "Failed", index=0), pod("b", index=1))
    assert said(one)["failedIndexes"] == "0"
    assert conditions(one) == {}
    both = decided(indexed(**spec), pod("a", "Failed", index=0), pod("b", "Succeeded", index=1))
    assert conditions(both) == {"FailureTarget": ("True", "FailedIndexes")}
    strict = decided(indexed(maxFailedIndexes=0, **spec), pod("a", "Failed", index=0), pod("b", index=1))
    assert conditions(strict) == {"FailureTarget": ("True", "MaxFailedIndexesExceeded")}


# --- policies


def rule(action: str, **matching: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, **matching}]}, "podReplacementPolicy": "Failed"}


CODES = {"onExitCodes": {"operator": "In", "values": [42]}}
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("policy", "failed", "message"),
    [
        pytest.param(
            rule("FailJob", **CODES),
            pod("a", "Failed", exit_code=42),
            "Container main for pod n/a failed with exit code 42 matching FailJob rule at index 0",
            id="by exit code",
        ),
        pytest.param(
            rule("FailJob", onExitCodes={"operator": "NotIn", "values": [1]}),
            pod("a", "Failed", exit_code=42),
            "Container main for pod n/a failed with exit code 42 matching FailJob rule at index 0",
            id="by any other exit code",
        ),
        pytest.param(
            rule("FailJob", **DISRUPTED),
            pod("a", "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}]),
            "Pod n/a has condition DisruptionTarget matching FailJob rule at index 0",
            id="by condition",
        ),
        pytest.param(rule("FailJob", **CODES), pod("a", "Failed", exit_code=1), "", id="not by another code"),
        pytest.param(
            rule("FailJob", onExitCodes={**CODES["onExitCodes"], "containerName": "side"}),
            pod("a", "Failed", exit_code=42),
            "",
            id="not by another container",
        ),
    ],
)
def test_a_failure_policy_fails_the_job(policy: dict[str, Any], failed: dict[str, Any], message: str) -> None:
    decision = decided(job(**policy), failed)
    found = [each["message"] for each in said(decision).get("conditions", ())]
    assert found == ([message] if message else [])


def test_a_failure_that_is_ignored_is_let_go_and_not_counted() -> None:
    decision = decided(job(backoffLimit=0, **rule("Ignore", **CODES)), pod("a", "Failed", exit_code=42))
    assert asked(decision) == ["+", "~a"]
    assert said(decision)["uncountedTerminatedPods"] == {}
    assert conditions(decision) == {}


def test_ignored_failures_of_an_index_are_carried_on_apart() -> None:
    policy = rule("Ignore", **CODES)
    spec: dict[str, Any] = {"backoffLimitPerIndex": 0, "completions": 1, "backoffLimit": 2**31 - 1}
    (made,) = started(decided(indexed(**spec, **policy), pod("a", "Failed", index=0, exit_code=42)))
    assert made["metadata"]["annotations"] == {INDEX: "0", FAILURES: "0", IGNORED_FAILURES: "1"}


def test_a_failure_policy_can_fail_one_index() -> None:
    spec: dict[str, Any] = {"backoffLimitPerIndex": 5, "completions": 2, "backoffLimit": 2**31 - 1}
    decision = decided(indexed(**spec, **rule("FailIndex", **CODES)), pod("a", "Failed", index=0, exit_code=42))
    assert said(decision)["failedIndexes"] == "0"


@pytest.mark.parametrize(
    ("rules", "met"),
    [
        pytest.param([{"succeededCount": 1}], True, id="so many"),
        pytest.param([{"succeededCount": 2}], False, id="not so many"),
        pytest.param([{"succeededIndexes": "0"}], True, id="these"),
        pytest.param([{"succeededIndexes": "0-1"}], False, id="not all of these"),
        pytest.param([{"succeededIndexes": "0-1", "succeededCount": 1}], True, id="so many of these"),
    ],
)
def test_a_success_policy_says_what_is_enough(rules: list[dict[str, Any]], met: bool) -> None:
    decision = decided(indexed(successPolicy={"rules": rules}), pod("a", "Succeeded", index=0), pod("b", index=1))
    if met:
        assert conditions(decision) == {"SuccessCriteriaMet": ("True", "SuccessPolicy")}
        assert said(decision)["conditions"][0]["message"] == "Matched rules at index 0"
        assert asked(decision) == ["-b", "~b"]
        assert said(decision)["uncountedTerminatedPods"] == {}
    else:
        assert conditions(decision) == {}


# --- whose pods, and after the end


def test_a_pod_that_fits_is_adopted_with_the_finalizer() -> None:
    decision = decided(job(), pod("a", owner=None, tracked=False))
    (patch,) = decision.writes
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"ownerReferences": [OWNER], "finalizers": [TRACKING]}}


@pytest.mark.parametrize("owner", [OWNER, None], ids=["deleted with it", "orphaned"])
def test_a_pod_whose_job_is_gone_is_let_go(owner: dict[str, Any] | None) -> None:
    decision = decided(None, pod("a", owner=owner, going=True))
    assert asked(decision) == ["~a"]
    assert decision.status is None


def test_a_pod_of_an_earlier_job_of_the_same_name_is_let_go() -> None:
    assert asked(decided(job(), pod("a", owner={**OWNER, "uid": "earlier"}), pod("b"))) == ["~a"]


def test_a_job_that_is_being_deleted_lets_its_pods_go() -> None:
    assert asked(decided(job(deleting=True), pod("a", going=True, tracked=True), pod("b"))) == ["~b"]


def test_a_job_goes_some_time_after_its_end_with_all_that_is_left_of_it() -> None:
    ended = {"conditions": [condition("Complete", "CompletionsReached", at=NOW - timedelta(seconds=40))]}
    early = decided(job(status=ended, ttlSecondsAfterFinished=60), pod("a", "Succeeded"))
    assert asked(early) == ["~a"]
    assert early.outcome == Again(timedelta(seconds=20), "the job is removed some time after its end")
    (delete,) = decided(job(status=ended, ttlSecondsAfterFinished=30)).writes
    assert isinstance(delete, Delete)
    assert (delete.resource, delete.uid, delete.propagation) == (JOBS, "job", "Foreground")
    assert decided(job(status=ended)).writes == ()


# --- stories


def manifest(**spec: Any) -> dict[str, Any]:
    pods = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    return {"metadata": {"name": "j"}, "spec": {"template": {"metadata": {"labels": LABELS}, "spec": pods}, **spec}}


async def running(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in await cluster.list(PODS) if pod["status"]["phase"] == "Pending"]


async def ended(cluster: Cluster, phase: str) -> dict[str, Any]:
    """Have the first pod that runs end, and see what the job says then."""
    await cluster.report((await running(cluster))[0], phase=phase, ready=False)
    await cluster.settle()
    status: dict[str, Any] = (await cluster.get(JOBS, "j"))["status"]
    return status


def test_a_job_runs_to_its_end() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(JOBS, manifest(completions=2, parallelism=1))
        await cluster.settle()
        half = await ended(cluster, "Succeeded")
        assert (half["succeeded"], half["active"]) == (1, 1)
        done = await ended(cluster, "Succeeded")
        assert (done["succeeded"], done.get("active")) == (2, None)
        assert [each["type"] for each in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        assert all("finalizers" not in pod["metadata"] for pod in await cluster.list(PODS))
        reasons = [event["reason"] for event in await cluster.list(EVENTS)]
        assert sorted(reasons) == ["Completed", "SuccessfulCreate", "SuccessfulCreate"]

    play(story, controllers=[CONTROLLER])


def test_a_job_that_fails_again_and_again_waits_and_gives_up() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(JOBS, manifest(completions=5, parallelism=2, backoffLimit=1))
        await cluster.settle()
        once = await ended(cluster, "Failed")
        assert (once["failed"], once["active"]) == (1, 1)
        await cluster.advance(9)
        assert len(await running(cluster)) == 1
        await cluster.advance(1)
        assert len(await running(cluster)) == 2
        failed = await ended(cluster, "Failed")
        assert failed["conditions"][-1]["reason"] == "BackoffLimitExceeded"
        assert (failed["failed"], failed["terminating"], failed.get("active")) == (3, 0, None)
        assert await running(cluster) == []

    play(story, controllers=[CONTROLLER])


def test_a_deadline_passes_without_anything_else_happening() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(JOBS, manifest(activeDeadlineSeconds=30))
        await cluster.settle()
        await cluster.advance(31)
        status = (await cluster.get(JOBS, "j"))["status"]
        assert status["conditions"][-1]["reason"] == "DeadlineExceeded"
        assert await cluster.list(PODS) == []

    play(story, controllers=[CONTROLLER])


def test_a_manager_that_is_killed_at_any_moment_counts_each_pod_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(JOBS, manifest(completions=4, parallelism=2))
        while (await cluster.get(JOBS, "j"))["status"].get("succeeded", 0) < 4:
            await cluster.settle()
            for name in await running(cluster):
                await cluster.report(name, phase="Succeeded", ready=False)
                await cluster.restart()
        done = (await cluster.get(JOBS, "j"))["status"]
        assert done["succeeded"] == 4
        assert len(await cluster.list(PODS)) == 4

    play(story, controllers=[CONTROLLER])
