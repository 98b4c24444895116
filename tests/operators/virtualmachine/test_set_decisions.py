"""What the controller of VMSets decides, in tables: which machines it creates, changes and deletes; verbs and plans."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.kinds import DocumentError
from holdfast.meta import times
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.rollouts import Already, Case, Change, Observed, Refusal
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import MACHINES, SETS
from holdfast.operators.virtualmachine.sets.decide import decide
from holdfast.operators.virtualmachine.sets.observe import observe
from holdfast.operators.virtualmachine.sets.plan import outlook
from holdfast.operators.virtualmachine.sets.render import RESTARTED_AT, REVISION, Template, controller_revision
from holdfast.operators.virtualmachine.sets.verbs import ROLLOUT
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.snapshots import Snapshot
from holdfast.views.plans import PlanSummary, PlanView, plan_view
from holdfast.views.rollouts import Record, RolloutState

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
KEY = Key("default", "web")
Wire = dict[str, Any]

OLD: Wire = {"image": "v1", "size": "small"}
NEW: Wire = {"image": "v2", "size": "small"}
LARGE: Wire = {"image": "v1", "size": "large"}
REBOOTED: Wire = {"image": "v1", "size": "small", "restarted": "2030-01-01T11:00:00Z"}


def vm_set(template: Wire = OLD, *, replicas: int = 3, complete: Wire | None = None, **spec: Any) -> Wire:
    """The VMSet `web`; `complete`: what the last complete update made its machines from."""
    annotations = {RESTARTED_AT: template["restarted"]} if "restarted" in template else {}
    made: Wire = {
        "apiVersion": SETS.api_version,
        "kind": SETS.kind,
        "metadata": {
            "name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "7", "generation": 3,
            "annotations": annotations,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "providerRef": {"name": "sim"},
                    "classRef": {"name": template["size"]},
                    "imageRef": {"name": template["image"]},
                },
            },
            **spec,
        },
    }  # fmt: skip
    if complete is not None:
        revision = template_of(complete).revision
        made["status"] = {"currentRevision": revision, "updateRevision": revision, "observedGeneration": 3}
    return made


@cache
def _template(image: str, size: str, restarted: str) -> Template:
    return Template.of(vm_set({"image": image, "size": size} | ({"restarted": restarted} if restarted else {})))


def template_of(template: Wire) -> Template:
    return _template(template["image"], template["size"], template.get("restarted", ""))


def machine(
    ordinal: int,
    template: Wire = OLD,
    *,
    ready: bool = True,
    age: float = 3600,
    deleting: bool = False,
    owned: bool = True,
    seen: int = 1,
    annotations: Wire | None = None,
    failures: int = 0,
) -> Wire:
    since = times.format(NOW - timedelta(seconds=age))
    metadata: Wire = {
        "name": f"web-{ordinal}", "namespace": "default", "uid": f"uid-{ordinal}", "resourceVersion": "5",
        "generation": 1, "creationTimestamp": since, "labels": {REVISION: template_of(template).revision},
        "annotations": annotations or {},
    }  # fmt: skip
    if owned:
        metadata["ownerReferences"] = [owner_reference(vm_set())]
    if deleting:
        metadata |= {"deletionTimestamp": since, "finalizers": [names.FINALIZER]}
    status: Wire = {
        "observedGeneration": seen,
        "conditions": [
            {"type": "Ready", "status": str(ready), "reason": "X", "message": "", "lastTransitionTime": since}
        ],
    }
    if failures:
        status["operation"] = {"type": "Create", "failures": failures, "reason": "ProviderError", "message": "no"}
    spec = vm_set(template)["spec"]["template"]["spec"]
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def snapshot(owner: Wire, machines: Iterable[Wire], recorded: Iterable[Wire]) -> Snapshot:
    view = Snapshot()
    view.put(SETS, owner)
    for each in machines:
        view.put(MACHINES, each)
    for number, template in enumerate(recorded, start=1):
        record = controller_revision(owner, template_of(template), number=number)
        named = {"name": f"record-{number}", "uid": f"uid-record-{number}", "resourceVersion": "2"}
        view.put(CONTROLLER_REVISIONS, {**record, "metadata": {**record["metadata"], **named}})
    return view


def decided(owner: Wire, *machines: Wire, recorded: Iterable[Wire] = (OLD, LARGE, REBOOTED, NEW)) -> Decision:
    world = observe(snapshot(owner, machines, recorded), KEY)
    assert world is not None
    return decide(world, NOW)


def deeds(made: Decision) -> list[str]:
    """What is done to machines, in a few words."""
    known = {template_of(each).revision: name for name, each in (("v1", OLD), ("v2", NEW), ("large", LARGE))}
    found = []
    for write in made.writes:
        match write:
            case Create(resource=resource, manifest=manifest) if resource == MACHINES:
                metadata = manifest["metadata"]
                found.append(f"create {metadata['name']} of {known[metadata['labels'][REVISION]]}")
            case Patch(resource=resource, key=key) if resource == MACHINES:
                found.append(f"change {key.name}")
            case Delete(resource=resource, key=key) if resource == MACHINES:
                found.append(f"delete {key.name}")
    return found


def rolling(**fields: Any) -> Wire:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podManagementPolicy": "Parallel", **fields}}}


def three(template: Wire = OLD, **more: Any) -> tuple[Wire, ...]:
    return tuple(machine(each, template, **more) for each in range(3))


ORDERED: Wire = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
ONE = rolling(maxSurge=0, maxUnavailable=1)

TABLE: list[tuple[str, Wire, tuple[Wire, ...], list[str]]] = [
    ("the first machine of an ordered set", vm_set(), (), ["create web-0 of v1"]),
    ("the second waits for the first", vm_set(), (machine(0, ready=False),), []),
    ("the second follows", vm_set(), (machine(0),), ["create web-1 of v1"]),
    (
        "all at once",
        vm_set(**rolling()),
        (),
        ["create web-0 of v1", "create web-1 of v1", "create web-2 of v1"],
    ),
    ("from another ordinal on", vm_set(replicas=1, ordinals={"start": 7}), (), ["create web-7 of v1"]),
    ("a lost machine", vm_set(complete=OLD), (machine(0), machine(2)), ["create web-1 of v1"]),
    ("a name that is still in use is waited for", vm_set(complete=OLD), (*three()[:2], machine(2, deleting=True)), []),
    ("a set shrinks from its end", vm_set(replicas=2, complete=OLD), three(), ["delete web-2"]),
    ("the highest ordinal is replaced first", vm_set(NEW, complete=OLD, **ONE), three(), ["delete web-2"]),
    ("and created again", vm_set(NEW, complete=OLD, **ONE), three()[:2], ["create web-2 of v2"]),
    (
        "no other goes while one is not ready",
        vm_set(NEW, complete=OLD, **ONE),
        (*three()[:2], machine(2, NEW, ready=False)),
        [],
    ),
    (
        "a surge has the next ordinal",
        vm_set(NEW, complete=OLD, **rolling(maxSurge=1, maxUnavailable=0)),
        three(),
        ["create web-3 of v2"],
    ),
    (
        "the surge stays while a machine is outdated",
        vm_set(NEW, complete=OLD, **rolling(maxSurge=1, maxUnavailable=0)),
        (machine(0), machine(1, NEW), machine(2, NEW), machine(3, NEW)),
        ["delete web-0"],
    ),
    (
        "and leaves when the ordinals are filled",
        vm_set(NEW, complete=OLD, **rolling(maxSurge=1, maxUnavailable=0)),
        (*three(NEW), machine(3, NEW)),
        ["delete web-3"],
    ),
    (
        "but not before",
        vm_set(NEW, complete=OLD, **rolling(maxSurge=1, maxUnavailable=0)),
        (machine(1, NEW), machine(2, NEW), machine(3, NEW)),
        ["create web-0 of v2"],
    ),
    ("another class is changed in place", vm_set(LARGE, complete=OLD, **ONE), three(), ["change web-2"]),
    (
        "in place needs no surge",
        vm_set(LARGE, complete=OLD, **rolling(maxSurge=2, maxUnavailable=1)),
        three(),
        ["change web-2"],
    ),
    (
        "unless the floor leaves no other way",
        vm_set(LARGE, complete=OLD, minAvailable=3, **rolling(maxSurge=1)),
        three(),
        ["create web-3 of large"],
    ),
    (
        "a change of the spec that is not observed counts as not ready",
        vm_set(LARGE, complete=OLD, **ONE),
        (*three()[:2], machine(2, LARGE, seen=0)),
        [],
    ),
    ("a restart is a reboot in place", vm_set(REBOOTED, complete=OLD, **ONE), three(), ["change web-2"]),
    (
        "a reboot that is not done counts as not ready",
        vm_set(REBOOTED, complete=OLD, **ONE),
        (*three()[:2], machine(2, REBOOTED, annotations={names.REBOOT: "2030-01-01T11:00:00Z"})),
        [],
    ),
    ("the partition", vm_set(NEW, complete=OLD, **rolling(maxSurge=0, maxUnavailable=3, partition=1)), three(),
     ["delete web-1", "delete web-2"]),
    ("a machine below the partition is lost", vm_set(NEW, complete=OLD, **rolling(partition=1)),
     (machine(1, NEW), machine(2, NEW)), ["create web-0 of v1"]),
    ("paused", vm_set(NEW, complete=OLD, paused=True, **ONE), three(), []),
    ("a machine that is lost while it is paused", vm_set(NEW, complete=OLD, paused=True, **ONE), three()[:2],
     ["create web-2 of v1"]),
    ("minAvailable is stricter", vm_set(NEW, complete=OLD, minAvailable=2, **rolling(maxSurge=0, maxUnavailable=3)),
     three(), ["delete web-2"]),
    ("at the floor", vm_set(NEW, complete=OLD, minAvailable=2, **rolling(maxSurge=0, maxUnavailable=3)),
     (machine(0), machine(1), machine(2, NEW, ready=False)), []),
    ("a machine that is not ready is replaced at once", vm_set(NEW, complete=OLD, minAvailable=2, **ONE),
     (machine(0), machine(1, ready=False), machine(2)), ["delete web-1"]),
    ("ready, but not for minReadySeconds", vm_set(NEW, complete=OLD, minReadySeconds=60, **ONE),
     (machine(0), machine(1), machine(2, NEW, age=30)), []),
    ("OnDelete", vm_set(NEW, complete=OLD, updateStrategy={"type": "OnDelete"}), three(), []),
    ("OnDelete, one deleted", vm_set(NEW, complete=OLD, updateStrategy={"type": "OnDelete"}), three()[:2],
     ["create web-2 of v2"]),
    ("Recreate", vm_set(NEW, complete=OLD, updateStrategy={"type": "Recreate"}), three(),
     ["delete web-0", "delete web-1", "delete web-2"]),
    ("Recreate, not all gone", vm_set(NEW, complete=OLD, updateStrategy={"type": "Recreate"}),
     (machine(1, deleting=True),), []),
    ("Recreate, all gone", vm_set(NEW, complete=OLD, updateStrategy={"type": "Recreate"}), (),
     ["create web-0 of v2", "create web-1 of v2", "create web-2 of v2"]),
    ("a name that another has", vm_set(complete=OLD), (machine(0), machine(1, owned=False), machine(2)), []),
    ("back to the revision before, midway", vm_set(OLD, complete=OLD, **ONE), (machine(0), machine(1), machine(2, NEW)),
     ["delete web-2"]),
    ("ordered, one at a time", vm_set(NEW, complete=OLD, **ORDERED), three(), ["delete web-2"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "owner", "machines", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_what_is_done_to_machines(name: str, owner: Wire, machines: tuple[Wire, ...], expected: list[str]) -> None:
    assert sorted(deeds(decided(owner, *machines))) == expected


def test_an_update_in_place_patches_the_class_and_the_revision_alone() -> None:
    (patch,) = [each for each in decided(vm_set(LARGE, complete=OLD, **ONE), *three()).writes if isinstance(each, Patch)
                and each.resource == MACHINES]  # fmt: skip
    assert patch.patch == {
        "metadata": {"labels": {REVISION: template_of(LARGE).revision}},
        "spec": {"classRef": {"name": "large"}},
    }
    assert patch.uid == "uid-2"


PHASES: list[tuple[str, Wire, tuple[Wire, ...], str]] = [
    ("nothing begun", vm_set(NEW, complete=OLD, updateStrategy={"type": "OnDelete"}), three(), "Pending"),
    ("under way", vm_set(NEW, complete=OLD, **ONE), three(), "InProgress"),
    ("paused", vm_set(NEW, complete=OLD, paused=True), three(), "Paused"),
    ("done", vm_set(NEW, complete=OLD), three(NEW), "Completed"),
    ("no way", vm_set(NEW, complete=OLD, minAvailable=3, **rolling(maxSurge=0)), three(), "Failed"),
]


@pytest.mark.parametrize(("name", "owner", "machines", "phase"), PHASES, ids=[row[0] for row in PHASES])
def test_the_phase_of_an_update(name: str, owner: Wire, machines: tuple[Wire, ...], phase: str) -> None:
    status = decided(owner, *machines).status
    assert status is not None
    assert status["updateStatus"]["phase"] == phase


def test_machines_of_the_surge_are_not_counted_beyond_the_replicas() -> None:
    machines = (*three(NEW)[:2], machine(2), machine(3, NEW), machine(4, NEW, ready=False))
    status = decided(vm_set(NEW, complete=OLD, **rolling(maxSurge=2)), *machines).status
    assert status is not None
    assert status["updateStatus"]["message"].startswith("RollingUpdate: 3/3 VMs updated; ")


def test_failed_machines_are_named_with_the_reason_and_the_number_of_tries() -> None:
    status = decided(vm_set(), machine(0), machine(1, ready=False, failures=3)).status
    assert status is not None
    assert status["updateStatus"]["failedVMs"] == [
        {"name": "web-1", "reason": "ProviderError", "message": "no", "retryCount": 3}
    ]
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions["ReplicaFailure"] == ("True", "MachinesFailed")
    assert conditions["Scaling"] == ("True", "ScalingUp")


def test_the_lists_of_a_large_set_are_bounded() -> None:
    owner = vm_set(replicas=1000, complete=OLD, **rolling(maxSurge="25%"))
    status = decided(owner, *(machine(each) for each in range(1100))).status
    assert status is not None
    assert (status["replicas"], len(status["vmStatus"])) == (1100, 1000)
    assert len(status["updateStatus"]["updatedVMs"]) == 1000


def test_a_machine_that_cannot_be_read_is_not_ready() -> None:
    unreadable = machine(2)
    unreadable["status"]["conditions"] = "none"
    status = decided(vm_set(complete=OLD), machine(0), machine(1), unreadable).status
    assert status is not None
    assert status["readyReplicas"] == 2
    assert status["vmStatus"][2]["message"].startswith("it cannot be read")


# --- verbs and plans


def case(owner: Wire, *recorded: Wire, number: int | None = None) -> Case:
    view = snapshot(owner, (), recorded)
    obj = view.get(SETS, KEY)
    assert obj is not None
    records = tuple(each.decode(Record) for each in view.owned(CONTROLLER_REVISIONS, "uid-web"))
    return Case(object=obj, records=records, now=NOW, number=number)


def test_undo_returns_to_the_template_before() -> None:
    made = ROLLOUT.answer("undo", case(vm_set(NEW, complete=NEW), OLD, NEW))
    assert isinstance(made, Change)
    assert made.patch["spec"]["template"]["spec"]["imageRef"] == {"name": "v1"}
    assert "classRef" not in made.patch["spec"]["template"]["spec"]
    assert isinstance(ROLLOUT.answer("undo", case(vm_set(NEW), NEW)), Refusal)
    assert isinstance(ROLLOUT.answer("undo", case(vm_set(NEW), OLD, NEW, number=2)), Already)
    assert isinstance(ROLLOUT.answer("undo", case(vm_set(NEW), OLD, NEW, number=9)), Refusal)


def test_pause_resume_and_restart() -> None:
    assert ROLLOUT.answer("pause", case(vm_set())) == Change({"spec": {"paused": True}}, "paused")
    assert ROLLOUT.answer("pause", case(vm_set(paused=True))) == Already("already paused")
    assert ROLLOUT.answer("resume", case(vm_set(paused=True))) == Change({"spec": {"paused": None}}, "resumed")
    restarted = ROLLOUT.answer("restart", case(vm_set()))
    assert isinstance(restarted, Change)
    assert restarted.patch == {"metadata": {"annotations": {RESTARTED_AT: times.format(NOW)}}}


@pytest.mark.parametrize("verb", ["promote", "abort", "retry"])
def test_verbs_that_a_set_does_not_have_say_why(verb: str) -> None:
    assert isinstance(ROLLOUT.answer(verb, case(vm_set())), Refusal)


def test_a_plan_shows_the_steps_of_a_replacement_and_says_what_is_changed_in_place() -> None:
    replaced = outlook(snapshot(vm_set(NEW, complete=OLD, **ONE), three(), (OLD, NEW)), KEY, NOW)
    assert isinstance(replaced, PlanView)
    assert not replaced.blocked
    assert (replaced.floor, replaced.max_live) == (2, 3)
    changed = outlook(snapshot(vm_set(LARGE, complete=OLD, **ONE), three(), (OLD, LARGE)), KEY, NOW)
    assert isinstance(changed, PlanSummary)
    assert "in place" in changed.notes[0]


def test_the_plan_of_a_manifest_is_the_plan_of_the_cluster() -> None:
    assert ROLLOUT.offline is not None
    for policy in ("OrderedReady", "Parallel"):
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1, "podManagementPolicy": policy}}
        owner = vm_set(NEW, complete=OLD, minAvailable=2, updateStrategy=strategy)
        live = outlook(snapshot(owner, three(), (OLD, NEW)), KEY, NOW)
        asked = ROLLOUT.offline.rollout({each: owner[each] for each in owner if each != "status"})
        planned = plan_view(asked.spec, current=3, ordered=asked.ordered, count_terminating=asked.count_terminating)
        assert isinstance(live, PlanView)
        assert [str(each.what) for each in planned.rows] == [str(each.what) for each in live.rows]
        assert (planned.floor, planned.max_live, planned.lowest_ready) == (live.floor, live.max_live, live.lowest_ready)


def test_manifests_say_whether_machines_are_changed_in_place() -> None:
    assert ROLLOUT.offline is not None
    old, new, large, rebooted = (ROLLOUT.offline.rollout(vm_set(each)) for each in (OLD, NEW, LARGE, REBOOTED))
    assert len({each.revision for each in (old, new, large, rebooted)}) == 4
    assert old.replaced_by == large.replaced_by == rebooted.replaced_by != new.replaced_by


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"replicas": "many"}, "spec.replicas"),
        ({"selector": {"matchLabels": {"app": "db"}}}, "spec.selector"),
        ({"updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}, "rollingUpdate.maxSurge"),
    ],
)
def test_a_manifest_that_cannot_be_planned_says_where(spec: Wire, path: str) -> None:
    manifest = vm_set()
    assert ROLLOUT.offline is not None
    with pytest.raises(DocumentError, match=path):
        ROLLOUT.offline.rollout({**manifest, "spec": {**manifest["spec"], **spec}})


def test_the_smallest_manifest_of_a_set_can_be_planned() -> None:
    assert ROLLOUT.offline is not None
    asked = ROLLOUT.offline.rollout(ROLLOUT.offline.minimal)
    assert (asked.spec.name, asked.spec.replicas, asked.ordered) == ("fleet", 1, True)


def test_a_set_is_shown_with_its_floor_and_its_machines_by_revision() -> None:
    owner = vm_set(NEW, complete=OLD, **ONE)
    machines = (machine(0), machine(1), machine(2, NEW))
    owner["status"] = dict(decided(owner, *machines).status or {})
    view = snapshot(owner, machines, (OLD, NEW))
    obj = view.get(SETS, KEY)
    assert obj is not None
    standing = ROLLOUT.standing(Observed(obj, view))
    assert (standing.state, standing.updated, standing.old) == (RolloutState.UNDER_WAY, 1, 2)
    assert (standing.floors[0].floor, standing.floors[0].ready) == (2, 3)
    tree = ROLLOUT.tree(Observed(obj, view), NOW)
    assert [(branch.number, len(branch.children)) for branch in tree.branches] == [("2", 1), ("1", 2)]


STATES: list[tuple[str, Wire, tuple[Wire, ...], RolloutState]] = [
    ("complete", vm_set(complete=OLD), three(), RolloutState.COMPLETED),
    ("scaling", vm_set(complete=OLD), three()[:2], RolloutState.UNDER_WAY),
    ("paused", vm_set(NEW, complete=OLD, paused=True), three(), RolloutState.WAITING),
    ("OnDelete", vm_set(NEW, complete=OLD, updateStrategy={"type": "OnDelete"}), three(), RolloutState.WAITING),
    ("no way", vm_set(NEW, complete=OLD, minAvailable=3, **rolling(maxSurge=0)), three(), RolloutState.BLOCKED),
    ("a name is taken", vm_set(complete=OLD), (machine(0), machine(1, owned=False), machine(2)), RolloutState.BLOCKED),
]


@pytest.mark.parametrize(("name", "owner", "machines", "state"), STATES, ids=[row[0] for row in STATES])
def test_the_state_of_a_rollout(name: str, owner: Wire, machines: tuple[Wire, ...], state: RolloutState) -> None:
    owner = {**owner, "status": dict(decided(owner, *machines).status or {})}
    view = snapshot(owner, machines, (OLD, NEW))
    obj = view.get(SETS, KEY)
    assert obj is not None
    assert ROLLOUT.standing(Observed(obj, view)).state is state
    assert ROLLOUT.headline(owner).at_rest == (state is RolloutState.COMPLETED)
