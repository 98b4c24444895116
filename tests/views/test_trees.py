"""Rollouts as trees: why each replica is not further, and how the whole looks on a screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.kernel.fleet import State
from holdfast.kinds.cloudless import Workload
from holdfast.operators.workload import view
from holdfast.views import rollout_screens, spans, trees
from holdfast.views.rollouts import Floor, Record
from holdfast.views.trees import NEW, OLD, Branch, Pod, Tree

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
MIN_READY = timedelta(seconds=10)


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str = "a", revision: str = "new", *, age: int = 60, **fields: Any) -> Pod:
    metadata = {
        "name": f"shop-{revision}-{name}",
        "labels": {view.REVISION: revision},
        "creationTimestamp": ago(age),
    }
    wire = {"metadata": metadata | fields.pop("metadata", {}), "spec": {"nodeName": "node-1"}} | fields
    return msgspec.convert(wire, Pod)


def ready(since: int = 30, **container: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(since)}]
    container_status = {"name": "app", "ready": True, "state": {"running": {"startedAt": ago(since)}}} | container
    return {"status": {"phase": "Running", "conditions": conditions, "containerStatuses": [container_status]}}


def unready(**container: Any) -> dict[str, Any]:
    return {"status": {"phase": "Pending", "containerStatuses": [{"name": "app", **container}]}}


def ended(code: int, seconds: int = 20) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": ago(seconds)}}


WHY = {
    "available": (ready(), State.AVAILABLE, ""),
    "available, and restarted lately": (
        ready(restartCount=1, lastState=ended(137)),
        State.AVAILABLE,
        "restarted 20s ago (Error, exit code 137)",
    ),
    "available, and restarted long ago": (ready(lastState=ended(137, seconds=3_600)), State.AVAILABLE, ""),
    "settling": (ready(4), State.SETTLING, "ready 4s, available in 6s"),
    "of a node whose clock is ahead": (ready(-3600), State.SETTLING, "ready 0s, available in 10s"),
    "not scheduled": (
        {
            "spec": {},
            "status": {
                "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes: no room for cpu"}]
            },
        },
        State.UNREADY,
        "Unschedulable: cannot be scheduled: 0/2 nodes: no room for cpu",
    ),
    "not looked at by a scheduler": ({"spec": {}}, State.UNREADY, "is not scheduled yet"),
    "not started by its node": ({}, State.UNREADY, "its containers have not started yet"),
    "waiting for its image": (
        unready(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}),
        State.UNREADY,
        "ImagePullFailed: ImagePullBackOff: no such tag",
    ),
    "crashing": (
        unready(restartCount=2, state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended(1)),
        State.UNREADY,
        "CrashLoop: crashes: exit code 1, 2 restarts",
    ),
    "ended a moment ago": (unready(state=ended(2)), State.UNREADY, "ContainerFailed: exit code 2"),
    "running": (
        unready(state={"running": {"startedAt": ago(12)}}),
        State.UNREADY,
        "runs, and its readiness probe has not succeeded",
    ),
    "starting": (
        unready(started=False, state={"running": {"startedAt": ago(12)}}),
        State.UNREADY,
        "runs, and its startup probe has not succeeded yet",
    ),
    "in an init container": (
        {
            "status": {
                "initContainerStatuses": [
                    {"name": "one", "ready": True, "state": ended(0)},
                    {"name": "two", "state": {"running": {"startedAt": ago(5)}}},
                ]
            }
        },
        State.UNREADY,
        "init container two (2 of 2) runs",
    ),
    "terminating": (
        {"metadata": {"deletionTimestamp": ago(-25)}},
        State.TERMINATING,
        "terminating, 25s of grace left",
    ),
    "terminating for too long": (
        {"metadata": {"deletionTimestamp": ago(90)}},
        State.TERMINATING,
        "terminating, 1m30s past its grace",
    ),
    "evicted": (
        {"status": {"phase": "Failed", "reason": "Evicted", "message": "the disk is full"}},
        State.DEAD,
        "PodFailed: failed: Evicted: the disk is full",
    ),
    "failed": (
        {"status": {"phase": "Failed", "containerStatuses": [{"name": "app", "state": ended(3)}]}},
        State.DEAD,
        "PodFailed: failed: container app: exit code 3",
    ),
}


@pytest.mark.parametrize("case", WHY)
def test_a_replica_says_why_it_is_not_further(case: str) -> None:
    fields, state, why = WHY[case]
    leaf = trees.leaf(pod(**fields), min_ready=MIN_READY, now=NOW)
    assert (leaf.state, leaf.why) == (state, why)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-3, "0s"), (0, "0s"), (59, "59s"), (185, "3m5s"), (7_845, "2h10m"), (47 * 3_600, "47h"), (400_000, "4d")],
)
def test_times_have_two_figures(seconds: int, expected: str) -> None:
    assert trees.brief(timedelta(seconds=seconds)) == expected


# The whole.


def record(number: int, revision: str, image: str) -> Record:
    metadata = {"name": f"shop-{revision}", "labels": {view.REVISION: revision}}
    return msgspec.convert({"metadata": metadata, "data": {"spec": {"image": image}}, "revision": number}, Record)


RECORDS = (record(1, "old", "registry.example.com/shop:1"), record(2, "new", "registry.example.com/shop:2"))


def workload(phase: str = "Updating", code: str = "WaitingForReady", message: str = "", **fields: Any) -> Workload:
    because = {"code": code, "message": message or "2 replicas of the new revision not ready yet (1 of 4 are)"}
    rollout = {
        "step": 1,
        "steps": 1,
        "startedAt": ago(75),
        "lowestReady": 3,
        "because": because,
        "progressedAt": ago(20),
    }
    status = {
        "phase": phase,
        "readyReplicas": 4,
        "updatedReplicas": 3,
        "limits": {"floor": 3, "maxLive": 5},
        "currentRevision": "old",
        "updateRevision": "new",
        "rollout": rollout | fields.pop("rollout", {}),
    }
    wire = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "shop"},
        "spec": {"image": "shop:2", "replicas": 4, "rollout": {"progressDeadline": "10m"}},
        "status": status | fields,
    }
    return msgspec.convert(wire, Workload)


PODS = (
    pod("aaaaa", "old", age=4_000, **ready()),
    pod("bbbbb", "old", age=4_000, **ready()),
    pod("ccccc", "old", age=4_000, metadata={"deletionTimestamp": ago(-25)}),
    pod("ddddd", "new", age=40, **ready()),
    pod("eeeee", "new", age=14, **unready(state={"running": {"startedAt": ago(12)}})),
    pod("fffff", "new", age=14, **unready(restartCount=2, state={"waiting": {"reason": "CrashLoopBackOff"}})),
)


def grown(pods: tuple[Pod, ...] = PODS, **fields: Any) -> Tree:
    asked = workload(**fields)
    return view.tree(asked, view.standing(asked), RECORDS, pods, NOW)


def shown(tree: Tree, *, width: int = 80, height: int | None = None) -> str:
    lines = rollout_screens.screen(tree, width=width, height=height, called="workload/shop")
    return "\n" + spans.text(lines) + "\n"


def test_a_screen_of_80_columns() -> None:
    assert (
        shown(grown())
        == """
 … shop  RollingUpdate  …/shop:1 → :2                           Updating  1m15s
   old → new

 ready    ████████████████████████████┃█████████  4 of 4   floor 3 ┃   lowest 3
 updated  ██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░  1 of 4 available

 … WaitingForReady   deadline in 9m40s
   2 replicas of the new revision not ready yet (1 of 4 are)

 ▾ 2  new  target  …/shop:2                               ●○○  1 of 3 available
   ○ …new-fffff  0/1  node-1   14s  ↻2  CrashLoop: crashes: it ended, 2 restar…
   ○ …new-eeeee  0/1  node-1   14s      runs, and its readiness probe has not …
   ● …new-ddddd  1/1  node-1   40s
 ▾ 1  old  current  …/shop:1               ■■·  2 of 2 available, 1 terminating
   · …old-ccccc  0/1  node-1  1h6m      terminating, 25s of grace left
   ■ …old-aaaaa  1/1  node-1  1h6m
   ■ …old-bbbbb  1/1  node-1  1h6m
