"""On a cluster: a machine is applied, boots, outlives its provider and its operator, shuts down and is deleted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.places import ROOT
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_machines import processes

pytestmark = pytest.mark.skipif(bool(tiny.missing()), reason=tiny.missing())

MANIFESTS = """
apiVersion: infra.virtrigaud.io/v1beta1
kind: Provider
metadata: {name: rack}
spec:
  type: qemu
  endpoint: qemu:///system
  credentialSecretRef: {name: none}
  runtime:
    image: holdfast/provider-qemu:0.1.0
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMClass
metadata: {name: small}
spec: {cpu: 1, memory: 256Mi, diskDefaults: {size: 1Gi}}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMImage
metadata: {name: tiny}
spec:
  source:
    libvirt: {path: tiny}
---
apiVersion: infra.virtrigaud.io/v1beta1
kind: VirtualMachine
metadata: {name: web}
spec:
  providerRef: {name: rack}
  classRef: {name: small}
  imageRef: {name: tiny}
  powerState: "On"
"""

PATIENCE = 90.0


def holdfast(folder: Path, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "KUBECONFIG": str(folder / "kubeconfig")}
    command = [sys.executable, "-m", "holdfast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=seconds)


@contextlib.contextmanager
def up(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "holdfast", "up", "--data-dir", str(folder / "state"), "--nodes", "1"]
    command += ["--kubeconfig", str(folder / "kubeconfig"), "--operators", "virtualmachine"]
    command += ["--set", f"virtualmachine.images={folder / 'images'}"]
    with (folder / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                run.terminate()
                run.wait(30)


def until(what: Callable[[], Any], folder: Path) -> Any:
    """Ask the command line until it has something to say; it is another process, which announces nothing."""
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        if time.monotonic() > deadline:
            shown = holdfast(folder, "get", "vm", "web", "-o", "yaml").stdout
            pytest.fail(f"{shown}\n{(folder / 'log').read_text()[-2000:]}")
        time.sleep(0.3)
    return found


def status(folder: Path) -> dict[str, Any]:
    found = holdfast(folder, "get", "vm", "web", "-o", "json")
    return json.loads(found.stdout).get("status", {}) if found.returncode == 0 else {}


def providers(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
            if b"\0provider\0serve\0qemu\0" in line and str(folder).encode() in line:
                found.append(int(entry.name))
    return found


def test_a_machine_outlives_its_provider_and_its_operator(tmp_path: Path) -> None:
    tiny.build(tmp_path / "images" / "tiny")
    manifests = tmp_path / "vm.yaml"
    manifests.write_text(MANIFESTS)
    try:
        with up(tmp_path) as run:
            until(lambda: holdfast(tmp_path, "apply", "-f", str(manifests)).returncode == 0, tmp_path)
            until(lambda: status(tmp_path).get("ips") == ["10.0.2.15"], tmp_path)
            assert status(tmp_path)["phase"] == "Running"
            machine = processes(tmp_path)
            assert len(machine) == 1

            (provider,) = providers(tmp_path)
            os.kill(provider, signal.SIGKILL)
            until(lambda: [one for one in providers(tmp_path) if one != provider], tmp_path)
            assert processes(tmp_path) == machine
            run.kill()
        until(lambda: not providers(tmp_path), tmp_path)
        assert processes(tmp_path) == machine

        with up(tmp_path):
            until(lambda: providers(tmp_path) and status(tmp_path).get("phase") == "Running", tmp_path)
            changed = manifests.read_text().replace('powerState: "On"', "powerState: OffGraceful")
            manifests.write_text(changed)
            until(lambda: holdfast(tmp_path, "apply", "-f", str(manifests)).returncode == 0, tmp_path)
            until(lambda: status(tmp_path).get("phase") == "Stopped", tmp_path)
            assert processes(tmp_path) == []
            (serial,) = tmp_path.rglob("serial.log")
            assert serial.read_text().count("guest: booting") == 1
            assert "reboot: Power down" in serial.read_text()
            assert holdfast(tmp_path, "delete", "vm", "web").returncode == 0
            assert not list(tmp_path.rglob("*.qcow2"))
    finally:
        for number in processes(tmp_path):
            os.kill(number, signal.SIGKILL)
