"""``holdfast provider serve``: it serves, keeps what it made, and refuses to serve unprotected by accident."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.places import ROOT

from holdfast.cli.main import main
from holdfast.providers.contract import Image, Machine
from holdfast.providers.wire.client import Remote

HEALTH: list[str] = []
"""The addresses of health, as they were printed."""


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A provider in a process of its own, and its address."""
    command = [sys.executable, "-m", "holdfast", "provider", "serve", *arguments, "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if line.startswith("health: "):
                HEALTH.append(line.split()[1])
                line = process.stdout.readline()
            if not line.startswith("ready: "):
                process.kill()
                pytest.fail(process.communicate()[1])
            yield line.split()[1], process
        finally:
            process.kill()


def test_a_simulated_provider_finds_its_machines_again_after_it_was_killed(tmp_path: Path) -> None:
    machine = Machine(name="web", image=Image(template="debian"))

    async def create(address: str) -> str:
        remote = Remote(address, plaintext=True)
        try:
            return (await remote.create(machine)).id
        finally:
            await remote.close()

    with serving("simulated", "--plaintext", "--data", str(tmp_path)) as (address, process):
        id = asyncio.run(create(address))
        process.kill()
    with serving("simulated", "--plaintext", "--data", str(tmp_path), "--health", "127.0.0.1:0") as (address, process):
        assert asyncio.run(create(address)) == id
        for path, word in (("healthz", "ok"), ("metrics", 'served_calls_total{call="Create",code="OK"} 1.0')):
            with urllib.request.urlopen(f"{HEALTH[-1]}/{path}") as response:
                assert word in response.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert "PLAINTEXT" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "a provider serves with TLS: give --tls-dir"),
        (("--tls-cert", "a", "--tls-key", "b", "--tls-ca", "c"), "there is no file a"),
        (("--tls-cert", "a", "--tls-key", "b", "--tls-ca", "c", "--plaintext"), "exclude each other"),
        (("--plaintext", "--claim", "stage"), "--claim is written NAME=FOLDER, and not stage"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_message(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(main, ["provider", "serve", "simulated", *arguments])
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts: [", "while parsing"),
        ("hosts: 3", "Expected `array`, got `int` - at `$.hosts`"),
        ("hosts: [{cpus: 4}]", "missing required field `name`"),
        ("hosts: [{name: a, cpus: many}]", "at `$.hosts[0].cpus`"),
        ("[]", "Expected `object`, got `array`"),
    ],
)
def test_an_inventory_that_cannot_be_read_is_refused_with_where(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text(text)
    arguments = ["provider", "serve", "simulated", "--plaintext"]
    for result in (
        CliRunner().invoke(main, [*arguments, "--inventory", str(file)]),
        CliRunner().invoke(main, arguments, env={"HOLDFAST_PROVIDER_INVENTORY": text}),
    ):
        assert result.exit_code == 2
        assert words in result.output
        assert "Traceback" not in result.output


def test_an_address_that_cannot_be_served_at_is_one_message() -> None:
    command = [sys.executable, "-m", "holdfast", "provider", "serve", "simulated", "--plaintext"]
    command += ["--listen", "127.0.0.1:99999"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert result.returncode == 2
    assert "error: cannot serve at 127.0.0.1:99999" in result.stderr
    assert "Traceback" not in result.stderr
