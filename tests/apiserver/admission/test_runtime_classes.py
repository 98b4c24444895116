"""Pods that run as processes of the host are for those who may use their RuntimeClass."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.servers import CONFIGMAPS, DEFINITIONS, DEPLOYMENTS, PODS, Api, Object, configmap, deployment, pod

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
CLUSTER_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"

DEVELOPER = [{"kind": "ServiceAccount", "name": "developer", "namespace": "default"}]
REFUSAL = (
    'pods of the runtime class "process" run as processes of the host, and user '
    '"system:serviceaccount:default:developer" cannot use the RuntimeClass "process"; '
    'ask for a ClusterRole with the verb "use" on runtimeclasses.node.k8s.io "process"'
)


def role(name: str) -> Object:
    return {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": name}


@pytest.fixture
def token(api: Api) -> str:
    """The token of a user who may do everything in one namespace, and nothing outside."""
    api.post(ACCOUNTS, {"metadata": {"name": "developer"}}).done()
    binding = {"metadata": {"name": "everything"}, "roleRef": role("cluster-admin"), "subjects": DEVELOPER}
    api.post(BINDINGS, binding).done()
    return str(api.post(f"{ACCOUNTS}/developer/token", {"spec": {}}).ok["status"]["token"])


def template() -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod("x", runtimeClassName="process")["spec"]}


def in_process(name: str) -> Object:
    made = deployment(name)
    made["spec"]["template"]["spec"]["runtimeClassName"] = "process"
    return made


def widget(name: str, **spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def widgets(api: Api) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    api.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec}).done()


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize(
    ("path", "obj", "where"),
    [
        (PODS, pod("a", runtimeClassName="process"), "spec.runtimeClassName"),
        (DEPLOYMENTS, in_process("a"), "spec.template.spec.runtimeClassName"),
        (
            WIDGETS,
            widget("a", cliques=[{"spec": {}}, {"podSpec": {"runtimeClassName": "process"}}]),
            "spec.cliques[1].podSpec.runtimeClassName",
        ),
        (
            REVISIONS,
            {"metadata": {"name": "a"}, "revision": 1, "data": {"spec": {"template": template()}}},
            "data.spec.template.spec.runtimeClassName",
        ),
    ],
)
def test_a_user_of_one_namespace_cannot_run_processes_of_the_host(
    api: Api, token: str, path: str, obj: Object, where: str
) -> None:
    refused = api.post(path, obj, token=token)
    assert refused.refusal == (403, "Forbidden")
    assert f"{where}: {REFUSAL}" in refused.message
    api.post(path, obj).done()


def test_other_pods_need_no_permission_of_their_own(api: Api, token: str) -> None:
    api.post(PODS, pod("a"), token=token).done()
    api.post(PODS, pod("b", runtimeClassName="gvisor"), token=token).done()
    api.post(CONFIGMAPS, configmap("c", data={"runtimeClassName": "process"}), token=token).done()


def test_the_verb_use_on_the_runtime_class_permits_it(api: Api, token: str) -> None:
    rule = {"verbs": ["use"], "apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"]}
    api.post(
        CLUSTER_ROLES, {"metadata": {"name": "processes"}, "rules": [rule | {"resourceNames": ["process"]}]}
    ).done()
    binding = {"metadata": {"name": "processes"}, "roleRef": role("processes"), "subjects": DEVELOPER}
    api.post(BINDINGS, binding).done()
    assert api.post(PODS, pod("a", runtimeClassName="process"), token=token).status == 403, "the host is no namespace"
    api.post(CLUSTER_BINDINGS, binding).done()
    api.post(PODS, pod("a", runtimeClassName="process"), token=token).done()


def test_what_the_processes_of_others_do_cannot_be_changed_either(api: Api, token: str) -> None:
    api.post(DEPLOYMENTS, in_process("a")).done()
    containers = [{"name": "main", "image": "none", "command": ["cat", "/etc/shadow"]}]
    spec = {"template": {"spec": {"containers": containers}}}
    for kind in ("merge", "strategic"):
        assert api.patch(f"{DEPLOYMENTS}/a", {"spec": spec}, kind, token=token).status == 403
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    assert api.apply(f"{DEPLOYMENTS}/a?force=true", applied, token=token).status == 403
    api.post(DEPLOYMENTS, deployment("b")).done()
    become = {"spec": {"template": {"spec": {"runtimeClassName": "process"}}}}
    assert api.patch(f"{DEPLOYMENTS}/b", become, token=token).status == 403


def test_processes_of_others_can_be_labelled_scaled_and_deleted(api: Api, token: str) -> None:
    api.post(DEPLOYMENTS, in_process("a")).done()
    api.patch(f"{DEPLOYMENTS}/a", {"metadata": {"labels": {"x": "y"}}}, token=token).done()
    api.patch(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 5}}, token=token).done()
    api.delete(f"{DEPLOYMENTS}/a", token=token).done()
