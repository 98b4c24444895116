"""``holdfast rollout`` against a cluster that works: what is asked for happens, and is seen to happen."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.clusters import HOLDFAST, up
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.errors import ExitCode

NUMBERS = itertools.count(1)
EXAMPLES = ROOT / "examples" / "demo"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """The kubeconfig of a cluster with two nodes."""
    with up("--nodes", "2") as kubeconfig:
        yield kubeconfig


class Shop:
    """A Workload of a test's own, and the commands on it."""

    ready_after = "0s"

    def __init__(self, kubeconfig: Path, folder: Path, name: str) -> None:
        self.kubeconfig = kubeconfig
        self._file = folder / f"{name}.yaml"
        self.name = name

    def manifest(self, image: str, **rollout: Any) -> str:
        document = {
            "apiVersion": "cloudless.io/v1",
            "kind": "Workload",
            "metadata": {"name": self.name, "annotations": {"sim.holdfast.dev/ready-after": self.ready_after}},
            "spec": {"image": image, "replicas": 3, "rollout": {"minAvailable": 2, "maxSurge": 1, **rollout}},
        }
        self._file.write_text(yaml.safe_dump(document))
        return str(self._file)

    def run(self, *args: str) -> Result:
        return CliRunner().invoke(
            main, [*args, "--kubeconfig", str(self.kubeconfig)], prog_name="holdfast", env={"COLUMNS": "100"}
        )

    def apply(self, image: str, **rollout: Any) -> None:
        result = self.run("apply", "-f", self.manifest(image, **rollout), "--force-conflicts")
        assert result.exit_code == ExitCode.OK, result.output

    def rollout(self, verb: str, *options: str, code: int = ExitCode.OK) -> str:
        result = self.run("rollout", verb, f"workload/{self.name}", *options)
        assert result.exit_code == code, result.output
        return result.output

    def settled(self, code: int = ExitCode.OK) -> str:
        """Wait until it is over; the last line."""
        return self.rollout("status", "--timeout=60s", code=code).splitlines()[-1]

    def until(self, path: str, value: str) -> None:
        """Wait for what somebody has to answer, which ends no wait for the rollout."""
        result = self.run("wait", f"workload/{self.name}", f"--for=jsonpath={{{path}}}={value}", "--timeout=60s")
        assert result.exit_code == ExitCode.OK, result.output

    def images(self) -> set[str]:
        """What runs; what terminates is not waited for."""
        listed = self.run("get", "pods", "-l", f"cloudless.io/workload={self.name}", "-o", "json").output
        pods = [pod for pod in json.loads(listed)["items"] if "deletionTimestamp" not in pod["metadata"]]
        return {pod["spec"]["containers"][0]["image"] for pod in pods}


@pytest.fixture
def shop(cluster: Path, tmp_path: Path) -> Shop:
    return Shop(cluster, tmp_path, f"shop-{next(NUMBERS)}")


def test_a_warning_about_the_limits_is_printed_once(shop: Shop) -> None:
    shop.apply("shop:1", minAvailable=3, maxSurge=None)
    lines = shop.rollout("status", "--timeout=60s").splitlines()
    assert [line for line in lines if line.startswith(f"{shop.name}: warning: the floor of 3")] == lines[:1]


def test_a_rollout_is_followed_line_by_line_to_its_end(shop: Shop) -> None:
    shop.ready_after = "1s"
    shop.apply("shop:1")
    *_, before, last = shop.rollout("status", "--timeout=60s").splitlines()
    assert before.startswith(f"{shop.name}: ScalingUp: 3 of 3 updated, ")
    assert re.fullmatch(rf"{shop.name}: revision \w+ is rolled out: 3 of 3 replicas ready", last)
    shown = json.loads(shop.rollout("status", "--watch=false", "-o", "json"))
    assert (shown["state"], shown["readyReplicas"], shown["floor"]) == ("Completed", 3, 2)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("way", [("--server-side",), ()], ids=["server-side", "client-side"])
def test_a_corrected_manifest_is_applied_after_an_undo_without_a_conflict(shop: Shop, way: tuple[str, ...]) -> None:
    def apply(image: str, **spec: Any) -> None:
        document = yaml.safe_load(Path(shop.manifest(image)).read_text())
        document["spec"] |= spec
        given = json.dumps(document)
        command = ["kubectl", "--kubeconfig", str(shop.kubeconfig), "apply", *way, "-f", "-"]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    apply("shop:1", args=["--quick"])
    shop.settled()
    apply("shop:2")
    shop.settled()
    shop.rollout("undo")
    shop.settled()
    shop.rollout("pause")
    shop.rollout("resume")
    apply("shop:3")
    shop.settled()
    assert shop.images() == {"shop:3"}
    if way:
        # The manager that applies the spec owns what the undo brought back, so it also removes it.
        assert "args" not in json.loads(shop.run("get", f"workload/{shop.name}", "-o", "json").output)["spec"]


