from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.children import (
    APPLIED_HASH,
    PRUNE,
    Apply,
    ChildReason,
    Conflict,
    Create,
    Delete,
    Desired,
    Keep,
    Observed,
    Step,
    Wait,
    diff,
    differences,
)
from holdfast.kernel.conditions import Common
from holdfast.meta.objects import Ref, controller_of

Wire = dict[str, Any]

OWNER: Wire = {
    "apiVersion": "cloudless.io/v1",
    "kind": "Workload",
    "metadata": {"name": "shop", "namespace": "prod", "uid": "uid-shop"},
}
REFERENCE: Wire = {
    "apiVersion": "cloudless.io/v1",
    "kind": "Workload",
    "name": "shop",
    "uid": "uid-shop",
    "controller": True,
    "blockOwnerDeletion": True,
}


def manifest(name: str = "web", *, kind: str = "ConfigMap", **data: Any) -> Wire:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "prod", "labels": {"app": "shop"}},
        "data": data or {"size": 1},
    }


def plan(desired: Iterable[Desired], observed: Iterable[Mapping[str, Any]] = ()) -> tuple[Step, ...]:
    return diff(desired, map(Observed.of, observed), owner=OWNER)


def only(steps: tuple[Step, ...]) -> Step:
    (step,) = steps
    return step


def created(desired: Desired) -> Wire:
    """The object as a server keeps it after our create: with identity and defaults of its own."""
    step = only(plan([desired]))
    assert isinstance(step, Create)
    wire = deepcopy(step.manifest)
    wire["metadata"] |= {"uid": f"uid-{step.ref.key.name}", "resourceVersion": "7", "creationTimestamp": "whenever"}
    wire["data"]["defaulted"] = True
    return wire


def touched(wire: Wire, **metadata: Any) -> Wire:
    """A copy with other metadata; None removes a field."""
    copy = deepcopy(wire)
    copy["metadata"] = {name: value for name, value in (copy["metadata"] | metadata).items() if value is not None}
    return copy


# --- one child at a time


def test_a_missing_child_is_created_with_its_owner_and_the_hash_of_its_content() -> None:
    step = only(plan([Desired(manifest())]))
    assert isinstance(step, Create)
    assert (step.reason, step.message) == (ChildReason.MISSING, "ConfigMap prod/web does not exist yet.")
    assert step.manifest["metadata"]["ownerReferences"] == [REFERENCE]
    assert set(step.manifest["metadata"]["annotations"]) == {APPLIED_HASH}
    assert step.manifest["data"] == {"size": 1}


def test_rendering_is_not_changed_by_planning() -> None:
    rendered = manifest()
    before = deepcopy(rendered)
    plan([Desired(rendered, prune=False)])
    assert rendered == before


def test_a_child_as_it_was_applied_is_kept_whatever_the_server_added() -> None:
    child = Desired(manifest())
    assert only(plan([child], [created(child)])) == Keep(
        ref=child.ref, reason=ChildReason.UP_TO_DATE, message="ConfigMap prod/web is as it was applied."
    )


def test_other_wanted_content_is_applied_to_the_object_that_was_seen() -> None:
    step = only(plan([Desired(manifest(size=2))], [created(Desired(manifest(size=1)))]))
    assert isinstance(step, Apply)
    assert (step.reason, step.message, step.uid) == (
        ChildReason.CHANGED,
        "ConfigMap prod/web is to change in data.size.",
        "uid-web",
    )
    assert step.manifest["data"] == {"size": 2}


def test_a_field_that_is_no_longer_wanted_is_a_change_too() -> None:
    step = only(plan([Desired(manifest(size=1))], [created(Desired(manifest(size=1, color="red")))]))
    assert isinstance(step, Apply)
    assert (step.reason, step.message) == (
        ChildReason.CHANGED,
        "ConfigMap prod/web is to lose fields that were applied before.",
    )


def test_drift_is_set_back_and_the_changed_fields_are_named() -> None:
    child = Desired(manifest(a=1, b=2, c=3, d=4))
    wire = created(child)
    wire["data"] = {}
    step = only(plan([child], [wire]))
    assert isinstance(step, Apply)
    assert (step.reason, step.message) == (
        ChildReason.DRIFTED,
        "ConfigMap prod/web was changed by another writer in data.a, data.b, data.c and more; it is applied again.",
    )


def service(**spec: Any) -> Wire:
    metadata = {"name": "web", "namespace": "prod"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "data": {}}


