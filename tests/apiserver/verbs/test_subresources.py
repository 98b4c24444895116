"""What lies below an object: its status, its scale, and what is done to pods, accounts and namespaces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.apiserver.odd_requests import definition
from tests.apiserver.servers import (
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    Answer,
    Api,
    collection,
    deployment,
    pod,
    valid,
)

from holdfast.apiserver.builtins import BUILTINS
from holdfast.meta.exchange import Request

D = f"{DEPLOYMENTS}/d"
P = f"{PODS}/p"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


# Status.


def test_status_and_spec_are_written_apart(api: Api) -> None:
    made = api.post(DEPLOYMENTS, {**deployment("d"), "status": {"replicas": 9}}).ok
    assert made.get("status", {}).get("replicas") is None
    both = {**made, "status": {"replicas": 3}, "spec": {**made["spec"], "replicas": 7}}
    by_status = api.put(f"{D}/status", both).ok
    assert (by_status["spec"]["replicas"], by_status["status"]["replicas"]) == (3, 3)
    assert by_status["metadata"]["generation"] == 1
    by_spec = api.patch(D, {"spec": {"replicas": 5}, "status": {"replicas": 8}}).ok
    assert (by_spec["spec"]["replicas"], by_spec["status"]["replicas"]) == (5, 3)
    assert api.get(f"{D}/status").ok == api.get(D).ok


@pytest.mark.parametrize("kind", ["merge", "strategic", "json"])
def test_a_status_is_patched_in_every_way(api: Api, kind: str) -> None:
    api.post(PODS, pod("p")).done()
    body: Any = {"status": {"phase": "Running"}}
    if kind == "json":
        body = [{"op": "replace", "path": "/status/phase", "value": "Running"}]
    assert api.patch(f"{P}/status", body, kind).ok["status"]["phase"] == "Running"


def test_conditions_are_merged_by_their_type(api: Api) -> None:
    api.post(PODS, pod("p")).done()
    for status in ("True", "False"):
        patch = {"status": {"conditions": [{"type": "Ready", "status": status}, {"type": "Other", "status": "True"}]}}
        found = api.patch(f"{P}/status", patch, "strategic").ok["status"]["conditions"]
    assert {each["type"]: each["status"] for each in found} == {"Ready": "False", "Other": "True"}


def test_an_applied_status_is_owned_apart_from_the_spec(api: Api) -> None:
    api.apply(D, deployment("d"), "operator").done()
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 2}}
    applied = api.apply(f"{D}/status", status, "operator").ok
    assert applied["status"]["replicas"] == 2
    owned = [(entry["manager"], entry.get("subresource")) for entry in applied["metadata"]["managedFields"]]
    assert sorted(owned, key=str) == [("operator", "status"), ("operator", None)]
    missing = api.apply(f"{DEPLOYMENTS}/none/status", {**status, "metadata": {"name": "none"}})
    assert missing.refusal == (404, "NotFound")


def test_a_status_at_an_old_version_conflicts(api: Api) -> None:
    old = api.post(DEPLOYMENTS, deployment("d")).ok
    api.patch(D, {"spec": {"replicas": 5}}).done()
    assert api.put(f"{D}/status", {**old, "status": {"replicas": 1}}).refusal == (409, "Conflict")


def test_a_write_of_the_status_leaves_the_labels_of_a_deployment(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("d", labels={"a": "1"})).done()
    meta = {"labels": {"a": "2"}, "annotations": {"n": "1"}}
    after = api.patch(f"{D}/status", {"metadata": meta, "status": {"replicas": 1}}).ok["metadata"]
    assert (after["labels"], after["annotations"]) == ({"a": "1"}, {"n": "1"})


# Scale.


def test_a_scale_shows_and_sets_the_replicas(api: Api) -> None:
    made = api.post(DEPLOYMENTS, deployment("d")).ok
    scale = api.get(f"{D}/scale").ok
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 0, "selector": "app=d"})
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    assert api.put(f"{D}/scale", {**scale, "spec": {"replicas": 4}}).ok["spec"] == {"replicas": 4}
    assert api.patch(f"{D}/scale", {"spec": {"replicas": 6}}).ok["spec"] == {"replicas": 6}
    assert api.get(D).ok["spec"]["replicas"] == 6


@pytest.mark.parametrize(
    ("scale", "refusal"),
    [
        ({"metadata": {"name": "d"}, "spec": {"replicas": -1}}, (422, "Invalid")),
        ({"metadata": {"name": "d"}, "spec": {"replicas": "many"}}, (400, "BadRequest")),
        ({"metadata": {"name": "d"}, "spec": {"replicas": 2.5}}, (400, "BadRequest")),
        ({"metadata": {"name": "d"}, "spec": 5}, (400, "BadRequest")),
        ({"metadata": {"name": "e"}, "spec": {"replicas": 1}}, (400, "BadRequest")),
        ({"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 1}}, (409, "Conflict")),
        ([], (400, "BadRequest")),
        (b"{oops", (400, "BadRequest")),
    ],
)
def test_a_scale_that_is_none_changes_nothing(api: Api, scale: Any, refusal: tuple[int, str]) -> None:
    api.post(DEPLOYMENTS, deployment("d")).done()
    assert api.put(f"{D}/scale", scale).refusal == refusal
    assert api.get(D).ok["spec"]["replicas"] == 3


def test_the_scale_of_every_built_in_kind_has_its_selector(api: Api) -> None:
    for kind in {kind.key: kind for kind in BUILTINS if kind.scale is not None}.values():
        api.post(collection(kind), valid(kind, "d")).done()
        assert api.get(f"{collection(kind)}/d/scale").ok["status"]["selector"] == "app=x", kind


@pytest.mark.parametrize("spec", [None, 5, {"size": "many"}, {"size": {"a": 1}}, {"selector": {"a": [1]}}])
def test_an_object_from_before_its_kind_had_a_scale_is_answered_whatever_it_has(api: Api, spec: Any) -> None:
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {**anything, "nullable": True}, "status": anything}}
    made = definition("things", "Thing", schema)
    (version,) = made["spec"]["versions"]
    scale = version.pop("subresources")["scale"] | {"labelSelectorPath": ".spec.selector"}
    api.post(DEFINITIONS, made).done()
    things = "/apis/example.com/v1/namespaces/default/things"
    thing = {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "status": "none"}
    api.post(things, thing | ({} if spec is None else {"spec": spec})).done()
    patch = [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"scale": scale}}]
    api.patch(f"{DEFINITIONS}/things.example.com", patch, "json").done()
    assert api.get(f"{things}/a/scale").ok["status"] == {"replicas": 0}
    assert api.patch(f"{things}/a/scale", {"spec": {"replicas": 2}}).status in (200, 400, 422)


def test_a_scale_is_applied(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("d")).done()
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 5}}
    assert api.patch(f"{D}/scale", scale, "apply").refusal == (422, "Invalid")
    assert api.apply(f"{D}/scale", scale).ok["spec"] == {"replicas": 5}


def test_a_dry_run_scales_nothing(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("d")).done()
    assert api.patch(f"{D}/scale?dryRun=All", {"spec": {"replicas": 9}}).ok["spec"] == {"replicas": 9}
    assert api.get(D).ok["spec"]["replicas"] == 3


# Evictions.


def budget(api: Api, *, allowed: int, observed: int = 1, healthy: int = 3, needed: int = 2, **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    body = {"metadata": {"name": "b"}, "spec": {"minAvailable": needed, "selector": selector, **spec}}
    api.post(BUDGETS, body).done()
    status = {
        "observedGeneration": observed,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": 3,
    }
    api.patch(f"{BUDGETS}/b/status", {"status": status}).done()


def running(api: Api, name: str, *, ready: bool = True, phase: str = "Running") -> None:
    api.post(PODS, pod(name, labels={"app": "web"}, nodeName="n")).done()
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    api.patch(f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": conditions}}).done()


def evict(api: Api, name: str, query: str = "", **rest: Any) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **rest}
    return api.post(f"{PODS}/{name}/eviction{query}", body)


def test_a_budget_is_spent_by_evictions_and_then_refuses_them(api: Api) -> None:
    running(api, "a")
    running(api, "b")
    budget(api, allowed=1)
    assert evict(api, "a").ok["status"] == "Success"
    assert "deletionTimestamp" in api.get(f"{PODS}/a").ok["metadata"]
    status = api.get(f"{BUDGETS}/b").ok["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    refused = evict(api, "b")
    assert refused.refusal == (429, "TooManyRequests")
    assert refused.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.causes == [("", "DisruptionBudget")]
    assert "Retry-After" not in refused.headers
    assert "deletionTimestamp" not in api.get(f"{PODS}/b").ok["metadata"]


def test_of_many_evictions_at_once_as_many_pass_as_the_budget_allows(api: Api) -> None:
    for number in range(8):
        running(api, f"p{number}")
    budget(api, allowed=3)
    answers = api.together(*(("POST", f"{PODS}/p{number}/eviction", {}) for number in range(8)))
    assert sorted(answer.status for answer in answers) == [*[201] * 3, *[429] * 5]


def test_a_budget_that_no_controller_has_counted_yet_allows_no_eviction(api: Api) -> None:
    running(api, "a")
    budget(api, allowed=1, observed=0)
    refused = evict(api, "a")
    assert refused.refusal == (429, "TooManyRequests")
    assert "still being processed" in refused.body["details"]["causes"][0]["message"]
    assert refused.headers["Retry-After"] == "10"


@pytest.mark.parametrize(
    ("pod_state", "budget_state", "code"),
    [
        ({"phase": "Pending", "ready": False}, {"allowed": 0}, 201),
        ({"phase": "Succeeded", "ready": False}, {"allowed": 0}, 201),
        ({"phase": "Failed", "ready": False}, {"allowed": 0}, 201),
        ({"ready": False}, {"allowed": 0, "healthy": 2}, 201),
        ({"ready": False}, {"allowed": 0, "healthy": 1}, 429),
        ({"ready": False}, {"allowed": 0, "healthy": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 201),
        ({"ready": False}, {"allowed": 0, "healthy": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}, 429),
        ({"ready": True}, {"allowed": 0, "healthy": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 429),
    ],
)
def test_a_pod_that_is_not_running_needs_no_budget(
    api: Api, pod_state: dict[str, Any], budget_state: dict[str, Any], code: int
) -> None:
    running(api, "a", **pod_state)
    budget(api, **budget_state)
    assert evict(api, "a").status == code
    assert api.get(f"{BUDGETS}/b").ok["status"].get("disruptedPods") is None


def test_a_dry_run_of_an_eviction_spends_nothing(api: Api) -> None:
    running(api, "a")
    budget(api, allowed=1)
    evict(api, "a", deleteOptions={"dryRun": ["All"]}).done()
    evict(api, "a", "?dryRun=All").done()
    assert "deletionTimestamp" not in api.get(f"{PODS}/a").ok["metadata"]
    assert api.get(f"{BUDGETS}/b").ok["status"]["disruptionsAllowed"] == 1


def test_two_budgets_for_one_pod_are_one_too_many(api: Api) -> None:
    running(api, "a")
    budget(api, allowed=5)
    other = {"metadata": {"name": "other"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    api.post(BUDGETS, other).done()
    answer = evict(api, "a")
    assert "more than one PodDisruptionBudget" in answer.message
    assert answer.status == 400


def test_an_eviction_obeys_the_options_of_the_deletion(api: Api) -> None:
    running(api, "a")
    wrong = evict(api, "a", deleteOptions={"preconditions": {"uid": "another"}})
    assert wrong.refusal == (409, "Conflict")
    evict(api, "a", deleteOptions={"gracePeriodSeconds": 7}).done()
    assert api.get(f"{PODS}/a").ok["metadata"]["deletionGracePeriodSeconds"] == 7
    assert evict(api, "none").refusal == (404, "NotFound")


@pytest.mark.parametrize("body", [b"{oops", [], 5, {"deleteOptions": 5}, {"metadata": 5}])
def test_an_eviction_that_is_none_is_refused(api: Api, body: Any) -> None:
    running(api, "a")
    assert api.post(f"{PODS}/a/eviction", body).refusal == (400, "BadRequest")


# Bindings.


def bind(api: Api, node: str = "one") -> Answer:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return api.post(f"{P}/binding", {"metadata": {"name": "p"}, "target": target})


def test_a_pod_is_bound_once(api: Api) -> None:
    api.post(PODS, pod("p")).done()
    bind(api).done()
    bound = api.get(P).ok
    assert bound["spec"]["nodeName"] == "one"
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    again = bind(api, "two")
    assert again.refusal == (409, "Conflict")
    assert 'already assigned to node "one"' in again.message


def test_a_pod_that_is_going_is_not_bound(api: Api) -> None:
    api.post(PODS, {**pod("p"), "metadata": {"name": "p", "finalizers": ["example.com/f"]}}).done()
    api.delete(P).done()
    assert bind(api).refusal == (409, "Conflict")


@pytest.mark.parametrize("body", [{}, {"target": {}}, {"target": {"name": ""}}, {"target": 5}])
def test_a_binding_names_its_node(api: Api, body: dict[str, Any]) -> None:
    api.post(PODS, pod("p")).done()
    assert api.post(f"{P}/binding", body).status in (400, 422)
    assert "nodeName" not in api.get(P).ok["spec"]


# Logs.


@pytest.fixture
def logging_api() -> Iterator[Api]:
    async def lines(request: Request) -> AsyncIterator[bytes]:
        yield b"one\n"
        yield f"tail {request.param('tailLines')}\n".encode()

    def source(obj: dict[str, Any], request: Request) -> AsyncIterator[bytes] | None:
        return lines(request) if obj["spec"].get("nodeName") else None

    api = Api(log_source=source)
    yield api
    api.close()


def test_logs_come_from_whatever_runs_the_pod(logging_api: Api) -> None:
    logging_api.post(PODS, pod("p", nodeName="n")).done()
    answer = logging_api.get(f"{P}/log?tailLines=5")
    assert (answer.status, answer.raw, answer.content_type) == (200, b"one\ntail 5\n", "text/plain")


def test_logs_of_what_does_not_run_say_so(logging_api: Api) -> None:
    two = [{"name": name, "image": "x"} for name in ("a", "b")]
    logging_api.post(PODS, pod("idle")).done()
    logging_api.post(PODS, pod("two", containers=two)).done()
    for target, words in {
        f"{PODS}/idle/log": "is waiting to start",
        f"{PODS}/two/log": "choose one of: [a b]",
        f"{PODS}/two/log?container=c": "container c is not valid for pod two",
    }.items():
        answer = logging_api.get(target)
        assert answer.refusal == (400, "BadRequest")
        assert words in answer.message
    assert logging_api.get(f"{PODS}/none/log").refusal == (404, "NotFound")


# Tokens.


def test_a_token_of_an_account_is_that_account_for_its_time(api: Api) -> None:
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    issued = api.post(f"{ACCOUNTS}/robot/token", request)
    assert issued.status == 201
    status = issued.ok["status"]
    assert status["expirationTimestamp"] == "2030-01-01T00:10:00Z"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": status["token"]}}
    found = api.post("/apis/authentication.k8s.io/v1/tokenreviews", review).ok["status"]
    assert (found["authenticated"], found["user"]["username"]) == (True, "system:serviceaccount:default:robot")
    who = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=status["token"]).ok
    assert "system:serviceaccounts:default" in who["status"]["userInfo"]["groups"]
    api.advance(601)
    assert api.get("/api", token=status["token"]).refusal == (401, "Unauthorized")


def test_a_token_ends_with_its_account(api: Api) -> None:
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    token = api.post(f"{ACCOUNTS}/robot/token", {"spec": {}}).ok["status"]["token"]
    api.get("/api", token=token).done()
    api.delete(f"{ACCOUNTS}/robot").done()
    assert api.get("/api", token=token).refusal == (401, "Unauthorized")
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    assert api.get("/api", token=token).refusal == (401, "Unauthorized")
    assert api.post(f"{ACCOUNTS}/none/token", {"spec": {}}).refusal == (404, "NotFound")


@pytest.mark.parametrize("body", [b"{oops", [], 5, {"spec": 5}, {"spec": {"expirationSeconds": "long"}}])
def test_a_token_request_that_is_none_is_refused(api: Api, body: Any) -> None:
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    assert api.post(f"{ACCOUNTS}/robot/token", body).status in (400, 422)


# Namespaces.


def test_a_namespace_goes_when_its_last_finalizer_does(api: Api) -> None:
    made = api.post(NAMESPACES, {"metadata": {"name": "team"}}).ok
    assert (made["spec"]["finalizers"], made["status"]["phase"]) == (["kubernetes"], "Active")
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    going = api.delete(f"{NAMESPACES}/team").ok
    assert going["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in going["metadata"]
    assert api.put(f"{NAMESPACES}/team", {"metadata": {"name": "team"}, "spec": {}}).ok["spec"] == made["spec"]
    api.put(f"{NAMESPACES}/team/finalize", {**going, "spec": {"finalizers": []}}).done()
    assert api.get(f"{NAMESPACES}/team").refusal == (404, "NotFound")


def test_finalizing_a_namespace_that_stays_only_changes_its_finalizers(api: Api) -> None:
    made = api.post(NAMESPACES, {"metadata": {"name": "team"}}).ok
    after = api.put(f"{NAMESPACES}/team/finalize", {**made, "spec": {"finalizers": ["example.com/x"]}}).ok
    assert after["spec"]["finalizers"] == ["example.com/x"]
    assert api.get(f"{NAMESPACES}/team").ok == after


# Questions.


def test_a_client_asks_what_it_may_do(api: Api) -> None:
    question = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}}
    target = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert api.post(target, question).ok["status"]["allowed"] is True
    api.post(ACCOUNTS, {"metadata": {"name": "robot"}}).done()
    token = api.post(f"{ACCOUNTS}/robot/token", {"spec": {}}).ok["status"]["token"]
    assert api.post(target, question, token=token).ok["status"]["allowed"] is False
    assert json.loads(api.get(target).raw)["code"] == 405
