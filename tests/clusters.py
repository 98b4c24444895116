"""Clusters and API servers that run in another process, as a user starts them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.places import ROOT

HOLDFAST = (sys.executable, "-m", "holdfast")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
STARTS_WITHIN = 120.0


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A command that serves an API, once it is ready, and its kubeconfig; killed when the block ends."""
    process = subprocess.Popen([*HOLDFAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"ready: https://\S+  (?:export )?KUBECONFIG=(\S+)\n", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        yield process, Path(found[1])
    finally:
        process.kill()
        process.communicate()


@contextmanager
def up(*options: str) -> Iterator[Path]:
    """A cluster with nothing but what ``up --ephemeral`` gives it, until the block ends; its kubeconfig."""
    command = [*HOLDFAST, "up", "--ephemeral", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) as process:
        assert process.stdout is not None
        # A cluster that never starts fails the test instead of hanging.
        limit = threading.Timer(STARTS_WITHIN, process.kill)
        limit.start()
        printed = []
        for line in process.stdout:
            printed.append(line)
            if found := re.search(r"KUBECONFIG=(\S+)", line):
                break
        else:
            raise AssertionError(f"holdfast up ended:\n{''.join(printed)}")
        limit.cancel()
        # What it prints is read, so that it never waits for a reader.
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        reader.start()
        try:
            yield Path(found[1])
        finally:
            process.terminate()
            reader.join()
