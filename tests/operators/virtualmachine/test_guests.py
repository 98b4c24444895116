"""Snapshots and clones of real guests on `holdfast up`: what a guest wrote before is there after, and nothing is left.

The guest counts seconds in a file on its disk, so that its console shows which disk and which memory it has.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_cluster import holdfast, providers, until, up
from tests.providers.qemu.test_machines import processes

from holdfast.meta.quantities import Quantity

pytestmark = pytest.mark.skipif(bool(tiny.missing()), reason=tiny.missing())

API = "infra.virtrigaud.io/v1beta1"
MIB = 1 << 20


def applied(folder: Path, *objects: tuple[str, str, dict[str, Any]]) -> None:
    """Apply objects: their kind, name and spec."""
    manifests = folder / "manifests.yaml"
    documents = [
        {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec} for kind, name, spec in objects
    ]
    manifests.write_text(yaml.safe_dump_all(documents))
    until(lambda: holdfast(folder, "apply", "-f", str(manifests)).returncode == 0, folder)


def waited(folder: Path, what: str, phase: str) -> dict[str, Any]:
    """The status of an object in a phase."""
    for _ in range(3):  # emulated guests are slow where other tests run too
        found = holdfast(folder, "wait", what, f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=50s")
        if found.returncode == 0:
            break
    shown = holdfast(folder, "get", what, "-o", "json").stdout
    assert found.returncode == 0, shown
    status: dict[str, Any] = json.loads(shown)["status"]
    return status


def of(machine: str) -> dict[str, Any]:
    references = {"providerRef": {"name": "qemu"}, "classRef": {"name": "small"}, "imageRef": {"name": machine}}
    return {**references, "powerState": "On" if machine == "counter" else "Off"}


def counted(folder: Path) -> tuple[int, str]:
    """What the console of a machine showed last: its count, and the word of its boot."""
    shown = re.findall(r"guest: count (\d+) word (\S+)", console(folder))
    return (int(shown[-1][0]), shown[-1][1]) if shown else (0, "")


def console(folder: Path) -> str:
    log = folder / "serial.log"
    return log.read_text(errors="replace") if log.exists() else ""


def folder_of(status: dict[str, Any]) -> Path:
    return Path(status["provider"]["folder"])


def test_a_guest_goes_back_to_a_snapshot_with_its_memory_and_its_clones_have_its_files(tmp_path: Path) -> None:
    tiny.build(tmp_path / "images" / "counter", counting=True)
    blank = tmp_path / "images" / "blank.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", blank, "16M"], check=True)
    try:
        with up(tmp_path):
            applied(
                tmp_path,
                ("VMClass", "small", {"cpu": 1, "memory": "192Mi", "diskDefaults": {"size": "1Gi"}}),
                ("VMImage", "counter", {"source": {"libvirt": {"path": "counter"}}}),
                ("VMImage", "blank", {"source": {"libvirt": {"path": "blank.qcow2"}}}),
                ("VirtualMachine", "counter", of("counter")),
                ("VirtualMachine", "blank", of("blank")),
            )
            source = folder_of(waited(tmp_path, "vm/counter", "Running"))
            _linked(tmp_path)
            until(lambda: counted(source)[0] >= 2, tmp_path)
            _snapshot_and_clones(tmp_path, source)
            assert len(folders(tmp_path)) == 5
            for kind, names in (("vmsnapshot", ["before"]), ("vm", ["counter", "blank", "copy", "past", "linked"])):
                assert holdfast(tmp_path, "delete", kind, *names, "--timeout=30s").returncode == 0
            assert processes(tmp_path) == []
            assert folders(tmp_path) == []
    finally:
        for number in processes(tmp_path):
            os.kill(number, signal.SIGKILL)


def folders(folder: Path) -> list[str]:
    """The folders of machines on the hypervisor."""
    return [path.name for path in folder.glob("state/**/hosts/*/*")]


def _linked(folder: Path) -> None:
    """A linked clone shares the image of its source, and has what was written to its disk."""
    disk = folder_of(waited(folder, "vm/blank", "Stopped")) / "root.qcow2"
    subprocess.run(["qemu-io", "-c", f"write -P 0x41 0 {MIB}", disk], check=True, stdout=subprocess.DEVNULL)
    options = {"source": {"vmRef": {"name": "blank"}}, "options": {"type": "LinkedClone"}}
    applied(folder, ("VMClone", "linked", {**options, "target": {"name": "linked"}}))
    assert waited(folder, "vmclone/linked", "Ready")["actualCloneType"] == "LinkedClone"
    clone = folder_of(waited(folder, "vm/linked", "Stopped")) / "root.qcow2"
    read = subprocess.run(["qemu-io", "-r", "-c", f"read -P 0x41 0 {MIB}", clone], capture_output=True, text=True)
    assert "Pattern verification failed" not in read.stdout + read.stderr
    shown = json.loads(subprocess.check_output(["qemu-img", "info", "-U", "--output=json", clone]))
    assert Path(shown["full-backing-filename"]).parent.name == "images"


def _snapshot_and_clones(folder: Path, source: Path) -> None:
    applied(folder, ("VMSnapshot", "before", {"vmRef": {"name": "counter"}, "snapshotConfig": {"includeMemory": True}}))
    snapshot = waited(folder, "vmsnapshot/before", "Ready")
    assert Quantity.parse(snapshot["size"]).to_int() > 8 * MIB, "the memory is in it"
    then, word = counted(source)
    until(lambda: counted(source)[0] >= then + 3, folder)
    later = counted(source)[0]

    # One clone of the snapshot, one of the machine as it is now; both start at the same time.
    for name, origin in (("past", {"snapshotRef": {"name": "before"}}), ("copy", {"vmRef": {"name": "counter"}})):
        applied(folder, ("VMClone", name, {"source": origin, "target": {"name": name}, "options": {"powerOn": True}}))
    (provider,) = providers(folder)
    os.kill(provider, signal.SIGKILL)  # the next process goes on with the clones, and the guest runs on
    made = {}
    for name in ("past", "copy"):
        assert waited(folder, f"vmclone/{name}", "Ready")["actualCloneType"] == "FullClone"
        made[name] = folder_of(waited(folder, f"vm/{name}", "Running"))

    # The machine goes back: the count is that of the snapshot, and the guest did not boot.
    revert = {**of("counter"), "snapshot": {"revertToRef": {"name": "before"}}}
    (source / "serial.log").rename(source / "serial.before")
    applied(folder, ("VirtualMachine", "counter", revert))
    until(lambda: counted(source)[0], folder)
    count, same = counted(source)
    assert (same, count <= then + 2) == (word, True)
    assert "guest: booting" not in console(source)
    assert waited(folder, "vm/counter", "Running")["revertedTo"]

    # The clones have booted, and count on from what was on the disk.
    for name in made:
        until(lambda name=name: counted(made[name])[0], folder)
    first = {name: int(re.findall(r"guest: count (\d+)", console(each))[0]) for name, each in made.items()}
    assert 2 <= first["past"] <= then + 2
    assert first["copy"] > later
    assert word not in {counted(each)[1] for each in made.values()}
