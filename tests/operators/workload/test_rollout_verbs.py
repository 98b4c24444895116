"""The verbs of a Workload, each by a table: what it sets, or why it does not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from holdfast.cli.operator.selection import rollout_kinds
from holdfast.cli.rollout import commands
from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, Resource
from holdfast.kinds.cloudless import KINDS, Workload
from holdfast.kinds.cloudless.rollouts import Rejection
from holdfast.meta.patches import merge
from holdfast.operators.rollouts import Already, Answer, Case, Change, Observed, Refusal, RolloutKind
from holdfast.operators.workload import verbs
from holdfast.operators.workload.render import RESTARTED_AT, REVISION, Template
from holdfast.operators.workload.revisions import PROMOTED, REJECTED, REJECTION, cause
from holdfast.testing.snapshots import Snapshot
from holdfast.views.rollouts import Record, RolloutState, Standing

RESOURCE = Resource.of(KINDS[0])
NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOON = "2025-01-01T12:00:00Z"
MORNING = "2025-01-01T08:00:00Z"


def template(image: str, *, restarted_at: str = "", **rest: Any) -> Template:
    configs = rest.pop("configs", {})
    wire = {"apiVersion": "cloudless.io/v1", "kind": "Workload", "metadata": {}, "spec": {"image": image, **rest}}
    made = Template.of(msgspec.convert(wire, Workload), configs)
    return msgspec.structs.replace(made, restarted_at=restarted_at)


V1, V2, V3 = template("shop:1"), template("shop:2", env={"MODE": "fast"}), template("shop:3")
R1, R2, R3 = V1.revision, V2.revision, V3.revision


def record(number: int, of: Template) -> Record:
    metadata = {"name": f"shop-{of.revision}", "labels": {REVISION: of.revision}}
    wire = {"metadata": metadata, "data": msgspec.to_builtins(of), "revision": number}
    return msgspec.convert(wire, Record)


def why(revision: str, reason: str, message: str) -> str:
    """The annotation with the cause of a rejection by a verb."""
    return cause(Rejection(revision=revision, reason=reason, message=message, time=NOON))


ABORTED = why(R2, "Aborted", "A user aborted the rollout of the revision.")
UNDONE = why(R2, "Undone", "A user returned to an earlier revision.")

HISTORY = (record(1, V1), record(2, V2))


def shop(
    asked: Template = V2,
    *,
    phase: str = "Completed",
    code: str = "Completed",
    annotations: dict[str, str] | None = None,
    rollout: dict[str, Any] | None = None,
    progress: dict[str, Any] | None = None,
    observed: int = 5,
    **status: Any,
) -> Object:
    """A Workload that asks for a template and has a status about it."""
    restarted = {RESTARTED_AT: asked.restarted_at} if asked.restarted_at else {}
    wire = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {
            "name": "shop",
            "namespace": "default",
            "uid": "shop",
            "generation": 5,
            "annotations": restarted | (annotations or {}),
        },
        "spec": {**asked.spec, "replicas": 7, "rollout": {"maxSurge": 2, **(rollout or {})}},
        "status": {
            "observedGeneration": observed,
            "phase": phase,
            "updateRevision": asked.revision,
            "currentRevision": asked.revision,
            "rollout": {"because": {"code": code, "message": "it says so"}, **(progress or {})},
            **status,
        },
    }
    return Object.of(RESOURCE, wire)


def under_way(code: str = "WaitingForReady", *, step: int = 1, steps: int = 1, **fields: Any) -> Object:
    return shop(phase="Updating", code=code, currentRevision=R1, progress={"step": step, "steps": steps}, **fields)


def rejected(**fields: Any) -> Object:
    """The spec asks for what was rejected; what was there before runs."""
    fields = {"annotations": {REJECTED: R2}, **fields}
    return shop(updateRevision=R1, currentRevision=R1, rejectedRevision=R2, **fields)


def answer(verb: str, obj: Object, records: tuple[Record, ...] = HISTORY, **options: Any) -> Answer:
    return verbs.ROLLOUT.verbs[verb](Case(object=obj, records=records, now=NOW, **options))


def annotated(given: Answer) -> dict[str, Any]:
    assert isinstance(given, Change), given
    found: dict[str, Any] = given.patch["metadata"]["annotations"]
    return found


CHANGES: dict[str, tuple[str, Object, dict[str, Any], dict[str, Any]]] = {
    "pause sets a field": ("pause", under_way(), {}, {"spec": {"rollout": {"paused": True}}}),
    "resume takes it away": (
        "resume",
        under_way(rollout={"paused": True}),
        {},
        {"spec": {"rollout": {"paused": None}}},
    ),
    "restart sets the moment": ("restart", shop(), {}, {"metadata": {"annotations": {RESTARTED_AT: NOON}}}),
    "promote approves the step that waits for approval": (
        "promote",
        under_way("ApprovalNeeded", step=2, steps=4),
        {},
        {"metadata": {"annotations": {PROMOTED: f"{R2}:2"}}},
    ),
    "promote ends a pause": (
        "promote",
        under_way("StepPause", step=1, steps=4),
        {},
        {"metadata": {"annotations": {PROMOTED: f"{R2}:1"}}},
    ),
    "promote in full approves all steps": (
        "promote",
        under_way("WaitingForReady", step=1, steps=4),
        {"full": True},
        {"metadata": {"annotations": {PROMOTED: f"{R2}:4"}}},
    ),
    "abort rejects what is rolled out, with the cause": (
        "abort",
        under_way(),
        {},
        {"metadata": {"annotations": {REJECTED: R2, REJECTION: ABORTED}}},
    ),
    "abort withdraws the approvals of what is rolled out": (
        "abort",
        under_way(annotations={PROMOTED: f"{R2}:1"}),
        {},
        {"metadata": {"annotations": {REJECTED: R2, REJECTION: ABORTED, PROMOTED: None}}},
    ),
    "retry takes the rejection away, with its cause": (
        "retry",
        rejected(),
        {},
        {"metadata": {"annotations": {REJECTED: None, REJECTION: None}}},
    ),
    "undo brings the spec back, and remembers what is undone and where it went": (
        "undo",
        shop(),
        {},
        {
            "metadata": {"annotations": {REJECTED: f"{R2}:{R1}", REJECTION: UNDONE, RESTARTED_AT: None}},
            "spec": {"image": "shop:1", "env": None},
        },
    ),
    "undo of what was rejected makes the spec what runs": (
        "undo",
        rejected(),
        {},
        {
            "metadata": {"annotations": {REJECTED: f"{R2}:{R1}", REJECTION: UNDONE, RESTARTED_AT: None}},
            "spec": {"image": "shop:1", "env": None},
        },
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_verb_sets_what_any_client_could_set(case: str) -> None:
    verb, obj, options, patch = CHANGES[case]
    given = answer(verb, obj, **options)
    assert isinstance(given, Change)
    assert given.patch == patch


REFUSED: dict[str, tuple[str, Object, dict[str, Any], str, str]] = {
    "promote what is complete": ("promote", shop(), {}, "is rolled out", "history"),
    "promote what has no steps": ("promote", under_way(), {}, "a RollingUpdate rollout has no steps", "manual: true"),
    "promote a step that waits for replicas": (
        "promote",
        under_way(step=2, steps=3),
        {},
        "step 2 of 3 needs no approval; it says so (WaitingForReady)",
        "--full",
    ),
    "promote what was rejected": ("promote", rejected(), {}, "was rejected", "retry"),
    "promote what was not observed yet": ("promote", under_way(observed=4), {}, "has not observed", "try again"),
    "abort what is complete": ("abort", shop(), {}, "is rolled out", "undo"),
    "abort the first revision": (
        "abort",
        shop(phase="ScalingUp", currentRevision=""),
        {"records": HISTORY[1:]},
        "is the first revision",
        "correct the spec",
    ),
    "retry what was not rejected": ("retry", under_way(), {}, "no revision was rejected", "aborted"),
    "retry what is late": (
        "retry",
        under_way("ProgressDeadlineExceeded"),
        {},
        "no revision was rejected; it says so (ProgressDeadlineExceeded)",
        "'restart' replaces them",
    ),
    "restart what was rejected": ("restart", rejected(), {}, "a restart would roll it out", "undo"),
    "undo the only revision": ("undo", shop(), {"records": HISTORY[1:]}, "no earlier revision", f"2 ({R2}, shop:2)"),
    "undo to a number that is not there": (
        "undo",
        shop(),
        {"number": 9},
        "there is no revision 9",
        f"the history has 2 ({R2}, shop:2), 1 ({R1}, shop:1)",
    ),
    "undo to what was just undone, without saying so": (
        "undo",
        shop(V1, annotations={REJECTED: f"{R2}:{R1}"}),
        {},
        f"the only other revision is revision 2 ({R2}, shop:2), which was rejected",
        "--to-revision 2",
    ),
    "undo to what the spec asks for and is rejected": ("undo", rejected(), {"number": 2}, "was rejected", "retry"),
    "undo of what was not observed yet": ("undo", shop(observed=4), {}, "has not observed", "try again"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_verb_that_cannot_be_done_says_why_and_what_can(case: str) -> None:
    verb, obj, options, message, hint = REFUSED[case]
    given = answer(verb, obj, **options)
    assert isinstance(given, Refusal), given
    assert message in given.message
    assert hint in given.hint


ALREADY: dict[str, tuple[str, Object, dict[str, Any]]] = {
    "pause what is paused": ("pause", under_way(rollout={"paused": True}), {}),
    "resume what is not": ("resume", under_way(), {}),
    "abort what was aborted": ("abort", rejected(), {}),
    "restart twice in a second": ("restart", shop(template("shop:1", restarted_at=NOON)), {}),
    "undo to where it is": ("undo", shop(), {"number": 2}),
}


@pytest.mark.parametrize("case", ALREADY)
def test_a_verb_that_was_carried_out_already_changes_nothing(case: str) -> None:
    verb, obj, options = ALREADY[case]
    assert isinstance(answer(verb, obj, **options), Already)


# What undo promises.


def test_an_undo_leads_to_the_very_revision_and_leaves_replicas_and_rollout_alone() -> None:
    obj = shop()
    given = answer("undo", obj)
    assert isinstance(given, Change)
    after = msgspec.convert(merge.apply(obj.wire(), given.patch), Workload)
    assert Template.of(after).revision == R1
    assert after.spec.replicas == 7
    assert after.spec.rollout is not None
    assert after.spec.rollout.max_surge == 2


def test_an_undo_skips_what_differs_only_by_a_restart_and_what_was_rejected() -> None:
    restarted = msgspec.structs.replace(V3, restarted_at=MORNING)
    records = (record(1, V1), record(2, V2), record(3, V3), record(4, restarted))
    given = answer("undo", shop(restarted, annotations={REJECTED: R2}), records)
    assert isinstance(given, Change)
    assert given.patch["spec"] == {"image": "shop:1"}


def test_what_is_undone_is_named_as_the_history_names_it() -> None:
    undone = msgspec.structs.replace(V2, restarted_at=MORNING)
    given = answer("undo", shop(undone), (record(1, V1), record(2, undone)))
    assert annotated(given)[REJECTED] == f"{undone.revision}:{R1}"


def test_a_restart_changes_nothing_about_what_was_undone() -> None:
    given = answer("restart", shop(V1, annotations={REJECTED: f"{R2}:{R1}"}))
    assert annotated(given) == {RESTARTED_AT: NOON}


def test_an_undo_of_what_was_rejected_keeps_the_cause() -> None:
    failed = why(R2, "CrashLoop", "pod shop-2-x: container app crashes")
    given = answer("undo", rejected(annotations={REJECTED: R2, REJECTION: failed}))
    assert annotated(given)[REJECTION] == failed


def test_a_configuration_is_not_undone_and_that_is_said() -> None:
    before, now = template("shop:1", configs={"ConfigMap/a": "1"}), template("shop:2", configs={"ConfigMap/a": "2"})
    given = answer("undo", shop(now), (record(1, before), record(2, now)))
    assert isinstance(given, Change)
    assert given.notes == ("the content of ConfigMap/a has changed since, and an undo does not restore it",)
    back = template("shop:1", configs={"ConfigMap/a": "2"}).revision
    assert annotated(given)[REJECTED] == f"{now.revision}:{back}"


def test_a_revision_of_which_only_the_configuration_differs_cannot_be_returned_to() -> None:
    before, now = template("shop:1", configs={"ConfigMap/a": "1"}), template("shop:1", configs={"ConfigMap/a": "2"})
    given = answer("undo", shop(now), (record(1, before), record(2, now)), number=1)
    assert isinstance(given, Refusal)
    assert "the content of ConfigMap/a has changed since" in given.message


def test_a_verb_that_has_no_effect_while_it_is_paused_says_so() -> None:
    for verb, obj in {
        "restart": shop(rollout={"paused": True}),
        "undo": shop(rollout={"paused": True}),
        "promote": under_way("ApprovalNeeded", step=1, steps=2, rollout={"paused": True}),
    }.items():
        given = answer(verb, obj)
        assert isinstance(given, Change)
        assert "it is paused, so nothing happens before it is resumed" in given.notes


# Whether the status answers what is asked now.

SEEN: dict[str, tuple[Object, bool]] = {
    "as it is": (shop(), True),
    "after another change of the spec": (shop(observed=4), False),
    "after a restart": (shop(annotations={RESTARTED_AT: NOON}), False),
    "after an abort": (under_way(annotations={REJECTED: R2}), False),
    "once the abort is done": (rejected(), True),
    "after a retry": (rejected(annotations={}), False),
    "after a promotion": (under_way("ApprovalNeeded", step=1, steps=2, annotations={PROMOTED: f"{R2}:1"}), False),
    "once the step has passed": (under_way(step=2, steps=2, annotations={PROMOTED: f"{R2}:1"}), True),
}


@pytest.mark.parametrize("case", SEEN)
def test_a_status_from_before_a_verb_is_not_taken_for_an_answer(case: str) -> None:
    obj, seen = SEEN[case]
    assert (standing(obj).state is not RolloutState.UNSEEN) is seen


def standing(obj: Object) -> Standing:
    """Where it stands, with the records of its history."""
    owner = {"uid": obj.uid, "controller": True, "apiVersion": "cloudless.io/v1", "kind": "Workload", "name": "shop"}
    view = Snapshot()
    for each in HISTORY:
        wire = msgspec.to_builtins(each)
        view.put(CONTROLLER_REVISIONS, wire | {"metadata": wire["metadata"] | {"ownerReferences": [owner]}})
    return verbs.standing(Observed(obj, view))


def test_an_object_that_operators_leave_alone_is_shown_with_a_warning() -> None:
    (warning,) = standing(shop(annotations={"holdfast.dev/paused": "true"})).warnings
    assert "no operator changes anything" in warning


def test_an_object_that_operators_leave_alone_in_the_middle_waits_for_a_person() -> None:
    held = standing(under_way(annotations={"holdfast.dev/paused": "true"}))
    assert (held.state, held.because.code) == (RolloutState.WAITING, "LeftAlone")


# Every kind.


@pytest.mark.parametrize("kind", rollout_kinds(), ids=lambda kind: str(kind.resource))
def test_a_kind_has_every_command_or_says_why_not_and_what_to_do(kind: RolloutKind) -> None:
    had = {*kind.verbs, *(["history"] if kind.history else []), *(["plan"] if kind.planner else [])}
    assert had | kind.unsupported.keys() == commands.command.commands.keys() - {"status"}
    assert not had & kind.unsupported.keys()
    assert all(lack.message and lack.hint for lack in kind.unsupported.values())
