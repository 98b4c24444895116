"""The life of simulated pods, as a film: what is written of a pod, and when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS
from holdfast.cluster.nodes.evictions import BY_NODE
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation import agent, chaos
from holdfast.cluster.simulation.behaviours import PREFIX, Behaviour, Defaults, Ending, behaviour, is_broken
from holdfast.cluster.simulation.chaos import Crash, Hang, NodeDown, Slow
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes, manifest
from holdfast.cluster.simulation.status import pod_address
from holdfast.kernel.outcomes import Again
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Decision, Delete
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

START = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HALF = timedelta(milliseconds=500)
DEFAULTS = Defaults(ready=(HALF, HALF), stop=(HALF, HALF), init=(SECOND, SECOND))
KEY = Key("default", "web")


def pod(
    spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **annotations: str
) -> dict[str, Any]:
    """A pod that was just bound; annotations by their last part, with underscores."""
    marks = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}
    stamp = times.format(START)
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "100",
            "creationTimestamp": stamp,
            "annotations": marks,
            **(metadata or {}),
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "web:1"}], **(spec or {})},
        "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": [scheduled]},
    }


class Film:
    """A pod on a simulated node, moved by nothing but time."""

    def __init__(self, wire: dict[str, Any], *faults: chaos.Fault) -> None:
        self.wire = wire
        self.now = START
        self.gone = False
        self.notices: list[str] = []
        self.deletions = agent.Deletions()
        data = {f"f{number}": chaos.written(fault) for number, fault in enumerate(faults)}
        self._around = [(NODES, manifest(Fleet(), "node-1", START))]
        self._around += [
            (CONFIG_MAPS, {"metadata": {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}, "data": data})
        ]

    def decide(self) -> Decision:
        world = agent.observe(Snapshot([(PODS, self.wire), *self._around], indexes=[BY_NODE]), KEY)
        assert world is not None
        return agent.decide(world, self.now, defaults=DEFAULTS, deletions=self.deletions)

    def play(self, seconds: float) -> list[str]:
        """What is written in so much time: ``0.5 Running ready``."""
        seen, end = [], self.now + timedelta(seconds=seconds)
        while not self.gone:
            decision = self.decide()
            self.notices += [notice.reason for notice in decision.notices]
            if decision.status is not None and decision.status != self.wire["status"]:
                self.wire = {**self.wire, "status": dict(decision.status)}
                self._touch()
                seen.append(f"{self._elapsed()} {self.shown()}")
                continue
            for write in decision.writes:
                assert isinstance(write, Delete)
                self.gone = not self.wire["metadata"].get("finalizers")
                self.wire["metadata"]["deletionGracePeriodSeconds"] = 0
                seen.append(f"{self._elapsed()} deleted")
            if decision.writes:
                continue
            if not isinstance(decision.outcome, Again) or self.now + decision.outcome.after > end:
                break
            self.now += decision.outcome.after
        self.now = end
        return seen

    def delete(self, grace: int) -> None:
        """Ask for its deletion, as the API server does."""
        at = times.format(self.now + timedelta(seconds=grace))
        self.wire["metadata"] |= {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}

    def shown(self) -> str:
        status = self.wire["status"]
        words = [status["phase"]]
        if self.condition("Ready")["status"] == "True":
            words.append("ready")
        for each in (*status.get("initContainerStatuses", ()), *status["containerStatuses"]):
            state, detail = next(iter(each["state"].items()))
            if state == "waiting" and detail["reason"] != "ContainerCreating":
                words.append(f"{each['name']}:{detail['reason']}")
            if state == "terminated":
                words.append(f"{each['name']}:{detail['reason']}({detail['exitCode']})")
            if each["restartCount"]:
                words.append(f"{each['name']}#{each['restartCount']}")
        return " ".join(words)

    def condition(self, type: str) -> dict[str, Any]:
        return next(each for each in self.wire["status"]["conditions"] if each["type"] == type)

    def _elapsed(self) -> str:
        return f"{(self.now - START).total_seconds():g}"

    def _touch(self) -> None:
        version = int(self.wire["metadata"]["resourceVersion"]) + 1
        self.wire["metadata"] = {**self.wire["metadata"], "resourceVersion": str(version)}


PROBED = {"containers": [{"name": "main", "image": "web:1", "readinessProbe": {"httpGet": {"port": 80}}}]}
JOB = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]}
INITS = {"initContainers": [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:1"}]}
SIDECAR = {
    "initContainers": [{"name": "proxy", "image": "p:1", "restartPolicy": "Always"}, {"name": "one", "image": "i:1"}]
}


@pytest.mark.parametrize(
    ("wire", "seconds", "film"),
    [
        pytest.param(pod(), 60, ["0.5 Running ready"], id="one write, and then nothing"),
        pytest.param(pod(PROBED), 60, ["0 Running", "0.5 Running ready"], id="a probed pod runs first"),
        pytest.param(pod(ready_after="3s"), 60, ["0 Running", "3 Running ready"], id="a time of its own"),
        pytest.param(pod(ready_after="0s"), 60, ["0 Running ready"], id="at once"),
        pytest.param(pod(never_ready="true"), 60, ["0.5 Running"], id="never ready"),
        pytest.param(
            pod(INITS),
            60,
            [
                "0 Pending two:PodInitializing main:PodInitializing",
                "1 Pending one:Completed(0) main:PodInitializing",
                "2 Running one:Completed(0) two:Completed(0)",
                "2.5 Running ready one:Completed(0) two:Completed(0)",
            ],
            id="init containers, one after the other",
        ),
        pytest.param(
            pod(SIDECAR),
            60,
            ["0 Pending main:PodInitializing", "1 Running one:Completed(0)", "1.5 Running ready one:Completed(0)"],
            id="a sidecar runs beside the rest",
        ),
        pytest.param(
            pod(crash_after="2s", exit_code="7"),
            40,
            [
                "0.5 Running ready",
                "2.5 Running main#1",
                "3 Running ready main#1",
                "4.5 Running main:CrashLoopBackOff main#1",
                "14 Running main#2",
                "14.5 Running ready main#2",
                "16 Running main:CrashLoopBackOff main#2",
                "36 Running main#3",
                "36.5 Running ready main#3",
                "38 Running main:CrashLoopBackOff main#3",
            ],
            id="a crash loop: at once, after ten seconds, after twenty",
        ),
        pytest.param(
            pod({"restartPolicy": "Never"}, crash_after="2s", exit_code="7"),
            60,
            ["0.5 Running ready", "2.5 Failed main:Error(7)"],
            id="a crash for good",
        ),
        pytest.param(
            pod({"restartPolicy": "Never"}, JOB),
            60,
            ["0.5 Running ready", "1.5 Succeeded main:Completed(0)"],
            id="a pod of a Job ends by itself",
        ),
        pytest.param(
            pod({"restartPolicy": "OnFailure"}, JOB, run_for="5s", exit_code="3"),
            10,
            ["0.5 Running ready", "5.5 Running main#1", "6 Running ready main#1"],
            id="a Job that fails is tried again",
        ),
        pytest.param(
            pod({"restartPolicy": "Never"}), 60, ["0.5 Running ready"], id="without a Job nothing ends by itself"
        ),
        pytest.param(
            pod({"restartPolicy": "Never"}, fail_probability="1"),
            60,
            ["0.5 Running ready", "1 Failed main:Error(1)"],
            id="a pod that is drawn to fail crashes",
        ),
        pytest.param(
            pod(crash_after="2s", never_ready="true", fail_probability="0"),
            60,
            ["0.5 Running ready"],
            id="a pod that is not drawn is well",
        ),
        pytest.param(
            pod({"containers": [{"name": "main", "image": "registry.local:5000/web:broken"}]}),
            60,
            ["0 Pending main:ErrImagePull", "10 Pending main:ImagePullBackOff"],
            id="a broken image",
        ),
        pytest.param(
            pod({"activeDeadlineSeconds": 5}),
            60,
            ["0.5 Running ready", "5 Failed main:Error(137)"],
            id="a deadline",
        ),
        pytest.param(
            pod({"restartPolicy": "Never", **SIDECAR}, run_for="2s"),
            60,
            [
                "0 Pending main:PodInitializing",
                "1 Running one:Completed(0)",
                "1.5 Running ready one:Completed(0)",
                "3 Succeeded proxy:Completed(0) one:Completed(0) main:Completed(0)",
            ],
            id="sidecars end with the last container",
        ),
    ],
)
def test_pods_live_as_they_are_asked_to(wire: dict[str, Any], seconds: float, film: list[str]) -> None:
    assert Film(wire).play(seconds) == film


@pytest.mark.parametrize("pause", [0.3, 1.7, 5.0, 100.0])
def test_a_node_that_was_away_goes_on_where_the_status_says(pause: float) -> None:
    film = Film(pod(crash_after="2s"))
    film.play(2)
    film.now += timedelta(seconds=pause)
    film.play(1000)
    assert film.wire["status"]["phase"] == "Running"
    assert film.wire["status"]["containerStatuses"][0]["restartCount"] >= 5


@pytest.mark.parametrize(
    ("state", "end"),
    [
        pytest.param({"running": {}}, "0 Running ready main#1", id="since when it runs"),
        pytest.param(
            {"terminated": {"exitCode": 128, "startedAt": None}}, "0.5 Running ready main#2", id="when it began"
        ),
        pytest.param({"terminated": {"exitCode": 1}}, "0.5 Running ready main#2", id="when it ended"),
    ],
)
def test_a_status_may_leave_open(state: dict[str, Any], end: str) -> None:
    wire = pod()
    status = {"name": "main", "image": "web:1", "restartCount": 1, "state": state, "lastState": state}
    wire["status"] |= {"phase": "Running", "startTime": None, "containerStatuses": [status]}
    assert Film(wire).play(5)[-1] == end


def test_a_run_that_lasted_makes_up_for_earlier_crashes() -> None:
    film = Film(pod(ready_after="0s", crash_after="11m"))
    assert [line.split(maxsplit=1)[1] for line in film.play(45 * 60)] == [
        "Running ready",
        "Running ready main#1",
        "Running ready main#2",
        "Running ready main#3",
        "Running ready main#4",
    ]


def test_the_status_of_a_pod_that_runs_is_whole() -> None:
    film = Film(pod())
    film.play(60)
    stamp = "2030-01-01T00:00:00Z"
    status = film.wire["status"]
    (container,) = status.pop("containerStatuses")
    conditions = status.pop("conditions")
    assert status == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "hostIP": "172.18.0.1",
        "hostIPs": [{"ip": "172.18.0.1"}],
        "podIP": "10.0.0.101",
        "podIPs": [{"ip": "10.0.0.101"}],
        "startTime": stamp,
    }
    assert [(each["type"], each["status"], each["lastTransitionTime"]) for each in conditions] == [
        ("PodReadyToStartContainers", "True", stamp),
        ("Initialized", "True", stamp),
        ("Ready", "True", stamp),
        ("ContainersReady", "True", stamp),
        ("PodScheduled", "True", stamp),
    ]
    assert container.pop("imageID").startswith("web:1@sha256:")
    assert container == {
        "name": "main",
        "image": "web:1",
        "containerID": "sim://2030-01-01T00:00:00.500000Z/u1/main",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": stamp}},
        "lastState": {},
    }


def test_a_pod_of_the_hosts_network_has_its_address() -> None:
    film = Film(pod({"hostNetwork": True}))
    film.play(1)
    assert film.wire["status"]["podIP"] == "172.18.0.1"


def test_addresses_are_different_for_sixteen_million_versions() -> None:
    assert pod_address("1") == "10.0.0.2"
    assert pod_address("254") == "10.0.1.1"
    assert len({pod_address(str(version)) for version in range(100_000)}) == 100_000
    assert pod_address(str(254 * 256 * 256)) == pod_address("0")


@pytest.mark.parametrize(
    ("gate", "ready", "message"),
    [
        (None, "False", 'corresponding condition of pod readiness gate "example.com/up" does not exist.'),
        ("False", "False", 'the status of pod readiness gate "example.com/up" is not "True", but False'),
        ("True", "True", ""),
    ],
)
def test_readiness_gates_are_waited_for(gate: str | None, ready: str, message: str) -> None:
    film = Film(pod({"readinessGates": [{"conditionType": "example.com/up"}]}))
    film.play(5)
    if gate is not None:
        film.wire["status"]["conditions"].append({"type": "example.com/up", "status": gate})
        film.play(5)
    assert film.condition("ContainersReady")["status"] == "True"
    assert (film.condition("Ready")["status"], film.condition("Ready").get("message", "")) == (ready, message)


def test_a_condition_that_others_changed_is_set_right() -> None:
    film = Film(pod())
    film.play(5)
    film.condition("Ready")["status"] = "False"
    film.condition("Ready")["lastTransitionTime"] = "2030-01-01T00:00:03Z"
    assert film.play(5) == ["5 Running ready"]
    assert film.condition("Ready")["lastTransitionTime"] == "2030-01-01T00:00:05Z"


def test_a_container_with_another_image_is_begun_again() -> None:
    film = Film(pod())
    film.play(5)
    film.wire["spec"] = {**film.wire["spec"], "containers": [{"name": "main", "image": "web:2"}]}
    assert film.play(5) == ["5 Running main#1", "5.5 Running ready main#1"]
    assert film.wire["status"]["containerStatuses"][0]["image"] == "web:2"


def test_an_image_that_is_mended_is_started() -> None:
    film = Film(pod({"containers": [{"name": "main", "image": "web:broken"}]}))
    film.play(20)
    film.wire["spec"] = {**film.wire["spec"], "containers": [{"name": "main", "image": "web:2"}]}
    assert film.play(20) == ["20 Running ready"]


def test_crashes_and_bad_images_are_reported() -> None:
    film = Film(pod(crash_after="2s"))
    film.play(5)
    assert film.notices == ["BackOff"]
    film = Film(pod({"containers": [{"name": "main", "image": "web:broken"}]}))
    film.play(20)
    assert film.notices == ["Failed", "Failed"]


# --- the end


@pytest.mark.parametrize(
    ("grace", "annotations", "film"),
    [
        pytest.param(30, {}, ["10.5 deleted"], id="soon"),
        pytest.param(
            30, {"stop_after": "5s"}, ["10 Running", "15 deleted"], id="when it has stopped, unready till then"
        ),
        pytest.param(3, {"stop_after": "5s"}, ["10 Running", "13 deleted"], id="but never later than its grace"),
        pytest.param(0, {"stop_after": "5s"}, ["10 deleted"], id="at once without grace"),
    ],
)
def test_deletion_honours_grace(grace: int, annotations: dict[str, str], film: list[str]) -> None:
    annotated = Film(pod(None, None, **annotations))
    annotated.play(10)
    annotated.delete(grace)
    assert annotated.play(60) == film
    assert annotated.gone


@pytest.mark.parametrize("fraction", [0.0, 0.4, 0.9])
def test_a_pod_takes_its_time_to_stop_in_whatever_fraction_of_a_second_it_is_deleted(fraction: float) -> None:
    film = Film(pod())
    film.play(10 + fraction)
    film.delete(1)
    assert film.play(60) == [f"{10.5 + fraction:g} deleted"]


def test_a_node_that_learns_late_of_a_deletion_has_stopped_the_pod_by_then() -> None:
    film = Film(pod())
    film.play(10.4)
    film.delete(30)
    film.now += timedelta(seconds=20)
    assert film.play(60) == ["30.4 deleted"]


def test_a_pod_that_has_not_begun_goes_at_once() -> None:
    film = Film(pod({"containers": [{"name": "main", "image": "web:1"}]}))
    film.delete(30)
    assert film.play(60) == ["0 deleted"]


def test_a_pod_with_a_finalizer_reports_how_it_ended_and_stays() -> None:
    film = Film(pod(metadata={"finalizers": ["batch.kubernetes.io/job-tracking"]}))
    film.play(10)
    film.delete(30)
    assert film.play(60) == ["10.5 Failed main:Error(143)", "10.5 deleted"]
    assert not film.gone
    assert film.play(60) == []


# --- faults


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_crash_hits_once_those_that_run() -> None:
    film = Film(pod(), Crash(since=at(10)))
    assert film.play(100) == ["0.5 Running ready", "10 Running main#1", "10.5 Running ready main#1"]
    film = Film(pod(), Crash(since=at(-10)))
    assert film.play(100) == ["0.5 Running ready"]


def test_a_crash_with_an_end_goes_on_until_then() -> None:
    film = Film(pod(ready_after="0s"), Crash(since=at(10), until=at(40)))
    assert film.play(100) == [
        "0 Running ready",
        "10 Running ready main#1",
        "11 Running main:CrashLoopBackOff main#1",
        "21 Running ready main#2",
        "22 Running main:CrashLoopBackOff main#2",
        "42 Running ready main#3",
    ]


def test_a_pod_that_hangs_is_not_ready_for_as_long() -> None:
    film = Film(pod(), Hang(since=at(10), until=at(20)))
    assert film.play(100) == ["0.5 Running ready", "10 Running", "20 Running ready"]
    film = Film(pod(), Hang(since=at(0)))
    assert film.play(100) == ["0.5 Running"]


def test_a_slow_pod_takes_longer() -> None:
    film = Film(pod(stop_after="1s"), Slow(since=at(0), factor=10))
    assert film.play(10) == ["5 Running ready"]
    film.delete(30)
    assert film.play(60) == ["10 Running", "20 deleted"]


def test_faults_hit_whom_they_select() -> None:
    elsewhere = Crash(since=at(10), namespace="other")
    others = Crash(since=at(10), selector="app=other")
    assert Film(pod(), elsewhere, others, Crash(since=at(10), share=0)).play(100) == ["0.5 Running ready"]
    selected = Crash(since=at(10), namespace="default", selector="app=web")
    assert len(Film(pod(metadata={"labels": {"app": "web"}}), selected).play(100)) == 3


def test_on_a_node_that_is_down_nothing_happens_until_it_is_up() -> None:
    film = Film(pod(), NodeDown(since=at(0), until=at(30), nodes=("node-1",)))
    film.delete(5)
    assert film.play(20) == []
    assert film.play(20) == ["30 deleted"]
    assert Film(pod(), NodeDown(since=at(0), nodes=("node-2",))).play(5) == ["0.5 Running ready"]


# --- whose pods


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(pod({"nodeName": ""}), id="not bound"),
        pytest.param(pod({"nodeName": "real"}), id="on a node that is not simulated"),
        pytest.param(pod({"nodeName": "none"}), id="on a node that does not exist"),
        pytest.param(pod({"runtimeClassName": "process"}), id="of the process runtime"),
    ],
)
def test_other_pods_are_left_alone(wire: dict[str, Any]) -> None:
    nodes = [manifest(Fleet(), "node-1", START), {"metadata": {"name": "real"}}]
    view = Snapshot([(PODS, wire), *((NODES, node) for node in nodes)])
    assert agent.observe(view, KEY) is None


# --- behaviours


def acts(**annotations: str) -> Behaviour:
    return behaviour(Object.of(PODS, pod(None, None, **annotations)).meta, defaults=DEFAULTS)


def test_annotations_that_cannot_be_understood_are_told_and_not_obeyed() -> None:
    found = acts(ready_after="soon", never_ready="yes", exit_code="300", fail_probability="2", crash_after="-1s")
    assert found == Behaviour(warm_up=HALF, stop=HALF, init=SECOND, problems=found.problems)
    assert [problem.partition(":")[0] for problem in found.problems] == [
        f"{PREFIX}{name}" for name in ("ready-after", "fail-probability", "never-ready", "crash-after", "exit-code")
    ]


@pytest.mark.parametrize(
    ("annotations", "ending"),
    [
        ({}, None),
        ({"run_for": "3s"}, Ending(3 * SECOND, 0)),
        ({"run_for": "3s", "exit_code": "4"}, Ending(3 * SECOND, 4)),
        ({"crash_after": "3s"}, Ending(3 * SECOND, 1)),
        ({"crash_after": "3s", "run_for": "2s"}, Ending(2 * SECOND, 0)),
        ({"run_for": "3s", "fail_probability": "1"}, Ending(3 * SECOND, 1)),
        ({"run_for": "3s", "exit_code": "4", "fail_probability": "0"}, Ending(3 * SECOND, 0)),
    ],
)
def test_containers_end_as_they_are_asked_to(annotations: dict[str, str], ending: Ending | None) -> None:
    assert acts(**annotations).ending == ending


def test_chance_is_the_same_every_time_and_hits_its_share() -> None:
    def fails(uid: str, seed: int) -> bool:
        meta = Object.of(PODS, pod(metadata={"uid": uid}, fail_probability="0.3")).meta
        return behaviour(meta, defaults=Defaults(seed=seed)).ending is not None

    first = [fails(f"u{number}", 1) for number in range(1000)]
    assert first == [fails(f"u{number}", 1) for number in range(1000)]
    assert first != [fails(f"u{number}", 2) for number in range(1000)]
    assert 250 < sum(first) < 350


@pytest.mark.parametrize(
    ("image", "broken"),
    [
        ("web:broken", True),
        ("local:5000/web:broken", True),
        ("web:broken@sha256:00", True),
        ("broken:1", False),
        ("local:broken/web:1", False),
        ("web", False),
    ],
)
def test_an_image_is_broken_by_its_tag(image: str, broken: bool) -> None:
    assert is_broken(image) is broken


# --- on a server


def test_pods_are_scheduled_become_ready_and_go() -> None:
    async def story(cluster: Cluster) -> None:
        before = cluster.server.store.revision
        for number in range(20):
            await cluster.create(
                PODS, {"metadata": {"name": f"p{number}"}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
            )
        await cluster.advance(1.5)
        assert cluster.server.store.revision - before == 60, "a creation, a binding and a status for each"
        pods = await cluster.list(PODS)
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        assert len({pod["status"]["podIP"] for pod in pods}) == 20
        before = cluster.server.store.revision
        await cluster.advance(9)
        assert cluster.server.store.revision - before <= 2, "nothing but heartbeats"
        for each in pods:
            await cluster.delete(PODS, each["metadata"]["name"])
        await cluster.advance(1)
        assert not await cluster.list(PODS)

    play(story, components=[Scheduler(), SimulatedNodes(Fleet(count=2))], controllers=[agent.controller()])


def test_a_restart_changes_no_fate() -> None:
    async def story(cluster: Cluster) -> None:
        spec = {"containers": [{"name": "c", "image": "web:1"}]}
        annotations = {f"{PREFIX}crash-after": "5s", f"{PREFIX}ready-after": "2s"}
        await cluster.create(PODS, {"metadata": {"name": "web", "annotations": annotations}, "spec": spec})
        await cluster.advance(1)
        await cluster.restart()
        await cluster.advance(1.5)
        (container,) = (await cluster.get(PODS, "web"))["status"]["containerStatuses"]
        assert container["ready"]
        begun = times.parse(container["state"]["running"]["startedAt"])
        await cluster.kill()
        await asyncio.sleep(60)
        await cluster.restart()
        await cluster.settle()
        (container,) = (await cluster.get(PODS, "web"))["status"]["containerStatuses"]
        assert container["restartCount"] == 1
        assert container["lastState"]["terminated"]["finishedAt"] == times.format(begun + timedelta(seconds=5))

    play(story, components=[Scheduler(), SimulatedNodes()], controllers=[agent.controller()])