"""
    )


def test_a_screen_of_110_columns_has_room_for_whole_names() -> None:
    assert shown(grown(), width=110).splitlines()[10:13] == [
        " ▾ 2  new  target  registry.example.com/shop:2" + " " * 42 + "●○○  1 of 3 available",
        "   ○ shop-new-fffff  0/1  node-1   14s  ↻2  CrashLoop: crashes: it ended, 2 restarts",
        "   ○ shop-new-eeeee  0/1  node-1   14s      runs, and its readiness probe has not succeeded",
    ]


@pytest.mark.parametrize("height", [12, 15, 18, 24, 40])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_longer_and_no_screen_higher_than_the_terminal(width: int, height: int) -> None:
    many = tuple(pod(f"x{number:04}", "new", **ready(since=number % 20)) for number in range(500))
    text = shown(grown((*PODS, *many)), width=width, height=height).strip("\n")
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) < height


def test_what_is_not_listed_is_counted_and_what_is_wrong_is_listed_first() -> None:
    text = shown(grown(), height=14)
    assert "CrashLoop: " in text
    assert "and 2 more: 1 available, 1 not ready" in text
    assert "2 available, 1 terminating" in text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"phase": "Paused", "code": "ApprovalNeeded", "rollout": {"step": 2, "steps": 4}},
            ["step 2 of 4", "‖ ApprovalNeeded", "→ holdfast rollout promote workload/shop"],
        ),
        ({"phase": "Paused", "code": "Paused"}, ["→ holdfast rollout resume workload/shop"]),
        (
            {"phase": "Paused", "code": "StepPause", "rollout": {"pausedUntil": ago(-90)}},
            ["StepPause   until 12:01:30Z, in 1m30s", "→ holdfast rollout promote workload/shop"],
        ),
        ({"phase": "Failed", "code": "ProgressDeadlineExceeded"}, ["✗ shop", "→ holdfast rollout undo workload/shop"]),
        ({"rejectedRevision": "bad"}, ["↩ shop", "revision bad is rejected, new returns"]),
        ({"rollout": {"estimatedEnd": ago(-30)}}, ["about 30s to go"]),
        ({"limits": {"floor": 3, "warnings": [{"code": "X", "message": "be careful"}]}}, ["! be careful"]),
        ({"readyReplicas": 1}, ["ready    █████████░░░░░░", "1 of 4   floor 3"]),
    ],
)
def test_a_screen_says_what_matters(fields: dict[str, Any], expected: list[str]) -> None:
    text = shown(grown(**fields))
    assert [each for each in expected if each not in text] == [], text


def test_a_revision_without_replicas_is_shown_while_it_matters() -> None:
    assert " ▸ 2  new  target  …/shop:2" in shown(grown(PODS[:2]))


def test_replicas_of_a_revision_that_nobody_recorded_are_shown_too() -> None:
    branches = grown((*PODS, pod("zzzzz", "odd", **ready()))).branches
    assert [(branch.name, branch.number, branch.index) for branch in branches] == [
        ("new", "2", 1),
        ("old", "1", 0),
        ("odd", "", 2),
    ]


# Trees of any kind.


def leafy(name: str, index: int, number: int, **fields: Any) -> Branch:
    pods = tuple(pod(f"{name}{each}", **ready()) for each in range(number))
    children = trees.leaves(pods, index=lambda pod: index, now=NOW)
    return Branch(name=name, index=index, prefix="shop-", children=children, **fields)


def nested(*, replicas: int = 3, parts: int = 2, pods: int = 2, floors: tuple[Floor, ...] = ()) -> Tree:
    branches = tuple(
        Branch(
            name=f"replica {place}",
            index=NEW,
            urgent=place == 1,
            why="it waits" if place == 1 else "",
            children=tuple(leafy(f"part {part}", OLD if part else NEW, pods) for part in range(parts)),
        )
        for place in range(replicas)
    )
    standing = msgspec.structs.replace(view.standing(workload()), floors=floors)
    return Tree(standing=standing, branches=branches, now=NOW, size=replicas * parts * pods)


def test_what_is_urgent_is_shown_in_full_before_others_are() -> None:
    lines = [line.strip() for line in shown(nested(), height=19).splitlines()[8:]]
    assert [line[:11] for line in lines if line.startswith(("▾", "▸"))] == [
        "▸ replica 0",
        "▾ replica 1",
        "▾ part 0   ",
        "▾ part 1   ",
        "▸ replica 2",
    ]
    assert "it waits" in lines


def test_a_branch_counts_the_pods_of_all_its_parts_in_the_shapes_of_their_revisions() -> None:
    branch = nested().branches[0]
    assert branch.words == "4 of 4 available"
    assert "".join(row.text for row in branch.rows()) == "●●■■"


@pytest.mark.parametrize("height", [12, 14, 16, 18, 20, 24, 30, 60])
@pytest.mark.parametrize(("replicas", "parts", "pods"), [(1, 1, 1), (3, 2, 2), (40, 3, 2), (2, 40, 1), (2, 2, 300)])
def test_a_tree_of_any_shape_fits_on_a_screen_of_any_height(height: int, replicas: int, parts: int, pods: int) -> None:
    text = shown(nested(replicas=replicas, parts=parts, pods=pods), height=height).strip("\n")
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < height


def test_of_many_floors_those_that_do_not_hold_are_shown_before_others() -> None:
    floors = tuple(Floor(name=f"part-{each}", ready=int(each != 7), desired=1, floor=1) for each in range(9))
    text = shown(nested(floors=floors))
    assert [line.split()[0] for line in text.splitlines() if "┃" in line] == ["part-0", "part-1", "part-2", "part-7"]
    assert "and 5 more floors, all held" in text
