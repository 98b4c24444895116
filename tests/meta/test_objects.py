"""Names of objects and their owners."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.objects import GVK, Key, ObjectError, Ref, controller_of, owner_reference

WORKLOAD: dict[str, Any] = {
    "apiVersion": "cloudless.io/v1",
    "kind": "Workload",
    "metadata": {"namespace": "shop", "name": "web", "uid": "u-1"},
}


def test_a_gvk_knows_its_api_version_and_its_names() -> None:
    gvk = GVK.of(WORKLOAD)
    assert gvk == GVK("cloudless.io", "v1", "Workload")
    assert gvk.api_version == "cloudless.io/v1"
    assert gvk.group_kind == "Workload.cloudless.io"
    assert str(gvk) == "cloudless.io/v1 Workload"


def test_the_core_group_is_empty() -> None:
    gvk = GVK.parse("v1", "Pod")
    assert (gvk.group, gvk.api_version, gvk.group_kind, str(gvk)) == ("", "v1", "Pod", "v1 Pod")


@pytest.mark.parametrize("api_version", ["", "/", "/v1", "a/", "a/b/c"])
def test_an_api_version_that_is_none_is_refused(api_version: str) -> None:
    with pytest.raises(ObjectError, match=r"apiVersion: .* write 'v1' or 'apps/v1'"):
        GVK.parse(api_version, "Pod")


def test_a_kind_is_required() -> None:
    with pytest.raises(ObjectError, match="kind: is empty"):
        GVK.of({"apiVersion": "v1"})


@pytest.mark.parametrize(("key", "text"), [(Key("shop", "web"), "shop/web"), (Key("", "node-1"), "node-1")])
def test_a_key_reads_as_it_is_written(key: Key, text: str) -> None:
    assert str(key) == text
    assert Key.parse(text) == key


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a/b/c"])
def test_a_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ObjectError, match="write 'namespace/name'"):
        Key.parse(text)


def test_a_ref_says_kind_and_key() -> None:
    assert str(Ref.of(WORKLOAD)) == "Workload.cloudless.io shop/web"
    assert Ref.of(WORKLOAD).key == Key.of(WORKLOAD) == Key("shop", "web")


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ({}, "metadata.name: is missing"),
        ({"metadata": None}, "metadata.name: is missing"),
        ({"metadata": {"name": 5}}, "metadata.name: must be a string, not 5"),
        ({"metadata": {"name": "a", "namespace": []}}, r"metadata.namespace: must be a string, not \[\]"),
    ],
)
def test_an_object_without_a_usable_name_is_refused_by_path(obj: dict[str, Any], problem: str) -> None:
    with pytest.raises(ObjectError, match=problem):
        Key.of(obj)


def test_an_owner_reference_names_its_owner() -> None:
    assert owner_reference(WORKLOAD) == {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "name": "web",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_false_flags_are_left_out_of_an_owner_reference() -> None:
    assert set(owner_reference(WORKLOAD, controller=False, block_owner_deletion=False)) == {
        "apiVersion",
        "kind",
        "name",
        "uid",
    }


def test_an_owner_that_was_never_created_cannot_own() -> None:
    unborn = WORKLOAD | {"metadata": {"name": "web"}}
    with pytest.raises(ObjectError, match=r"metadata\.uid: is missing; .* create the object first"):
        owner_reference(unborn)


def test_the_controller_is_the_one_owner_that_says_so() -> None:
    managed = owner_reference(WORKLOAD)
    other = managed | {"uid": "u-2", "controller": False}
    child = {"metadata": {"ownerReferences": [other, managed]}}
    assert controller_of(child) == managed


@pytest.mark.parametrize("obj", [{}, {"metadata": {}}, {"metadata": {"ownerReferences": None}}])
def test_an_orphan_has_no_controller(obj: dict[str, Any]) -> None:
    assert controller_of(obj) is None


segments = st.text(alphabet="abz09-.", min_size=1, max_size=8)


@given(namespace=st.just("") | segments, name=segments)
def test_every_key_round_trips(namespace: str, name: str) -> None:
    assert Key.parse(str(Key(namespace, name))) == Key(namespace, name)


@given(group=st.just("") | segments, version=segments, kind=segments)
def test_every_gvk_round_trips(group: str, version: str, kind: str) -> None:
    gvk = GVK(group, version, kind)
    assert GVK.parse(gvk.api_version, gvk.kind) == gvk
    assert GVK.of({"apiVersion": gvk.api_version, "kind": kind}) == gvk


@given(st.lists(st.tuples(st.just("") | segments, segments)))
def test_keys_sort_by_namespace_and_then_by_name(pairs: list[tuple[str, str]]) -> None:
    assert sorted(Key(*pair) for pair in pairs) == [Key(*pair) for pair in sorted(pairs)]
