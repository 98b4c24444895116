"""BlueGreen: whose Service is switched, when, and what becomes of it afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.workload.worlds import (
    Placed,
    Wire,
    ago,
    code,
    condition,
    decided,
    deeds,
    pod,
    pods,
    record,
    revision,
    said,
    service,
    status,
    web,
)

from holdfast.runtime.decisions import Create, Patch

NAMED = {"blueGreen": {"service": "front", "scaleDownDelay": "1m"}}


def blue_green(image: str, *, replicas: int = 2, status: Wire | None = None, **more: Any) -> Wire:
    rollout = {"strategy": "BlueGreen", "minAvailable": 2, **more.pop("rollout", {})}
    return web(image, replicas=replicas, rollout=rollout, status=status, **more)


def known(*, up_to: int) -> list[Placed]:
    """The records of so many revisions."""
    return [record(f"web:{number}", number) for number in range(1, up_to + 1)]


def step(number: int, **facts: str) -> Wire:
    return said("web:1", rolling="web:2", step=number, progressedAt=ago(seconds=5), **facts)


BLUE, GREEN = pods("web:1", 2), pods("web:2", 2)


@pytest.mark.parametrize(
    ("workload", "others", "does", "because"),
    [
        pytest.param(
            blue_green("web:1"),
            [],
            ["record web:1 as 1", "make Service web for web:1", "start 2 of web:1"],
            "StartingUpdated",
            id="new",
        ),
        pytest.param(
            blue_green("web:1", status=said("web:1")),
            [*BLUE],
            ["make Service web for web:1"],
            "Completed",
            id="a Service that was deleted is created again",
        ),
        pytest.param(
            blue_green("web:2", status=said("web:1")),
            [service(serving="web:1"), *BLUE],
            ["start 2 of web:2"],
            "StartingUpdated",
            id="a second set is started whole",
        ),
        pytest.param(
            blue_green("web:2", status=step(1)),
            [service(serving="web:1"), *BLUE, *pods("web:2", 1), *pods("web:2", 1, ready=False)],
            [],
            "WaitingForReady",
            id="nothing is switched before it is ready",
        ),
        pytest.param(
            blue_green("web:2", status=step(1)),
            [service(serving="web:1"), *BLUE, *GREEN],
            ["switch web to web:2"],
            "SwitchingTraffic",
            id="then it is",
        ),
        pytest.param(
            blue_green("web:2", status=step(1), rollout={"pauseDuration": "5m"}),
            [service(serving="web:1"), *BLUE, *GREEN],
            [],
            "StepPause",
            id="after a pause",
        ),
        pytest.param(
            blue_green("web:2", status=step(1), rollout={"blueGreen": {"autoPromote": False}}),
            [service(serving="web:1"), *BLUE, *GREEN],
            [],
            "ApprovalNeeded",
            id="or an approval",
        ),
        pytest.param(
            blue_green(
                "web:2",
                status=step(1),
                rollout={"blueGreen": {"autoPromote": False}},
                annotations={"holdfast.dev/promoted": f"{revision('web:2')}:1"},
            ),
            [service(serving="web:1"), *BLUE, *GREEN],
            ["switch web to web:2"],
            "SwitchingTraffic",
            id="which was given",
        ),
        pytest.param(
            blue_green("web:2", status=step(2)),
            [service(serving="web:2"), *BLUE, *GREEN],
            [],
            "StepPause",
            id="the first set is kept for a while",
        ),
        pytest.param(
            blue_green("web:2", status=step(2, reachedAt=ago(seconds=31))),
            [service(serving="web:2"), *BLUE, *GREEN],
            ["stop web1-0", "stop web1-1"],
            "Draining",
            id="and then goes",
        ),
        pytest.param(
            blue_green(
                "web:2",
                status=step(2, reachedAt=ago(seconds=3)),
                annotations={"holdfast.dev/rejected-revision": revision("web:2")},
            ),
            [service(serving="web:2"), *BLUE, *GREEN],
            ["switch web to web:1"],
            "SwitchingTraffic",
            id="so that an undo is a single switch",
        ),
        pytest.param(
            blue_green("web:2", status=step(1)),
            [service(serving="web:1"), *pods("web:1", 1), *pods("web:2", 2, ready=False)],
            ["start 1 of web:1"],
            "StartingStable",
            id="what serves is kept at its floor meanwhile",
        ),
        pytest.param(
            blue_green("web:3", status=step(2)),
            [service(serving="web:2"), *BLUE, *GREEN],
            ["stop web1-0", "stop web1-1"],
            "RemovingUnready",
            id="with a third revision after the switch, the first set is of no use",
        ),
        pytest.param(
            blue_green("web:3", status=said("web:1", rolling="web:3")),
            [service(serving="web:2"), *pods("web:2", 1), *pods("web:3", 2, ready=False)],
            ["start 1 of web:2"],
            "StartingStable",
            id="and what serves is kept at its floor, though it was never complete",
        ),
    ],
)
def test_traffic_goes_over_as_a_whole(workload: Wire, others: list[Placed], does: list[str], because: str) -> None:
    newest = int(workload["spec"]["image"][-1]) if "status" in workload else 0
    decision = decided(workload, known(up_to=newest), others)
    assert (deeds(decision), code(decision)) == (does, because)


# --- whose Service


def test_a_service_that_the_spec_names_is_switched_whatever_its_owner() -> None:
    workload = blue_green("web:2", status=step(1), rollout=NAMED)
    front = service("front", serving="web:1", owned=False, app="web")
    decision = decided(workload, known(up_to=2), front, BLUE, GREEN)
    assert deeds(decision) == ["switch front to web:2"]
    (patch,) = (write for write in decision.writes if write.wave == 1)
    assert isinstance(patch, Patch)
    assert patch.patch["metadata"]["annotations"] == {"holdfast.dev/switched-for": "web"}
    assert "ports" not in patch.patch["spec"]


def test_a_service_that_selects_every_revision_is_bound_to_the_one_that_serves_first() -> None:
    """Or the second set would get traffic as soon as it is ready."""
    workload = blue_green("web:2", status=said("web:1"), rollout=NAMED)
    decision = decided(workload, known(up_to=2), service("front", owned=False, app="web"), BLUE)
    assert deeds(decision) == ["switch front to web:1", "start 2 of web:2"]


def test_a_service_that_is_named_and_does_not_exist_is_made() -> None:
    workload = blue_green("web:1", rollout=NAMED)
    assert "make Service front for web:1" in deeds(decided(workload))


def test_a_service_of_our_name_with_another_owner_is_left_alone() -> None:
    workload = blue_green("web:2", status=said("web:1"))
    decision = decided(workload, known(up_to=2), service(owned=False, app="other"), BLUE)
    assert (deeds(decision), code(decision)) == ([], "ServiceTaken")
    assert condition(decision, "Blocked") == "True ServiceTaken"
    assert "Warning ServiceTaken" in [f"{each.type} {each.reason}" for each in decision.notices]
    lost = decided(workload, known(up_to=2), service(owned=False), pods("web:1", 1))
    assert deeds(lost) == ["start 1 of web:1"]


def test_our_service_follows_the_ports_of_what_it_is_switched_to() -> None:
    spec: dict[str, Any] = {
        "ports": [{"containerPort": 81}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]
    }
    new = revision("web:2", **spec)
    kept = {"currentRevision": revision("web:1"), "updateRevision": new, "rollout": {"progressedAt": ago(seconds=1)}}
    green = [pod(f"g{n}", labels={"cloudless.io/workload": "web", "cloudless.io/revision": new}) for n in range(2)]
    recorded = [record("web:1"), record("web:2", 2, **spec)]
    workload = blue_green("web:2", status=kept, **spec)
    decision = decided(workload, recorded, service(serving="web:1"), BLUE, green)
    (patch,) = (write for write in decision.writes if write.wave == 1)
    assert isinstance(patch, Patch)
    assert patch.patch["spec"]["ports"] == [
        {"name": "tcp-81", "port": 81, "protocol": "TCP"},
        {"name": "udp-53", "port": 53, "protocol": "UDP"},
        {"name": "tcp-53", "port": 53, "protocol": "TCP"},
    ]


def test_without_ports_a_service_is_headless() -> None:
    made = next(
        write
        for write in decided(blue_green("web:1")).writes
        if isinstance(write, Create) and write.resource.kind == "Service"
    )
    assert (made.manifest["spec"]["clusterIP"], "ports" in made.manifest["spec"]) == ("None", False)


# --- strategies that change midway


@pytest.mark.parametrize("owned", [True, False])
def test_a_service_is_released_when_traffic_is_not_switched_any_more(owned: bool) -> None:
    """Or it would go on to send all traffic to a revision whose replicas are being replaced."""
    workload = web("web:2", replicas=2, status=said("web:1"), rollout={"minAvailable": 2, "maxSurge": 1})
    front = service("front", serving="web:1", owned=owned, switched=True)
    assert deeds(decided(workload, known(up_to=2), front, BLUE)) == ["switch front to all", "start 1 of web:2"]


def test_also_when_another_one_is_switched_from_now_on() -> None:
    workload = blue_green("web:1", status=said("web:1"), rollout=NAMED)
    before = service("web", serving="web:1", switched=True)
    decision = decided(workload, known(up_to=1), before, service("front", owned=False, app="web"), BLUE)
    assert deeds(decision) == ["switch web to all", "switch front to web:1"]


def test_a_service_that_a_user_bound_to_a_revision_is_not_released() -> None:
    preview = service("preview", serving="web:1", owned=False)
    workload = web("web:1", replicas=2, status=said("web:1"))
    assert deeds(decided(workload, known(up_to=1), preview, BLUE)) == []


def test_from_rolling_to_blue_green_midway_the_stable_revision_serves_until_the_switch() -> None:
    workload = blue_green("web:2", status=said("web:1", rolling="web:2", step=1, progressedAt=ago(seconds=1)))
    decision = decided(workload, known(up_to=2), pods("web:1", 1), pods("web:2", 1))
    assert deeds(decision) == ["make Service web for web:1", "start 1 of web:2"]


def test_a_service_is_made_before_it_is_switched_also_if_the_new_set_is_there_already() -> None:
    workload = blue_green("web:2", status=said("web:1", rolling="web:2", step=1, progressedAt=ago(seconds=1)))
    decision = decided(workload, known(up_to=2), pods("web:1", 2), pods("web:2", 2))
    assert deeds(decision) == ["make Service web for web:1"]


def test_from_blue_green_to_rolling_midway_both_serve() -> None:
    rollout = {"minAvailable": 2, "maxSurge": 1}
    workload = web("web:2", replicas=2, status=step(1), rollout=rollout)
    decision = decided(workload, known(up_to=2), service(serving="web:1", switched=True), BLUE, GREEN)
    assert deeds(decision) == ["switch web to all", "stop web1-0", "stop web1-1"]
    assert status(decision)["limits"]["floor"] == 2
