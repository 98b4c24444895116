"""First-boot data from the spec and from Secrets, maintenance windows, and names on providers."""

from __future__ import annotations

import email
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.operators.virtualmachine.stories import MACHINES, machine

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import VirtualMachine
from holdfast.kinds.virtrigaud.machines import MaintenanceWindow, ReconfigurePolicy
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines import guest_data
from holdfast.operators.virtualmachine.machines.observe import World
from holdfast.operators.virtualmachine.machines.windows import may_restart, next_opening
from holdfast.operators.virtualmachine.secrets import Sealed


def world(secrets: dict[str, dict[str, bytes]] | None = None, **spec: Any) -> World:
    manifest = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, **machine(**spec)}
    manifest["metadata"] |= {"namespace": "default", "uid": "12345678-abcd"}
    obj = Object.of(MACHINES, manifest)
    sealed = {name: Sealed(data) for name, data in (secrets or {}).items()}
    return World(object=obj, machine=obj.decode(VirtualMachine), secrets=sealed)


@pytest.mark.parametrize("key", ["userdata", "user-data", "cloud-init", "cloud-config"])
def test_user_data_is_found_under_each_of_four_keys(key: str) -> None:
    given = world({"s": {key: b"#cloud-config\n"}}, userData={"cloudInit": {"secretRef": {"name": "s"}}})
    assert guest_data.user_data(given) == b"#cloud-config\n"


def test_a_secret_without_any_of_the_keys_is_refused_with_the_path() -> None:
    given = world({"s": {"other": b"x"}}, userData={"cloudInit": {"secretRef": {"name": "s"}}})
    with pytest.raises(guest_data.MissingKey) as refused:
        guest_data.user_data(given)
    assert str(refused.value).startswith(
        "spec.userData.cloudInit.secretRef: the Secret s has none of the keys userdata"
    )


def parts_of(document: bytes) -> list[email.message.Message]:
    whole, *parts = email.message_from_bytes(document).walk()
    assert whole.is_multipart()
    return parts


def test_inline_data_and_a_secret_are_merged_into_one_document() -> None:
    user = {"cloudInit": {"inline": "#cloud-config\na: 1\n", "secretRef": {"name": "s"}}}
    merged = guest_data.user_data(world({"s": {"userdata": b"#!/bin/sh\necho\n"}}, userData=user))
    found = [(each.get_content_type(), each.get_payload()) for each in parts_of(merged)]
    assert found == [("text/cloud-config", "#cloud-config\na: 1\n"), ("text/x-shellscript", "#!/bin/sh\necho\n")]


@pytest.mark.parametrize(("parts", "kinds"), [(0, []), (1, []), (3, ["text/plain"] * 3)])
def test_none_and_one_part_are_themselves_and_more_are_a_multipart_document(parts: int, kinds: list[str]) -> None:
    merged = guest_data.merged([b"x"] * parts)
    if parts < 2:
        assert merged == b"x" * parts
    else:
        assert [each.get_content_type() for each in parts_of(merged)] == kinds


def test_meta_data_is_joined_and_names_the_guest_where_there_is_none() -> None:
    assert guest_data.meta_data(world()) == b'instance-id: "12345678-abcd"\nlocal-hostname: "web"\n'
    meta = {"cloudInit": {"inline": "a: 1", "secretRef": {"name": "s"}}}
    assert guest_data.meta_data(world({"s": {"meta_data": b"b: 2\n"}}, metaData=meta)) == b"a: 1\nb: 2\n"


def test_no_user_data_is_no_data() -> None:
    assert guest_data.user_data(world()) == b""
    assert guest_data.user_data(world(userData={"cloudInit": {}})) == b""


def test_a_name_on_a_provider_ends_with_the_identity_of_its_machine_and_fits() -> None:
    assert names.machine("web", "12345678-abcd") == "web-12345678"
    assert len(names.machine("w" * 253, "12345678-abcd")) == 63


def policy(restart: Any, *windows: dict[str, Any]) -> ReconfigurePolicy:
    return ReconfigurePolicy(restart=restart, windows=tuple(MaintenanceWindow(**each) for each in windows))


NIGHT = {"start": "23:00", "duration": "2h"}


@pytest.mark.parametrize(
    ("given", "at", "allowed", "opens"),
    [
        (None, "2030-01-01T12:00", False, None),
        (policy("Never", NIGHT), "2030-01-01T23:30", False, None),
        (policy("Always"), "2030-01-01T12:00", True, None),
        (policy("InWindow", NIGHT), "2030-01-01T22:59", False, "2030-01-01T23:00"),
        (policy("InWindow", NIGHT), "2030-01-01T23:00", True, "2030-01-02T23:00"),
        (policy("InWindow", NIGHT), "2030-01-02T00:59", True, "2030-01-02T23:00"),
        (policy("InWindow", NIGHT), "2030-01-02T01:00", False, "2030-01-02T23:00"),
        # The first of January 2030 is a Tuesday.
        (policy("InWindow", NIGHT | {"days": ("Sat",)}), "2030-01-01T23:30", False, "2030-01-05T23:00"),
        (policy("InWindow", NIGHT | {"days": ("Sat",)}), "2030-01-06T00:30", True, "2030-01-12T23:00"),
    ],
)
def test_a_restart_is_allowed_within_windows(
    given: ReconfigurePolicy | None, at: str, allowed: bool, opens: str | None
) -> None:
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert may_restart(given, now) is allowed
    assert next_opening(given, now) == (None if opens is None else datetime.fromisoformat(opens).replace(tzinfo=UTC))
