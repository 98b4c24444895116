"""The dashboard of a real cluster in a real browser: `holdfast up`, `holdfast dashboard`, and every verb."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.dashboard.browsers import Tab, chromium
from tests.operators.toy.controller import BEACONS
from tests.places import ROOT

from holdfast.apiserver.auth.certificates import new_authority, new_serving
from holdfast.client.kubeconfig import connect
from holdfast.client.resources import Resource
from holdfast.kinds import cloudless
from holdfast.meta.objects import Key

HOLDFAST = [sys.executable, "-m", "tests.operators.toy"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
WORKLOADS = Resource.of(cloudless.KINDS[0])


@contextmanager
def printing(*arguments: str, until: str, **environment: str) -> Iterator[str]:
    """A command that runs until the block ends; gives what it printed up to a line."""
    command = [*HOLDFAST, *arguments]
    with subprocess.Popen(command, env={**ENVIRONMENT, **environment}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # A test that waits for a line that never comes fails instead of hanging.
        limit = threading.Timer(120, process.terminate)
        limit.start()
        printed = ""
        for line in process.stdout:
            printed += line
            if until in line:
                break
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        try:
            yield printed
        finally:
            limit.cancel()
            process.terminate()
            process.wait(30)
            drain.join(10)


@dataclass(frozen=True)
class Up:
    """A cluster, its kubeconfig and the link of its dashboard."""

    kubeconfig: str
    link: str

    @property
    def token(self) -> str:
        found: str = yaml.safe_load(Path(self.kubeconfig).read_text())["users"][0]["user"]["token"]
        return found

    def create(self, resource: Resource, wire: dict[str, Any]) -> None:
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **wire}
        manifest["metadata"] = {"namespace": "default", **wire["metadata"]}
        self._ask("create", resource, manifest)

    def change(self, resource: Resource, name: str, patch: dict[str, Any]) -> None:
        self._ask("patch", resource, Key("default", name), patch)

    def _ask(self, verb: str, *arguments: Any) -> None:
        # The thread of a browser has an event loop of its own.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: asyncio.run(self._asked(verb, *arguments))).result(60)

    async def _asked(self, verb: str, *arguments: Any) -> None:
        client = connect(Path(self.kubeconfig)).client
        try:
            await getattr(client, verb)(*arguments)
        finally:
            await client.close()


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    arguments = ("up", "--ephemeral", "--nodes", "2", "--dashboard-port", "0", "--ready-after", "0s..1s")
    with printing(*arguments, until="dashboard:") as printed:
        kubeconfig = re.search(r"KUBECONFIG=(\S+)", printed)
        link = re.search(r"dashboard: (\S+)", printed)
        assert kubeconfig
        assert link
        yield Up(kubeconfig[1], link[1])


@pytest.fixture(scope="module")
def tab(up: Up) -> Iterator[Tab]:
    with chromium() as browser:
        made = Tab(browser)
        made.context.set_default_timeout(30_000)
        made.page.goto(up.link)
        made.page.wait_for_selector(".space .row")
        yield made
        assert made.complaints == []


def shop(image: str, **rollout: Any) -> dict[str, Any]:
    return {"metadata": {"name": "shop"}, "spec": {"image": image, "replicas": 3, "rollout": rollout}}


CANARY = {"strategy": "Canary", "maxSurge": 1, "canary": {"steps": [{"replicas": 1, "manual": True}]}}


def open_page(tab: Tab, resource: str, name: str) -> None:
    tab.page.evaluate("(address) => { location.hash = address }", f"#/o/{resource}/default/{name}")
    tab.page.wait_for_selector(f".title h1:text-is('{name}')")


def steer(tab: Tab, verb: str, *, plan: bool = True) -> str:
    """Carry out a verb as a viewer does; returns what its dialog said."""
    tab.page.click(f"button[data-verb={verb}]")
    confirm = tab.page.locator("dialog .actions button.primary")
    tab.expect("document.querySelector('dialog .actions button.primary')?.disabled === false", timeout=30_000)
    said = tab.text("dialog")
    assert "What is written" in said
    assert ("What follows" in said) == plan
    confirm.click()
    tab.page.wait_for_selector(".toast")
    tab.page.wait_for_selector("dialog", state="detached")
    tab.page.evaluate("document.querySelectorAll('.toast').forEach(each => each.remove())")
    return said


def test_every_verb_shows_its_plan_and_is_carried_out(up: Up, tab: Tab) -> None:
    page = tab.page
    up.create(WORKLOADS, shop("shop:1", **CANARY))
    open_page(tab, "workloads.cloudless.io", "shop")
    page.wait_for_selector(".pill.good:text-is('Completed')")
    assert page.locator(".pods .cell.new.available").count() == 3

    said = steer(tab, "restart")
    assert "lowest ready" in said
    page.wait_for_selector("button[data-verb=promote].primary")
    page.wait_for_selector(".because:has-text('waits for approval')")
    assert page.locator(".pods .cell.old.available").count() >= 2
    steer(tab, "promote")
    page.wait_for_selector(".pill.good:text-is('Completed')")

    steer(tab, "pause")
    page.wait_for_selector("button[data-verb=resume]")
    steer(tab, "resume")
    page.wait_for_selector("button[data-verb=pause]")

    up.change(WORKLOADS, "shop", {"spec": {"image": "shop:2"}})
    page.wait_for_selector("button[data-verb=promote].primary")
    steer(tab, "abort")
    page.wait_for_selector(".title .health.trouble")
    page.wait_for_selector(".because:has-text('rejected')")
    steer(tab, "retry")
    page.wait_for_selector("button[data-verb=promote].primary")
    steer(tab, "promote")
    page.wait_for_selector(".pill.good:text-is('Completed')")

    page.click("[role=tab]:has-text('Revisions')")
    page.wait_for_selector(".diff .added:has-text('shop:2')")
    page.click("[role=tab]:has-text('State')")
    steer(tab, "undo")
    page.wait_for_selector("code.image:has-text('shop:1')")


def test_a_verb_that_cannot_be_carried_out_says_why(up: Up, tab: Tab) -> None:
    up.create(WORKLOADS, {"metadata": {"name": "still"}, "spec": {"image": "still:1", "replicas": 1}})
    open_page(tab, "workloads.cloudless.io", "still")
    tab.page.wait_for_selector(".pill.good:text-is('Completed')")
    tab.page.click("button[data-verb=promote]", force=True)
    tab.page.wait_for_selector("dialog .callout.warn")
    assert tab.page.is_disabled("dialog .actions button.primary")
    tab.page.keyboard.press("Escape")


def test_a_new_operator_appears_by_itself(up: Up, tab: Tab) -> None:
    up.create(BEACONS, {"metadata": {"name": "north"}, "spec": {"image": "light:1", "replicas": 2}})
    tab.page.evaluate("location.hash = '#/'")
    tab.page.wait_for_selector(".space .row:has-text('north'):has-text('Beacon')")
    open_page(tab, "beacons.toy.example.com", "north")
    tab.page.wait_for_selector(".pill.good:text-is('Ready')")
    assert tab.page.locator(".pods .cell.available").count() == 2
    steer(tab, "pause", plan=False)
    tab.page.wait_for_selector("text=Image")
    tab.page.click(".pods + .plain, button:has-text('List 2 pods')")
    tab.page.click(".podtable a >> nth=0")
    tab.page.wait_for_selector(".title:has-text('Pod')")
    tab.page.wait_for_selector(".sec-links a:has-text('north')")


# --- the command for any cluster


def ask(url: str, body: dict[str, str], *, context: ssl.SSLContext | None = None) -> dict[str, Any]:
    origin = url.rstrip("/")
    headers = {"content-type": "application/json", "origin": origin}
    request = urllib.request.Request(f"{origin}/api/session", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def test_the_command_serves_any_cluster_read_only_or_not(up: Up) -> None:
    arguments = ("dashboard", "--kubeconfig", up.kubeconfig, "--read-only", "--port", "0", "-n", "default")
    with printing(*arguments, until="of https") as printed:
        assert "read-only; --allow-changes lets viewers change objects" in printed
        base, _, link = re.findall(r"dashboard: (\S+)", printed)[0].partition("#link=")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", base)
        session = ask(base, {"link": link})
        assert (session["user"], session["changes"], session["links"]) == ("admin", False, True)


def test_viewers_sign_in_with_tokens_over_https_where_asked(up: Up, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    signed = new_serving(authority := new_authority(now), ("127.0.0.1",), now=now)
    (tmp_path / "tls.crt").write_bytes(signed.certificate_pem)
    (tmp_path / "tls.key").write_bytes(signed.key_pem)
    arguments = (
        *("dashboard", "--kubeconfig", up.kubeconfig, "--allow-changes", "--port", "0", "--login", "token"),
        *("--bind", "0.0.0.0", "--allow-non-loopback", "--host", "dash.example.com", "--log-format", "json"),
        *("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")),
    )
    with printing(*arguments, until="of https") as printed:
        assert "changes are allowed" in printed
        base = re.findall(r"dashboard: (\S+)", printed)[0]
        assert re.fullmatch(r"https://127\.0\.0\.1:\d+/", base)
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        session = ask(base, {"token": up.token}, context=context)
        assert (session["user"], session["changes"], session["links"]) == ("admin", True, False)


def test_a_cluster_may_have_no_dashboard() -> None:
    with printing(
        "up", "--ephemeral", "--nodes", "1", "--operators", "none", "--no-dashboard", until="nodes "
    ) as printed:
        assert "dashboard" not in printed