@pytest.mark.parametrize(
    ("edit", "where", "operation"),
    [
        (
            {"ports": [{"name": "http", "port": 81, "protocol": "TCP"}]},
            "spec.ports",
            {"op": "add", "path": "/spec/ports", "value": [{"name": "http", "port": 80}]},
        ),
        (
            {"ports": [{"name": "http", "port": 80}, {"name": "more", "port": 81}]},
            "spec.ports",
            {"op": "add", "path": "/spec/ports", "value": [{"name": "http", "port": 80}]},
        ),
        (
            {"selector": {"app": "web", "only": "one"}},
            "spec.selector",
            {"op": "add", "path": "/spec/selector", "value": {"app": "web"}},
        ),
    ],
    ids=["another port", "one more port", "one more label"],
)
def test_ports_and_selectors_that_another_writer_extended_are_replaced(edit: Wire, where: str, operation: Wire) -> None:
    child = Desired(service(ports=[{"name": "http", "port": 80}], selector={"app": "web"}))
    have = created(child)
    have["spec"] |= edit
    step = only(plan([child], [have]))
    assert isinstance(step, Apply)
    assert step.reason is ChildReason.DRIFTED
    assert where in step.message
    assert step.replace == (
        {"op": "test", "path": "/metadata/uid", "value": "uid-web"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        operation,
    )


def test_an_update_strategy_that_another_writer_extended_is_replaced() -> None:
    child = Desired(service(updateStrategy={"type": "OnDelete"}))
    have = created(child)
    have["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}}
    step = only(plan([child], [have]))
    assert isinstance(step, Apply)
    assert step.replace[-1] == {"op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}


def test_ports_of_a_container_are_replaced_in_the_place_where_the_container_is() -> None:
    wanted = {"name": "web", "ports": [{"containerPort": 80}]}
    child = Desired(service(template={"spec": {"containers": [wanted]}}))
    have = created(child)
    extended = {"name": "web", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}
    have["spec"]["template"]["spec"]["containers"] = [{"name": "sidecar"}, extended]
    step = only(plan([child], [have]))
    assert isinstance(step, Apply)
    assert step.replace[2:] == (
        {"op": "add", "path": "/spec/template/spec/containers/1/ports", "value": [{"containerPort": 80}]},
    )


def test_what_the_server_adds_to_a_port_is_no_drift() -> None:
    child = Desired(service(ports=[{"name": "http", "port": 80}], selector={"app": "web"}))
    have = created(child)
    have["spec"]["ports"][0] |= {"protocol": "TCP", "targetPort": 80, "nodePort": 30080}
    assert isinstance(only(plan([child], [have])), Keep)


@pytest.mark.parametrize("record", [None, "made up by hand"])
def test_a_lost_record_is_written_again(record: str | None) -> None:
    child = Desired(manifest(), immutable=True)
    step = only(plan([child], [touched(created(child), annotations=record and {APPLIED_HASH: record})]))
    assert isinstance(step, Apply)
    assert step.reason is ChildReason.DRIFTED
    assert APPLIED_HASH in step.message


def test_a_record_of_a_newer_release_is_trusted() -> None:
    child = Desired(manifest())
    newer = touched(created(child), annotations={APPLIED_HASH: "v99-0123456789abcdef"})
    assert isinstance(only(plan([child], [newer])), Keep)


def test_an_immutable_child_is_deleted_waited_for_and_created_anew() -> None:
    old = created(Desired(manifest("run", kind="Job", size=1), immutable=True))
    child = Desired(manifest("run", kind="Job", size=2), immutable=True)

    first = only(plan([child], [old]))
    assert isinstance(first, Delete)
    assert (first.reason, first.uid) == (ChildReason.REPLACED, "uid-run")
    assert first.message == (
        "Job.batch prod/run is to change in data.size and cannot be changed in place; it is deleted, then created anew."
    )
    second = only(plan([child], [touched(old, deletionTimestamp="2025-01-01T00:00:00Z")]))
    assert isinstance(second, Wait)
    assert second.reason is ChildReason.BEING_DELETED
    third = only(plan([child]))
    assert isinstance(third, Create)


def test_an_immutable_child_that_drifted_is_repaired_and_not_replaced() -> None:
    child = Desired(manifest(kind="Job"), immutable=True)
    step = only(plan([child], [touched(created(child), labels={})]))
    assert isinstance(step, Apply)
    assert step.reason is ChildReason.DRIFTED


def test_an_immutable_child_without_a_record_is_replaced_only_if_it_differs() -> None:
    bare = touched(created(Desired(manifest(kind="Job", size=1))), annotations=None)
    assert isinstance(only(plan([Desired(manifest(kind="Job", size=1), immutable=True)], [bare])), Apply)
    assert isinstance(only(plan([Desired(manifest(kind="Job", size=2), immutable=True)], [bare])), Delete)


# --- surplus


def test_a_child_that_is_no_longer_wanted_is_deleted() -> None:
    step = only(plan([], [created(Desired(manifest()))]))
    assert step == Delete(
        ref=Desired(manifest()).ref,
        reason=ChildReason.NOT_WANTED,
        message="ConfigMap prod/web is no longer wanted.",
        uid="uid-web",
    )


def test_a_protected_child_is_kept_when_it_is_no_longer_desired() -> None:
    wire = created(Desired(manifest(), prune=False))
    assert wire["metadata"]["annotations"][PRUNE] == "never"
    step = only(plan([], [wire]))
    assert isinstance(step, Keep)
    assert step.reason is ChildReason.PROTECTED


def test_a_surplus_child_that_is_being_deleted_is_waited_for() -> None:
    leaving = touched(created(Desired(manifest())), deletionTimestamp="2025-01-01T00:00:00Z")
    step = only(plan([], [leaving]))
    assert isinstance(step, Wait)
    assert step.reason is ChildReason.BEING_DELETED


def test_objects_of_other_owners_are_ignored() -> None:
    assert plan([], [touched(manifest(), uid="uid-web")]) == ()


# --- ownership


def owned_by(**changes: Any) -> list[Wire]:
    return [REFERENCE | changes]


@pytest.mark.parametrize(
    ("owners", "expected", "reason", "words"),
    [
        (None, Conflict, ChildReason.FOREIGN, "no controller owns it"),
        (owned_by(controller=False), Conflict, ChildReason.FOREIGN, "no controller owns it"),
        (owned_by(uid="uid-other", name="bar"), Conflict, ChildReason.FOREIGN, "belongs to Workload bar"),
        (owned_by(uid="uid-other", apiVersion="v1"), Conflict, ChildReason.FOREIGN, "belongs to Workload shop"),
        (owned_by(uid="uid-old"), Wait, ChildReason.PREVIOUS_OWNER, "earlier Workload shop (UID uid-old)"),
        (
            owned_by(uid="uid-old", apiVersion="cloudless.io/v2"),
            Wait,
            ChildReason.PREVIOUS_OWNER,
            "earlier Workload shop",
        ),
        (owned_by(), Keep, ChildReason.UP_TO_DATE, "as it was applied"),
    ],
)
def test_only_the_controller_reference_with_our_uid_is_proof(
    owners: list[Wire] | None, expected: type[Step], reason: ChildReason, words: str
) -> None:
    child = Desired(manifest())
    step = only(plan([child], [touched(created(child), ownerReferences=owners)]))
    assert type(step) is expected
    assert step.reason is reason
    assert words in step.message


def test_a_conflict_says_what_the_user_can_do() -> None:
    step = only(plan([Desired(manifest())], [manifest()]))
    assert step.message == (
        "ConfigMap prod/web exists and no controller owns it, so it is left alone. "
        "Delete it, or name it differently, and Workload shop creates its own."
    )


def test_a_foreign_object_that_is_leaving_is_waited_for() -> None:
    leaving = touched(manifest(), deletionTimestamp="2025-01-01T00:00:00Z")
    assert isinstance(only(plan([Desired(manifest())], [leaving])), Wait)


def test_further_owners_that_were_rendered_stay_beside_ours() -> None:
    other = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1"}
    rendered = touched(manifest(), ownerReferences=[other, {**REFERENCE, "controller": False}])
    step = only(plan([Desired(rendered)]))
    assert isinstance(step, Create)
    assert step.manifest["metadata"]["ownerReferences"] == [other, REFERENCE]


# --- mistakes of the caller


def test_a_child_wanted_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="ConfigMap prod/web is wanted twice"):
        plan([Desired(manifest(size=1)), Desired(manifest(size=2))])


@pytest.mark.parametrize(("namespace", "words"), [("test", "in namespace test"), (None, "in no namespace")])
def test_a_child_that_the_garbage_collector_would_delete_is_refused(namespace: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=f"{words} and its owner .* render it with namespace prod"):
        plan([Desired(touched(manifest(), namespace=namespace))])


def test_an_owner_without_a_namespace_may_have_children_in_any() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "uid-n1"}}
    assert isinstance(only(diff([Desired(manifest())], (), owner=node)), Create)