def test_what_is_undone_stays_undone_when_a_machine_applies_it_again(shop: Shop) -> None:
    shop.apply("shop:1")
    shop.settled()
    shop.apply("shop:2")
    shop.settled()
    assert "undone: back to revision 1" in shop.rollout("undo")
    shop.settled()
    assert shop.images() == {"shop:1"}
    shop.apply("shop:2")
    assert "was rejected" in shop.settled(code=ExitCode.BLOCKED)
    assert shop.images() == {"shop:1"}
    history = json.loads(shop.rollout("history", "-o", "json"))
    assert {each["image"]: each["marks"] for each in history} == {"shop:1": ["current"], "shop:2": ["rejected"]}
    why = {each["image"]: each["rejection"] for each in history}
    assert (why["shop:1"], "(Undone): A user returned to an earlier revision." in why["shop:2"]) == (None, True)
    assert why["shop:2"] in shop.rollout("history").splitlines()
    shop.apply("shop:3")
    shop.settled()
    assert shop.images() == {"shop:3"}


def test_a_canary_waits_for_its_promotion_and_an_abort_brings_the_old_one_back(shop: Shop) -> None:
    manners = {"strategy": "Canary", "canary": {"steps": [{"replicas": 1, "manual": True}]}}
    shop.apply("shop:1", **manners)
    shop.settled()
    assert "is rolled out" in shop.rollout("promote", code=ExitCode.BLOCKED)
    shop.apply("shop:2", **manners)
    shop.until(".status.rollout.because.code", "ApprovalNeeded")
    assert "ApprovalNeeded" in shop.rollout("status", "--watch=false", code=ExitCode.STANDS_STILL)
    assert "is rejected" in shop.rollout("abort")
    assert "was rejected" in shop.settled(code=ExitCode.BLOCKED)
    assert shop.images() == {"shop:1"}
    assert "rolled out again" in shop.rollout("retry")
    shop.until(".status.rollout.because.code", "ApprovalNeeded")
    assert "promoted: step 1 of 2" in shop.rollout("promote")
    shop.settled()
    assert shop.images() == {"shop:2"}


def test_a_pause_holds_a_rollout_until_it_is_resumed(shop: Shop) -> None:
    shop.apply("shop:1")
    shop.settled()
    assert "note: nothing is under way" in shop.rollout("pause")
    assert "already paused" in shop.rollout("pause")
    result = json.loads(shop.rollout("restart", "-o", "json"))
    assert (result["result"], result["notes"]) == (
        "changed",
        ["it is paused, so nothing happens before it is resumed"],
    )
    shop.until(".status.rollout.because.code", "Paused")
    timed_out = shop.rollout("status", "--timeout=1s", code=ExitCode.BLOCKED)
    assert "timed out waiting for the rollout" in timed_out
    assert "resumed" in shop.rollout("resume")
    shop.settled()
    changes = [each["change"] for each in json.loads(shop.rollout("history", "-o", "json"))]
    assert changes == ["first known", "restart"]


def test_a_blocked_rollout_ends_the_wait_and_says_the_remedy(shop: Shop) -> None:
    stuck = {"minAvailable": 3, "maxSurge": 0, "maxUnavailable": 1}
    shop.apply("shop:1", **stuck)
    shop.settled()
    planned = shop.run("rollout", "plan", "-f", shop.manifest("shop:2", **stuck))
    assert planned.exit_code == ExitCode.BLOCKED
    assert "blocked: all 3 replicas must stay available" in planned.output
    assert shop.images() == {"shop:1"}
    shop.apply("shop:2", **stuck)
    assert "set maxSurge to 1 or more" in shop.settled(code=ExitCode.STANDS_STILL)


def test_a_plan_begins_where_the_cluster_is_and_changes_nothing(shop: Shop) -> None:
    first = json.loads(shop.run("rollout", "plan", "-f", shop.manifest("shop:1"), "-o", "json").output)
    assert [(step["action"], step["count"]) for step in first["steps"]] == [("start", 3), ("wait", 3)]
    shop.apply("shop:1")
    shop.settled()
    idle = json.loads(shop.rollout("plan", "-o", "json"))
    assert (idle["steps"], idle["outcome"]["code"]) == ([], "Completed")
    planned = json.loads(shop.rollout("plan", "--image", "shop:2", "-o", "json"))
    assert (planned["current"], planned["lowestReady"], planned["finalReplicas"]) == (3, 2, 3)
    assert shop.images() == {"shop:1"}
    larger = json.loads(shop.rollout("plan", "--replicas", "5", "-o", "json"))
    assert [(step["action"], step["count"], step["side"]) for step in larger["steps"]][:1] == [("start", 2, "new")]


