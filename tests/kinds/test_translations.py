"""Manifests of Cloudless are translated to Workloads that mean the same, or refused with the path and the reason."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kinds.documents import plain
from tests.places import ROOT

from holdfast import kinds
from holdfast.cli.manifests.documents import read

EXAMPLE = ROOT / "examples" / "cloudless" / "shop.yaml"
UPSTREAM = sorted((ROOT.parent / "shared" / "manifests" / "cloudless").glob("*.yaml"))


def manifest(api_version: str = "cloudless/v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": "Workload",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"image": "web:1", **spec},
    }


def translated(**spec: Any) -> dict[str, Any]:
    """The spec of the Workload, without its image."""
    translation = kinds.translate(manifest(**spec))
    assert translation is not None
    assert translation.document["apiVersion"] == "cloudless.io/v1"
    kinds.decode(translation.document)
    return {field: value for field, value in translation.document["spec"].items() if field != "image"}


def refused(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(kinds.DocumentError) as error:
        kinds.translate(document)
    return {problem.path: problem.message for problem in error.value.problems}


def test_the_names_of_fields_are_translated_and_the_names_that_users_choose_are_not() -> None:
    assert translated(
        image_pull_secrets=["registry"],
        env={"log_level": "info"},
        ports=[{"container_port": 80, "host_port": 0}],
        resources={"requests": {"cpu_millicores": 500, "ephemeral_storage": "1Gi"}},
        placement={
            "node_selector": {"disk_type": "ssd"},
            "tolerations": [{"key": "dedicated_to", "toleration_seconds": 5}],
        },
        rollout={"strategy": "BLUE_GREEN", "min_available": 2, "pause_duration": "10s"},
    ) == {
        "imagePullSecrets": ["registry"],
        "env": {"log_level": "info"},
        "ports": [{"containerPort": 80, "hostPort": 0}],
        "resources": {"requests": {"cpuMillicores": 500, "ephemeral-storage": "1Gi"}},
        "placement": {
            "nodeSelector": {"disk_type": "ssd"},
            "tolerations": [{"key": "dedicated_to", "tolerationSeconds": 5}],
        },
        "rollout": {"strategy": "BLUE_GREEN", "minAvailable": 2, "pauseDuration": "10s"},
    }


FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a restart policy in a word": ({"restart_policy": "Always"}, {"restartPolicy": {"policy": "Always"}}),
    "probes in seconds": (
        {"liveness_probe": {"http_get": {"port": 80}, "initial_delay_seconds": 10, "timeout_seconds": 2}},
        {"livenessProbe": {"http": {"port": 80}, "initialDelay": "10s", "timeout": "2s"}},
    ),
    "probes of ports": (
        {"readiness_probe": {"tcp_socket": {"port": 80}, "failure_threshold": 2}},
        {"readinessProbe": {"tcp": {"port": 80}, "failureThreshold": 2}},
    ),
    "amounts by resource": (
        {"resources": {"cpu": {"min": "100m", "max": "500m"}, "storage": {"min": "1Gi"}}},
        {"resources": {"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}, "limits": {"cpu": "500m"}}},
    ),
    "variables from Secrets": (
        {"secret_env": [{"secret_name": "db", "namespace": "shop", "key_to_env": {"pw": "PASSWORD"}}]},
        {"envFrom": [{"secretRef": {"name": "db"}, "keys": {"PASSWORD": "pw"}}]},
    ),
    "all variables of a Secret, beside others": (
        {"env_from": [{"config_map_ref": {"name": "c"}}], "secret_env": [{"secret_name": "db"}]},
        {"envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "db"}}]},
    ),
    "files from Secrets": (
        {"secret_volumes": [{"secret_name": "tls", "mount_path": "/tls", "mode": "0400"}]},
        {"volumes": [{"name": "tls", "source": "secret", "readOnly": True, "mountPath": "/tls", "defaultMode": 0o400}]},
    ),
    "a Secret whose name is taken by a volume": (
        {
            "volumes": [{"name": "tls", "source": "emptyDir", "mount_path": "/a"}],
            "secret_volumes": [{"secret_name": "tls", "mount_path": "/b"}],
        },
        {
            "volumes": [
                {"name": "tls", "source": "emptyDir", "mountPath": "/a"},
                {
                    "name": "tls-2",
                    "source": "secret",
                    "readOnly": True,
                    "mountPath": "/b",
                    "options": {"name": "tls"},
                },
            ]
        },
    ),
    "volumes by type": (
        {"volumes": [{"name": "conf", "type": "configMap", "source": "web-conf", "mount_path": "/conf"}]},
        {"volumes": [{"name": "conf", "source": "configMap", "options": {"name": "web-conf"}, "mountPath": "/conf"}]},
    ),
    "affinities by label": (
        {"placement": {"affinity": {"node_labels": {"z": "a"}}, "anti_affinity": {"workload_labels": {"app": "web"}}}},
        {
            "placement": {
                "affinity": [{"type": "Node", "matchLabels": {"z": "a"}}],
                "antiAffinity": [{"type": "Workload", "matchLabels": {"app": "web"}}],
            }
        },
    ),
    "topologies in a word": (
        {"placement": {"affinity": [{"type": "NODE", "match_labels": {"a": "b"}, "topology_key": "zone"}]}},
        {
            "placement": {
                "affinity": [{"type": "NODE", "matchLabels": {"a": "b"}, "topologyKey": "topology.kubernetes.io/zone"}]
            }
        },
    ),
    "security settings": (
        {
            "security_context": {
                "run_as_non_root": True,
                "run_as_user": 7,
                "host_network": False,
                "capabilities_drop": ["ALL"],
                "capabilities_add": ["CHOWN"],
                "runtime_class_name": "kata",
                "linux": {
                    "seccomp_profile": {"type": "RuntimeDefault"},
                    "apparmor_profile": {"type": "Localhost", "localhost_profile": "web"},
                    "selinux_options": {"level": "s0"},
                    "supplemental_groups": [5],
                    "fs_group": 7,
                    "sysctls": {"net.ipv4.ip_unprivileged_port_start": "80"},
                },
            }
        },
        {
            "runtimeClassName": "kata",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 7,
                "capabilities": {"add": ["CHOWN"], "drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "web"},
                "seLinuxOptions": {"level": "s0"},
                "supplementalGroups": [5],
                "fsGroup": 7,
                "sysctls": {"net.ipv4.ip_unprivileged_port_start": "80"},
            },
        },
    ),
    "the runtime that every cluster has": (
        {"security_context": {"privileged": False, "runtime_class_name": "runc"}},
        {"securityContext": {"privileged": False}},
    ),
    "limits that are not set": ({"rollout": {"max_surge": 0, "max_unavailable": 0}}, {"rollout": {}}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_cloudless_is_translated(form: str) -> None:
    given, expected = FORMS[form]
    assert translated(**given) == expected


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "spec.security_context.host_network": (
        {"security_context": {"host_network": True}},
        "replicas cannot share the network of their node",
    ),
    "spec.security_context.linux.seccomp_profile.localhost_profile": (
        {"security_context": {"linux": {"seccomp_profile": {"type": "Localhost", "localhost_profile": "/a.json"}}}},
        "is an absolute path",
    ),
    "spec.secret_env[0].namespace": (
        {"secret_env": [{"secret_name": "db", "namespace": "other"}]},
        "pods cannot use a Secret of another namespace, and the Workload is in shop",
    ),
    "spec.secret_volumes[0]": ({"secret_volumes": [{"mount_path": "/a"}]}, "secret_name"),
    "spec.resources.requests.iops_class": ({"resources": {"requests": {"iops_class": "high"}}}, "I/O operations"),
    "spec.health_check": ({"health_check": {"http_get": {"port": 80}}}, "does not say what happens"),
    "spec.resources.gpu": ({"resources": {"gpu": 1}}, "neither requests nor limits"),
    "spec.rollout.max_surge": ({"rollout": {"max_surge": 1, "maxSurge": 2}}, "unknown field"),
    "spec.liveness_probe.http.prt": ({"liveness_probe": {"http": {"port": 80, "prt": 1}}}, "unknown field"),
    "spec.ports[0].container_port": ({"ports": [{"container_port": "http"}]}, "must be an integer"),
    "spec.security_context.linux.fs_group": ({"security_context": {"linux": {"fs_group": "a"}}}, "must be an integer"),
    "spec.security_context.linux.capset": ({"security_context": {"linux": {"capset": 1}}}, "unknown field"),
    "spec.secret_env[0].prefix": (
        {"secret_env": [{"secret_name": "db", "key_to_env": {"pw": "PASSWORD"}, "prefix": 1}]},
        "unknown field",
    ),
}


@pytest.mark.parametrize("path", REFUSALS)
def test_what_has_no_counterpart_is_refused_at_the_path_that_its_author_wrote(path: str) -> None:
    given, reason = REFUSALS[path]
    ((at, message),) = refused(manifest(**given)).items()
    assert at == path
    assert reason in message


def test_another_kind_of_cloudless_is_refused() -> None:
    assert "'Policy' is not a kind" in refused(manifest() | {"kind": "Policy"})["kind"]


def test_an_audience_is_left_out_with_a_note() -> None:
    translation = kinds.translate(manifest(secret_env=[{"secret_name": "db", "audience": "web"}]))
    assert translation is not None
    assert [note.path for note in translation.notes] == ["spec.secret_env[0].audience"]


def test_a_workload_that_is_written_as_its_kind_declares_needs_no_translation() -> None:
    assert kinds.translate(manifest("cloudless.io/v1", readinessProbe={"tcp": {"port": 80}})) is None
    assert kinds.translate({"apiVersion": "v1", "kind": "Secret"}) is None
    assert kinds.translate("text") is None


def test_snake_case_is_translated_in_the_version_of_the_kind_too() -> None:
    translation = kinds.translate(manifest("cloudless.io/v1", restart_policy="Always"))
    assert translation is not None
    assert translation.document["spec"]["restartPolicy"] == {"policy": "Always"}


@pytest.mark.parametrize("path", [EXAMPLE, *UPSTREAM], ids=lambda path: path.name)
def test_a_manifest_of_cloudless_becomes_a_workload(path: Any) -> None:
    for document in read(str(path)):
        kinds.decode(document.translated().value)


def mutations(value: Any) -> Iterator[Any]:
    """The value with one part of it replaced by something else, for each part."""
    yield from (None, "", "text", 0, -1, True, [], {}, [None], [{}], {"a": {}}, {"secret_name": []})
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: each for name, each in value.items() if name != key}
            yield from (value | {key: changed} for changed in mutations(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in mutations(inner))


def test_no_document_raises_anything_but_a_refusal() -> None:
    whole = manifest(**{field: value for given, _ in FORMS.values() for field, value in given.items()})
    for document in mutations(copy.deepcopy(whole)):
        with contextlib.suppress(kinds.DocumentError):
            kinds.translate(document)


def test_translating_changes_nothing_in_the_given_document() -> None:
    given = manifest(**FORMS["security settings"][0], **FORMS["variables from Secrets"][0])
    before = copy.deepcopy(given)
    kinds.translate(given)
    assert plain(given) == plain(before)
