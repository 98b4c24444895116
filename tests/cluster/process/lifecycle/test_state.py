"""What is done about a pod, and what is reported of it: decided from facts and time alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.cluster.process.lifecycle import facts as known
from holdfast.cluster.process.lifecycle import status as statuses
from holdfast.cluster.process.lifecycle.facts import (
    Exited,
    Gone,
    Hook,
    Hooked,
    Probed,
    SourcesChanged,
    Started,
    Unstartable,
)
from holdfast.cluster.process.lifecycle.pods import Pod
from holdfast.cluster.process.lifecycle.probes import Answer, Kind
from holdfast.cluster.process.lifecycle.state import Action, Ask, Kill, RunHook, Start, Step, Terminate, step
from holdfast.cluster.process.running.env import Surroundings

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
AROUND = Surroundings(ip="127.70.0.1", host_ip="127.0.0.1", capacity={})


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class Story:
    """A pod whose containers do what the test says."""

    def __init__(
        self,
        *containers: Mapping[str, Any],
        init: tuple[Mapping[str, Any], ...] = (),
        status: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        self._wire: dict[str, Any] = {
            "metadata": {"name": "p", "namespace": "default", "uid": "u1"},
            "spec": {"containers": [*(containers or ({"name": "main"},))], "initContainers": [*init], **spec},
            "status": dict(status or {}),
        }
        self.now = EPOCH
        self.pids = iter(range(100, 1000))
        self.facts = known.begun(self.pod, self.now)
        self.last: dict[str, Any] | None = None

    @property
    def pod(self) -> Pod:
        return Pod.of(Object.of(PODS, self._wire))

    def look(self) -> Step:
        made = step(self.pod, self.facts, self.now)
        self.facts = made.facts
        return made

    def do(self) -> tuple[Action, ...]:
        """The actions of a look; a second one at the same moment wants nothing more."""
        actions = self.look().actions
        assert self.look().actions == ()
        return actions

    def wait(self, number: float) -> Story:
        self.now += seconds(number)
        return self

    def hear(self, *news: known.News) -> Story:
        for each in news:
            self.facts = known.observed(self.pod, self.facts, each)
        return self

    def start(self, name: str = "main") -> Story:
        return self.hear(Started(name, next(self.pids), self.now))

    def run(self, name: str = "main") -> known.Live:
        run = self.facts.containers[name].run
        assert isinstance(run, known.Live)
        return run

    def exit(self, code: int = 0, name: str = "main") -> Story:
        live = self.run(name)
        reason = "Completed" if code == 0 else "Error"
        ended = known.Ended(
            exit_code=code, reason=reason, started_at=live.started_at, finished_at=self.now, pid=live.pid
        )
        return self.hear(Exited(name, ended))

    def answer(self, kind: Kind, good: bool, name: str = "main") -> Story:
        return self.hear(Probed(name, self.run(name).pid, kind, Answer(good=good, message="said"), self.now))

    def delete(self, grace: int = 30) -> Story:
        self._wire["metadata"] |= {
            "deletionTimestamp": "2030-01-01T00:00:30Z",
            "deletionGracePeriodSeconds": grace,
        }
        return self

    def report(self) -> dict[str, Any]:
        self.last = statuses.status(self.pod, self.facts, self.now, around=AROUND, last=self.last)
        return self.last

    def reported(self, name: str = "main") -> dict[str, Any]:
        status = self.report()
        every = (*status.get("initContainerStatuses", ()), *status["containerStatuses"])
        return next(each for each in every if each["name"] == name)

    def condition(self, type: str) -> dict[str, Any]:
        return next(each for each in self.report()["conditions"] if each["type"] == type)

    def running(self) -> Story:
        """With all containers started, one after the other."""
        while starts := [action for action in self.look().actions if isinstance(action, Start)]:
            for each in starts:
                self.start(each.container)
        return self


# --- starting and restarting


def test_all_containers_are_started_together() -> None:
    story = Story({"name": "a"}, {"name": "b"})
    assert story.do() == (Start("a", 0), Start("b", 0))
    assert story.report()["phase"] == "Pending"
    story.start("a")
    assert story.report()["phase"] == "Pending"
    story.start("b")
    assert story.report()["phase"] == "Running"
    assert story.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("policy", "code", "again", "phase"),
    [
        ("Always", 0, True, "Running"),
        ("Always", 1, True, "Running"),
        ("OnFailure", 0, False, "Succeeded"),
        ("OnFailure", 1, True, "Running"),
        ("Never", 0, False, "Succeeded"),
        ("Never", 1, False, "Failed"),
    ],
)
def test_the_restart_policy_decides_what_follows_an_end(policy: str, code: int, again: bool, phase: str) -> None:
    story = Story(restartPolicy=policy).running().exit(code)
    assert story.do() == ((Start("main", 1),) if again else ())
    assert story.report()["phase"] == phase


def test_a_container_that_keeps_ending_waits_longer_each_time_up_to_five_minutes() -> None:
    story = Story().running()
    waits = []
    for _ in range(9):
        story.wait(1).exit(1)
        made = story.look()
        wait = seconds(0) if made.wake is None else made.wake - story.now
        waits.append(wait.total_seconds())
        if wait:
            assert story.reported()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
            story.now += wait
            assert story.do() == (Start("main", story.facts.containers["main"].restarts),)
        story.start()
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    assert story.reported()["restartCount"] == 9


def test_ten_minutes_of_running_make_up_for_earlier_crashes() -> None:
    story = Story().running().exit(1)
    assert story.do() == (Start("main", 1),)
    story.start().wait(600).exit(1)
    assert story.do() == (Start("main", 2),)
    story.start().wait(1).exit(1)
    assert story.look().wake == story.now + seconds(10)


def test_a_crash_loop_says_how_long_it_waits_and_how_the_last_run_ended() -> None:
    story = Story().running().exit(1)
    story.look()
    story.start().exit(2)
    reported = story.reported()
    message = "back-off 10s restarting failed container=main pod=p_default(u1)"
    assert reported["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    assert reported["lastState"]["terminated"]["exitCode"] == 2
    assert reported["restartCount"] == 1
    assert not reported["ready"]


def test_what_is_refused_is_tried_again_when_something_it_needs_has_changed() -> None:
    story = Story()
    story.look()
    story.hear(Unstartable("main", known.Refused("CreateContainerConfigError", "no such thing")))
    assert story.look().wake is None
    assert story.reported()["state"] == {
        "waiting": {"reason": "CreateContainerConfigError", "message": "no such thing"}
    }
    assert story.report()["phase"] == "Pending"
    assert story.hear(SourcesChanged()).do() == (Start("main", 0),)


# --- init containers and sidecars

FIRST, SECOND = {"name": "first"}, {"name": "second"}
SIDECAR = {"name": "side", "restartPolicy": "Always"}
PROBED = {"startupProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}}


def test_init_containers_run_one_after_another_before_the_others() -> None:
    story = Story(init=(FIRST, SECOND))
    assert story.do() == (Start("first", 0),)
    assert story.condition("Initialized")["message"] == "containers with incomplete status: [first second]"
    assert story.reported("main")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert story.start("first").do() == ()
    assert story.exit(0, "first").do() == (Start("second", 0),)
    assert story.start("second").exit(0, "second").do() == (Start("main", 0),)
    assert story.condition("Initialized")["status"] == "True"
    assert story.reported("first")["ready"]


@pytest.mark.parametrize(("policy", "again"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_an_init_container_that_fails_is_repeated_or_fails_the_pod(policy: str, again: bool) -> None:
    story = Story(init=(FIRST,), restartPolicy=policy)
    story.look()
    story.start("first").exit(1, "first")
    assert story.do() == ((Start("first", 1),) if again else ())
    assert story.report()["phase"] == ("Pending" if again else "Failed")


def test_the_next_container_waits_until_a_sidecar_has_started_and_not_until_it_ends() -> None:
    story = Story(init=({**SIDECAR, **PROBED}, SECOND))
    assert story.do() == (Start("side", 0),)
    pid = 100
    assert story.start("side").do() == (Ask("side", pid, Kind.STARTUP),)
    assert story.answer(Kind.STARTUP, True, "side").do() == (Start("second", 0),)
    assert story.start("second").exit(0, "second").do() == (Start("main", 0),)


def test_a_sidecar_is_started_again_whatever_the_policy_and_is_not_waited_for() -> None:
    story = Story(init=(SIDECAR,), restartPolicy="Never").running().exit(0, "side")
    assert story.do() == (Start("side", 1),)
    assert story.report()["phase"] == "Running"
    assert story.condition("ContainersReady")["message"] == "containers with unready status: [side]"


def test_sidecars_end_when_the_work_is_done_the_last_one_first() -> None:
    story = Story(init=(SIDECAR, {**SIDECAR, "name": "late"}), restartPolicy="Never").running().exit(0)
    assert story.do() == (Terminate("late", "the pod's containers have ended"),)
    assert story.report()["phase"] == "Running"
    assert story.exit(143, "late").do() == (Terminate("side", "the pod's containers have ended"),)
    story.exit(143, "side")
    assert story.do() == ()
    assert story.report()["phase"] == "Succeeded"


# --- probes


def probe(**rest: int) -> dict[str, Any]:
    return {"tcpSocket": {"port": 1}, "periodSeconds": 5, "failureThreshold": 2, **rest}


def test_a_container_is_ready_when_its_probe_says_so_and_no_longer_when_it_says_otherwise() -> None:
    story = Story({"name": "main", "readinessProbe": probe(initialDelaySeconds=3)}).running()
    assert story.look().wake == story.now + seconds(3)
    assert not story.reported()["ready"]
    assert story.wait(3).do() == (Ask("main", 100, Kind.READINESS),)
    story.answer(Kind.READINESS, True)
    assert story.reported()["ready"]
    assert story.look().wake == story.now + seconds(5)
    for _ in range(2):
        assert story.reported()["ready"], "one failure is not enough"
        assert story.wait(5).do() == (Ask("main", 100, Kind.READINESS),)
        story.answer(Kind.READINESS, False)
    assert not story.reported()["ready"]
    assert story.condition("Ready")["reason"] == "ContainersNotReady"


def test_readiness_may_need_several_successes() -> None:
    story = Story({"name": "main", "readinessProbe": probe(successThreshold=2)}).running()
    story.answer(Kind.READINESS, True)
    assert not story.reported()["ready"]
    story.answer(Kind.READINESS, True)
    assert story.reported()["ready"]


def test_failures_must_come_in_a_row() -> None:
    story = Story({"name": "main", "livenessProbe": probe()}).running()
    for good in (False, True, False):
        story.answer(Kind.LIVENESS, good)
    assert all(not isinstance(action, Terminate) for action in story.do())


def test_a_container_that_fails_its_liveness_probe_is_stopped_and_started_again() -> None:
    story = Story({"name": "main", "livenessProbe": probe()}).running()
    story.answer(Kind.LIVENESS, False).answer(Kind.LIVENESS, False)
    assert story.do() == (Terminate("main", "it failed its liveness probe"),)
    assert story.look().wake == story.now + seconds(30)
    assert story.exit(143).do() == (Start("main", 1),)


def test_a_probe_may_give_less_grace_than_the_pod() -> None:
    story = Story({"name": "main", "livenessProbe": probe(failureThreshold=1, terminationGracePeriodSeconds=4)})
    story.running().answer(Kind.LIVENESS, False).do()
    assert story.wait(4).do() == (Kill("main"),)


def test_other_probes_wait_for_the_startup_probe() -> None:
    every = {"startupProbe": probe(), "livenessProbe": probe(), "readinessProbe": probe()}
    story = Story({"name": "main", **every}).running()
    assert [run.asked for run in story.run().probes.values()] == [True, False, False]
    assert not story.reported()["started"]
    story.answer(Kind.STARTUP, True)
    assert story.do() == (Ask("main", 100, Kind.LIVENESS), Ask("main", 100, Kind.READINESS))
    assert story.reported()["started"]


def test_a_container_that_does_not_start_in_time_is_stopped() -> None:
    story = Story({"name": "main", "startupProbe": probe()}).running()
    story.answer(Kind.STARTUP, False).answer(Kind.STARTUP, False)
    assert story.do() == (Terminate("main", "it failed its startup probe"),)


def test_a_slow_answer_is_not_made_up_for_by_asking_faster() -> None:
    story = Story({"name": "main", "readinessProbe": probe()}).running()
    story.wait(17).answer(Kind.READINESS, True)
    assert story.run().probes[Kind.READINESS].due == story.now


def test_answers_about_an_earlier_run_are_not_heard() -> None:
    story = Story({"name": "main", "readinessProbe": probe()}).running()
    before = story.facts
    story.hear(Probed("main", 1, Kind.READINESS, Answer(good=True), story.now))
    assert story.facts == before


# --- hooks


def hooks(**rest: Any) -> dict[str, Any]:
    return {"name": "main", "lifecycle": {name: {"exec": {"command": ["x"]}} for name in rest}}


def test_probes_and_readiness_wait_for_the_hook_after_the_start() -> None:
    story = Story({**hooks(postStart=1), "livenessProbe": probe()})
    story.look()
    assert story.start().do() == (RunHook("main", 100, Hook.POST_START),)
    assert not story.reported()["ready"]
    story.hear(Hooked("main", 100, Hook.POST_START, story.now))
    assert story.reported()["ready"]
    assert story.do() == (Ask("main", 100, Kind.LIVENESS),)


def test_a_container_whose_hook_fails_is_stopped() -> None:
    story = Story(hooks(postStart=1)).running()
    story.hear(Hooked("main", 100, Hook.POST_START, story.now, "exit code 3"))
    assert story.do() == (Terminate("main", "its postStart hook failed: exit code 3"),)


def test_the_hook_before_the_stop_comes_first_and_counts_against_the_grace() -> None:
    story = Story(hooks(preStop=1)).running().delete(grace=10)
    assert story.do() == (RunHook("main", 100, Hook.PRE_STOP, seconds(10)),)
    story.wait(4).hear(Hooked("main", 100, Hook.PRE_STOP, story.now))
    assert story.do() == (Terminate("main", "the pod is deleted"),)
    assert story.wait(5).do() == ()
    assert story.wait(1).do() == (Kill("main"),)


def test_a_hook_that_takes_all_the_grace_leaves_a_moment_to_end() -> None:
    story = Story(hooks(preStop=1)).running().delete(grace=10)
    story.look()
    assert story.wait(10).do() == (Terminate("main", "the pod is deleted"),)
    assert story.wait(2).do() == (Kill("main"),)
    late = story.facts
    assert story.hear(Hooked("main", 100, Hook.PRE_STOP, story.now)).facts == late


# --- ends


def test_a_deleted_pod_is_asked_to_end_and_then_made_to() -> None:
    story = Story({"name": "main", "livenessProbe": probe()}).running()
    story.answer(Kind.LIVENESS, True).delete(grace=5)
    assert story.do() == (Terminate("main", "the pod is deleted"),)
    assert story.look().wake == story.now + seconds(5), "and the liveness probe ends"
    assert story.wait(5).do() == (Kill("main"),)
    assert not story.look().over
    assert story.exit(137).look().over
    assert story.report()["phase"] == "Failed"


def test_what_ends_well_when_asked_to_succeeds() -> None:
    story = Story().running().delete()
    story.look()
    assert story.exit(0).look().over
    assert story.report()["phase"] == "Succeeded"


def test_a_deadline_comes_nearer_when_the_grace_is_shortened() -> None:
    story = Story().running().delete(grace=100)
    story.look()
    story.wait(3).delete(grace=1)
    assert story.do() == (Kill("main"),)


def test_a_container_that_ends_is_not_started_again_in_a_pod_that_is_deleted() -> None:
    story = Story({"name": "a"}, {"name": "b"}).running().exit(1, "a").delete()
    assert story.do() == (Terminate("b", "the pod is deleted"),)
    assert "terminated" in story.reported("a")["state"]


def test_what_is_being_started_when_its_pod_is_deleted_is_stopped_as_soon_as_it_runs() -> None:
    story = Story()
    story.look()
    assert not story.delete().look().over
    assert story.start().do() == (Terminate("main", "the pod is deleted"),)


def test_a_pod_that_never_started_is_over_as_soon_as_it_is_deleted() -> None:
    story = Story()
    story.look()
    story.hear(Unstartable("main", known.Refused("R", "m")))
    assert story.delete().look().over


def test_sidecars_outlive_the_others_and_are_given_a_moment_however_late_it_is() -> None:
    story = Story(init=(SIDECAR,)).running().delete(grace=5)
    assert story.do() == (Terminate("main", "the pod is deleted"),)
    assert story.wait(5).do() == (Kill("main"),)
    assert story.exit(137).do() == (Terminate("side", "the pod is deleted"),)
    assert story.wait(2).do() == (Kill("side"),)
    assert story.exit(137, "side").look().over


def test_a_pod_whose_object_is_gone_is_ended_quickly() -> None:
    story = Story(terminationGracePeriodSeconds=3600).running().hear(Gone())
    assert story.do() == (Terminate("main", "the pod is deleted"),)
    assert story.wait(2).do() == (Kill("main"),)


def test_a_pod_ends_when_it_has_been_active_for_as_long_as_it_may() -> None:
    story = Story(activeDeadlineSeconds=60).running()
    assert story.look().wake == story.now + seconds(60)
    assert story.wait(60).do() == (Terminate("main", "the pod has been active for as long as it may"),)
    assert story.exit(0).look().over
    assert (story.report()["phase"], story.report()["reason"]) == ("Failed", "DeadlineExceeded")


# --- after a restart of the node


def was(state: Mapping[str, Any], restarts: int = 0, last: Mapping[str, Any] | None = None) -> dict[str, Any]:
    main = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
    return {"phase": "Running", "startTime": "2029-12-31T23:00:00Z", "containerStatuses": [main]}


RAN = {"running": {"startedAt": "2029-12-31T23:00:01Z"}}
ENDED = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2029-12-31T23:10:00Z"}}


def test_what_was_running_before_the_node_restarted_is_started_again_and_says_so() -> None:
    story = Story(status=was(RAN, restarts=2))
    assert story.do() == (Start("main", 3),)
    story.start()
    reported = story.reported()
    assert reported["restartCount"] == 3
    last = reported["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("Unknown", 255)
    assert last["message"] == "The node was restarted; how the process ended is not known."
    assert story.report()["startTime"] == "2029-12-31T23:00:00Z"


@pytest.mark.parametrize(
    ("state", "policy", "phase"),
    [
        (RAN, "Never", "Failed"),
        (ENDED, "Never", "Failed"),
        ({"terminated": {"exitCode": 0, "reason": "Completed"}}, "OnFailure", "Succeeded"),
    ],
)
def test_what_has_ended_for_good_is_not_started_again(state: dict[str, Any], policy: str, phase: str) -> None:
    story = Story(status=was(state), restartPolicy=policy)
    assert story.do() == ()
    assert story.report()["phase"] == phase


def test_what_waited_to_be_started_again_still_does() -> None:
    story = Story(status=was({"waiting": {"reason": "CrashLoopBackOff"}}, 4, ENDED))
    assert story.do() == (Start("main", 5),)
    assert story.reported()["lastState"]["terminated"]["exitCode"] == 3


def test_init_containers_that_are_done_are_not_repeated() -> None:
    done = {"name": "first", "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    story = Story(init=(FIRST,), status={**was(RAN), "initContainerStatuses": [done]})
    assert story.do() == (Start("main", 1),)


def test_a_pod_that_was_being_deleted_is_over_at_once() -> None:
    assert Story(status=was(RAN)).delete().look().over


# --- what is reported


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    story = Story().running()
    story.report()
    since = story.condition("Ready")["lastTransitionTime"]
    story.wait(100)
    assert story.condition("Ready")["lastTransitionTime"] == since
    story.exit(1)
    assert story.condition("Ready")["lastTransitionTime"] == "2030-01-01T00:01:40Z"


def test_nothing_changes_in_a_report_while_nothing_happens() -> None:
    story = Story({"name": "main", "readinessProbe": probe()}).running().answer(Kind.READINESS, True)
    before = story.report()
    for _ in range(5):
        story.wait(5).look()
        story.answer(Kind.READINESS, True)
        assert story.report() == before


def test_a_readiness_gate_holds_back_the_pod_and_not_its_containers() -> None:
    gates = [{"conditionType": "example.com/ok"}]
    story = Story(readinessGates=gates).running()
    assert story.condition("ContainersReady")["status"] == "True"
    assert story.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    story = Story(readinessGates=gates, status={"conditions": [{"type": "example.com/ok", "status": "True"}]}).running()
    assert story.condition("Ready")["status"] == "True"


def test_a_container_that_was_killed_says_by_which_signal() -> None:
    story = Story(restartPolicy="Never").running()
    ended = known.Ended(
        exit_code=137, signal=9, reason="Error", message="bye", started_at=EPOCH, finished_at=EPOCH, pid=100
    )
    story.hear(Exited("main", ended))
    assert story.reported()["state"] == {
        "terminated": {
            "exitCode": 137,
            "signal": 9,
            "reason": "Error",
            "message": "bye",
            "startedAt": "2030-01-01T00:00:00Z",
            "finishedAt": "2030-01-01T00:00:00Z",
            "containerID": "process://100",
        }
    }


def test_a_patch_takes_back_what_is_no_longer_said_and_leaves_the_conditions_of_others() -> None:
    story = Story().running()
    patch = statuses.patch(story.report(), uid="u1")
    assert patch["metadata"] == {"uid": "u1"}
    ready = next(each for each in patch["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("True", None, None)


def test_facts_are_values() -> None:
    story = Story().running()
    before = story.facts
    step(story.pod, before, story.now + seconds(1000))
    assert before == replace(before)