def test_a_plan_keeps_what_a_disruption_budget_keeps(shop: Shop) -> None:
    shop.apply("shop:1")
    shop.settled()
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": shop.name},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"cloudless.io/workload": shop.name}}},
    }
    file = Path(shop.manifest("shop:1")).with_name("budget.yaml")
    file.write_text(yaml.safe_dump(budget))
    assert shop.run("apply", "-f", str(file)).exit_code == ExitCode.OK
    assert json.loads(shop.rollout("plan", "--image", "shop:2", "-o", "json"))["lowestReady"] == 3


def test_on_a_terminal_a_rollout_is_a_tree_that_stays_when_it_is_over(shop: Shop, cluster: Path) -> None:
    shop.apply("shop:1")
    master, slave = pty.openpty()
    args = [*HOLDFAST, "rollout", "status", f"workload/{shop.name}", "--timeout=60s", "--kubeconfig", str(cluster)]
    environment = os.environ | {"COLUMNS": "120", "LINES": "40", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(args, stdout=slave, stderr=subprocess.PIPE, env=environment)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65_536):
            shown += part
    except OSError:
        pass  # the other end is closed
    finally:
        os.close(master)
    _, complaints = process.communicate()
    assert (process.returncode, complaints) == (ExitCode.OK, b"")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    final = plain[plain.rindex("✓ shop") :]
    assert "updated  " in final
    assert final.count("● shop") == 3
    assert re.search(rf"\n{shop.name}: revision \w+ is rolled out: 3 of 3 replicas ready\s*$", final)


@pytest.mark.parametrize(
    ("args", "said", "code"),
    [
        (
            ["status", "deployment/web"],
            "it rolls out workloads.cloudless.io, podcliquesets.grove.io, tenants.rustfs.com",
            ExitCode.BLOCKED,
        ),
        (["status", "workload/none"], "not found", ExitCode.BLOCKED),
        (["status", "workload"], "name one object", ExitCode.BAD_INPUT),
        (["undo", "workload/none"], "not found", ExitCode.BLOCKED),
        (["pause", "workload"], "no name was specified", ExitCode.BAD_INPUT),
        (["plan"], "name an object", ExitCode.BAD_INPUT),
        (["history", "workload/none"], "not found", ExitCode.BLOCKED),
    ],
)
def test_mistakes_are_one_message(cluster: Path, args: list[str], said: str, code: int) -> None:
    result = CliRunner().invoke(main, ["rollout", *args, "--kubeconfig", str(cluster)], prog_name="holdfast")
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


def test_one_revision_is_shown_in_full_and_one_that_is_not_there_lists_the_others(shop: Shop) -> None:
    shop.apply("shop:1")
    shop.settled()
    assert "image: shop:1" in shop.rollout("history", "--revision", "1")
    assert json.loads(shop.rollout("history", "--revision", "1", "-o", "json"))["spec"]["image"] == "shop:1"
    assert "there is no revision 7; the history has 1" in shop.rollout("history", "--revision", "7", code=1)


# Other kinds.


class Subject:
    """An object of the examples, and the commands on it."""

    def __init__(self, kubeconfig: Path, folder: Path, example: str, type: str) -> None:
        self.kubeconfig = kubeconfig
        self._file = folder / f"{example}.yaml"
        self._text = (EXAMPLES / f"{example}.yaml").read_text()
        self.name = f"{type}/{yaml.safe_load(self._text)['metadata']['name']}"

    def run(self, *args: str, code: int = ExitCode.OK) -> str:
        result = CliRunner().invoke(main, [*args, "--kubeconfig", str(self.kubeconfig)], prog_name="holdfast")
        assert result.exit_code == code, result.output
        return result.output

    def apply(self, old: str = "", new: str = "") -> None:
        self._file.write_text(self._text.replace(old, new) if old else self._text)
        self.run("apply", "-f", str(self._file), "--force-conflicts")

    def rollout(self, verb: str, *options: str, code: int = ExitCode.OK) -> str:
        return self.run("rollout", verb, self.name, *options, code=code)

    def settled(self) -> str:
        return self.rollout("status", "--timeout=60s").splitlines()[-1]

    def standing(self, code: int = ExitCode.OK) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.rollout("status", "--watch=false", "-o", "json", code=code))
        return shown