def test_a_secret_must_be_rendered_as_it_is_read_back() -> None:
    secret = manifest("key", kind="Secret", token=base64.b64encode(b"x").decode())
    assert isinstance(only(plan([Desired(secret)])), Create)
    with pytest.raises(ValueError, match=r"Secret prod/key: stringData .* render base64 under data"):
        Desired({**secret, "stringData": {"token": "x"}})


def test_list_items_may_lack_their_kind() -> None:
    child = Desired(manifest())
    item = {name: value for name, value in created(child).items() if name not in ("apiVersion", "kind")}
    assert isinstance(only(diff([child], [Observed(child.ref, item)], owner=OWNER)), Keep)


def test_the_reasons_of_steps_and_conditions_do_not_contradict_each_other() -> None:
    assert not {reason.value for reason in Common} & {reason.value for reason in ChildReason}


# --- order


def test_waves_come_first_then_creates_before_applies_before_deletes_and_surplus_last() -> None:
    changed = Desired(manifest("b-changed", size=2))
    replaced = Desired(manifest("a-replaced", kind="Job", size=2), immutable=True)
    early, late = Desired(manifest("z-early"), wave=-1), Desired(manifest("a-late"), wave=1)
    missing = Desired(manifest("c-missing"))
    observed = [
        created(Desired(manifest("a-surplus"))),
        created(Desired(manifest("b-changed", size=1))),
        created(Desired(manifest("a-replaced", kind="Job", size=1))),
    ]
    steps = plan([late, replaced, missing, changed, early], observed)
    assert [(type(step), step.ref.key.name) for step in steps] == [
        (Create, "z-early"),
        (Create, "c-missing"),
        (Apply, "b-changed"),
        (Delete, "a-replaced"),
        (Create, "a-late"),
        (Delete, "a-surplus"),
    ]


