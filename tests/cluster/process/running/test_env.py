"""Variables of containers: expansion, references and fields."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, PODS, SECRETS
from holdfast.cluster.process.lifecycle.pods import Pod
from holdfast.cluster.process.running.env import Refused, Surroundings, expand, variables
from holdfast.cluster.process.storage.directories import Mounted, rewriting
from holdfast.meta.quantities import Quantity
from holdfast.testing.snapshots import Snapshot

AROUND = Surroundings(
    ip="127.70.0.9", host_ip="127.0.0.1", capacity={"cpu": Quantity.parse("4"), "memory": Quantity.parse("8Gi")}
)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("$(A)", "one"),
        ("x$(A)y$(B)z", "xoneytwoz"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$A", "$A"),
        ("$", "$"),
        ("$$", "$"),
        ("a$", "a$"),
        ("$(A", "$(A"),
        ("$(A$(B)", "$(A$(B)"),
        ("$($$", "$($"),
        ("$()", "$()"),
        ("$(A)$(A)", "oneone"),
        ("${A}", "${A}"),
        ("$(REF)", "$(A)"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "B": "two", "REF": "$(A)"}) == expanded


def pod(container: Mapping[str, Any], **metadata: Any) -> Pod:
    wire = {
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1", **metadata},
        "spec": {"nodeName": "local", "containers": [{"name": "main", **container}, {"name": "other"}]},
    }
    return Pod.of(Object.of(PODS, wire))


def secret(name: str, **data: str) -> tuple[Any, dict[str, Any]]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return SECRETS, {"metadata": {"name": name, "namespace": "shop"}, "data": encoded}


def config(name: str, **data: str) -> tuple[Any, dict[str, Any]]:
    return CONFIG_MAPS, {"metadata": {"name": name, "namespace": "shop"}, "data": data}


WORLD = Snapshot([config("settings", level="debug", **{"bad=key": "x"}), secret("login", password="s3cret")])


def env_of(container: Mapping[str, Any], given: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, str]:
    of = pod(container, **metadata)
    return variables(of, of.spec.containers[0], lookup=WORLD.get, around=AROUND, given=given or {})


def one(**source: Any) -> str:
    metadata = {"labels": {"app": "web"}, "annotations": {"note": "hi"}}
    return env_of({"env": [{"name": "X", "valueFrom": source}]}, **metadata)["X"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "hi"),
        ("metadata.labels", 'app="web"'),
        ("spec.nodeName", "local"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.70.0.9"),
        ("status.podIPs", "127.70.0.9"),
        ("status.hostIP", "127.0.0.1"),
        ("status.hostIPs", "127.0.0.1"),
    ],
)
def test_a_variable_can_be_a_field_of_the_pod(path: str, value: str) -> None:
    assert one(fieldRef={"fieldPath": path}) == value


def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refused, match=r"spec\.color.*metadata\.name"):
        one(fieldRef={"fieldPath": "spec.color"})


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "1", "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", "0", "2"),
        ("limits.memory", "1Mi", "512"),
        ("requests.memory", "1Mi", "512"),
        ("requests.cpu", "1m", "250"),
        ("limits.ephemeral-storage", "1", "0"),
    ],
)
def test_amounts_are_counted_in_units_of_the_divisor_and_rounded_up(resource: str, divisor: str, value: str) -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "512Mi"}, "requests": {"cpu": "250m"}}
    source = {"resourceFieldRef": {"resource": resource, "divisor": divisor}}
    assert env_of({"resources": resources, "env": [{"name": "X", "valueFrom": source}]})["X"] == value


def test_a_container_without_a_limit_is_told_what_the_node_has() -> None:
    assert one(resourceFieldRef={"resource": "limits.cpu", "containerName": "other"}) == "4"


def test_values_come_from_config_maps_and_secrets() -> None:
    assert one(configMapKeyRef={"name": "settings", "key": "level"}) == "debug"
    assert one(secretKeyRef={"name": "login", "key": "password"}) == "s3cret"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
        ({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "settings", "key": "k"}}, "couldn't find key k in ConfigMap shop/settings"),
        ({"secretKeyRef": {"name": "login", "key": "k"}}, "couldn't find key k in Secret shop/login"),
        ({}, "valueFrom names no source"),
    ],
)
def test_what_is_missing_is_refused_by_name(source: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        one(**source)
    assert refused.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize("name", ["none", "settings"])
def test_what_may_be_missing_leaves_its_variable_out(name: str) -> None:
    reference = {"name": name, "key": "k", "optional": True}
    assert env_of({"env": [{"name": "X", "valueFrom": {"configMapKeyRef": reference}}]}) == {}


def test_whole_objects_come_first_with_their_prefix_and_single_variables_override_them() -> None:
    container = {
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"prefix": "DB_", "secretRef": {"name": "login"}},
            {"configMapRef": {"name": "none", "optional": True}},
        ],
        "env": [{"name": "level", "value": "info"}, {"name": "URL", "value": "x:$(DB_password)"}],
    }
    assert env_of(container) == {"level": "info", "DB_password": "s3cret", "URL": "x:s3cret"}


def test_a_variable_sees_those_above_it_and_not_those_below() -> None:
    container = {"env": [{"name": "A", "value": "$(B)-$(GIVEN)"}, {"name": "B", "value": "b"}]}
    assert env_of(container, {"GIVEN": "g"}) == {"GIVEN": "g", "A": "$(B)-g", "B": "b"}


def test_a_value_given_wins_over_its_source() -> None:
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    assert env_of({"env": [{"name": "A", "value": "v", "valueFrom": source}]}) == {"A": "v"}


# --- paths


MOUNTS = [Mounted("/data", Path("/n/v1")), Mounted("/data/logs/", Path("/n/v2")), Mounted("/etc/app", Path("/n/v3"))]


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("/data", "/n/v1"),
        ("/data/", "/n/v1/"),
        ("/data/a.db", "/n/v1/a.db"),
        ("/data/logs/x", "/n/v2/x"),
        ("--dir=/data", "--dir=/n/v1"),
        ("cat /data/a >/data/b", "cat /n/v1/a >/n/v1/b"),
        ("/etc/app:/data", "/n/v3:/n/v1"),
        ("'/data'", "'/n/v1'"),
        ("/database", "/database"),
        ("/data.txt", "/data.txt"),
        ("/data-2", "/data-2"),
        ("/srv/data", "/srv/data"),
        ("$(ROOT)/data", "$(ROOT)/data"),
        ("${ROOT}/data", "${ROOT}/data"),
        ("$ROOT/data", "$ROOT/data"),
        ("../data", "../data"),
        ("http://host/data", "http://host/data"),
    ],
)
def test_paths_of_mounts_are_replaced_where_they_stand_by_themselves(text: str, placed: str) -> None:
    assert rewriting(MOUNTS)(text) == placed
