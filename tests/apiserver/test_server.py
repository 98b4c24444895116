"""The server as a whole: who may ask for what, what is open to all, and what is there after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.servers import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, Api, configmap, deployment, seen

from holdfast.apiserver.auth.tokens import ISSUER, Issuer
from holdfast.apiserver.http.fairness import Bounds

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


def robot(api: Api) -> str:
    """A token of a service account that may do nothing yet."""
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    return str(api.post(f"{ACCOUNTS}/robot/token", {"spec": {}}).ok["status"]["token"])


def grant(api: Api, *rules: dict[str, Any], namespace: str = "default") -> None:
    """Let the robot do what rules say in one namespace."""
    within = f"{RBAC}/namespaces/{namespace}"
    api.post(f"{within}/roles", {"metadata": {"name": "r"}, "rules": list(rules)}).done()
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    api.post(f"{within}/rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [ROBOT]}).done()


def rule(verbs: str, resources: str, *, groups: str = "", names: str = "") -> dict[str, Any]:
    made = {"verbs": verbs.split(), "apiGroups": [groups], "resources": resources.split()}
    return made | ({"resourceNames": names.split()} if names else {})


# Authentication.


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/etcd", "/version"])
def test_health_and_version_are_open_to_all(api: Api, path: str) -> None:
    assert api.get(path, token="").status == 200


def test_openid_discovery_serves_the_public_key_of_tokens(api: Api) -> None:
    found = api.get("/.well-known/openid-configuration").ok
    assert found["issuer"] == ISSUER
    assert found["jwks_uri"].removeprefix(ISSUER) == "/openid/v1/jwks"
    assert api.get("/openid/v1/jwks").ok == Issuer(api.server.identity.token_key).jwks()
    assert api.get("/openid/v1/jwks", token="").refusal == (403, "Forbidden")


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/openapi/v3", "/metrics", CONFIGMAPS, "/healthzz", "/nothing"])
def test_everything_else_is_for_those_who_are_known(api: Api, path: str) -> None:
    anonymous = api.get(path, token="")
    assert anonymous.refusal == (403, "Forbidden")
    assert 'User "system:anonymous" cannot' in anonymous.message
    wrong = api.get(path, token="wrong")
    assert wrong.refusal == (401, "Unauthorized")
    assert wrong.message == "Unauthorized"


def test_an_account_may_do_nothing_until_it_is_granted(api: Api) -> None:
    token = robot(api)
    answer = api.get(CONFIGMAPS, token=token)
    assert answer.refusal == (403, "Forbidden")
    assert answer.message == (
        'configmaps is forbidden: User "system:serviceaccount:default:robot" cannot list resource "configmaps" '
        'in API group "" in the namespace "default"'
    )
    grant(api, rule("get list watch", "configmaps"))
    api.post(CONFIGMAPS, configmap("a")).done()
    assert [each["metadata"]["name"] for each in api.get(CONFIGMAPS, token=token).ok["items"]] == ["a"]
    assert seen(api.watch(f"{CONFIGMAPS}?timeoutSeconds=1", token=token).rest()) == [("ADDED", "a")]


FORBIDDEN: list[tuple[str, str, Any]] = [
    ("POST", CONFIGMAPS, configmap("b")),
    ("DELETE", f"{CONFIGMAPS}/a", None),
    ("DELETE", CONFIGMAPS, None),
    ("PUT", f"{CONFIGMAPS}/a", configmap("a")),
    ("GET", SECRETS, None),
    ("GET", "/api/v1/configmaps", None),
    ("GET", "/api/v1/namespaces/kube-system/configmaps", None),
    ("GET", "/api/v1/nodes", None),
    ("GET", f"{PODS}/p/log", None),
    ("GET", f"{DEPLOYMENTS}/d/scale", None),
]


@pytest.mark.parametrize(("method", "target", "body"), FORBIDDEN)
def test_a_grant_reaches_as_far_as_its_rules(api: Api, method: str, target: str, body: Any) -> None:
    token = robot(api)
    api.post(CONFIGMAPS, configmap("a")).done()
    grant(api, rule("get list watch", "configmaps pods"), rule("get", "deployments", groups="apps"))
    assert api.ask(method, target, body, token=token).refusal == (403, "Forbidden")


def test_a_user_with_all_permissions_in_a_namespace_has_none_outside_it(api: Api) -> None:
    token = robot(api)
    grant(api, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    inside = "/api/v1/namespaces/default"
    for target in (
        f"{inside}/nodes",
        f"{inside}/nodes/n",
        f"{inside}/namespaces",
        f"{inside}/namespaces/kube-system",
        f"{inside}/persistentvolumes",
        f"{RBAC}/namespaces/default/clusterroles",
        f"{RBAC}/namespaces/default/clusterrolebindings/cluster-admin",
    ):
        assert api.get(target, token=token).status in (403, 404), target
        assert api.delete(target, token=token).status in (403, 404, 405), target
    everyone = {"metadata": {"name": "mine"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    for target in (f"{RBAC}/clusterrolebindings", f"{RBAC}/namespaces/default/clusterrolebindings"):
        assert api.post(target, {**everyone, "subjects": [ROBOT]}, token=token).status in (403, 404)
    assert api.get(f"{NAMESPACES}/default", token=token).status == 200


def test_a_user_cannot_grant_permissions_that_they_do_not_have(api: Api) -> None:
    token = robot(api)
    grant(api, rule("create get", "roles", groups="rbac.authorization.k8s.io"), rule("get", "configmaps"))
    roles = f"{RBAC}/namespaces/default/roles"
    for verbs, code in (("get", 201), ("get delete", 403)):
        role = {"metadata": {"name": f"new-{code}"}, "rules": [rule(verbs, "configmaps")]}
        assert api.post(roles, role, token=token).status == code


def test_a_grant_of_one_name_is_for_that_name(api: Api) -> None:
    token = robot(api)
    grant(api, rule("get update patch delete list watch", "configmaps", names="a"))
    for name in "ab":
        api.post(CONFIGMAPS, configmap(name)).done()
    assert api.get(f"{CONFIGMAPS}/a", token=token).status == 200
    assert api.get(f"{CONFIGMAPS}/b", token=token).refusal == (403, "Forbidden")
    assert api.get(CONFIGMAPS, token=token).refusal == (403, "Forbidden")
    assert api.get(f"{CONFIGMAPS}?fieldSelector=metadata.name%3Da", token=token).status == 200


@pytest.mark.parametrize("way", ["apply", "update"])
def test_a_user_who_may_update_but_not_create_creates_nothing(api: Api, way: str) -> None:
    token = robot(api)
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    grant(api, rule("get patch update", "leases", groups="coordination.k8s.io"))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    if way == "apply":
        answer = api.apply(f"{leases}/l", lease, token=token)
    else:
        answer = api.put(f"{leases}/l", lease, token=token)
    assert answer.refusal == (403, "Forbidden")
    assert "cannot create resource" in answer.message
    assert api.names(leases) == []


def test_the_admin_acts_as_another_where_asked(api: Api) -> None:
    robot(api)
    grant(api, rule("get", "configmaps"))
    as_robot = {"impersonate-user": "system:serviceaccount:default:robot"}
    assert api.get(CONFIGMAPS, headers=as_robot).refusal == (403, "Forbidden")
    assert api.get(f"{CONFIGMAPS}/a", headers=as_robot).refusal == (404, "NotFound")


def test_an_account_acts_as_nobody_else(api: Api) -> None:
    token = robot(api)
    grant(api, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    answer = api.get(CONFIGMAPS, token=token, headers={"impersonate-user": "admin"})
    assert answer.refusal == (403, "Forbidden")
    assert 'cannot impersonate resource "users"' in answer.message


# How much.


def test_requests_beyond_the_bounds_are_told_when_to_come_back() -> None:
    api = Api(bounds=Bounds(watches=2))
    watches = [api.watch(CONFIGMAPS) for _ in range(2)]
    answer = api.get(f"{CONFIGMAPS}?watch=1")
    assert answer.refusal == (429, "TooManyRequests")
    assert answer.headers["Retry-After"] == "1"
    for watch in watches:
        watch.close()
    api.watch(CONFIGMAPS).close()
    api.close()


def test_metrics_are_for_those_who_may_read_them(api: Api) -> None:
    api.get(CONFIGMAPS).done()
    answer = api.get("/metrics")
    assert b"apiserver_request_total{" in answer.raw
    assert api.get("/metrics", token=robot(api)).refusal == (403, "Forbidden")


def test_every_answer_can_be_found_in_the_log(api: Api) -> None:
    assert api.get(CONFIGMAPS, headers={"audit-id": "mine"}).headers["Audit-Id"] == "mine"
    assert len(api.get("/nothing").headers["Audit-Id"]) == 36


# What every cluster has.


def test_a_new_server_has_what_every_cluster_has(api: Api) -> None:
    assert api.names(NAMESPACES) == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert {"admin", "cluster-admin", "edit", "view"} <= set(api.names(f"{RBAC}/clusterroles"))
    assert api.get("/version").ok["major"] == "1"


def test_discovery_agrees_with_itself(api: Api) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for root, legacy in (("/api", ["v1"]), ("/apis", None)):
        found = api.get(root, headers={"accept": aggregated}).ok
        assert found["kind"] == "APIGroupDiscoveryList"
        for group in found["items"]:
            for each in group["versions"]:
                name = group["metadata"].get("name", "")
                path = f"/api/{each['version']}" if legacy else f"/apis/{name}/{each['version']}"
                plain = {item["name"] for item in api.get(path).ok["resources"]}
                nested = {item["resource"] for item in each["resources"]}
                below = {
                    f"{item['resource']}/{sub['subresource']}"
                    for item in each["resources"]
                    for sub in item.get("subresources", ())
                }
                assert plain == nested | below


def test_every_resource_that_is_told_can_be_listed(api: Api) -> None:
    groups = api.get("/apis").ok["groups"]
    paths = ["/api/v1", *(f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"])]
    for path in paths:
        for resource in api.get(path).ok["resources"]:
            if "list" in resource["verbs"]:
                listed = api.get(f"{path}/{resource['name']}").ok
                assert listed["kind"] == f"{resource['kind']}List"


# Restart.


def test_everything_that_was_told_is_there_after_a_restart(tmp_path: Path) -> None:
    api = Api(tmp_path / "state")
    token = robot(api)
    grant(api, rule("get", "configmaps"))
    made = api.post(CONFIGMAPS, configmap("a", data={"k": "1"})).ok
    api.post(CONFIGMAPS, configmap("gone")).done()
    deleted = api.delete(f"{CONFIGMAPS}/gone")
    api.apply(f"{DEPLOYMENTS}/d", deployment("d")).done()
    before, identity = api.get("/apis/apps/v1/deployments").raw, api.server.identity
    revision = api.server.store.revision
    api.restart()
    assert (deleted.status, api.server.store.revision) == (200, revision)
    assert api.server.identity.admin_token == identity.admin_token
    assert api.server.identity.authority.certificate_pem == identity.authority.certificate_pem
    assert api.get(f"{CONFIGMAPS}/a", token=token).ok == made
    assert api.get("/apis/apps/v1/deployments").raw == before
    assert api.get(f"{CONFIGMAPS}/gone").refusal == (404, "NotFound")
    assert int(api.post(CONFIGMAPS, configmap("b")).version) == revision + 1
    api.close()


def test_a_watch_resumes_across_a_restart(tmp_path: Path) -> None:
    api = Api(tmp_path / "state")
    version = api.post(CONFIGMAPS, configmap("a")).version
    api.patch(f"{CONFIGMAPS}/a", {"data": {"k": "1"}}).done()
    api.delete(f"{CONFIGMAPS}/a").done()
    api.restart()
    api.post(CONFIGMAPS, configmap("b")).done()
    watch = api.watch(f"{CONFIGMAPS}?resourceVersion={version}")
    assert seen([watch.next() for _ in range(3)]) == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    watch.close()
    api.close()


def test_a_page_goes_on_across_a_restart(tmp_path: Path) -> None:
    api = Api(tmp_path / "state")
    for name in "abc":
        api.post(CONFIGMAPS, configmap(name)).done()
    token = api.get(f"{CONFIGMAPS}?limit=2").ok["metadata"]["continue"]
    api.restart()
    api.delete(f"{CONFIGMAPS}/c").done()
    assert api.names(f"{CONFIGMAPS}?continue={token}") == ["c"]
    api.close()


def test_what_was_made_on_the_first_start_is_not_made_again(tmp_path: Path) -> None:
    api = Api(tmp_path / "state")
    api.patch(f"{RBAC}/clusterroles/view", {"rules": []}).done()
    revision = api.server.store.revision
    api.restart()
    assert api.server.store.revision == revision
    assert json.loads(api.get(f"{RBAC}/clusterroles/view").raw).get("rules") in (None, [])
    api.close()


def test_a_server_that_is_stopping_says_that_it_is_not_ready(api: Api) -> None:
    api.server.draining = True
    assert api.get("/readyz", token="").status == 500
    assert api.get("/livez", token="").status == 200
