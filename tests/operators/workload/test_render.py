"""What a replica is made from, field by field, in Kubernetes' terms."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.workload.stages import operated, reaches
from tests.operators.workload.stages import workload as workload_of
from tests.operators.workload.worlds import template, web

from holdfast import kinds
from holdfast.client.resources import SECRETS, SERVICE_ACCOUNTS
from holdfast.kinds.cloudless import Workload
from holdfast.meta import names
from holdfast.operators.workload import render
from holdfast.operators.workload.containers import references
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster

GPU = "nvidia.com/gpu"
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def rendered(**spec: Any) -> dict[str, Any]:
    return render.pod(web(**spec), template("web:1", **spec))


def container(**spec: Any) -> dict[str, Any]:
    (made,) = rendered(**spec)["spec"]["containers"]
    assert isinstance(made, dict)
    return made


def test_the_least_replica() -> None:
    made = rendered()
    name = template("web:1").revision
    assert made["spec"] == {"containers": [{"name": "app", "image": "web:1"}]}
    assert made["metadata"] == {
        "generateName": f"web-{name}-",
        "namespace": "default",
        "labels": {"cloudless.io/workload": "web", "cloudless.io/revision": name},
        "ownerReferences": [
            {
                "apiVersion": "cloudless.io/v1",
                "kind": "Workload",
                "name": "web",
                "uid": "uid-web",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({"imagePullPolicy": "Always"}, "imagePullPolicy", "Always"),
        ({"command": ["/app"]}, "command", ["/app"]),
        ({"args": ["--fast"]}, "args", ["--fast"]),
        ({"env": {"B": "2", "A": "1"}}, "env", [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, "envFrom", [{"configMapRef": {"name": "c"}}]),
        (
            {"envFrom": [{"secretRef": {"name": "s", "optional": True}, "prefix": "DB_"}]},
            "envFrom",
            [{"secretRef": {"name": "s", "optional": True}, "prefix": "DB_"}],
        ),
        (
            {"env": {"A": "1"}, "envFrom": [{"configMapRef": {"name": "c"}, "keys": {"LEVEL": "log.level"}}]},
            "env",
            [
                {"name": "A", "value": "1"},
                {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "log.level"}}},
            ],
        ),
        (
            {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "DB_", "keys": {"PASSWORD": "pw"}}]},
            "env",
            [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "pw"}}}],
        ),
        (
            {"ports": [{"containerPort": 80}, {"name": "dns", "containerPort": 53, "hostPort": 53, "protocol": "UDP"}]},
            "ports",
            [
                {"containerPort": 80, "protocol": "TCP"},
                {"containerPort": 53, "protocol": "UDP", "name": "dns", "hostPort": 53},
            ],
        ),
        ({"ports": [{"containerPort": 80, "hostPort": 0}]}, "ports", [{"containerPort": 80, "protocol": "TCP"}]),
    ],
)
def test_fields_of_the_container(spec: dict[str, Any], field: str, value: Any) -> None:
    assert container(**spec)[field] == value


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        (
            {"cpuMillicores": 500, "memoryBytes": 1024, "storageBytes": 2048},
            {"cpuMillicores": 2000},
            {
                "requests": {"cpu": "500m", "memory": "1024", "ephemeral-storage": "2048"},
                "limits": {"cpu": "2000m"},
            },
        ),
        (
            {"cpu": "0.5", "memory": "1Gi", "ephemeral-storage": "5Gi"},
            {"memory": "2Gi"},
            {
                "requests": {"cpu": "0.5", "memory": "1Gi", "ephemeral-storage": "5Gi"},
                "limits": {"memory": "2Gi"},
            },
        ),
        ({"gpuCount": 2}, None, {"requests": {GPU: "2"}, "limits": {GPU: "2"}}),
        ({"gpu": "1"}, {"gpu": "1"}, {"requests": {GPU: "1"}, "limits": {GPU: "1"}}),
        ({"extended": {"acme.io/fpga": 3}}, {}, {"requests": {"acme.io/fpga": "3"}, "limits": {"acme.io/fpga": "3"}}),
        (None, {"cpu": 2}, {"limits": {"cpu": "2"}}),
    ],
)
def test_resources_in_either_unit(
    requests: dict[str, Any] | None, limits: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    given = {name: value for name, value in (("requests", requests), ("limits", limits)) if value is not None}
    assert container(resources=given)["resources"] == expected


def test_bandwidth_is_what_network_plugins_read() -> None:
    made = rendered(resources={"requests": {"bandwidthBps": 1000}, "limits": {"bandwidthBps": 2000}})
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/ingress-bandwidth": "2000",
        "kubernetes.io/egress-bandwidth": "2000",
    }
    assert "resources" not in made["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("volume", "source", "mount"),
    [
        ({"source": "emptyDir"}, {"emptyDir": {}}, {}),
        (
            {"source": "emptyDir", "options": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {},
        ),
        ({"source": "configMap"}, {"configMap": {"name": "data"}}, {}),
        ({"source": "configMap", "options": {"name": "other"}}, {"configMap": {"name": "other"}}, {}),
        ({"source": "secret", "readOnly": True}, {"secret": {"secretName": "data"}}, {"readOnly": True}),
        ({"source": "hostPath", "options": {"path": "/srv"}}, {"hostPath": {"path": "/srv"}}, {}),
        (
            {"source": "persistentVolumeClaim", "options": {"name": "claim", "subPath": "a"}},
            {"persistentVolumeClaim": {"claimName": "claim"}},
            {"subPath": "a"},
        ),
    ],
)
def test_volumes(volume: dict[str, Any], source: dict[str, Any], mount: dict[str, Any]) -> None:
    made = rendered(volumes=[{"name": "data", "mountPath": "/data", **volume}])["spec"]
    assert made["volumes"] == [{"name": "data", **source}]
    assert made["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data", **mount}]


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ({"http": {"port": 80}}, {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}),
        (
            {"http": {"path": "/up", "port": "web", "scheme": "HTTPS", "headers": [{"name": "X", "value": "1"}]}},
            {
                "httpGet": {
                    "path": "/up",
                    "port": "web",
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "X", "value": "1"}],
                }
            },
        ),
        ({"tcp": {"port": 80}}, {"tcpSocket": {"port": 80}}),
        ({"grpc": {"port": 90}}, {"grpc": {"port": 90}}),
        ({"grpc": {"port": 90, "service": "s"}}, {"grpc": {"port": 90, "service": "s"}}),
        ({"exec": {"command": ["true"]}}, {"exec": {"command": ["true"]}}),
        (
            {"tcp": {"port": 80}, "initialDelay": "1m30s", "period": "10s", "timeout": "500ms"},
            {"tcpSocket": {"port": 80}, "initialDelaySeconds": 90, "periodSeconds": 10, "timeoutSeconds": 1},
        ),
        (
            {"tcp": {"port": 80}, "successThreshold": 1, "failureThreshold": 5},
            {"tcpSocket": {"port": 80}, "successThreshold": 1, "failureThreshold": 5},
        ),
    ],
)
@pytest.mark.parametrize("field", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probes(field: str, probe: dict[str, Any], expected: dict[str, Any]) -> None:
    assert container(**{field: probe})[field] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"imagePullSecrets": ["hub"]}, {"imagePullSecrets": [{"name": "hub"}]}),
        ({"restartPolicy": {"policy": "ON_FAILURE", "maxRetries": 3}}, {"restartPolicy": "OnFailure"}),
        ({"placement": {"nodeSelector": {"ssd": "true"}}}, {"nodeSelector": {"ssd": "true"}}),
        (
            {"placement": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]}},
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]},
        ),
        (
            {"placement": {"tolerations": [{"key": "a", "value": "b", "tolerationSeconds": 0}]}},
            {"tolerations": [{"key": "a", "value": "b", "tolerationSeconds": 0}]},
        ),
    ],
)
def test_fields_of_the_pod(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    made = rendered(**spec)["spec"]
    del made["containers"]
    assert made == expected


def labelled(name: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": name, "operator": operator, "values": list(values)}


WORKLOAD = {"type": "Workload", "matchLabels": {"app": "db"}}
NODE = {"type": "NODE", "matchLabels": {"disk": "ssd"}}
BESIDE = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}


@pytest.mark.parametrize(
    ("placement", "affinity"),
    [
        (
            {"regions": ["eu", "us"], "zones": ["eu-1"]},
            {
                "nodeAffinity": {
                    AFFINITY: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    labelled("topology.kubernetes.io/region", "eu", "us"),
                                    labelled("topology.kubernetes.io/zone", "eu-1"),
                                ]
                            }
                        ]
                    }
                }
            },
        ),
        (
            {
                "affinity": [{**NODE, "required": True}],
                "antiAffinity": [{**NODE, "matchLabels": {"old": "yes"}, "required": True}],
            },
            {
                "nodeAffinity": {
                    AFFINITY: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [labelled("disk", "ssd"), labelled("old", "yes", operator="NotIn")]}
                        ]
                    }
                }
            },
        ),
        (
            {"affinity": [{**NODE, "weight": 7}]},
            {
                "nodeAffinity": {
                    PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [labelled("disk", "ssd")]}}]
                }
            },
        ),
        ({"affinity": [{**WORKLOAD, "required": True}]}, {"podAffinity": {AFFINITY: [BESIDE]}}),
        ({"affinity": [WORKLOAD]}, {"podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": BESIDE}]}}),
        (
            {"antiAffinity": [{**WORKLOAD, "required": True, "topologyKey": "rack"}, WORKLOAD]},
            {
                "podAntiAffinity": {
                    AFFINITY: [{**BESIDE, "topologyKey": "rack"}],
                    PREFERRED: [{"weight": 50, "podAffinityTerm": BESIDE}],
                }
            },
        ),
    ],
)
def test_affinities(placement: dict[str, Any], affinity: dict[str, Any]) -> None:
    assert rendered(placement=placement)["spec"]["affinity"] == affinity


@pytest.mark.parametrize(
    ("spread", "key"),
    [
        ("zone", "topology.kubernetes.io/zone"),
        ("region", "topology.kubernetes.io/region"),
        ("node", "kubernetes.io/hostname"),
        ("host", "kubernetes.io/hostname"),
        ("rack.acme.io/row", "rack.acme.io/row"),
    ],
)
def test_a_spread_never_prevents_scheduling(spread: str, key: str) -> None:
    assert rendered(placement={"spreadTopology": spread})["spec"]["topologySpreadConstraints"] == [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"cloudless.io/workload": "web"}},
        }
    ]


# --- security, hooks, other containers


SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 101,
    "runAsGroup": 101,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "appArmorProfile": {"type": "Localhost", "localhostProfile": "shop"},
    "seLinuxOptions": {"level": "s0:c1,c2"},
    "fsGroup": 2000,
    "supplementalGroups": [3000],
    "sysctls": {"net.ipv4.ip_unprivileged_port_start": "80"},
}


def test_security_settings_are_those_of_the_pod_where_kubernetes_has_them_there() -> None:
    made = rendered(securityContext=SECURITY)["spec"]
    assert made["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 101,
        "runAsGroup": 101,
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "shop"},
        "seLinuxOptions": {"level": "s0:c1,c2"},
        "fsGroup": 2000,
        "supplementalGroups": [3000],
        "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "80"}],
    }
    assert made["containers"][0]["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    }


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({"serviceAccountName": "shop"}, "serviceAccountName", "shop"),
        ({"automountServiceAccountToken": False}, "automountServiceAccountToken", False),
        ({"runtimeClassName": "gvisor"}, "runtimeClassName", "gvisor"),
        ({"terminationGracePeriod": "1m30s"}, "terminationGracePeriodSeconds", 90),
        ({"terminationGracePeriod": "1500ms"}, "terminationGracePeriodSeconds", 2),
        ({"terminationGracePeriod": "0s"}, "terminationGracePeriodSeconds", 0),
    ],
)
def test_accounts_runtimes_and_the_time_to_stop(spec: dict[str, Any], field: str, value: Any) -> None:
    assert rendered(**spec)["spec"][field] == value


@pytest.mark.parametrize(
    ("hook", "action"),
    [
        ({"sleep": "5s"}, {"sleep": {"seconds": 5}}),
        ({"exec": {"command": ["/bin/drain"]}}, {"exec": {"command": ["/bin/drain"]}}),
        (
            {"http": {"path": "/drain", "port": "http"}},
            {"httpGet": {"path": "/drain", "port": "http", "scheme": "HTTP"}},
        ),
    ],
)
def test_hooks(hook: dict[str, Any], action: dict[str, Any]) -> None:
    assert container(lifecycle={"preStop": hook, "postStart": hook})["lifecycle"] == {
        "preStop": action,
        "postStart": action,
    }


OTHERS: dict[str, Any] = {
    "volumes": [
        {"name": "data", "source": "emptyDir"},
        {"name": "tls", "source": "secret", "mountPath": "/tls", "defaultMode": 0o400, "keys": {"a.pem": "cert"}},
    ],
    "initContainers": [
        {
            "name": "fetch",
            "image": "fetch:1",
            "envFrom": [{"secretRef": {"name": "token"}, "keys": {"TOKEN": "value"}}],
            "mounts": [{"name": "data", "mountPath": "/data"}],
        }
    ],
    "sidecars": [
        {
            "name": "proxy",
            "image": "proxy:1",
            "ports": [{"containerPort": 9000}],
            "readinessProbe": {"tcp": {"port": 9000}},
            "mounts": [{"name": "data", "mountPath": "/data", "readOnly": True, "subPath": "in"}],
            "securityContext": {"runAsUser": 65532},
        }
    ],
}


def test_init_containers_run_before_sidecars_which_kubernetes_restarts_always() -> None:
    made = rendered(**OTHERS)["spec"]
    assert [each["name"] for each in made["containers"]] == ["app"]
    assert made["initContainers"] == [
        {
            "name": "fetch",
            "image": "fetch:1",
            "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value"}}}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        },
        {
            "name": "proxy",
            "image": "proxy:1",
            "ports": [{"containerPort": 9000, "protocol": "TCP"}],
            "readinessProbe": {"tcpSocket": {"port": 9000}},
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True, "subPath": "in"}],
            "securityContext": {"runAsUser": 65532},
            "restartPolicy": "Always",
        },
    ]
    assert made["containers"][0]["volumeMounts"] == [{"name": "tls", "mountPath": "/tls"}]
    assert made["volumes"][1] == {
        "name": "tls",
        "secret": {"secretName": "tls", "items": [{"key": "cert", "path": "a.pem"}], "defaultMode": 0o400},
    }


def test_configuration_of_other_containers_is_part_of_the_revision() -> None:
    workload = kinds.decode(web(**OTHERS))
    assert isinstance(workload, Workload)
    assert [str(each) for each in references(workload.spec)] == ["Secret/token", "Secret/tls"]


def test_an_api_server_accepts_a_pod_with_every_field_and_its_replicas_become_ready() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("token", "tls"):
            await cluster.create(SECRETS, {"metadata": {"name": name}, "data": {"value": "YQ==", "cert": "YQ=="}})
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "shop"}})
        full = workload_of(
            replicas=2,
            **OTHERS,
            securityContext=SECURITY,
            serviceAccountName="shop",
            automountServiceAccountToken=False,
            terminationGracePeriod="45s",
            lifecycle={"preStop": {"sleep": "5s"}},
            podLabels={"team": "shop"},
            podAnnotations={"example.com/owner": "shop"},
        )
        await cluster.create(WORKLOADS, full)
        assert (await reaches(cluster, "Completed"))["readyReplicas"] == 2

    operated(story)


# --- metadata


def test_labels_and_annotations_of_the_pods_are_added_and_win_over_those_of_the_workload() -> None:
    made = rendered(
        labels={"app": "shop", "team": "a"}, podLabels={"team": "b"}, podAnnotations={"example.com/scrape": "true"}
    )["metadata"]
    assert (made["labels"]["app"], made["labels"]["team"]) == ("shop", "b")
    assert made["annotations"] == {"example.com/scrape": "true"}


def test_labels_and_annotations_for_simulated_nodes_are_copied_to_the_replicas() -> None:
    annotations = {"sim.holdfast.dev/ready-after": "5s", "description": "not theirs"}
    made = rendered(labels={"app": "shop", "cloudless.io/workload": "lie"}, annotations=annotations)["metadata"]
    assert (made["labels"]["app"], made["labels"]["cloudless.io/workload"]) == ("shop", "web")
    assert made["annotations"] == {"sim.holdfast.dev/ready-after": "5s"}


@pytest.mark.parametrize("name", ["a" * 253, "a" * 64, f"{'a' * 40}.{'b' * 60}", f"{'a' * 52}.b.{'c' * 90}"])
def test_names_of_any_length_fit(name: str) -> None:
    owner = web()
    owner["metadata"]["name"] = name
    made = template("web:1")
    for each in (render.pod(owner, made), render.controller_revision(owner, made, number=1)):
        for value in each["metadata"]["labels"].values():
            assert names.label_value(value) == []
        given = names.generate_name(each["metadata"]["generateName"], "x")
        assert (given[: -len("xxxxx")], names.dns_subdomain(given)) == (each["metadata"]["generateName"], [])


def test_long_names_that_begin_alike_are_told_apart() -> None:
    assert render.labels("a" * 64) != render.labels("a" * 65)


def test_two_revisions_of_a_long_name_are_told_apart() -> None:
    owner = web()
    owner["metadata"]["name"] = "a" * 253
    recorded = [render.controller_revision(owner, template(image), number=1) for image in ("web:1", "web:2")]
    assert recorded[0]["metadata"]["generateName"] != recorded[1]["metadata"]["generateName"]


def test_the_service_has_the_ports_of_sidecars_too_each_once_and_with_a_name_of_its_own() -> None:
    sidecar = {
        "name": "proxy",
        "image": "proxy:1",
        "ports": [{"name": "http", "containerPort": 8443}, {"containerPort": 8080}, {"containerPort": 9000}],
    }
    made = template("web:1", ports=[{"name": "http", "containerPort": 8080}], sidecars=[sidecar])
    assert render.service_ports(made) == [
        {"name": "http", "port": 8080, "protocol": "TCP"},
        {"name": "tcp-8443", "port": 8443, "protocol": "TCP"},
        {"name": "tcp-9000", "port": 9000, "protocol": "TCP"},
    ]
