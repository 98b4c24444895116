"""Revisions of templates: which one is new, which is an old one again, and which are dropped."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.objects import Meta
from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.cluster.controllers import revisions
from holdfast.cluster.controllers.revisions import Revision, patch_of
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.decisions import Create, Delete, Patch


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def owner(image: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "n", "uid": "u", "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"template": template(image)}}


def kept(create: Create, *, number: int | None = None, uid: str = "") -> Revision:
    """A revision as the server has it after it was created."""
    manifest = create.manifest
    meta = Meta(
        name=manifest["metadata"]["name"], namespace="n", uid=uid or manifest["metadata"]["name"], resource_version="7"
    )
    return Revision(metadata=meta, revision=number or manifest["revision"], data=manifest["data"])


def made(image: str, *history: Revision) -> Revision:
    (create,) = revisions.plan(owner(image), history).writes
    assert isinstance(create, Create)
    return kept(create)


ONE = made("nginx:1")
TWO = made("nginx:2", ONE)
THREE = made("nginx:3", ONE, TWO)


def test_the_first_template_becomes_revision_one_both_current_and_to_update_to() -> None:
    plan = revisions.plan(owner("nginx:1"), ())
    assert plan.current == plan.update
    assert (plan.update.revision, plan.collisions) == (1, 0)
    (create,) = plan.writes
    assert isinstance(create, Create)
    digest = create.manifest["metadata"]["labels"][revisions.HASH_LABEL]
    assert create.manifest == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"web-{digest}",
            "namespace": "n",
            "labels": {"app": "web", revisions.HASH_LABEL: digest},
            "ownerReferences": [owner_reference(owner(""))],
        },
        "data": {"spec": {"template": {**template("nginx:1"), "$patch": "replace"}}},
        "revision": 1,
    }


def test_a_revision_carries_the_annotations_of_its_owner_so_that_history_shows_the_cause() -> None:
    (create,) = revisions.plan(owner("nginx:1", **{"kubernetes.io/change-cause": "first"}), ()).writes
    assert isinstance(create, Create)
    assert create.manifest["metadata"]["annotations"] == {"kubernetes.io/change-cause": "first"}


def test_a_revision_gives_back_the_template_that_it_keeps() -> None:
    assert ONE.template == template("nginx:1")


def test_an_unchanged_template_writes_nothing() -> None:
    plan = revisions.plan(owner("nginx:1"), [ONE], current=ONE.name)
    assert (plan.current, plan.update, plan.writes) == (ONE, ONE, ())


def test_a_changed_template_is_the_next_number_and_the_old_one_stays_current() -> None:
    plan = revisions.plan(owner("nginx:2"), [ONE], current=ONE.name)
    assert plan.current == ONE
    assert plan.update.revision == 2
    assert plan.update.name == TWO.name != ONE.name


def test_going_back_renumbers_the_old_revision_instead_of_making_another() -> None:
    plan = revisions.plan(owner("nginx:1"), [TWO, ONE], current=TWO.name)
    assert (plan.current, plan.update.name, plan.update.revision) == (TWO, ONE.name, 3)
    (patch,) = plan.writes
    assert isinstance(patch, Patch)
    assert (patch.resource, patch.key, patch.patch) == (CONTROLLER_REVISIONS, Key("n", ONE.name), {"revision": 3})
    assert (patch.uid, patch.version) == (ONE.metadata.uid, "7")


def test_a_current_revision_that_is_gone_counts_as_updated() -> None:
    plan = revisions.plan(owner("nginx:1"), [ONE], current="web-gone")
    assert plan.current == ONE


def test_a_name_of_another_owner_is_a_collision_and_counted() -> None:
    first = revisions.plan(owner("nginx:2"), [ONE])
    plan = revisions.plan(owner("nginx:2"), [ONE], collisions=0, taken=[first.update.name])
    assert plan.collisions == 1
    assert plan.update.name != first.update.name


def test_templates_that_differ_in_nothing_but_emptiness_get_names_of_their_own() -> None:
    emptied = owner("nginx:1")
    emptied["spec"]["template"]["spec"]["volumes"] = []
    plan = revisions.plan(emptied, [ONE])
    assert plan.update.data != ONE.data
    assert plan.update.name != ONE.name
    assert plan.collisions == 1


@pytest.mark.parametrize(
    ("limit", "live", "dropped"),
    [
        pytest.param(10, (), [], id="all are kept within the limit"),
        pytest.param(1, (), [ONE], id="the oldest goes first"),
        pytest.param(0, (), [ONE, TWO], id="none is kept at zero"),
        pytest.param(0, (ONE.name,), [TWO], id="one that a pod has is kept"),
        pytest.param(None, (), [], id="no limit keeps all"),
    ],
)
def test_old_revisions_are_dropped_beyond_the_limit(
    limit: int | None, live: tuple[str, ...], dropped: list[Revision]
) -> None:
    plan = revisions.plan(owner("nginx:3"), [THREE, ONE, TWO], current=THREE.name, live=live, limit=limit)
    assert [write.uid for write in plan.writes if isinstance(write, Delete)] == [each.metadata.uid for each in dropped]


def test_the_patch_of_a_template_replaces_it_whole() -> None:
    assert patch_of({"spec": {}}) == {"spec": {"template": {"spec": {}, "$patch": "replace"}}}
