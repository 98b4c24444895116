"""The objects of a Tenant, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import pool, tenant

from holdfast.kinds.rustfs import Tenant
from holdfast.operators.tenant import render, security
from holdfast.operators.tenant.render import Settings

SETTINGS = Settings()


def typed(*pools: dict[str, Any], **more: Any) -> Tenant:
    return msgspec.convert(tenant("media", *pools, **more), Tenant)


def stateful_set(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = typed(*pools, **more)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    return render.stateful_set(made, made.spec.pools[0], namespace="ns", strategy=strategy, settings=SETTINGS)


def pod_spec(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = stateful_set(*pools, **more)["spec"]["template"]["spec"]
    return spec


def container(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    (made,) = pod_spec(*pools, **more)["containers"]
    assert isinstance(made, dict)
    return made


def variables(**more: Any) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(**more)["env"]}


COMMON = {
    "app.kubernetes.io/name": "rustfs",
    "app.kubernetes.io/instance": "media",
    "app.kubernetes.io/managed-by": "rustfs-operator",
    "rustfs.tenant": "media",
}
POOLED = {**COMMON, "rustfs.pool": "pool-0", "app.kubernetes.io/component": "storage"}


# --- Services and the ServiceAccount


def test_the_services_are_those_of_the_store_its_console_and_its_servers() -> None:
    store, console, headless = render.services(typed(), namespace="ns")
    selector = {"rustfs.tenant": "media"}
    assert store == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "media-io", "namespace": "ns", "labels": COMMON},
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [{"name": "http-rustfs", "port": 9000, "targetPort": 9000, "protocol": "TCP"}],
        },
    }
    assert console["metadata"]["name"] == "media-console"
    assert console["spec"]["ports"] == [{"name": "http-console", "port": 9001, "targetPort": 9001, "protocol": "TCP"}]
    assert headless["metadata"]["name"] == "media-hl"
    assert headless["spec"] == {**store["spec"], "clusterIP": "None", "publishNotReadyAddresses": True}


def test_the_account_has_no_token() -> None:
    assert render.account(typed(), namespace="ns") == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "media-sa", "namespace": "ns", "labels": COMMON},
        "automountServiceAccountToken": False,
    }


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ({}, {"serviceAccountName": "media-sa", "automountServiceAccountToken": False}),
        ({"serviceAccountName": "mine"}, {"serviceAccountName": "mine"}),
        ({"serviceAccountName": ""}, {"serviceAccountName": ""}),
    ],
)
def test_pods_use_the_account_that_is_named_or_ours(asked: dict[str, str], held: dict[str, Any]) -> None:
    spec = pod_spec(**asked)
    fields = ("serviceAccountName", "automountServiceAccountToken")
    assert {field: spec[field] for field in fields if field in spec} == held


# --- StatefulSets


def test_the_stateful_set_of_a_pool() -> None:
    made = stateful_set(pool(volumes=2))
    assert made["metadata"]["name"] == "media-pool-0"
    assert made["metadata"]["namespace"] == "ns"
    assert made["metadata"]["labels"] == POOLED
    spec = made["spec"]
    assert spec["replicas"] == 4
    assert spec["serviceName"] == "media-hl"
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["selector"] == {"matchLabels": {"rustfs.tenant": "media", "rustfs.pool": "pool-0"}}
    assert spec["template"]["metadata"] == {"labels": POOLED}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_claims_have_the_labels_of_the_pool_and_of_the_user() -> None:
    persistence = {
        "volumesPerServer": 2,
        "labels": {"backup": "daily", "rustfs.tenant": "mine"},
        "annotations": {"note": "x"},
        "volumeClaimTemplate": {"storageClassName": "fast", "resources": {"requests": {"storage": "2Ti"}}},
    }
    claims = stateful_set(pool(persistence=persistence))["spec"]["volumeClaimTemplates"]
    assert [claim["metadata"]["name"] for claim in claims] == ["vol-0", "vol-1"]
    assert claims[0]["metadata"]["labels"] == {**POOLED, "backup": "daily", "rustfs.tenant": "mine"}
    assert claims[0]["metadata"]["annotations"] == {"note": "x"}
    assert claims[0]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "2Ti"}},
    }


def test_claims_are_of_ten_gibibytes_unless_something_else_is_asked_for() -> None:
    (claim,) = stateful_set()["spec"]["volumeClaimTemplates"]
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


def test_what_is_said_of_a_pool_reaches_its_pods() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    asked = pool(
        nodeSelector={"disk": "nvme"},
        tolerations=[{"key": "storage", "operator": "Exists"}],
        affinity={"nodeAffinity": {}},
        topologySpreadConstraints=[spread],
        resources={"requests": {"cpu": "4"}},
        priorityClassName="high",
    )
    spec = pod_spec(asked, scheduler="mine", priorityClassName="low", imagePullSecret={"name": "pull"})
    assert spec["nodeSelector"] == {"disk": "nvme"}
    assert spec["tolerations"] == [{"key": "storage", "operator": "Exists"}]
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["topologySpreadConstraints"] == [spread]
    assert spec["priorityClassName"] == "high", "the pool's wins over the Tenant's"
    assert spec["schedulerName"] == "mine"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert container(asked)["resources"] == {"requests": {"cpu": "4"}}


def test_what_is_not_asked_for_is_not_said() -> None:
    assert set(pod_spec()) == {
        "serviceAccountName", "automountServiceAccountToken", "containers", "securityContext",
    }  # fmt: skip


def test_annotations_for_simulated_nodes_and_restarts_are_part_of_the_template() -> None:
    marks = {"sim.holdfast.dev/ready-after": "5s", "holdfast.dev/restarted-at": "now", "note": "not passed on"}
    made = stateful_set(annotations=marks)["spec"]["template"]["metadata"]
    assert made["annotations"] == {"sim.holdfast.dev/ready-after": "5s", "holdfast.dev/restarted-at": "now"}


# --- containers


def test_the_container_of_a_server() -> None:
    made = container(pool(volumes=2))
    assert made["name"] == "rustfs"
    assert made["image"] == SETTINGS.image
    assert made["imagePullPolicy"] == "IfNotPresent"
    assert made["ports"] == [
        {"name": "http", "containerPort": 9000, "protocol": "TCP"},
        {"name": "console", "containerPort": 9001, "protocol": "TCP"},
    ]
    health = {"httpGet": {"path": "/health", "port": 9000, "scheme": "HTTP"}}
    assert made["livenessProbe"] == made["startupProbe"] == health
    assert made["readinessProbe"] == {"httpGet": {"path": "/health/ready", "port": 9000, "scheme": "HTTP"}}
    assert made["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert made["volumeMounts"] == [
        {"name": "vol-0", "mountPath": "/data/rustfs0"},
        {"name": "vol-1", "mountPath": "/data/rustfs1"},
    ]


def test_the_environment_has_its_order() -> None:
    spec = {"credsSecret": {"name": "root"}, "rpcSecret": {"name": "rpc", "key": "secret"}}
    env = container(**spec, env=[{"name": "RUST_LOG", "value": "info"}])["env"]
    assert [each["name"] for each in env] == [
        "RUSTFS_VOLUMES", "RUSTFS_ADDRESS", "RUSTFS_CONSOLE_ADDRESS", "RUSTFS_CONSOLE_ENABLE",
        "RUSTFS_ACCESS_KEY", "RUSTFS_SECRET_KEY", "RUSTFS_RPC_SECRET", "RUST_LOG",
    ]  # fmt: skip
    values = variables(**spec)
    assert values["RUSTFS_ADDRESS"] == "0.0.0.0:9000"
    assert values["RUSTFS_CONSOLE_ADDRESS"] == "0.0.0.0:9001"
    assert values["RUSTFS_CONSOLE_ENABLE"] == "true"
    assert values["RUSTFS_ACCESS_KEY"] == {"secretKeyRef": {"name": "root", "key": "accesskey"}}
    assert values["RUSTFS_SECRET_KEY"] == {"secretKeyRef": {"name": "root", "key": "secretkey"}}
    assert values["RUSTFS_RPC_SECRET"] == {"secretKeyRef": {"name": "rpc", "key": "secret"}}


def test_a_user_overrides_ours_in_its_place_but_not_the_rpc_secret() -> None:
    mine = [{"name": "RUSTFS_CONSOLE_ENABLE", "value": "false"}, {"name": "RUSTFS_RPC_SECRET", "value": "plain"}]
    env = container(env=mine, rpcSecret={"name": "rpc", "key": "k"})["env"]
    assert [each["name"] for each in env][3] == "RUSTFS_CONSOLE_ENABLE"
    assert env[3]["value"] == "false"
    assert env[-1] == {"name": "RUSTFS_RPC_SECRET", "valueFrom": {"secretKeyRef": {"name": "rpc", "key": "k"}}}
    assert variables(env=mine)["RUSTFS_RPC_SECRET"] == "plain", "without rpcSecret it is the user's"


@pytest.mark.parametrize(
    ("pools", "volumes"),
    [
        ([pool(servers=1)], "/data/rustfs0"),
        ([pool(servers=1, persistence={"volumesPerServer": 1, "path": "/mnt/"})], "/mnt/rustfs0"),
        (
            [pool(servers=1, volumes=2)],
            "http://media-pool-0-{0...0}.media-hl.ns.svc.cluster.local:9000/data/rustfs{0...1}",
        ),
        (
            [pool(servers=4, volumes=2)],
            "http://media-pool-0-{0...3}.media-hl.ns.svc.cluster.local:9000/data/rustfs{0...1}",
        ),
        (
            [pool("a", 1), pool("b", 2, 4)],
            (
                "http://media-a-{0...0}.media-hl.ns.svc.cluster.local:9000/data/rustfs{0...0} "
                "http://media-b-{0...1}.media-hl.ns.svc.cluster.local:9000/data/rustfs{0...3}"
            ),
        ),
    ],
)
def test_servers_are_told_of_the_volumes_of_all_pools(pools: list[dict[str, Any]], volumes: str) -> None:
    made = typed(*pools)
    env = render.environment(made, namespace="ns", settings=SETTINGS)
    assert env[0] == {"name": "RUSTFS_VOLUMES", "value": volumes}


def test_another_domain_ends_the_names_of_servers() -> None:
    found = render.volumes(typed(), namespace="ns", settings=Settings(cluster_domain="k8s.example"))
    assert found["pool-0"].startswith("http://media-pool-0-{0...3}.media-hl.ns.svc.k8s.example:9000")


@pytest.mark.parametrize(
    ("logging", "mounts", "volumes", "claims"),
    [
        (None, [], [], []),
        ({"mode": "stdout"}, [], [], []),
        ({"mode": "emptydir", "mountPath": "/var/log"}, ["/var/log"], [{"name": "logs", "emptyDir": {}}], []),
        ({"mode": "persistent"}, ["/logs"], [], [("logs", "5Gi")]),
        ({"mode": "persistent", "storageSize": "1Gi", "storageClass": "slow"}, ["/logs"], [], [("logs", "1Gi")]),
    ],
)
def test_logs_go_where_they_are_asked_to(
    logging: dict[str, str] | None, mounts: list[str], volumes: list[Any], claims: list[tuple[str, str]]
) -> None:
    more = {} if logging is None else {"logging": logging}
    assert [each["mountPath"] for each in container(**more)["volumeMounts"] if each["name"] == "logs"] == mounts
    assert pod_spec(**more).get("volumes", []) == volumes
    made = stateful_set(**more)["spec"]["volumeClaimTemplates"][1:]
    assert [(each["metadata"]["name"], each["spec"]["resources"]["requests"]["storage"]) for each in made] == claims
    if logging is not None and "storageClass" in logging:
        assert made[0]["spec"]["storageClassName"] == "slow"


# --- security

POD = {
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "fsGroupChangePolicy": "OnRootMismatch",
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize(
    ("tenant_says", "pool_says", "pod", "inner"),
    [
        ({}, {}, POD, CONTAINER),
        ({"securityContext": {"runAsUser": 5}}, {}, {**POD, "runAsUser": 5}, CONTAINER),
        (
            {"securityContext": {"runAsUser": 5, "fsGroup": 6}},
            {"securityContext": {"runAsUser": 7}},
            {**POD, "runAsUser": 7, "fsGroup": 6},
            CONTAINER,
        ),
        ({"securityContext": {}}, {}, POD, CONTAINER),
        ({"securityContext": {}, "containerSecurityContext": {}}, {}, {}, {}),
        (
            {"securityContext": {"runAsUser": 5}},
            {"securityContext": {}, "containerSecurityContext": {}},
            {},
            {},
        ),
        (
            {"securityContext": {}, "containerSecurityContext": {}},
            {"securityContext": {"fsGroup": 6}},
            {"fsGroup": 6},
            {},
        ),
        ({"securityContext": {"runAsUser": 0}}, {}, {**POD, "runAsUser": 0, "runAsNonRoot": False}, CONTAINER),
        (
            {"containerSecurityContext": {"runAsUser": 0}},
            {},
            POD,
            {**CONTAINER, "runAsUser": 0, "runAsNonRoot": False},
        ),
        (
            {"securityContext": {"runAsNonRoot": True}, "containerSecurityContext": {"runAsUser": 0}},
            {},
            POD,
            {**CONTAINER, "runAsUser": 0},
        ),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}},
            {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
            {**POD, "seccompProfile": {"type": "Unconfined"}},
            CONTAINER,
        ),
        (
            {"containerSecurityContext": {"readOnlyRootFilesystem": True}},
            {},
            POD,
            {**CONTAINER, "readOnlyRootFilesystem": True},
        ),
    ],
)
def test_contexts_are_merged_from_ours_the_tenants_and_the_pools(
    tenant_says: dict[str, Any], pool_says: dict[str, Any], pod: dict[str, Any], inner: dict[str, Any]
) -> None:
    asked = pool(**pool_says)
    assert pod_spec(asked, **tenant_says).get("securityContext", {}) == pod
    assert container(asked, **tenant_says).get("securityContext", {}) == inner


@pytest.mark.parametrize(
    ("contexts", "problem"),
    [
        (security.Contexts({"runAsUser": 0, "runAsNonRoot": True}, {}), True),
        (security.Contexts({"runAsUser": 1, "runAsNonRoot": True}, {"runAsUser": 0}), True),
        (security.Contexts({"runAsUser": 0, "runAsNonRoot": True}, {"runAsNonRoot": False}), False),
        (security.Contexts({"seccompProfile": {"type": "Localhost"}}, {}), True),
        (security.Contexts({"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}}, {}), True),
        (security.Contexts({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}, {}), False),
    ],
)
def test_contexts_that_contradict_themselves_are_found(contexts: security.Contexts, problem: bool) -> None:
    assert bool(list(security.problems(contexts))) is problem


@pytest.mark.parametrize("name", ["seccompProfile", "appArmorProfile"])
@pytest.mark.parametrize(
    ("profile", "wrong"),
    [
        ({"type": "RuntimeDefault"}, ""),
        ({"type": "Unconfined"}, ""),
        ({"type": "Localhost", "localhostProfile": "profiles/store.json"}, ""),
        ({"type": "runtime/default"}, ".type is 'runtime/default'; write RuntimeDefault, Localhost or Unconfined"),
        ({}, ".type is None; write RuntimeDefault, Localhost or Unconfined"),
        ("RuntimeDefault", " is not an object; write {type: RuntimeDefault}"),
        ({"type": "Localhost"}, ".localhostProfile is missing"),
        ({"type": "Localhost", "localhostProfile": " "}, ".localhostProfile is missing"),
        ({"type": "Localhost", "localhostProfile": 7}, ".localhostProfile is missing"),
        ({"type": "Unconfined", "localhostProfile": "x"}, ".localhostProfile is for type Localhost"),
    ],
)
def test_a_seccomp_or_apparmor_profile_that_there_cannot_be_is_named_by_its_path(
    name: str, profile: Any, wrong: str
) -> None:
    found = list(security.problems(security.Contexts({}, {name: profile})))
    assert len(found) == bool(wrong)
    assert all(each.startswith(f"containerSecurityContext.{name}{wrong}") for each in found)


@pytest.mark.parametrize(
    ("name", "local", "problem"),
    [
        ("seccompProfile", "/etc/store.json", True),
        ("seccompProfile", "a/../../b", True),
        ("seccompProfile", "a/..b", False),
        ("appArmorProfile", " store", True),
        ("appArmorProfile", "/usr/sbin/store", False),
        ("appArmorProfile", "x" * 4096, True),
    ],
)
def test_a_profile_on_the_nodes_is_named_as_the_api_server_wants_it(name: str, local: str, problem: bool) -> None:
    contexts = security.Contexts({}, {name: {"type": "Localhost", "localhostProfile": local}})
    assert bool(list(security.problems(contexts))) is problem


DEFAULT = security.Contexts({"seccompProfile": {"type": "RuntimeDefault"}}, {})
FREE = security.Contexts({"seccompProfile": {"type": "Unconfined"}}, {})


@pytest.mark.parametrize(
    ("image", "contexts", "acknowledged", "runs"),
    [
        ("rustfs/rustfs:1.0.0-beta.10", DEFAULT, "", True),
        ("docker.io/rustfs/rustfs:1.0.0-beta.9", DEFAULT, "", True),
        ("rustfs/rustfs:1.0.0-rc.1", DEFAULT, "", True),
        ("rustfs/rustfs:1.0.0", DEFAULT, "", True),
        ("rustfs/rustfs:1.0.0-beta.8", DEFAULT, "", False),
        ("rustfs/rustfs:1.0.0-alpha.90", DEFAULT, "", False),
        ("rustfs/rustfs:1.0.0-alpha.90", FREE, "", True),
        ("rustfs/rustfs:1.0.0-alpha.90", security.Contexts({}, {}), "", False),
        ("ghcr.io/rustfs/rustfs:1.0.0-beta.9", DEFAULT, "", True),
        ("quay.io/rustfs/rustfs:v1.0.0", DEFAULT, "", True),
        ("registry-1.docker.io/rustfs/rustfs:1.0.0", DEFAULT, "", True),
        ("ghcr.io/mine/rustfs:1.0.0", DEFAULT, "", False),
        ("rustfs/rustfs:1.0.0-beta.10-glibc", DEFAULT, "", True),
        ("quay.io/rustfs/rustfs:1.0.0-glibc", DEFAULT, "", True),
        ("rustfs/rustfs:1.0.0-beta.10-mine", DEFAULT, "", False),
        ("rustfs/rustfs:1.0.0-beta.10-mine", DEFAULT, "rustfs/rustfs:1.0.0-beta.10-mine", True),
        ("rustfs/rustfs:0.9.0", DEFAULT, "", False),
        # No acknowledgement lets through a release that is known to need io_uring.
        ("rustfs/rustfs:1.0.0-alpha.90", DEFAULT, "rustfs/rustfs:1.0.0-alpha.90", False),
        ("quay.io/rustfs/rustfs:v1.0.0-beta.8", DEFAULT, "quay.io/rustfs/rustfs:v1.0.0-beta.8", False),
        ("rustfs/rustfs:1.0.0-beta.8-glibc", DEFAULT, "rustfs/rustfs:1.0.0-beta.8-glibc", False),
        ("rustfs/rustfs:1.0.0-beta.8@sha256:00", DEFAULT, "rustfs/rustfs:1.0.0-beta.8@sha256:00", True),
        ("rustfs/rustfs", DEFAULT, "", False),
        ("rustfs/rustfs:latest", DEFAULT, "", False),
        ("rustfs/rustfs:1.0.0@sha256:00", DEFAULT, "", False),
        ("registry:5000/mine/rustfs", DEFAULT, "", False),
        ("registry:5000/mine/rustfs:1.0.0", DEFAULT, "", False),
        ("registry:5000/mine/rustfs:1.0.0", DEFAULT, "registry:5000/mine/rustfs:1.0.0", True),
        ("registry:5000/mine/rustfs:1.0.0", DEFAULT, "registry:5000/mine/rustfs:1.0.1", False),
    ],
)
def test_images_are_run_under_the_default_profile_only_if_they_are_known_to_stand_it(
    image: str, contexts: security.Contexts, acknowledged: str, runs: bool
) -> None:
    assert (security.image_problem(image, contexts, acknowledged=acknowledged) is None) is runs