# --- containment


@pytest.mark.parametrize(
    ("observed", "wanted", "paths"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, []),
        ({"a": 1}, {"a": 2, "b": {"c": 3}}, ["a", "b.c"]),
        ({}, {"a": None, "b": {}, "c": [], "d": "", "e": 0, "f": False}, []),
        ({"a": "x"}, {"a": None}, []),
        ({"a": 1}, {"a": 0}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1.0}, {"a": 1}, []),
        ({"cpu": "500m", "memory": "1Gi"}, {"cpu": 0.5, "memory": "1024Mi"}, []),
        ({"cpu": "500m"}, {"cpu": "501m"}, ["cpu"]),
        ({"args": ["a", "b"]}, {"args": ["a", "b"]}, []),
        ({"args": ["b", "a"]}, {"args": ["a", "b"]}, ["args[0]", "args[1]"]),
        ({"args": ["a"]}, {"args": []}, ["args"]),
        ({"args": ["a", "b"]}, {"args": ["a"]}, ["args"]),
        (
            {"containers": [{"name": "sidecar"}, {"name": "web", "image": "v1", "pullPolicy": "Always"}]},
            {"containers": [{"name": "web", "image": "v1"}]},
            [],
        ),
        (
            {"containers": [{"name": "web", "image": "v1"}]},
            {"containers": [{"name": "web", "image": "v2"}, {"name": "log"}]},
            ["containers[name=web].image", "containers[name=log]"],
        ),
        (
            {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"ports": [{"containerPort": 80}]},
            [],
        ),
        (
            {"ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 53, "protocol": "TCP"}]},
            ["ports"],
        ),
        (
            {"mounts": [{"name": "d", "mountPath": "/a"}, {"name": "d", "mountPath": "/b"}]},
            {"mounts": [{"name": "d", "mountPath": "/b"}]},
            [],
        ),
        ({"finalizers": ["foreground", "ours"]}, {"finalizers": ["ours"]}, []),
        ({"finalizers": ["foreground"]}, {"finalizers": ["ours"]}, ["finalizers"]),
        (
            {"spec": {"tolerations": [{"key": "gpu"}, {"key": "not-ready", "effect": "NoExecute"}]}},
            {"spec": {"tolerations": [{"key": "gpu"}]}},
            [],
        ),
        ({"names": [{"name": {"odd": 1}}]}, {"names": [{"name": {"odd": 1}}]}, []),
        ({"a": "text"}, {"a": {"b": 1}}, ["a.b"]),
        ({"a": "text"}, {"a": ["text"]}, ["a"]),
    ],
)
def test_an_object_contains_what_is_wanted_whatever_others_added(
    observed: Wire, wanted: Wire, paths: list[str]
) -> None:
    assert list(differences(observed, wanted)) == paths


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1", "1000m"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "x", "finalizers"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_every_value_contains_itself(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("xyz"), JSON))
def test_added_fields_are_never_a_difference(value: Wire, added: Wire) -> None:
    assert list(differences(value | added, value)) == []


# --- whole worlds


