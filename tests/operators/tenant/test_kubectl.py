"""Tenants as people meet them: on a cluster of one process, with kubectl and with our own commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests.clusters import HOLDFAST, up
from tests.places import ROOT

MANIFESTS = ROOT.parent / "shared" / "manifests" / "rustfs"

DEV_MINIMAL = """
apiVersion: rustfs.com/v1alpha1
kind: Tenant
metadata: {name: dev-minimal}
spec:
  pools:
    - {name: dev-pool, servers: 4, persistence: {volumesPerServer: 1}}
"""


class Shell:
    """Commands against one cluster."""

    def __init__(self, kubeconfig: str) -> None:
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig}

    def run(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, env=self._environment, timeout=60, check=False
        )

    def __call__(self, *command: str, given: str | None = None) -> str:
        run = self.run(*command, given=given)
        assert run.returncode == 0, f"{' '.join(command)}: {run.stdout}{run.stderr}"
        return run.stdout


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with up("--nodes", "20") as kubeconfig:
        made = Shell(str(kubeconfig))
        made(*HOLDFAST, "apply", "-f", "-", given=DEV_MINIMAL)
        made(*HOLDFAST, "wait", "tenant/dev-minimal", "--for=jsonpath={.status.currentState}=Ready", "--timeout=60s")
        yield made


KUBECTL = shutil.which("kubectl")
CLIENTS = [
    pytest.param(
        [KUBECTL or "kubectl"],
        id="kubectl",
        marks=pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed"),
    ),
    pytest.param(HOLDFAST, id="holdfast"),
]


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        ("{.status.pools[*].state}", "PoolRolloutComplete"),
        ("{.status.pools[*].readyReplicas}", "4"),
        ('{.status.pools[?(@.state=="PoolUpdating")]}', ""),
        ("{.status.pools[*].currentReplicas}", "4"),
        ("{.status.pools[*].updatedReplicas}", "4"),
        ('{.status.pools[?(@.state=="PoolDegraded")]}', ""),
        ('{.status.pools[?(@.state=="PoolRolloutComplete")].ssName}', "dev-minimal-dev-pool"),
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_commands_of_the_seed_print_what_they_should(
    shell: Shell, client: list[str], path: str, printed: str
) -> None:
    assert shell(*client, "get", "tenant", "dev-minimal", "-o", f"jsonpath={path}").strip() == printed


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pool_is_printed_whole_for_other_programs(shell: Shell, client: list[str]) -> None:
    pool = json.loads(shell(*client, "get", "tenant", "dev-minimal", "-o", "jsonpath={.status.pools[*]}"))
    assert pool["ssName"] == "dev-minimal-dev-pool"
    assert pool["currentRevision"] == pool["updateRevision"]
    assert set(pool) == {
        "ssName", "state", "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "currentRevision",
        "updateRevision", "floor", "lastUpdateTime",
    }  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_a_list_of_tenants_says_how_they_are_and_why(shell: Shell, client: list[str]) -> None:
    titles, row, *_ = shell(*client, "get", "tenants").splitlines()
    assert titles.split() == ["NAME", "STATE", "SERVERS", "REASON", "AGE"]
    assert row.split()[:4] == ["dev-minimal", "Ready", "4", "ReconcileSucceeded"]


def test_a_tenant_is_described_with_its_pools_and_with_what_to_do(shell: Shell) -> None:
    lacking = DEV_MINIMAL.replace("dev-minimal", "lacking").replace("spec:", "spec:\n  credsSecret: {name: none}")
    shell(*HOLDFAST, "apply", "-f", "-", given=lacking)
    shell(*HOLDFAST, "wait", "tenant/lacking", "--for=jsonpath={.status.currentState}=Blocked", "--timeout=60s")
    text = shell(*HOLDFAST, "describe", "tenant", "lacking")
    assert re.search(r"dev-pool +NotCreated +0/4", text)
    assert "create it with the keys accesskey and secretkey, or correct spec.credsSecret.name" in text
    text = shell(*HOLDFAST, "describe", "tenant", "dev-minimal")
    assert re.search(r"dev-pool +RolloutComplete +4/4 +4/4", text)


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_does_not_call_a_rollout_complete_that_is_halfway(shell: Shell) -> None:
    halfway = """
apiVersion: rustfs.com/v1alpha1
kind: Tenant
metadata: {name: halfway}
spec:
  image: rustfs/rustfs:1.0.0-beta.10
  pools:
    - {name: p, servers: 2, persistence: {volumesPerServer: 1}}
"""
    kubectl = KUBECTL or "kubectl"
    status = (kubectl, "rollout", "status", "statefulset/halfway-p", "--watch=false")
    shell(*HOLDFAST, "apply", "-f", "-", given=halfway)
    shell(kubectl, "wait", "tenant/halfway", "--for=condition=Ready", "--timeout=60s")
    assert "roll out complete: 2 new pods" in shell(*status)
    paused = halfway.replace("beta.10", "beta.11\n  rollout: {paused: true}")
    shell(*HOLDFAST, "apply", "-f", "-", given=paused)
    reason = "--for=jsonpath={.status.conditions[0].reason}=RolloutPaused"
    shell(kubectl, "wait", "tenant/halfway", reason, "--timeout=60s")
    shell(kubectl, "delete", "pod", "halfway-p-1", "--wait=false")
    shell(kubectl, "wait", "statefulset/halfway-p", "--for=jsonpath={.status.updatedReplicas}=1", "--timeout=60s")
    shell(kubectl, "wait", "pod/halfway-p-1", "--for=condition=Ready", "--timeout=60s")
    answer = shell.run(*status)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr == "error: rollout status is only available for RollingUpdate strategy type\n"
    assert shell.run(*HOLDFAST, "rollout", "status", "tenant/halfway", "--no-watch").returncode == 3
    shell(*HOLDFAST, "rollout", "resume", "tenant/halfway")
    shell(*HOLDFAST, "rollout", "status", "tenant/halfway", "--timeout=60s")
    assert "roll out complete: 2 new pods" in shell(*status)


@pytest.mark.skipif(not MANIFESTS.is_dir(), reason="the manifests of users are not here")
def test_the_manifests_of_users_become_ready_or_say_what_they_lack(shell: Shell) -> None:
    for namespace in ("storage", "production", "rustfs-system", "users"):
        given = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"
        shell(*HOLDFAST, "apply", "-f", "-", given=given)
    for manifest in sorted(MANIFESTS.glob("*.yaml")):
        # One of them has the name of the seed's example.
        text = manifest.read_text().replace("namespace: default", "namespace: users")
        shell(*HOLDFAST, "apply", "-f", "-", given=text)
    ready = {
        "users": ("dev-minimal", "secure-tenant"),
        "production": ("production-storage",),
        "rustfs-system": ("example-tenant", "multi-pool-tenant"),
    }
    for namespace, names in ready.items():
        for name in names:
            condition = "--for=jsonpath={.status.currentState}=Ready"
            shell(*HOLDFAST, "wait", "-n", namespace, f"tenant/{name}", condition, "--timeout=60s")
    # It asks for nodes that are labelled by generation, and there are none.
    path = "jsonpath={.status.currentState} {.status.conditions[?(@.type=='Ready')].message}"
    said = shell(*HOLDFAST, "get", "-n", "storage", "tenant", "expanding-storage", "-o", path)
    assert said.startswith("Degraded pools pool-v1, pool-v2: 0 of 24 servers ready; pod expanding-storage-pool-v1-0 ")
    assert "node" in said
