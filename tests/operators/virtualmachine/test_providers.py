"""Providers: their processes, health by thresholds, certificates, and what the hypervisor reports."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from tests.operators.virtualmachine.stories import (
    KINDS,
    MACHINES,
    PROVIDERS,
    Fault,
    Hypervisors,
    answer,
    because,
    condition,
    created,
    machine,
    no_guest,
    play_story,
    prepare,
    provider,
    status_of,
)

from holdfast.client.resources import DEPLOYMENTS, PODS, SECRETS, SERVICES
from holdfast.operators.virtualmachine.connections import Target
from holdfast.operators.virtualmachine.controller import controllers
from holdfast.operators.virtualmachine.providers import certificates
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.providers.contract import Code, Hypervisor
from holdfast.testing.clusters import Cluster, play

NAME = "virtrigaud-provider-default-sim"
PROCESSES = Settings(processes=True, command=("holdfast",), local=frozenset({"simulated"}))


def own(name: str = "sim", **spec: Any) -> dict[str, Any]:
    """A Provider whose process is ours."""
    return provider(name, **{"endpoint": "https://vcenter.example.com/sdk", **spec})


async def process(cluster: Cluster, *, ready: bool = True, trouble: str = "") -> None:
    """A pod of the process, as a node reports it."""
    labels = {"app.kubernetes.io/name": "virtrigaud-provider", "app.kubernetes.io/instance": "sim"}
    if await cluster.find(PODS, "process") is None:
        pod = {"metadata": {"name": "process", "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await cluster.create(PODS, pod)
    waiting = {"state": {"waiting": {"reason": trouble}}} if trouble else {}
    status = {
        "phase": "Running",
        "podIP": "10.1.2.3",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [{"name": "c", "ready": ready, "image": "i", "imageID": "", "restartCount": 0, **waiting}],
    }
    await cluster.patch(PODS, "process", {"status": status}, subresource="status")
    await cluster.settle()


def test_the_process_is_pending_starting_running_and_failed() -> None:
    asked: list[Target] = []
    hypervisors = Hypervisors()

    def connect(target: Target) -> Hypervisor:
        asked.append(target)
        return hypervisors(target)

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, own())
        await cluster.settle()

        async def found() -> tuple[str, bool, tuple[str, str]]:
            status = await status_of(cluster, "sim", PROVIDERS)
            return status["runtime"]["phase"], status["healthy"], answer(status, "RuntimeReady")

        assert await found() == ("Pending", False, ("False", "DeploymentNotReady"))
        await process(cluster, ready=False)
        assert await found() == ("Starting", False, ("False", "DeploymentStarting"))
        await process(cluster)
        assert await found() == ("Running", True, ("True", "DeploymentReady"))
        status = await status_of(cluster, "sim", PROVIDERS)
        assert status["runtime"]["endpoint"] == "10.1.2.3:9443"
        assert status["runtime"]["serviceRef"] == {"name": NAME}
        assert [answer(status, type) for type in ("Ready", "Healthy", "Connected", "TLSConfigured")] == [
            ("True", "ProviderReady"),
            ("True", "ProviderHealthy"),
            ("True", "Connected"),
            ("True", "Enabled"),
        ]
        assert status["version"] == "simulated/1"
        assert status["reportedCapabilities"]["supportsSnapshots"] is True
        assert "Snapshots" in status["capabilities"]
        assert status["resourceUsage"]["cpu"]["available"] == 4 * 1024
        # A provider whose pods die is not healthy any more.
        await process(cluster, ready=False, trouble="CrashLoopBackOff")
        assert await found() == ("Failed", False, ("False", "DeploymentFailed"))
        await cluster.delete(PODS, "process", grace_seconds=0)
        await cluster.settle()
        assert await found() == ("Pending", False, ("False", "DeploymentNotReady"))
        assert asked[0].server_name == f"{NAME}.default.svc.cluster.local"
        assert asked[0].credentials.get("client.crt") is not None

    play(story, controllers=controllers(connect=connect, fetch=no_guest), kinds=KINDS)


def test_health_follows_its_thresholds_there_and_back() -> None:
    fault = Fault(call="validate", message="no session")
    hypervisors = Hypervisors()
    seen: list[tuple[bool, int | None, int | None]] = []

    async def story(cluster: Cluster) -> None:
        check = {"interval": "10s", "failureThreshold": 3, "successThreshold": 2}
        await cluster.create(PROVIDERS, provider(healthCheck=check))
        for failing in (False, False, True, True, True, True, False, False, False):
            hypervisors.at().faults[:] = [fault] if failing else []
            await cluster.advance(10)
            status = await status_of(cluster, "sim", PROVIDERS)
            probes = status.get("probes", {})
            seen.append((status["healthy"], probes.get("failures"), probes.get("successes")))
        assert seen == [
            (True, None, None),
            (True, None, None),
            (True, 1, None),
            (True, 2, None),
            (False, 3, None),
            (False, 3, None),
            (False, None, 1),
            (True, None, None),
            (True, None, None),
        ]

    play_story(story, hypervisors)


def test_machines_wait_for_a_provider_that_is_not_healthy() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        hypervisors.at().faults[:] = [Fault(call="*", code=Code.UNAUTHORIZED, message="password expired")]
        await cluster.advance(95)
        status = await status_of(cluster, "sim", PROVIDERS)
        assert answer(status, "Ready") == ("False", "ProviderUnauthorized")
        assert (
            "correct the Secret that spec.credentialSecretRef of the Provider names"
            in condition(status, "Ready")["message"]
        )
        status = await because(cluster, "WaitingForDependencies")
        assert (status["phase"], status["message"]) == ("Running", "Provider sim is not ready")
        hypervisors.at().faults.clear()
        await cluster.advance(31)
        assert answer(await status_of(cluster), "Ready")[0] == "True"

    play_story(story, hypervisors)


def test_health_is_not_checked_where_the_spec_says_so() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider(healthCheck={"enabled": False}))
        await cluster.settle()
        assert answer(await status_of(cluster, "sim", PROVIDERS), "Healthy") == ("True", "HealthCheckDisabled")
        before = len(hypervisors.at().calls)
        await cluster.advance(1800)
        assert len(hypervisors.at().calls) == before

    play_story(story, hypervisors)


# --- TLS


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        (None, ("True", "Enabled")),
        ({"enabled": True}, ("True", "Enabled")),
        ({"enabled": False}, ("False", "ExplicitlyDisabled")),
        ({"enabled": True, "secretRef": {"name": "missing"}}, ("False", "SecretMissing")),
    ],
)
def test_calls_are_encrypted_unless_the_spec_disables_it(tls: dict[str, Any] | None, expected: tuple[str, str]) -> None:
    async def story(cluster: Cluster) -> None:
        service = {"port": 9444, **({"tls": tls} if tls else {})}
        await cluster.create(PROVIDERS, own(runtime={"image": "holdfast", "service": service}))
        await cluster.settle()
        assert answer(await status_of(cluster, "sim", PROVIDERS), "TLSConfigured") == expected
        ours = await cluster.find(SECRETS, f"{NAME}-tls")
        assert (ours is not None) == (tls is None or ("secretRef" not in tls and tls["enabled"]))
        deployment = await cluster.get(DEPLOYMENTS, NAME)
        pod = deployment["spec"]["template"]["spec"]
        arguments = pod["containers"][0]["args"]
        assert ("--tls-dir" in arguments, "--plaintext" in arguments) == (
            (True, False) if tls is None or tls["enabled"] else (False, True)
        )
        assert (await cluster.get(SERVICES, NAME))["spec"]["ports"][0]["port"] == 9444

    play_story(story)


def test_certificates_are_for_both_sides_and_are_renewed_before_they_expire() -> None:
    times = [datetime(2026, 1, 1, tzinfo=UTC)]

    async def certificate(cluster: Cluster) -> x509.Certificate:
        secret = await cluster.get(SECRETS, f"{NAME}-tls")
        assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key", "client.crt", "client.key"}
        return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, own())
        await cluster.settle()
        first = await certificate(cluster)
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert f"{NAME}.default.svc.cluster.local" in names.get_values_for_type(x509.DNSName)
        for days, renewed in ((200, False), (100, True)):
            times.append(times[-1] + timedelta(days=days))
            await cluster.patch(PROVIDERS, "sim", {"metadata": {"annotations": {"day": str(len(times))}}})
            await cluster.settle()
            assert ((await certificate(cluster)).serial_number != first.serial_number) == renewed
        # The pods get the certificate of the process, and not that of the operator.
        pod = (await cluster.get(DEPLOYMENTS, NAME))["spec"]["template"]["spec"]
        (volume,) = (each for each in pod["volumes"] if each["name"] == "tls")
        assert [each["key"] for each in volume["secret"]["items"]] == ["ca.crt", "tls.crt", "tls.key"]

    play(
        story,
        controllers=controllers(connect=Hypervisors(), fetch=no_guest, clock=lambda: times[-1]),
        kinds=KINDS,
    )


def test_a_certificate_is_read_and_other_bytes_are_not_one() -> None:
    issued = certificates.issue(("a.example.com",), now=datetime(2026, 1, 1, tzinfo=UTC))
    assert certificates.expires(issued["tls.crt"]) == datetime(2027, 1, 1, tzinfo=UTC)
    assert certificates.expires(b"no certificate") is None


# --- the Deployment


def test_a_provider_of_another_project_gets_the_arguments_and_variables_that_it_knows() -> None:
    async def story(cluster: Cluster) -> None:
        spec = own(
            type="vsphere",
            credentialSecretRef={"name": "vcenter"},
            defaults={"datastore": "ds1", "cluster": "c1"},
            runtime={
                "image": "example.com/vsphere:v1",
                "replicas": 2,
                "nodeSelector": {"disk": "ssd"},
                "logLevel": "debug",
            },
        )
        await cluster.create(PROVIDERS, spec)
        await cluster.settle()
        deployment = await cluster.get(DEPLOYMENTS, NAME)
        assert deployment["spec"]["replicas"] == 2
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert container["image"] == "example.com/vsphere:v1"
        assert container["args"] == ["--port=9443", "--health-port=8080"]
        assert variables.items() >= {
            ("PROVIDER_TYPE", "vsphere"),
            ("PROVIDER_ENDPOINT", "https://vcenter.example.com/sdk"),
            ("PROVIDER_DEFAULT_DATASTORE", "ds1"),
            ("TLS_ENABLED", "true"),
            ("LOG_LEVEL", "debug"),
        }
        assert {each["mountPath"] for each in container["volumeMounts"]} >= {
            "/etc/virtrigaud/credentials",
            "/etc/virtrigaud/tls",
        }
        assert pod["nodeSelector"] == {"disk": "ssd"}
        assert container["securityContext"]["runAsUser"] == 65532

    play_story(story)


def test_as_processes_hypervisors_that_cannot_run_here_are_simulated_and_that_is_said() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, own(type="vsphere"))
        await cluster.settle()
        pod = (await cluster.get(DEPLOYMENTS, NAME))["spec"]["template"]["spec"]
        assert pod["runtimeClassName"] == "process"
        command = pod["containers"][0]["command"]
        assert command[:5] == ["holdfast", "provider", "serve", "simulated", "--listen"]
        assert command[-1] == "--any-place"
        await process(cluster)
        message = (await status_of(cluster, "sim", PROVIDERS))["runtime"]["message"]
        assert message == "the process runs; it simulates machines, and no vsphere is contacted"

    play(story, controllers=controllers(PROCESSES, connect=Hypervisors(), fetch=no_guest), kinds=KINDS)


def test_a_provider_that_starts_on_demand_waits_for_its_first_machine() -> None:
    async def story(cluster: Cluster) -> None:
        made = own()
        made["metadata"]["annotations"] = {"virtrigaud.io/start-on-demand": "true"}
        await cluster.create(PROVIDERS, made)
        await cluster.settle()
        status = await status_of(cluster, "sim", PROVIDERS)
        assert answer(status, "Ready") == ("False", "StartsOnDemand")
        assert await cluster.list(DEPLOYMENTS) == []
        # What a machine used that is gone is not in use any more.
        used = {"connectedVMs": 1, "resourceUsage": {"cpu": {"used": 4}}, "version": "simulated/1"}
        await cluster.patch(PROVIDERS, "sim", {"status": used}, subresource="status")
        await cluster.settle()
        status = await status_of(cluster, "sim", PROVIDERS)
        assert (status["connectedVMs"], status["version"]) == (0, "simulated/1")
        assert "resourceUsage" not in status
        await cluster.create(MACHINES, machine())
        await cluster.settle()
        assert len(await cluster.list(DEPLOYMENTS)) == 1

    play(story, controllers=controllers(PROCESSES, connect=Hypervisors(), fetch=no_guest), kinds=KINDS)
