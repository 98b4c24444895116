"""Managed fields that a command hands back to the owners of a spec."""

from __future__ import annotations

from typing import Any

from holdfast.meta.managed_fields import handed_back

META = {"f:metadata": {"f:annotations": {"f:a": {}}}}


def entry(manager: str, *names: str, operation: str = "Apply", **more: Any) -> dict[str, Any]:
    spec = {"f:spec": {f"f:{name}": {} for name in names}} if names else {}
    return {"manager": manager, "operation": operation, "apiVersion": "x/v1", "fieldsV1": {**spec, **more}}


def owned(entries: list[Any] | None) -> dict[str, set[str]]:
    return {each["manager"]: set(each["fieldsV1"].get("f:spec", {})) for each in entries or ()}


def test_each_field_goes_back_to_the_managers_that_owned_it() -> None:
    before = [entry("git", "image", "env"), entry("edit", "args", operation="Update")]
    after = [entry("git", "env"), entry("verbs", "image", "args", operation="Update", **META)]
    found = handed_back(before, after, manager="verbs")
    assert owned(found) == {"git": {"f:env", "f:image"}, "edit": {"f:args"}, "verbs": set()}


def test_a_field_that_no_manager_owned_has_no_owner() -> None:
    found = handed_back([entry("git", "image")], [entry("git", "image"), entry("verbs", "paused", operation="Update")],
                        manager="verbs")  # fmt: skip
    assert owned(found) == {"git": {"f:image"}}


def test_the_one_manager_that_applies_an_object_owns_all_that_is_restored() -> None:
    before, after = [entry("git", "image")], [entry("verbs", "image", "args", operation="Update")]
    assert owned(handed_back(before, after, manager="verbs", restored=True)) == {"git": {"f:image", "f:args"}}
    before.append(entry("other", "env"))
    assert owned(handed_back(before, after, manager="verbs", restored=True)) == {"git": {"f:image"}}


def test_maps_and_keyed_lists_are_divided() -> None:
    taken = {"f:spec": {"f:env": {".": {}, "f:A": {}, "f:B": {}}, "f:ports": {'k:{"port":80}': {"f:port": {}}}}}
    git = {"f:spec": {"f:env": {".": {}, "f:A": {}}, "f:ports": {'k:{"port":81}': {"f:port": {}}}}}
    found = handed_back([entry("git", **git)], [entry("verbs", operation="Update", **taken)], manager="verbs")
    assert found is not None
    assert found[0]["fieldsV1"]["f:spec"] == {"f:env": {".": {}, "f:A": {}}}


def test_an_object_whose_spec_the_manager_does_not_own_is_left_alone() -> None:
    assert handed_back([], [entry("verbs", operation="Update", **META)], manager="verbs") is None
    assert handed_back([], [], manager="verbs") is None


def test_a_field_that_was_changed_by_a_subresource_goes_back_too() -> None:
    before = [entry("git", "replicas")]
    after = [{**entry("verbs", "replicas", operation="Update"), "subresource": "scale"}]
    assert handed_back(before, after, manager="verbs") is None
    found = handed_back(before, after, manager="verbs", subresource="scale")
    assert found is not None
    assert [each["manager"] for each in found] == ["git"]