NAMES = st.sampled_from("abcdef")
FATES: dict[str, Callable[[Wire], Wire]] = {
    "intact": lambda wire: wire,
    "drifted": lambda wire: {**wire, "data": {"size": -1}},
    "unrecorded": lambda wire: touched(wire, annotations=None),
    "orphaned": lambda wire: touched(wire, ownerReferences=None),
    "stolen": lambda wire: touched(wire, ownerReferences=owned_by(uid="uid-thief", name="thief")),
    "inherited": lambda wire: touched(wire, ownerReferences=owned_by(uid="uid-old")),
    "leaving": lambda wire: touched(wire, deletionTimestamp="2025-01-01T00:00:00Z"),
}


@st.composite
def children(draw: st.DrawFn) -> list[Desired]:
    names = draw(st.lists(NAMES, unique=True))
    return [
        Desired(
            manifest(name, size=draw(st.integers(1, 3))),
            immutable=draw(st.booleans()),
            prune=draw(st.booleans()),
            wave=draw(st.integers(0, 2)),
        )
        for name in names
    ]


@st.composite
def worlds(draw: st.DrawFn) -> list[Wire]:
    return [FATES[draw(st.sampled_from(sorted(FATES)))](created(child)) for child in draw(children())]


def carried_out(steps: Iterable[Step], world: Iterable[Wire]) -> list[Wire]:
    """The world after the plan, on a server that deletes at once and whose apply keeps the fields of others."""
    objects = {Ref.of(wire): wire for wire in world}
    for number, step in enumerate(steps):
        match step:
            case Create(ref=ref, manifest=wanted):
                assert ref not in objects, "create of something that exists"
                objects[ref] = touched(wanted, uid=f"uid-new-{number}")
            case Apply(ref=ref, manifest=wanted, uid=uid):
                assert objects[ref]["metadata"]["uid"] == uid
                objects[ref] = touched(wanted, uid=uid) | {"data": {"defaulted": True, **wanted["data"]}}
            case Delete(ref=ref, uid=uid):
                assert objects.pop(ref)["metadata"]["uid"] == uid
            case Wait() | Conflict() | Keep():
                pass
    return list(objects.values())


@given(children(), worlds())
def test_carrying_out_the_plan_leaves_nothing_to_do(desired: list[Desired], world: list[Wire]) -> None:
    steps = plan(desired, world)
    replaced = {step.ref for step in steps if step.reason is ChildReason.REPLACED}
    world = carried_out(steps, world)
    again = plan(desired, world)
    assert {step.ref for step in again if isinstance(step, Create)} == replaced
    assert all(isinstance(step, Create | Keep | Wait | Conflict) for step in again)
    settled = plan(desired, carried_out(again, world))
    assert all(isinstance(step, Keep | Wait | Conflict) for step in settled)


@given(children(), worlds())
def test_what_is_not_ours_or_leaving_is_never_written(desired: list[Desired], world: list[Wire]) -> None:
    after = {Ref.of(wire): wire for wire in carried_out(plan(desired, world), world)}
    for wire in world:
        if (controller_of(wire) or {}).get("uid") != "uid-shop" or "deletionTimestamp" in wire["metadata"]:
            assert after[Ref.of(wire)] == wire


@given(children(), worlds(), st.randoms(use_true_random=False))
def test_every_wanted_child_has_one_step_and_the_order_of_the_inputs_does_not_matter(
    desired: list[Desired], world: list[Wire], random: Random
) -> None:
    steps = plan(desired, world)
    assert len({step.ref for step in steps}) == len(steps)
    assert {child.ref for child in desired} <= {step.ref for step in steps}
    assert all(step.message.startswith(str(step.ref)) and step.message.endswith(".") for step in steps)
    assert plan(random.sample(desired, len(desired)), random.sample(world, len(world))) == steps


@pytest.mark.parametrize(
    ("observed", "where"),
    [
        ({"pods": [{"name": "a"}, {"name": "b"}]}, ["pods"]),
        ({"pods": [{"name": "b"}]}, ["pods[name=a]"]),
        ({"pods": [{"name": "a", "added": 1}], "more": []}, []),
    ],
    ids=["one more", "another", "the same"],
)
def test_whole_lists_have_no_item_that_is_not_wanted(observed: Wire, where: list[str]) -> None:
    wanted = {"pods": [{"name": "a"}]}
    assert list(differences(observed, wanted, whole_lists=True)) == where
    nested = {"groups": [{"name": "g", **observed}]}
    found = list(differences(nested, {"groups": [{"name": "g", **wanted}]}, whole_lists=True))
    assert found == [f"groups[name=g].{each}" for each in where]
