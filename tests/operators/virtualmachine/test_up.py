"""Machines on `holdfast up`: the operator speaks to the processes of providers over gRPC, with certificates.

The simulated hypervisor always; QEMU with a real guest where it is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.clusters import HOLDFAST
from tests.places import ROOT
from tests.providers import s3_server
from tests.providers.qemu import guest

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
EXAMPLE_VERSION = "infra.virtrigaud.io/v1beta1"
SHARED = ROOT.parent / "shared" / "manifests" / "virtrigaud"
EXAMPLE = ROOT / "examples" / "virtualmachines" / "simulated.yaml"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("up")
    if not guest.missing():
        guest.build(folder / "images" / "tiny")
    command = [*HOLDFAST, "up", "--ephemeral", "--nodes", "1", "--kubeconfig", str(folder / "kubeconfig")]
    command += ["--set", f"virtualmachine.images={folder / 'images'}"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        limit = threading.Timer(240, process.terminate)
        limit.start()
        assert re.search(r"KUBECONFIG=", process.stdout.readline())
        # What it prints later is not read, and must not fill the pipe.
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        reader.start()
        yield str(folder / "kubeconfig")
        limit.cancel()
        process.terminate()


def holdfast(kubeconfig: str, *arguments: str) -> str:
    environment = {**ENVIRONMENT, "KUBECONFIG": kubeconfig}
    run = subprocess.run([*HOLDFAST, *arguments], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_example_runs_and_is_steered_from_the_command_line(kubeconfig: str) -> None:
    holdfast(kubeconfig, "apply", "-f", str(EXAMPLE))
    assert "web: rolled out: 1 of 1 machine ready" in holdfast(
        kubeconfig, "rollout", "status", "vm/web", "--timeout=60s"
    )
    holdfast(kubeconfig, "wait", "vm/web", "--for=jsonpath={.status.ips[0]}", "--timeout=30s")
    assert re.fullmatch(r"[\d.]+\n", holdfast(kubeconfig, "vm", "ip", "web"))
    assert holdfast(kubeconfig, "vm", "console", "web").startswith("vnc://")
    assert holdfast(kubeconfig, "vm", "power", "shutdown", "web") == (
        "virtualmachine/web gets spec.powerState OffGraceful\n"
    )
    holdfast(kubeconfig, "wait", "vm/web", "--for=jsonpath={.status.phase}=Stopped", "--timeout=30s")
    assert re.search(r"^Operation:\n  nothing$", holdfast(kubeconfig, "describe", "vm", "web"), re.MULTILINE)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no manifests beside the checkout")
def test_machines_of_a_hypervisor_that_is_not_here_run_simulated(kubeconfig: str) -> None:
    holdfast(kubeconfig, "apply", "-f", str(SHARED / "complete-example.yaml"))
    holdfast(kubeconfig, "rollout", "status", "vm/demo-web-server", "--timeout=60s")
    said = holdfast(kubeconfig, "get", "provider", "vsphere-prod", "-o", "jsonpath={.status.runtime.message}")
    assert said == "the process runs; it simulates machines, and no vsphere is contacted"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no manifests beside the checkout")
def test_every_manifest_of_virtrigaud_is_accepted_with_all_its_fields(kubeconfig: str, tmp_path: Path) -> None:
    namespace = tmp_path / "namespace.yaml"
    namespace.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: virtrigaud-system}}")
    holdfast(kubeconfig, "apply", "-f", str(namespace))
    applied = holdfast(kubeconfig, "apply", "--dry-run=server", "-f", str(SHARED))
    assert "/web-server-01-weekly-backup created" in applied
    documents = [each for path in SHARED.glob("*.yaml") for each in yaml.safe_load_all(path.read_text()) if each]
    assert len(applied.splitlines()) == len(documents)


@pytest.mark.skipif(bool(guest.missing()), reason=guest.missing())
def test_a_real_guest_boots_gets_an_address_shuts_down_and_leaves_nothing(kubeconfig: str, tmp_path: Path) -> None:
    base = {"apiVersion": "infra.virtrigaud.io/v1beta1", "metadata": {"name": "tiny"}}
    spec: dict[str, dict[str, Any]] = {
        "Provider": {"type": "qemu", "endpoint": "qemu:///system", "runtime": {"image": "holdfast"}},
        "VMClass": {"cpu": 1, "memory": "256Mi"},
        "VMImage": {"source": {"libvirt": {"path": "tiny"}}},
        "VMPlacementPolicy": {"hard": {"hosts": ["local"]}, "resourceConstraints": {"minMemoryPerHost": "1Gi"}},
        "VirtualMachine": {
            **{field: {"name": "tiny"} for field in ("providerRef", "classRef", "imageRef", "placementRef")},
            "networks": [{"name": "net"}],
        },
    }
    manifest = tmp_path / "tiny.yaml"
    manifest.write_text(yaml.safe_dump_all([{**base, "kind": kind, "spec": each} for kind, each in spec.items()]))
    holdfast(kubeconfig, "apply", "-f", str(manifest))
    holdfast(kubeconfig, "wait", "vm/tiny", "--for=jsonpath={.status.ips[0]}", "--timeout=60s")
    folder = holdfast(kubeconfig, "get", "vm", "tiny", "-o", "jsonpath={.status.provider.folder}")
    assert Path(folder).is_dir()
    placed = holdfast(kubeconfig, "get", "vm", "tiny", "-o", "jsonpath={.status.placement.reason}")
    assert placed.startswith("VMPlacementPolicy tiny: local has the best score")
    holdfast(kubeconfig, "vm", "power", "shutdown", "tiny")
    holdfast(kubeconfig, "wait", "vm/tiny", "--for=jsonpath={.status.phase}=Stopped", "--timeout=60s")
    holdfast(kubeconfig, "delete", "vm", "tiny", "--timeout=30s")
    assert not Path(folder).exists()


def test_the_example_of_a_set_runs_is_scaled_changed_in_place_and_undone(kubeconfig: str, tmp_path: Path) -> None:
    example, changed = EXAMPLE.with_name("set.yaml"), tmp_path / "set.yaml"
    holdfast(kubeconfig, "apply", "-f", str(example))
    said = holdfast(kubeconfig, "rollout", "status", "vmset/farm", "--timeout=60s")
    assert "rolled out: 5 of 5 machines ready" in said
    changed.write_text(
        example.read_text().replace("replicas: 5", "replicas: 3").replace("minAvailable: 4", "minAvailable: 2")
    )
    holdfast(kubeconfig, "apply", "-f", str(changed))
    assert "3 of 3 machines ready" in holdfast(kubeconfig, "rollout", "status", "vmset/farm", "--timeout=60s")
    changed.write_text(changed.read_text().replace("        name: medium", "        name: large"))
    holdfast(kubeconfig, "apply", "-f", str(changed))
    holdfast(kubeconfig, "rollout", "status", "vmset/farm", "--timeout=60s")
    sizes = holdfast(
        kubeconfig, "get", "vm", "-l", "app=farm", "-o", "jsonpath={.items[*].status.currentResources.cpu}"
    )
    assert sizes.split() == ["4"] * 3
    assert "undone: back to revision 1" in holdfast(kubeconfig, "rollout", "undo", "vmset/farm")
    holdfast(kubeconfig, "rollout", "status", "vmset/farm", "--timeout=60s")
    assert "classRef" in holdfast(kubeconfig, "rollout", "history", "vmset/farm")
    assert re.search(r"^Machines:\n", holdfast(kubeconfig, "describe", "vmset", "farm"), re.MULTILINE)


def test_the_example_of_placement_spreads_its_machines_and_says_why_one_more_fits_nowhere(
    kubeconfig: str, tmp_path: Path
) -> None:
    example, changed = EXAMPLE.with_name("placement.yaml"), tmp_path / "placement.yaml"
    holdfast(kubeconfig, "apply", "-f", str(example))
    assert "4 of 4 machines ready" in holdfast(kubeconfig, "rollout", "status", "vmset/store", "--timeout=60s")
    hosts = holdfast(kubeconfig, "get", "vm", "-l", "app=store", "-o", "jsonpath={.items[*].status.placement.host}")
    assert sorted(hosts.split()) == ["rack1-a", "rack1-b", "rack2-a", "rack2-b"]
    changed.write_text(example.read_text().replace("replicas: 4", "replicas: 5"))
    holdfast(kubeconfig, "apply", "-f", str(changed))
    holdfast(kubeconfig, "wait", "vm/store-4", "--for=jsonpath={.status.placement.phase}=Unplaceable", "--timeout=30s")
    said = holdfast(kubeconfig, "describe", "vm", "store-4")
    assert re.search(r"^Placement:\n", said, re.MULTILINE)
    assert "rack2-c" in said
    assert "in maintenance" in said
    holdfast(kubeconfig, "wait", "vmpp/spread", "--for=jsonpath={.status.placementStats.failedPlacements}=1")


@contextlib.contextmanager
def bucket() -> Iterator[s3_server.S3]:
    """An S3 server that runs beside the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = s3_server.serving()
    try:
        yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_the_example_of_a_migration_runs_through_a_claim_and_another_one_through_a_bucket(
    kubeconfig: str, tmp_path: Path
) -> None:
    holdfast(kubeconfig, "apply", "-f", str(EXAMPLE.with_name("migration.yaml")))
    said = holdfast(kubeconfig, "rollout", "status", "vmmigration/shop-to-new-rack", "--timeout=60s")
    assert "Validating-Target" in said
    moved = "VirtualMachine shop was moved to provider new-rack as VirtualMachine shop-moved"
    assert said.splitlines()[-1] == f"shop-to-new-rack: the migration is complete: {moved}"
    shown = holdfast(kubeconfig, "get", "vmmigration", "shop-to-new-rack")
    assert shown.splitlines()[1].split()[:5] == ["shop-to-new-rack", "shop", "shop-moved", "Ready", "100"]
    assert re.search(r"^Disk:\n", holdfast(kubeconfig, "describe", "vmmigration", "shop-to-new-rack"), re.MULTILINE)
    assert holdfast(kubeconfig, "get", "vm", "shop", "-o", "jsonpath={.status.powerState}") == "Off"

    with bucket() as s3:
        metadata: dict[str, Any] = {"name": "back"}
        secret = {"accessKeyID": s3_server.ACCESS, "secretAccessKey": s3_server.SECRET}
        spec = {
            "source": {"vmRef": {"name": "shop-moved"}, "powerOffBeforeMigration": True, "deleteAfterMigration": True},
            "target": {"name": "shop-back", "providerRef": {"name": "old-rack"}, "powerOn": True},
            "storage": {
                "type": "s3",
                "s3": {"bucket": "bucket", "endpoint": s3.endpoint, "credentialsSecretRef": {"name": "back"}},
            },
        }
        objects = (
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": secret},
            {"apiVersion": EXAMPLE_VERSION, "kind": "VMMigration", "metadata": metadata, "spec": spec},
        )
        (tmp_path / "back.yaml").write_text(yaml.safe_dump_all(objects))
        holdfast(kubeconfig, "apply", "-f", str(tmp_path / "back.yaml"))
        holdfast(kubeconfig, "rollout", "status", "vmmigration/back", "--timeout=60s")
        holdfast(kubeconfig, "wait", "vmmigration/back", "--for=jsonpath={.status.storageInfo.cleanedUp}=true")
        assert any(method == "PUT" for method, _ in s3.requests)
        assert (s3.objects, s3.uploads) == ({}, {})
        assert "secretAccessKey" not in holdfast(kubeconfig, "get", "vmmigration", "back", "-o", "yaml")