def test_a_gang_is_followed_through_its_update_paused_resumed_and_restarted(cluster: Path, tmp_path: Path) -> None:
    llm = Subject(cluster, tmp_path, "podcliqueset", "pcs")
    llm.apply()
    assert llm.settled().endswith("is rolled out: 2 of 2 replicas ready")
    before = llm.standing()
    assert (before["rollingUpdateInProgress"], before["updateProgress"]) == (False, {"updated": 2, "total": 2})
    assert [(each["name"], each["floor"]) for each in before["floors"]][:2] == [
        ("llm-0-frontend", 2),
        ("llm-0-engine", 3),
    ]
    assert "nothing is under way" in llm.rollout("pause")
    llm.apply("engine:1", "engine:2")
    assert llm.standing(code=ExitCode.STANDS_STILL)["because"]["code"] == "Paused"
    assert "resumed" in llm.rollout("resume")
    after = llm.rollout("status", "--timeout=60s", "-o", "json")
    assert json.loads(after)["updateRevision"] != before["updateRevision"]
    tree = llm.rollout("status", "--watch=false", "-o", "tree")
    assert tree.count("● …") == 10
    assert "restarted" in llm.rollout("restart")
    assert llm.settled().endswith("is rolled out: 2 of 2 replicas ready")
    assert llm.standing()["updateRevision"] != json.loads(after)["updateRevision"]
    assert "hint: apply the earlier manifest" in llm.rollout("undo", code=ExitCode.BLOCKED)
    assert "keeps no earlier templates" in llm.rollout("history", code=ExitCode.BLOCKED)
    assert "write the change in a manifest" in llm.rollout("plan", "--image", "x:1", code=ExitCode.BAD_INPUT)


def test_the_plan_of_a_gang_set_says_for_each_part_how_low_it_goes_before_anything_is_touched(
    cluster: Path, tmp_path: Path
) -> None:
    llm = Subject(cluster, tmp_path, "podcliqueset", "pcs")
    llm.apply()
    llm.settled()
    before = llm.standing()
    changed = tmp_path / "changed.yaml"
    text = (EXAMPLES / "podcliqueset.yaml").read_text().replace("engine:1", "engine:3")
    changed.write_text(text.replace("maxSurge: 1", "maxSurge: 0").replace("maxUnavailable: 0", "maxUnavailable: 1"))
    planned = json.loads(llm.run("rollout", "plan", "-f", str(changed), "-o", "json"))
    assert [
        (part["name"], part["minAvailable"], part["lowestReady"], [each["code"] for each in part["warnings"]])
        for part in planned["parts"]
    ] == [(f"llm-{index}-engine", 3, 2, ["FloorLowered"]) for index in (0, 1)]
    assert "one after another, in the order 0, 1" in planned["notes"][0]
    table = llm.run("rollout", "plan", "-f", str(changed))
    assert "llm-0-engine and llm-1-engine: RollingUpdate, 3 replicas, new revision" in table
    assert "(FloorLowered)" in table
    assert llm.standing() == before
    assert "no part has pods to start" in llm.rollout("plan")
    larger = json.loads(llm.rollout("plan", "--replicas", "3", "-o", "json"))
    assert [(part["name"], part["current"], part["desired"]) for part in larger["parts"]] == [
        ("llm-2-frontend", 0, 2),
        ("llm-2-engine", 0, 3),
    ]


def test_a_store_is_followed_server_by_server_paused_and_restarted(cluster: Path, tmp_path: Path) -> None:
    media = Subject(cluster, tmp_path, "tenant", "tenant")
    media.apply()
    assert media.settled().endswith("is rolled out: 4 of 4 servers ready")
    media.rollout("pause")
    media.apply("beta.10", "beta.11")
    media.run("wait", media.name, "--for=jsonpath={.status.conditions[0].reason}=RolloutPaused", "--timeout=60s")
    held = media.standing(code=ExitCode.STANDS_STILL)
    (pool,) = held["pools"]
    assert (held["state"], pool["updateStrategy"], pool["updatedReplicas"]) == ("Waiting", "OnDelete", 0)
    assert "resumed" in media.rollout("resume")
    lines = media.rollout("status", "--timeout=60s").splitlines()
    assert lines[-1].endswith("is rolled out: 4 of 4 servers ready")
    before = media.standing()["updateRevision"]
    media.rollout("restart")
    media.settled()
    assert media.standing()["updateRevision"] != before
    assert "hint: apply the earlier manifest" in media.rollout("undo", code=ExitCode.BLOCKED)
    assert "keeps no earlier specs" in media.rollout("history", code=ExitCode.BLOCKED)
