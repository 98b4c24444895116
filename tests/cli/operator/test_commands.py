"""``holdfast operator`` as a process against a server as a process: working, standing by, refused, stopped."""

from __future__ import annotations

import asyncio
import json
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from click.testing import CliRunner
from tests.clusters import HOLDFAST
from tests.waiting import eventually

from holdfast.cli.errors import ExitCode
from holdfast.cli.main import main
from holdfast.cli.operator import selection
from holdfast.cli.operator.selection import every_controller
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.protocols import Client, Scope
from holdfast.client.resources import (
    BUDGETS,
    DEFINITIONS,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holdfast.meta.objects import Key

T = TypeVar("T")

PATIENCE = 30.0
SYSTEM = "holdfast-system"
OPERATOR = "holdfast-operator"
WORKLOADS = Resource("cloudless.io", "v1", "workloads", "Workload")
SETS = Resource("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet")
TENANTS = Resource("rustfs.com", "v1alpha1", "tenants", "Tenant")

TYPES = {
    each.kind: each
    for each in (
        NAMESPACES,
        SERVICE_ACCOUNTS,
        SERVICES,
        BUDGETS,
        Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
        Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
        Resource("apps", "v1", "deployments", "Deployment"),
        LEASES,
    )
}


# --- processes


@contextmanager
def apiserver(directory: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    kubeconfig = directory / "kubeconfig"
    command = [*HOLDFAST, "apiserver", "--ephemeral", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: ")
        yield process, kubeconfig
    finally:
        process.kill()
        process.communicate()


class Operator:
    """A process of ``holdfast operator run`` whose log is read as it comes."""

    def __init__(self, kubeconfig: Path, *options: str) -> None:
        command = [*HOLDFAST, "operator", "run", "--kubeconfig", str(kubeconfig), "--log-format", "json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.records: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def wait_for(self, message: str) -> dict[str, Any]:
        """The first line from here that says it."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            record: dict[str, Any] = json.loads(line)
            self.records.append(record)
            if record["message"] == message:
                return record

    def end(self, *, code: int) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    @property
    def messages(self) -> list[str]:
        while not self._lines.empty():
            self.records.append(json.loads(self._lines.get()))
        return [record["message"] for record in self.records]


@contextmanager
def operator(kubeconfig: Path, *options: str) -> Iterator[Operator]:
    running = Operator(kubeconfig, *options)
    try:
        yield running
    finally:
        running.close()


def refused(kubeconfig: Path, *options: str) -> tuple[int, str]:
    command = [*HOLDFAST, "operator", "run", "--kubeconfig", str(kubeconfig), "--log-level", "error", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in run.stderr
    return run.returncode, run.stderr


# --- the server


def asked(kubeconfig: Path, question: Callable[[Client], Awaitable[T]]) -> T:
    async def asking() -> T:
        client = connect(kubeconfig).client
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(asking())


def printed(*options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["operator", "manifests", *options])
    assert result.exit_code == ExitCode.OK, result.output
    return list(yaml.safe_load_all(result.output))


def as_account(kubeconfig: Path, name: str, *, manifests: list[dict[str, Any]]) -> Path:
    """The kubeconfig of a service account, made together with manifests."""

    async def make(client: Client) -> str:
        for manifest in manifests:
            await client.apply(TYPES[manifest["kind"]], manifest)
        account = {"metadata": {"namespace": SYSTEM, "name": name}}
        await client.apply(SERVICE_ACCOUNTS, account)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await client.post(SERVICE_ACCOUNTS, Key(SYSTEM, name), "token", request)
        token: str = json.loads(answer)["status"]["token"]
        return token

    token = asked(kubeconfig, make)
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = SYSTEM
    path = kubeconfig.parent / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server with the namespace in which operators run."""
    with apiserver(tmp_path_factory.mktemp("server")) as (_, kubeconfig):
        asked(kubeconfig, lambda client: client.create(NAMESPACES, {"metadata": {"name": SYSTEM}}))
        yield kubeconfig


# --- what is printed


def test_the_list_names_every_controller_and_its_kind() -> None:
    result = CliRunner().invoke(main, ["operator", "list"])
    assert result.exit_code == ExitCode.OK
    for controller in every_controller():
        assert re.search(rf"^{controller.name} +{controller.resource.kind} ", result.output, re.MULTILINE)


def allowed(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("controller", every_controller(), ids=lambda controller: controller.name)
def test_the_role_covers_every_resource_that_a_controller_declares_and_no_more(controller: Any) -> None:
    objects = printed("--controllers", controller.name)
    grants = allowed(
        [
            rule
            for each in objects
            if each["kind"] == "ClusterRole" and each["metadata"]["name"].startswith(OPERATOR)
            for rule in each["rules"]
        ]
    )
    own = controller.resource
    written = (*controller.owns, *controller.writes)
    declared = {
        *((each.group, each.plural, verb) for each in controller.resources for verb in ("get", "list", "watch")),
        *((each.group, each.plural, verb) for each in written for verb in ("create", "patch", "delete")),
        *((each.resource.group, each.name, verb) for each in controller.grants for verb in each.verbs),
        (own.group, own.plural, "patch"),
        (own.group, f"{own.plural}/status", "patch"),
        (own.group, f"{own.plural}/finalizers", "update"),
    }
    evicts = {("", "pods/eviction", "create")} if PODS in written else set()
    events = {("", "events", verb) for verb in ("create", "patch")}
    installs = {
        ("apiextensions.k8s.io", "customresourcedefinitions", verb)
        for verb in ("get", "list", "watch", "create", "patch")
    }
    assert grants == declared | evicts | events | installs
    lease = {("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "patch")}
    (role,) = (each for each in objects if each["kind"] == "Role")
    assert allowed(role["rules"]) == lease


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ([], ()),
        (["workload"], ()),
        (["podcliqueset,podclique,podcliquescalinggroup"], ("podgang",)),
        (
            ["deploymentrequest,graphdeployment,scalingadapter,dynamomodel"],
            ("podcliqueset", "podcliquescalinggroup", "podclique"),
        ),
    ],
)
def test_the_controllers_that_the_chosen_ones_need_are_known(names: list[str], missing: tuple[str, ...]) -> None:
    assert selection.left_out(selection.chosen(names)) == missing


def test_manifests_say_where_and_from_what_it_runs() -> None:
    manifests = printed("--namespace", "ops", "--image", "registry/holdfast:1")
    assert manifests[0]["kind"] == "Namespace"
    assert {each["kind"] for each in manifests} == set(TYPES)
    objects = {each["kind"]: each for each in manifests}
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/holdfast:1"
    options = CliRunner().invoke(main, [*container["command"][1:], *container["args"], "--help"])
    assert options.exit_code == ExitCode.OK, "the command line that is printed is one that there is"
    spaces = {each["kind"]: each["metadata"].get("namespace") for each in manifests}
    everywhere = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    assert {kind for kind, namespace in spaces.items() if namespace is None} == everywhere
    assert set(spaces.values()) == {"ops", None}


def test_the_rights_of_an_operator_that_is_not_chosen_are_not_given() -> None:
    roles = [each for each in printed("--controllers", "workload") if each["kind"] == "ClusterRole"]
    names = {each["metadata"]["name"] for each in roles}
    users = {"holdfast-view", "holdfast-edit", "holdfast-admin"}
    assert names == {f"{OPERATOR}-workload", f"{OPERATOR}-definitions", *users}
    rights = allowed([rule for each in roles for rule in each["rules"]])
    assert not {"tenants", "statefulsets", "roles"} & {resource for _, resource, _ in rights}


def test_users_get_rights_on_the_kinds_with_the_roles_that_they_have() -> None:
    roles = {each["metadata"]["name"]: each for each in printed() if each["kind"] == "ClusterRole"}
    view, edit = allowed(roles["holdfast-view"]["rules"]), allowed(roles["holdfast-edit"]["rules"])
    assert roles["holdfast-view"]["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert ("cloudless.io", "workloads", "list") in view
    assert ("cloudless.io", "workloads", "patch") not in view
    assert {("cloudless.io", "workloads", "patch"), ("cloudless.io", "workloads/scale", "patch")} <= edit
    assert not [resource for _, resource, verb in edit if resource.endswith("/status")]


# --- at work


def workload(name: str) -> dict[str, Any]:
    """One that needs a Service to switch."""
    spec = {"image": "i:1", "replicas": 2, "ports": [{"containerPort": 80}], "rollout": {"strategy": "BlueGreen"}}
    return {"metadata": {"namespace": "default", "name": name}, "spec": spec}


async def made(client: Client) -> tuple[int, int]:
    """How many pods and services there are, as soon as the Workload has its two pods and its Service."""

    async def counts() -> tuple[int, int] | None:
        pods = (await client.list(PODS, Scope(namespace="default"))).objects
        services = (await client.list(SERVICES, Scope(namespace="default", labels="!component"))).objects
        return (len(pods), len(services)) if len(pods) >= 2 and services else None

    return await eventually(counts, within=PATIENCE)


def test_it_works_with_the_printed_role_and_stops_when_told(admin: Path) -> None:
    account = as_account(admin, OPERATOR, manifests=printed())
    with operator(account, "--leader-elect") as running:
        health = running.wait_for("operator started")["health"]
        running.wait_for("definitions installed")
        running.wait_for("operator working")
        asked(admin, lambda client: client.create(WORKLOADS, workload("web")))
        pods, services = asked(admin, made)
        assert (pods, services) == (2, 1)
        with urllib.request.urlopen(f"{health}/readyz?verbose") as answer:
            assert b"[+]leader ok: this process leads" in answer.read()
        expected = (
            'holdfast_api_requests_total{code="201",resource="pods",verb="create"} 2.0',
            'holdfast_store_objects{resource="pods"} 2.0',
        )
        deadline, metrics = time.monotonic() + PATIENCE, ""
        while not all(line in metrics for line in expected):  # the watch may still be on its way
            assert time.monotonic() < deadline, metrics
            with urllib.request.urlopen(f"{health}/metrics") as answer:
                metrics = answer.read().decode()
        running.end(code=ExitCode.OK)
        assert running.messages[-2:] == ["operator stopping", "operator stopped"]
        troubles = [record for record in running.records if record["level"] != "info"]
        assert not troubles, "the role is enough"
    lease = asked(admin, lambda client: client.get(LEASES, Key(SYSTEM, OPERATOR))).wire()
    assert lease["spec"]["holderIdentity"] == ""
    before = asked(admin, lambda client: client.get(DEFINITIONS, Key("", "workloads.cloudless.io"))).version
    with operator(account, "--namespace", "default") as again:
        again.wait_for("operator working")
        again.end(code=ExitCode.OK)
        assert "definitions installed" not in again.messages
    after = asked(admin, lambda client: client.get(DEFINITIONS, Key("", "workloads.cloudless.io"))).version
    assert after == before, "a definition that is there already is not written again"


def test_the_printed_role_is_enough_to_give_gangs_and_stores_what_they_need(admin: Path) -> None:
    account = as_account(admin, OPERATOR, manifests=printed())
    place = {"namespace": "default"}
    spec = {"roleName": "engine", "replicas": 1, "podSpec": {"containers": [{"name": "c", "image": "i"}]}}
    template = {"cliques": [{"name": "engine", "spec": spec}]}
    gangs = {"metadata": place | {"name": "llm"}, "spec": {"replicas": 1, "template": template}}
    pool = {"name": "pool-0", "servers": 4, "persistence": {"volumesPerServer": 1}}
    store = {"metadata": place | {"name": "media"}, "spec": {"pools": [pool]}}

    async def asked_for(client: Client) -> None:
        await client.create(SETS, gangs)
        await client.create(TENANTS, store)

        async def listed(resource: Resource) -> tuple[Object, ...]:
            return (await client.list(resource, Scope(namespace="default"))).objects

        for resource in (TYPES["Role"], TYPES["RoleBinding"], PODS, STATEFUL_SETS):
            await eventually(partial(listed, resource), within=PATIENCE)

    with operator(account) as running:
        running.wait_for("operator working")
        asked(admin, asked_for)
        running.end(code=ExitCode.OK)
        assert not [record for record in running.records if record["level"] != "info"], "the role is enough"


def test_a_controller_that_is_left_out_is_hinted_at(admin: Path) -> None:
    with operator(admin, "--controllers", "podcliqueset,podclique,podcliquescalinggroup") as running:
        assert running.wait_for("controllers left out")["controllers"] == ["podgang"]


def test_who_may_not_install_definitions_is_told_what_is_missing(admin: Path) -> None:
    account = as_account(admin, "nobody", manifests=[])
    code, message = refused(account)
    assert code == ExitCode.BLOCKED
    assert 'cannot list resource "customresourcedefinitions"' in message
    assert "--no-install-crds" in message


def test_permissions_that_are_missing_are_named_and_waited_for(admin: Path) -> None:
    account = as_account(admin, "nobody", manifests=[])
    with operator(account, "--no-install-crds", "--leader-elect") as running:
        health = running.wait_for("operator started")["health"]
        running.wait_for("lease request failed")
        lacking = {record["permission"] for record in running.records if record["message"] == "permission missing"}
        assert {"list pods", "patch workloads.cloudless.io/status", "create leases.coordination.k8s.io"} <= lacking
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{health}/readyz?verbose")
        with caught.value as answer:
            assert answer.code == 503
            assert b"Pod (v1): " in answer.read()
        running.end(code=ExitCode.OK)


def test_a_server_that_is_away_is_waited_for(admin: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = elsewhere(admin, tmp_path, f"https://127.0.0.1:{port}")
    with operator(away) as running:
        record = running.wait_for("server away")
        assert f"127.0.0.1:{port} cannot be reached" in record["why"]
        assert record["again_in"] == "1s"
        running.end(code=ExitCode.OK)


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with apiserver(tmp_path) as (server, kubeconfig), operator(kubeconfig, "--leader-elect") as running:
        running.wait_for("operator working")
        server.send_signal(signal.SIGSTOP)  # the lease cannot be given up now
        running.process.send_signal(signal.SIGTERM)
        running.wait_for("operator stopping")
        running.end(code=ExitCode.INTERRUPTED)


# --- what has to be changed first


def elsewhere(kubeconfig: Path, directory: Path, server: str) -> Path:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = server
    path = directory / "elsewhere.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def without_authority(config: dict[str, Any]) -> None:
    del config["clusters"][0]["cluster"]["certificate-authority-data"]


def with_another_token(config: dict[str, Any]) -> None:
    config["users"][0]["user"] = {"token": "wrong"}


@pytest.mark.parametrize(
    ("change", "said"),
    [(without_authority, "is not trusted"), (with_another_token, "does not accept the credentials")],
)
def test_a_kubeconfig_that_cannot_work_is_told_and_not_tried_again(
    change: Callable[[dict[str, Any]], None], said: str, admin: Path, tmp_path: Path
) -> None:
    config = yaml.safe_load(admin.read_text())
    change(config)
    path = tmp_path / "wrong.kubeconfig"
    path.write_text(json.dumps(config))
    code, message = refused(path)
    assert code == ExitCode.BAD_INPUT
    assert said in message


def test_a_port_in_use_is_told(admin: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, message = refused(admin, "--health-port", str(taken.getsockname()[1]))
    assert code == ExitCode.BLOCKED
    assert "health cannot be served at 127.0.0.1" in message
    assert "--health-port" in message


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--controllers", "worklaod"], "did you mean workload?"),
        (["--controllers", "workload,xyzzy"], "the controllers are "),
        (["--lease-namespace", "default"], "--leader-elect"),
        (["--health-port", "70000"], "--health-port"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(options: list[str], hint: str) -> None:
    result = CliRunner().invoke(main, ["operator", "run", *options])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert hint in result.output


def test_a_kubeconfig_that_is_not_there_is_told(tmp_path: Path) -> None:
    code, message = refused(tmp_path / "nowhere")
    assert code == ExitCode.BAD_INPUT
    assert message.startswith(f"error: there is no kubeconfig at {tmp_path / 'nowhere'}")
    assert message.count("\n") == 1
