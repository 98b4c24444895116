"""kubectl at work, as people use it: whatever version is installed must take this server for a real one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.servers import loopback

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {k: v}
"""
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What is wanted.
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              colour: {type: string, default: red}
          status: {type: object, properties: {size: {type: integer}}}
"""
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: {size: 3}
"""


class Kubectl:
    """kubectl against one server, in a namespace of its own."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}
        version = json.loads(self("version", "--client", "-o", "json"))["clientVersion"]
        self.minor = int(re.sub(r"\D.*", "", version["minor"]))

    def run(self, *arguments: str, given: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        assert KUBECTL is not None
        return subprocess.run(
            [KUBECTL, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment | environment,
        )

    def __call__(self, *arguments: str, given: str | None = None, **environment: str) -> str:
        """What kubectl prints; it must succeed."""
        run = self.run(*arguments, given=given, **environment)
        assert run.returncode == 0, f"kubectl {' '.join(arguments)}: {run.stdout}{run.stderr}"
        return run.stdout

    def refused(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl complains of; it must fail."""
        run = self.run(*arguments, given=given)
        assert run.returncode != 0, run.stdout
        return run.stderr

    def since(self, minor: int) -> None:
        if self.minor < minor:
            pytest.skip(f"kubectl 1.{self.minor} does not know this; 1.{minor} does")

    def object(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    directory = tmp_path_factory.mktemp("kubectl")
    with loopback(directory) as server:
        kubectl = Kubectl(server.kubeconfig, directory)
        kubectl("create", "namespace", "team")
        kubectl("config", "set-context", "--current", "--namespace=team")
        yield kubectl


@pytest.fixture
def kubectl(served: Kubectl) -> Iterator[Kubectl]:
    """With a Deployment and a ConfigMap applied."""
    served("apply", "-f", "-", given=WEB)
    yield served
    served("delete", "deployment,configmap", "--all", "--wait=false")


def table(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_it_finds_every_resource(kubectl: Kubectl) -> None:
    rows = table(kubectl("api-resources", "--no-headers"))
    assert {"pods", "deployments", "customresourcedefinitions", "leases"} <= {row[0] for row in rows}
    assert "apps/v1" in kubectl("api-versions").split()
    assert "deployments" in kubectl("api-resources", "--api-group=apps", "--verbs=patch", "-o", "name")


def test_it_applies_and_shows_the_difference(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=WEB).split("\n")[:2] == [
        "deployment.apps/web unchanged",
        "configmap/conf unchanged",
    ]
    changed = WEB.replace("nginx:1", "nginx:2")
    diff = kubectl.run("diff", "-f", "-", given=changed)
    assert diff.returncode == 1, diff.stderr
    assert "-      - image: nginx:1" in diff.stdout
    assert "+      - image: nginx:2" in diff.stdout
    assert kubectl.run("diff", "-f", "-", given=WEB).returncode == 0
    assert "deployment.apps/web configured" in kubectl("apply", "-f", "-", given=changed)


def test_it_applies_on_the_server_and_meets_conflicts(kubectl: Kubectl) -> None:
    mine = WEB.replace("replicas: 2", "replicas: 3")
    arguments = ("apply", "--server-side", "-f", "-")
    complaint = kubectl.refused(*arguments, "--field-manager=other", given=mine)
    assert "conflict" in complaint
    assert ".spec.replicas" in complaint
    kubectl(*arguments, "--field-manager=other", "--force-conflicts", given=mine)
    assert kubectl.object("deployment", "web")["spec"]["replicas"] == 3


def test_it_says_what_is_wrong_with_a_manifest(kubectl: Kubectl) -> None:
    unknown = WEB.replace("replicas: 2", "replicaz: 2")
    assert "replicaz" in kubectl.refused("apply", "-f", "-", given=unknown)
    wrong = WEB.replace("{matchLabels: {app: web}}", "{matchLabels: {app: other}}")
    assert "selector" in kubectl.refused("apply", "-f", "-", given=wrong)
    assert "already exists" in kubectl.refused("create", "configmap", "conf")
    assert "NotFound" in kubectl.refused("get", "configmap", "none")


def test_it_gets_in_every_form(kubectl: Kubectl) -> None:
    head, row = table(kubectl("get", "deployments"))
    assert (head, row[:-1]) == (["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], ["web", "0/2", "0", "0"])
    wide = table(kubectl("get", "deployment", "web", "-o", "wide"))
    assert wide[0][-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][-3:] == ["main", "nginx:1", "app=web"]
    assert "image: nginx:1" in kubectl("get", "deployment", "web", "-o", "yaml")
    image = "jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deployment", "web", "-o", image) == "nginx:1"
    assert kubectl("get", "configmaps", "-o", "custom-columns=N:.metadata.name,K:.data.k") == "N      K\nconf   v\n"
    assert kubectl("get", "deployments,configmaps", "-o", "name").split() == ["deployment.apps/web", "configmap/conf"]
    assert "app=web" in kubectl("get", "deployments", "--show-labels", "-l", "app=web")
    assert kubectl("get", "configmaps", "--field-selector=metadata.name=none") == ""
    assert "deployment.apps/web" in kubectl("get", "all")
    assert "team" in kubectl("get", "deployments", "--all-namespaces")
    assert kubectl("get", "configmaps", "--chunk-size=1", "--no-headers").split()[0] == "conf"


def test_it_watches(kubectl: Kubectl) -> None:
    assert KUBECTL is not None
    command = [KUBECTL, "get", "configmaps", "--watch", "-o", "name"]
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            assert watching.stdout.readline() == "configmap/conf\n"
            kubectl("create", "configmap", "late")
            assert watching.stdout.readline() == "configmap/late\n"
        finally:
            watching.kill()


def test_it_describes_and_explains(kubectl: Kubectl) -> None:
    described = kubectl("describe", "deployment", "web")
    assert re.search(r"Replicas: +2 desired", described)
    assert "nginx:1" in described
    assert "k:\n" in kubectl("describe", "configmap", "conf")
    assert "replicas" in kubectl("explain", "deployment.spec.replicas")
    assert "containers" in kubectl("explain", "pods.spec", "--recursive")


def test_it_labels_annotates_and_edits(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("label", "configmap", "conf", "tier=front")
    kubectl("label", "configmap", "conf", "tier-", "other=1")
    kubectl("annotate", "configmap", "conf", "note=hi")
    meta = kubectl.object("configmap", "conf")["metadata"]
    assert (meta["labels"], meta["annotations"]["note"]) == ({"other": "1"}, "hi")
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('\\n  k: v\\n', '\\n  k: edited\\n'))\n"
    )
    assert "edited" in kubectl("edit", "configmap", "conf", KUBE_EDITOR=f"{sys.executable} {editor}")
    assert kubectl.object("configmap", "conf")["data"] == {"k": "edited"}


def test_it_patches_in_every_way(kubectl: Kubectl) -> None:
    containers = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"envoy:1"}]}}}}'
    kubectl("patch", "deployment", "web", "-p", containers)
    kubectl("patch", "configmap", "conf", "--type=merge", "-p", '{"data":{"k":null,"n":"1"}}')
    kubectl("patch", "configmap", "conf", "--type=json", "-p", '[{"op":"add","path":"/data/m","value":"2"}]')
    assert kubectl.object("configmap", "conf")["data"] == {"n": "1", "m": "2"}
    kubectl("set", "image", "deployment/web", "side=envoy:2")
    found = kubectl.object("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert sorted(each["image"] for each in found) == ["envoy:2", "nginx:1"]


def test_it_scales_restarts_and_waits(kubectl: Kubectl) -> None:
    kubectl("scale", "deployment", "web", "--replicas=5")
    assert kubectl.object("deployment", "web")["spec"]["replicas"] == 5
    refused = kubectl.refused("scale", "deployment", "web", "--replicas=1", "--current-replicas=2")
    assert "xpected replicas to be 2" in refused
    kubectl("rollout", "restart", "deployment", "web")
    kubectl("rollout", "pause", "deployment", "web")
    assert "No rollout history found" in kubectl("rollout", "history", "deployment", "web")
    assert "timed out" in kubectl.refused("wait", "--for=condition=Available", "deployment/web", "--timeout=1s")
    kubectl("delete", "configmap", "conf", "--wait", "--timeout=5s")


def test_it_creates_from_the_command_line(kubectl: Kubectl) -> None:
    created = [
        ("secret", "generic", "s1", "--from-literal=a=b"),
        ("serviceaccount", "a1"),
        ("job", "j1", "--image=busybox"),
        ("service", "clusterip", "v1", "--tcp=80:80"),
        ("quota", "q1", "--hard=pods=5"),
        ("role", "r1", "--verb=get", "--resource=pods"),
        ("rolebinding", "b1", "--role=r1", "--serviceaccount=team:a1"),
        ("ingress", "i1", "--rule=a.b/=v1:80"),
    ]
    for arguments in created:
        assert "created" in kubectl("create", *arguments)
    kubectl("run", "p1", "--image=nginx")
    assert table(kubectl("get", "pod", "p1"))[1][:3] == ["p1", "0/1", "Pending"]
    assert kubectl("auth", "can-i", "get", "pods", "--as=system:serviceaccount:team:a1") == "yes\n"
    assert kubectl.run("auth", "can-i", "delete", "pods", "--as=system:serviceaccount:team:a1").stdout == "no\n"
    assert kubectl("auth", "can-i", "delete", "pods") == "yes\n"
    assert "waiting to start" in kubectl.refused("logs", "p1")
    assert "pods/exec" in kubectl.refused("exec", "p1", "--", "date")
    assert "deleted" in kubectl(
        "delete", "secret,serviceaccount,job,service,quota,role,rolebinding,ingress,pod", "--all"
    )


def test_it_asks_for_tokens_that_are_good(kubectl: Kubectl) -> None:
    kubectl.since(24)
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=1h").strip()
    # The admin's own token is in the kubeconfig, and would be sent beside another one.
    arguments = ("--user=", f"--token={token}")
    assert "system:serviceaccount:team:robot" in kubectl.refused("get", "pods", *arguments)
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=team:robot")
    assert kubectl("get", "configmaps", *arguments, "-o", "name") == "configmap/conf\n"


@pytest.mark.parametrize(
    ("cascade", "finalizer"), [("background", None), ("foreground", "foregroundDeletion"), ("orphan", "orphan")]
)
def test_it_deletes_with_each_cascade(kubectl: Kubectl, cascade: str, finalizer: str | None) -> None:
    kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--wait=false")
    found = kubectl("get", "deployment", "web", "--ignore-not-found", "-o", "jsonpath={.metadata.finalizers[0]}")
    assert (found or None) == finalizer
    if finalizer:
        kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert kubectl("get", "deployment", "web", "--ignore-not-found") == ""


def test_it_works_with_kinds_that_are_defined_meanwhile(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=WIDGETS)
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=5s")
    kubectl("apply", "-f", "-", given=WIDGET)
    assert table(kubectl("get", "wd"))[1] == ["one", "3"]
    assert table(kubectl("get", "widgets", "-o", "wide"))[1] == ["one", "3", "red"]
    assert "widget.example.com/one" in kubectl("get", "all", "-o", "name")
    assert "How large it is." in kubectl("explain", "widget.spec.size")
    assert "should be greater than or equal to 1" in kubectl.refused(
        "apply", "-f", "-", given=WIDGET.replace("size: 3", "size: 0")
    )
    kubectl("scale", "widget", "one", "--replicas=7")
    assert kubectl.object("widget", "one")["spec"] == {"size": 7, "colour": "red"}
    assert kubectl.run("diff", "-f", "-", given=WIDGET).returncode == 1
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=WIDGET)
    kubectl("label", "widget", "one", "l=1")
    kubectl("delete", "crd", "widgets.example.com")
    assert "widgets" not in kubectl("api-resources", "--api-group=example.com", "-o", "name")
