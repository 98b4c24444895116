"""``holdfast rollout status`` while the server is killed and started again, as real processes on one port."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.clusters import HOLDFAST

from holdfast.cli.errors import ExitCode

PATIENCE = 90.0
"""Seconds after which a process that says nothing is ended, so that a defect fails the test."""

LOST = r"connection lost since \d\d:\d\d:\d\d"


@contextmanager
def up(*options: str) -> Iterator[tuple[subprocess.Popen[str], Path, str]]:
    """A cluster that is ready, its kubeconfig and its port."""
    command = [*HOLDFAST, "up", "--nodes", "1", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        found = re.fullmatch(r"ready: https://\S+:(\d+)  export KUBECONFIG=(\S+)\n", process.stdout.readline())
        assert found
        yield process, Path(found[2]), found[1]
    finally:
        process.kill()
        process.communicate()


class Follower:
    """A process that follows a rollout, and what it has printed so far."""

    def __init__(self, *arguments: str, terminal: bool) -> None:
        self._end, inner = pty.openpty() if terminal else os.pipe()
        environment = os.environ | {"COLUMNS": "100", "LINES": "30", "TERM": "xterm", "NO_COLOR": "1"}
        self.process = subprocess.Popen([*HOLDFAST, *arguments], stdout=inner, stderr=subprocess.PIPE, env=environment)
        os.close(inner)
        self._timer = threading.Timer(PATIENCE, self.process.kill)
        self._timer.start()
        self.printed = ""

    def until(self, pattern: str) -> str:
        """Read until something new matches; what matched."""
        begin = len(self.printed)
        while not (found := re.search(pattern, self.printed[begin:])):
            self.printed += self._read()
        return found[0]

    def _read(self) -> str:
        try:
            part = os.read(self._end, 65_536)
        except OSError:
            part = b""  # the other end of a terminal is closed
        assert part, self.printed
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part.decode(errors="replace"))

    def close(self) -> None:
        self._timer.cancel()
        self.process.kill()
        self.process.communicate()
        os.close(self._end)


def manifest(folder: Path, image: str, ready_after: str) -> str:
    file = folder / "shop.yaml"
    document = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "shop", "annotations": {"sim.holdfast.dev/ready-after": ready_after}},
        "spec": {"image": image, "replicas": 2},
    }
    file.write_text(yaml.safe_dump(document))
    return str(file)


def test_a_rollout_whose_server_is_killed_is_shown_as_outdated_and_followed_when_the_server_is_back(
    tmp_path: Path,
) -> None:
    home = str(tmp_path / "state")
    followers: list[Follower] = []
    with up("--data-dir", home) as (server, kubeconfig, port):
        where = ("--kubeconfig", str(kubeconfig))

        def run(*arguments: str) -> None:
            subprocess.run([*HOLDFAST, *arguments, *where], check=True, capture_output=True)

        run("apply", "-f", manifest(tmp_path, "shop:1", "1h"))
        follow = ("rollout", "status", "workload/shop", "--watch", *where)
        try:
            pipe = Follower(*follow, terminal=False)
            followers.append(pipe)
            tree = Follower(*follow, terminal=True)
            followers.append(tree)
            pipe.until("shop: ScalingUp: .*\n")
            tree.until("ScalingUp")

            server.kill()
            server.wait()
            assert pipe.until(f"shop: {LOST}, retrying: .*\n")
            assert tree.until(f"{LOST}, retrying; what follows is as it was then")

            with up("--data-dir", home, "--port", port):
                pipe.until(r"shop: connected again after \d+s\n")
                run("apply", "-f", manifest(tmp_path, "shop:2", "0s"))
                pipe.until(r"is rolled out: 2 of 2 replicas ready\n")
                tree.until("✓ shop")
                assert [each.process.wait(PATIENCE) for each in followers] == [ExitCode.OK, ExitCode.OK]
                assert pipe.printed.count("connection lost") == 1
                assert "connection lost" not in tree.printed[tree.printed.rindex("✓ shop") :]
        finally:
            for each in followers:
                each.close()
