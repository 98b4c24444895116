"""Server-side apply and tracking: who owns what after which write."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.places import ROOT

from holdfast.apiserver.apply import merging
from holdfast.apiserver.apply.fieldsets import Tree, difference, paths, union
from holdfast.apiserver.apply.ownership import of_object, structure_of
from holdfast.apiserver.apply.server_side import LAST_APPLIED, apply, manager_of, track
from holdfast.meta import times
from holdfast.meta.errors import BadRequest, Conflict, StatusError

ORACLE = ROOT.parent / "shared" / "oracle" / "cases"
NOW = datetime(2025, 1, 15, 10, tzinfo=UTC)
TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object"},
        "data": {"type": "object", "additionalProperties": TEXT},
        "args": {"type": "array", "items": TEXT},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": TEXT, "value": TEXT, "opts": {"type": "object"}}},
        },
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
Fields = dict[str, Any]


def thing(**fields: Any) -> Fields:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, **copy.deepcopy(fields)}


def applied(live: Fields | None, config: Fields, manager: str, **rest: Any) -> Fields:
    settings: Fields = {"force": False, "schema": SCHEMA, "api_version": "v1", "now": NOW} | rest
    return apply(live, config, manager=manager, **settings)


def written(old: Fields | None, new: Fields, manager: str, **rest: Any) -> Fields:
    """`new` as it is after an update, with its managed fields."""
    settings: Fields = {"schema": SCHEMA, "api_version": "v1", "now": NOW} | rest
    metadata = {**new["metadata"], "managedFields": track(old, new, manager=manager, **settings)}
    if metadata["managedFields"] is None:
        del metadata["managedFields"]
    return {**new, "metadata": metadata}


def owners(obj: Fields) -> dict[str, Tree]:
    """Who owns what: ``one`` for an applier, ``one*`` for an updater."""
    return {
        entry.get("manager", "") + ("*" if entry["operation"] == "Update" else ""): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", ())
    }


# --- The oracle ---


def scenarios(file: str) -> dict[str, list[Any]]:
    path = ORACLE / file
    if not path.exists():
        pytest.skip("the recorded answers are not here")
    return {case["name"]: case["steps"] for case in json.loads(path.read_text())}


def shown(obj: Fields) -> Fields:
    """An answer as the recording shows it."""
    copied: Fields = json.loads(json.dumps(obj))
    copied["metadata"]["namespace"] = "<ns>"
    for entry in copied["metadata"].get("managedFields", ()):
        entry["time"] = "<time>"
    return copied


@pytest.mark.parametrize("name", ["apply creates, updates, removes", "apply conflicts between managers"])
def test_applies_are_answered_as_kubernetes_answers_them(name: str) -> None:
    live = None
    for step in scenarios("apply.json")[name]:
        query = dict(part.split("=") for part in step["request"]["path"].partition("?")[2].split("&"))
        try:
            live = applied(live, step["request"]["body"], query["fieldManager"], force=query.get("force") == "true")
            answer = shown(live)
        except StatusError as error:
            answer = error.to_status()
        assert answer == step["answer"]["body"]


def test_applies_of_custom_objects_leave_defaults_without_an_owner() -> None:
    steps = scenarios("crds.json")
    definition = steps["install, discover"][0]["request"]["body"]["spec"]["versions"][0]
    custom = {"schema": definition["schema"]["openAPIV3Schema"], "api_version": "oracle.example/v1", "custom": True}
    spec = {"size": 3, "colour": "red", "ports": [{"port": 1, "proto": "TCP"}]}
    obj = {**thing(spec=spec), "apiVersion": "oracle.example/v1", "kind": "Widget"}
    obj = written(None, obj, manager_of("Python-urllib/3.11"), **custom)
    for place, manager in ((4, "m"), (5, "n")):
        step = steps["custom patches"][place]
        obj = applied(obj, step["request"]["body"], manager, **custom)
        for port in obj["spec"]["ports"]:
            port.setdefault("proto", "TCP")
        expected = step["answer"]["body"]
        del expected["metadata"]["generation"]
        assert shown(obj) == expected


# --- Applies ---


def test_an_apply_owns_what_its_configuration_says_and_no_more() -> None:
    obj = applied(None, thing(data={"x": "1"}, items=[{"name": "a", "opts": {}}], tags=["t"], args=[]), "one")
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2025-01-15T10:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:args": {},
                "f:data": {"f:x": {}},
                "f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:opts": {}}},
                "f:tags": {'v:"t"': {}},
            },
        }
    ]


def test_a_list_without_items_to_own_has_no_owner() -> None:
    obj = applied(None, thing(tags=[], data={}), "one")
    assert owners(obj) == {"one": {"f:data": {}}}


def test_what_is_no_longer_applied_goes_unless_another_owns_it() -> None:
    obj = applied(None, thing(data={"x": "1", "y": "1"}, tags=["s", "t"]), "one")
    obj = applied(obj, thing(data={"y": "1"}, tags=["t"]), "two")
    obj = applied(obj, thing(), "one")
    assert (obj["data"], obj["tags"]) == ({"y": "1"}, ["t"])
    assert owners(obj) == {"two": {"f:data": {"f:y": {}}, "f:tags": {'v:"t"': {}}}}


def test_what_an_updater_owns_is_kept_when_its_applier_gives_it_up() -> None:
    obj = written(None, thing(data={"x": "1"}), "maker")
    obj = applied(obj, thing(data={"x": "1", "y": "2"}), "one")
    obj = applied(obj, thing(), "one")
    assert obj["data"] == {"x": "1"}
    assert owners(obj) == {"maker*": {"f:data": {".": {}, "f:x": {}}}}


def test_an_item_goes_with_all_that_is_in_it() -> None:
    obj = applied(None, thing(items=[{"name": "a", "value": "1"}, {"name": "b"}]), "one")
    obj["items"][0]["opts"] = {"defaulted": True}
    obj = applied(obj, thing(items=[{"name": "b"}]), "one")
    assert obj["items"] == [{"name": "b"}]


def test_equal_values_are_owned_by_all_who_apply_them() -> None:
    obj = applied(None, thing(data={"x": "1"}), "one")
    later = applied(obj, thing(data={"x": "1"}), "two", now=NOW + timedelta(hours=1))
    assert owners(later) == {"one": {"f:data": {"f:x": {}}}, "two": {"f:data": {"f:x": {}}}}
    assert [entry.get("time") for entry in later["metadata"]["managedFields"]] == [None, "2025-01-15T10:00:00Z"]


def test_an_apply_that_changes_nothing_keeps_its_time() -> None:
    obj = applied(None, thing(data={"x": "1"}), "one")
    assert applied(obj, thing(data={"x": "1"}), "one", now=NOW + timedelta(hours=1)) == obj
    changed = applied(obj, thing(data={"x": "2"}), "one", now=NOW + timedelta(hours=1))
    assert changed["metadata"]["managedFields"][0]["time"] == "2025-01-15T11:00:00Z"


def test_one_conflict_is_said_in_a_line_and_several_by_manager() -> None:
    obj = written(None, thing(items=[{"name": "a", "value": "1"}]), "maker")
    obj = applied(obj, thing(data={"x": "1", "y": "1"}), "one")
    with pytest.raises(Conflict) as refused:
        applied(obj, thing(items=[{"name": "a", "value": "2"}]), "two")
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "maker" using v1: .items[name="a"].value'
    )
    with pytest.raises(Conflict) as refused:
        applied(obj, thing(data={"x": "2", "y": "2"}, items=[{"name": "a", "value": "2"}]), "two")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "maker" using v1:\n- .items[name="a"].value\n'
        'conflicts with "one":\n- .data.x\n- .data.y'
    )
    assert [cause.field for cause in refused.value.causes] == ['.items[name="a"].value', ".data.x", ".data.y"]
    assert {cause.reason for cause in refused.value.causes} == {"FieldManagerConflict"}


def test_a_forced_apply_takes_what_it_changes() -> None:
    obj = applied(None, thing(data={"x": "1", "y": "1"}), "one")
    obj = applied(obj, thing(data={"x": "2"}), "two", force=True)
    assert obj["data"] == {"x": "2", "y": "1"}
    assert owners(obj) == {"one": {"f:data": {"f:y": {}}}, "two": {"f:data": {"f:x": {}}}}


def test_atomic_values_conflict_and_are_replaced_as_a_whole() -> None:
    obj = applied(None, thing(whole={"a": 1}, args=["a"]), "one")
    with pytest.raises(Conflict):
        applied(obj, thing(whole={"b": 2}), "two")
    obj = applied(obj, thing(whole={"b": 2}, args=["b"]), "two", force=True)
    assert (obj["whole"], obj["args"]) == ({"b": 2}, ["b"])
    assert owners(obj) == {"two": {"f:args": {}, "f:whole": {}}}


def test_an_applier_is_the_same_in_every_version_and_another_in_every_subresource() -> None:
    obj = applied(None, thing(data={"x": "1"}), "one")
    newer = {**thing(data={"y": "1"}), "apiVersion": "v2"}
    obj = applied(obj, newer, "one", api_version="v2")
    obj = applied(obj, {**thing(status={"phase": "Up"}), "apiVersion": "v2"}, "one", api_version="v2",
                  subresource="status")  # fmt: skip
    assert obj["data"] == {"y": "1"}
    assert [(entry["apiVersion"], entry.get("subresource")) for entry in obj["metadata"]["managedFields"]] == [
        ("v2", None),
        ("v2", "status"),
    ]


def test_an_endpoint_sets_its_own_part_alone() -> None:
    config = thing(data={"x": "1"}, status={"phase": "Up"})
    config["metadata"]["labels"] = {"a": "b"}
    plain = applied(None, config, "one", status=True)
    assert "status" not in plain
    status = applied(plain, config, "two", status=True, subresource="status")
    assert owners(status)["two"] == {"f:status": {"f:phase": {}}}
    both = applied(None, config, "one")
    assert owners(both)["one"]["f:status"] == {"f:phase": {}}


def test_the_first_apply_finds_what_was_there_before() -> None:
    live = {**thing(data={"x": "1"}), "metadata": {"name": "a", "uid": "u"}}
    obj = applied(live, thing(data={"y": "1"}), "one")
    assert owners(obj) == {
        "before-first-apply*": {"f:data": {".": {}, "f:x": {}}},
        "one": {"f:data": {"f:y": {}}},
    }
    with pytest.raises(Conflict, match="before-first-apply"):
        applied(live, thing(data={"x": "2"}), "one")


def test_kubectl_takes_over_what_it_applied_from_the_clients_side() -> None:
    config = thing(data={"x": "1", "y": "1"})
    live = copy.deepcopy(config)
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(config)}
    live = written(None, live, "kubectl-client-side-apply")
    with pytest.raises(Conflict):
        applied(live, thing(data={"x": "2"}), "other")
    obj = applied(live, thing(data={"x": "2"}), "kubectl")
    assert obj["data"] == {"x": "2", "y": "1"}
    assert json.loads(obj["metadata"]["annotations"][LAST_APPLIED]) == thing(data={"x": "2"})
    drifted = written(live, {**live, "data": {"x": "3", "y": "1"}}, "editor")
    with pytest.raises(Conflict, match="editor"):
        applied(drifted, thing(data={"x": "2"}), "kubectl")


@pytest.mark.parametrize("annotation", ["", "{", "[]", '{"apiVersion":"v9"}'])
def test_an_unreadable_last_configuration_takes_over_nothing(annotation: str) -> None:
    live = thing(data={"x": "1"})
    live["metadata"]["annotations"] = {LAST_APPLIED: annotation}
    with pytest.raises(Conflict):
        applied(written(None, live, "maker"), thing(data={"x": "2"}), "kubectl")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({**thing(), "metadata": {"name": "a", "managedFields": []}}, "metadata.managedFields must be nil"),
        (
            {**thing(), "apiVersion": "v2"},
            "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
        ),
        (
            thing(items=[{"name": "x"}, {"name": "x"}]),
            'failed to create typed patch object (/a; /v1, Kind=Thing): .items: duplicate entries for key [name="x"]',
        ),
    ],
)
def test_configurations_that_cannot_be_applied_are_refused(config: Fields, problem: str) -> None:
    with pytest.raises(BadRequest) as refused:
        applied(None, config, "one")
    assert refused.value.message == problem


# --- Updates ---


def test_a_create_owns_all_of_the_object_with_what_holds_it() -> None:
    obj = thing(data={"x": "1"}, items=[{"name": "a"}])
    obj["metadata"] |= {"uid": "u", "labels": {"a": "b"}, "generation": 1}
    assert owners(written(None, obj, "maker", custom=True)) == {
        "maker*": {
            "f:data": {".": {}, "f:x": {}},
            "f:items": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}},
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        }
    }


def test_an_update_takes_what_it_changes_from_all_others() -> None:
    obj = written(None, thing(data={"x": "1", "y": "1", "z": "1"}), "maker")
    obj = applied(obj, thing(data={"x": "1"}), "one")
    later = NOW + timedelta(hours=1)
    new = written(obj, {**obj, "data": {"x": "2", "z": "1", "new": "1"}}, "editor", now=later)
    assert owners(new) == {
        "maker*": {"f:data": {".": {}, "f:z": {}}},
        "editor*": {"f:data": {"f:new": {}, "f:x": {}}},
    }
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [times.format(NOW), times.format(later)]


def test_an_update_that_only_removes_leaves_no_entry_and_no_time() -> None:
    obj = written(None, thing(data={"x": "1", "y": "1"}), "maker")
    new = written(obj, {**obj, "data": {"x": "1"}}, "editor", now=NOW + timedelta(hours=1))
    assert owners(new) == {"maker*": {"f:data": {".": {}, "f:x": {}}}}
    assert new["metadata"]["managedFields"][0]["time"] == times.format(NOW)


def test_an_update_that_changes_nothing_changes_no_entry() -> None:
    obj = written(None, thing(data={"x": "1"}), "maker")
    assert written(obj, copy.deepcopy(obj), "editor", now=NOW + timedelta(hours=1)) == obj


def test_clients_that_do_not_know_managed_fields_do_not_lose_them() -> None:
    obj = written(None, thing(data={"x": "1"}), "maker")
    deep: Fields = {}
    for _ in range(2000):
        deep = {"f:x": deep}
    endless = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": deep}
    for given_ in (
        None,
        [endless],
        [{"operation": "Shrug"}],
        [{"manager": "m", "operation": "Apply", "apiVersion": "v1"}],
    ):
        new = {**obj, "metadata": {**obj["metadata"], "managedFields": given_}}
        assert written(obj, new, "maker") == obj


def test_clients_may_write_managed_fields_and_reset_them() -> None:
    obj = written(None, thing(data={"x": "1"}), "maker")
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {"f:x": {".": {}}}}}  # fmt: skip
    rewritten = written(obj, {**obj, "metadata": {"name": "a", "managedFields": [entry]}}, "editor")
    assert owners(rewritten) == {"m": {"f:data": {"f:x": {}}}}
    resets: tuple[list[Fields], ...] = ([], [{}])
    for reset in resets:
        blank = written(obj, {**obj, "metadata": {"name": "a", "managedFields": reset}}, "editor")
        assert "managedFields" not in blank["metadata"]
        assert "managedFields" not in written(blank, {**blank, "data": {"x": "2"}}, "editor")["metadata"]


def test_managed_fields_cannot_be_written_through_a_subresource() -> None:
    obj = written(None, thing(data={"x": "1"}), "maker")
    new = {**obj, "status": {"phase": "Up"}, "metadata": {"name": "a", "managedFields": []}}
    assert owners(written(obj, new, "node", subresource="status")) == {
        **owners(obj),
        "node*": {"f:status": {".": {}, "f:phase": {}}},
    }


def test_the_oldest_of_more_than_ten_updates_become_ancient_changes() -> None:
    obj = thing()
    for hour in range(13):
        new = {**obj, "data": {**obj.get("data", {}), f"k{hour:02}": "1"}}
        obj = written(obj if hour else None, new, f"m{hour:02}", now=NOW + timedelta(hours=hour))
    entries = obj["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{hour:02}" for hour in range(4, 13))]
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, **{f"f:k{hour:02}": {} for hour in range(4)}}}
    assert entries[0]["time"] == times.format(NOW + timedelta(hours=3))


def test_only_updates_of_one_version_are_merged() -> None:
    obj = thing()
    for hour in range(11):
        version = "v1" if hour % 2 else "v2"
        new = {**obj, "data": {**obj.get("data", {}), f"k{hour:02}": "1"}}
        obj = written(obj if hour else None, new, f"m{hour:02}", now=NOW + timedelta(hours=hour), api_version=version)
    managers = [(entry["manager"], entry["apiVersion"]) for entry in obj["metadata"]["managedFields"]]
    assert managers[:2] == [("m01", "v1"), ("ancient-changes", "v2")]
    assert len(managers) == 10


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.30.0 (linux/amd64) kubernetes/abc", "kubectl"),
        ("Python-urllib/3.11", "Python-urllib"),
        ("Mozilla", "Mozilla"),
        ("", ""),
        ("/1.0", ""),
        ("a\tb\x00c/1", "abc"),
        ("x" * 200, "x" * 128),
        ("ü" * 100, "ü" * 64),
    ],
)
def test_the_manager_is_the_clients_name_if_it_gives_none(agent: str, manager: str) -> None:
    assert manager_of(agent) == manager


# --- Whatever is applied ---

names = st.sampled_from("abc")
values = st.sampled_from(["1", "2"])
items = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"value": values, "opts": st.dictionaries(names, values)}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "data": st.dictionaries(names, values),
        "args": st.lists(values, max_size=2),
        "tags": st.lists(names, min_size=1, max_size=3, unique=True),
        "items": items,
        "whole": st.dictionaries(names, values),
    },
).map(lambda fields: thing(**fields))
histories = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), configs), min_size=1, max_size=5)


def after(history: list[tuple[str, Fields]]) -> Fields:
    live: Fields | None = None
    for manager, config in history:
        live = applied(live, config, manager, force=True)
    assert live is not None
    return live


def owned(obj: Fields) -> Tree:
    nothing: Tree = {}
    return reduce(union, owners(obj).values(), nothing)


@given(histories, configs)
def test_applying_twice_is_applying_once(history: list[tuple[str, Fields]], config: Fields) -> None:
    once = applied(after(history), config, "one", force=True)
    assert applied(once, config, "one", now=NOW + timedelta(hours=1)) == once


@given(histories, configs)
def test_an_apply_takes_nothing_from_others(history: list[tuple[str, Fields]], config: Fields) -> None:
    before = after(history)
    kept = copy.deepcopy(before)
    try:
        obj = applied(before, config, "one")
    except Conflict:
        return
    finally:
        assert before == kept
    theirs = {manager: fields for manager, fields in owners(before).items() if manager != "one"}
    assert {manager: fields for manager, fields in owners(obj).items() if manager != "one"} == theirs


@given(histories)
def test_every_leaf_that_was_applied_has_an_owner(history: list[tuple[str, Fields]]) -> None:
    obj = after(history)
    assert not difference(of_object(obj, structure_of(SCHEMA)), owned(obj))


@given(histories, configs)
def test_the_result_says_what_the_configuration_says(history: list[tuple[str, Fields]], config: Fields) -> None:
    obj = applied(after(history), config, "one", force=True)
    assert merging.merge(obj, config, structure_of(SCHEMA)) == obj


@given(histories, configs)
def test_nothing_changes_hands_that_did_not_change(history: list[tuple[str, Fields]], new: Fields) -> None:
    old = after(history)
    obj = written(old, {**new, "metadata": {"name": "a"}}, "editor") if owners(old) else old
    taken = set(paths(owners(obj).get("editor*", {})))
    for manager, fields in owners(obj).items():
        assert manager == "editor*" or not taken & set(paths(fields))
        assert manager == "editor*" or not difference(fields, owners(old)[manager])
