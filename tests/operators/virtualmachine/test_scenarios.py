"""The scenarios that VirtRigaud tests for machines, images, providers, snapshots and clones, and where they are here.

What the other modules do not have is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.operators.virtualmachine import (
    test_clones,
    test_edges,
    test_guest_data,
    test_machines,
    test_providers,
    test_sets,
    test_snapshots,
)
from tests.operators.virtualmachine.snapshot_stories import in_phase as snapshot_in_phase
from tests.operators.virtualmachine.snapshot_stories import snapshot
from tests.operators.virtualmachine.stories import (
    CLONES,
    INSTANT,
    MACHINES,
    SNAPSHOTS,
    Fault,
    Hypervisors,
    answer,
    created,
    play_story,
    prepare,
    status_of,
)
from tests.operators.virtualmachine.test_clones import clone, in_phase

from holdfast.providers.contract import Code
from holdfast.testing.clusters import Cluster

SILENT = Fault(call="capabilities", code=Code.UNSUPPORTED)
"""A provider that does not say what it can do."""


def test_a_linked_clone_of_a_provider_that_does_not_say_what_it_can_is_asked_for() -> None:
    hypervisors = Hypervisors(faults=(SILENT,), latencies=INSTANT)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(options={"type": "LinkedClone"}))
        assert (await in_phase(cluster, "Ready"))["actualCloneType"] == "LinkedClone"

    play_story(story, hypervisors)


def test_a_snapshot_of_a_provider_that_does_not_say_what_it_can_is_asked_for() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot(snapshotConfig={"includeMemory": True}))
        await snapshot_in_phase(cluster, "Ready")

    play_story(story, Hypervisors(faults=(SILENT,), latencies=INSTANT))


def test_a_provider_that_cannot_clone_at_all_is_asked_once_and_said_so() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="clone", code=Code.UNSUPPORTED),), latencies=INSTANT)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone())
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Ready") == ("False", "UnsupportedByProvider")
        await cluster.advance(3600)
        assert [call for call, _ in hypervisors.at().calls].count("clone") == 1
        assert await cluster.find(MACHINES, "copy") is None

    play_story(story, hypervisors)


def test_a_clone_whose_source_does_not_exist_waits_for_it() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(CLONES, clone())
        status = await in_phase(cluster, "Pending")
        assert "VirtualMachine web does not exist" in status["message"]
        await created(cluster)
        await in_phase(cluster, "Ready")

    play_story(story, Hypervisors(latencies=INSTANT))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_clone_that_is_asked_for_twice_is_one_machine(when: Any) -> None:
    hypervisors = Hypervisors(faults=(Fault(call="clone", times=2, when=when),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(options={"type": "LinkedClone"}))
        status = await in_phase(cluster, "Ready")
        assert [each.name.rpartition("-")[0] for each in await hypervisors.at().machines()] == ["web", "copy"]
        assert (await status_of(cluster, "copy"))["id"] == status["targetVMID"]

    play_story(story, hypervisors)


def test_an_operator_that_ends_before_the_machine_is_bound_gives_it_the_clone_that_was_made() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone())

        async def is_begun() -> bool:
            return "targetVMID" in await status_of(cluster, "copying", CLONES)

        await cluster.until(is_begun, step=0.1)
        made = (await status_of(cluster, "copying", CLONES))["targetVMID"]
        assert await cluster.find(MACHINES, "copy") is None
        await cluster.restart()
        await in_phase(cluster, "Ready")
        assert (await status_of(cluster, "copy"))["id"] == made
        assert len(await hypervisors.at().machines()) == 2

    play_story(story, hypervisors)


REFERENCE: dict[str, tuple[Callable[..., None], ...]] = {
    "vm: a machine that the provider does not find is deleted": (
        test_machines.test_a_machine_that_is_deleted_goes_when_the_provider_has_confirmed_it,
        test_edges.test_a_machine_that_never_was_is_gone_at_once,
    ),
    "vm: missing dependencies": (test_edges.test_a_machine_says_which_objects_do_not_exist_and_goes_on_when_they_do,),
    "vm: adopted without id does not create": (
        test_edges.test_machines_that_were_there_are_adopted_by_a_filter_and_not_touched,
    ),
    "vm: needs reconfigure": (
        test_machines.test_processors_and_memory_are_added_while_the_machine_runs,
        test_machines.test_a_change_that_needs_a_restart_waits_for_consent_and_says_so,
        test_edges.test_a_changed_class_says_what_it_will_do_before_it_does,
    ),
    "vm: delete keeps the finalizer on failure, force annotation": (
        test_edges.test_a_deletion_that_fails_keeps_the_finalizer_until_it_is_forced,
        test_edges.test_a_machine_whose_provider_is_gone_is_kept_and_says_how_to_let_it_go,
    ),
    "cloud-init: four secret keys, none recognised": (
        test_guest_data.test_user_data_is_found_under_each_of_four_keys,
        test_guest_data.test_a_secret_without_any_of_the_keys_is_refused_with_the_path,
    ),
    "cloud-init: MIME merge, metadata concat, empty": (
        test_guest_data.test_inline_data_and_a_secret_are_merged_into_one_document,
        test_guest_data.test_none_and_one_part_are_themselves_and_more_are_a_multipart_document,
        test_guest_data.test_meta_data_is_joined_and_names_the_guest_where_there_is_none,
        test_guest_data.test_no_user_data_is_no_data,
    ),
    "image: async then complete, idempotent, concurrent providers do not clobber": (
        test_edges.test_an_image_is_imported_once_for_each_provider_that_needs_it,
        test_edges.test_the_phase_of_an_image_follows_the_stage_of_its_import,
    ),
    "image: Fail, Wait": (test_edges.test_an_image_that_is_missing_is_not_imported_where_the_spec_says_so,),
    "image: error": (test_edges.test_an_import_that_fails_is_tried_again_and_one_that_takes_too_long_is_cancelled,),
    "provider: TLS": (test_providers.test_calls_are_encrypted_unless_the_spec_disables_it,),
    "provider: capability nil": (test_a_snapshot_of_a_provider_that_does_not_say_what_it_can_is_asked_for,),
    "snapshot: capability gate": (test_snapshots.test_what_a_provider_cannot_do_is_said_and_not_faked,),
    "clone: happy path": (test_clones.test_a_full_clone_is_made_customized_started_and_reported,),
    "clone: idempotent": (test_a_clone_that_is_asked_for_twice_is_one_machine,),
    "clone: linked blocked": (
        test_clones.test_linked_and_instant_clones_are_made_where_the_provider_can_and_refused_where_not,
    ),
    "clone: fails open": (test_a_linked_clone_of_a_provider_that_does_not_say_what_it_can_is_asked_for,),
    "clone: bad source": (test_clones.test_what_a_clone_cannot_do_is_refused_with_its_path,),
    "clone: no cloner": (test_a_provider_that_cannot_clone_at_all_is_asked_once_and_said_so,),
    "clone: source missing is pending": (test_a_clone_whose_source_does_not_exist_waits_for_it,),
    "clone: resume seeds the id": (
        test_an_operator_that_ends_before_the_machine_is_bound_gives_it_the_clone_that_was_made,
    ),
    "clone: deletion keeps the machine": (test_clones.test_nothing_is_left_of_a_clone_that_is_deleted_but_its_machine,),
    "vmset: no stub": (test_sets.test_machines_are_created_one_after_another_with_ordinals_and_a_revision,),
}
"""The scenarios of VirtRigaud's own tests, and the tests that play them here."""


def test_every_scenario_is_played_by_a_test() -> None:
    assert all(each.__name__.startswith("test_") for tests in REFERENCE.values() for each in tests)
