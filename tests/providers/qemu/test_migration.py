"""On a cluster: a real guest moves from one QEMU provider to another with what it wrote, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_cluster import holdfast, until, up
from tests.providers.qemu.test_machines import processes

pytestmark = pytest.mark.skipif(bool(tiny.missing()), reason=tiny.missing())

MANIFESTS = """
apiVersion: infra.virtrigaud.io/v1beta1
kind: Provider
metadata: {name: rack-a}
spec: {type: qemu, endpoint: "qemu:///system", runtime: {image: holdfast}}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: Provider
metadata: {name: rack-b}
spec: {type: qemu, endpoint: "qemu:///system", runtime: {image: holdfast}}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMClass
metadata: {name: small}
spec: {cpu: 1, memory: 256Mi, diskDefaults: {size: 1Gi}, extraConfig: {kernel: tiny}}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMImage
metadata: {name: tiny}
spec: {source: {libvirt: {path: tiny}}}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VirtualMachine
metadata: {name: web}
spec:
  providerRef: {name: rack-a}
  classRef: {name: small}
  imageRef: {name: tiny}
"""

MIGRATION = """
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMMigration
metadata: {name: move}
spec:
  source: {vmRef: {name: web}, powerOffBeforeMigration: true}
  target: {name: moved, providerRef: {name: rack-b}, powerOn: true}
  options:
    diskFormat: vmdk
    validationChecks: {checkBoot: true, checkConnectivity: true}
"""


def found(folder: Path, kind: str, name: str) -> dict[str, Any]:
    answer = holdfast(folder, "get", kind, name, "-o", "json")
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def counts(machine: dict[str, Any]) -> list[int]:
    """The numbers that a guest has written to its disk, by its console."""
    log = Path(machine["status"]["provider"]["folder"]) / "serial.log"
    return [int(each) for each in re.findall(r"guest: count (\d+)", log.read_text(errors="replace"))]


def test_a_real_guest_moves_to_another_provider_with_what_it_wrote(tmp_path: Path) -> None:
    tiny.build(tmp_path / "images" / "tiny", counting=True)
    first, second = tmp_path / "vm.yaml", tmp_path / "migration.yaml"
    first.write_text(MANIFESTS)
    second.write_text(MIGRATION)
    try:
        with up(tmp_path):
            until(lambda: holdfast(tmp_path, "apply", "-f", str(first)).returncode == 0, tmp_path)
            until(lambda: found(tmp_path, "vm", "web").get("status", {}).get("ips"), tmp_path)
            source = found(tmp_path, "vm", "web")
            until(lambda: len(counts(source)) > 2, tmp_path)
            assert holdfast(tmp_path, "apply", "-f", str(second)).returncode == 0
            ready = ("wait", "vmmigration/move", "--for=condition=Ready", "--timeout=90s")
            assert holdfast(tmp_path, *ready, seconds=100).returncode == 0, found(tmp_path, "vmmigration", "move")
            migration = found(tmp_path, "vmmigration", "move")["status"]
            results = migration["validationResults"]
            assert (results["bootSuccess"], results["connectivitySuccess"], results["checksumMatch"]) == (True,) * 3
            assert (migration["diskInfo"]["sourceFormat"], migration["diskInfo"]["targetFormat"]) == ("qcow2", "qcow2")
            assert migration["storageInfo"]["url"].endswith(".vmdk")

            moved = found(tmp_path, "vm", "moved")
            log = Path(source["status"]["provider"]["folder"]) / "serial.log"
            assert "reboot: Power down" in log.read_text(errors="replace"), "it was shut down, and not killed"
            assert counts(moved)[0] == counts(source)[-1] + 1, "it goes on where it was"
            assert len(processes(tmp_path)) == 1
            assert holdfast(tmp_path, "delete", "vm", "web").returncode == 0
            until(lambda: found(tmp_path, "vmmigration", "move")["status"]["storageInfo"].get("cleanedUp"), tmp_path)
            disks = [path.relative_to(tmp_path) for path in (tmp_path / "state").rglob("*") if _is_disk(path)]
            assert [path.name for path in disks] == ["root.qcow2"], disks

            assert holdfast(tmp_path, "delete", "vmmigration", "move").returncode == 0
            assert holdfast(tmp_path, "delete", "vm", "moved").returncode == 0
            assert processes(tmp_path) == []
            assert not [path for path in (tmp_path / "state").rglob("*") if _is_disk(path)]
    finally:
        for number in processes(tmp_path):
            os.kill(number, signal.SIGKILL)


def _is_disk(path: Path) -> bool:
    return path.is_file() and re.search(r"\.(qcow2|vmdk|raw|part|import|export)$", path.name) is not None
