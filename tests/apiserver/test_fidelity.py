"""Details of answers that clients of Kubernetes rely on."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.apiserver.servers import CONFIGMAPS, NAMESPACES, PODS, SIGNING_REQUEST, Api, configmap, pod
from tests.certificates import certificate_request

SERVICES = "/api/v1/namespaces/default/services"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def test_a_dry_run_binds_no_pod(api: Api) -> None:
    api.post(PODS, pod("p")).done()
    binding = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}
    api.post(f"{PODS}/p/binding?dryRun=All", binding).done()
    assert "nodeName" not in api.get(f"{PODS}/p").ok["spec"]
    api.post(f"{PODS}/p/binding", binding).done()
    assert api.get(f"{PODS}/p").ok["spec"]["nodeName"] == "n"
    assert api.post(f"{PODS}/p/binding?dryRun=Some", binding).refusal[0] in (400, 422)


def test_a_dry_run_finalizes_no_namespace(api: Api) -> None:
    api.post(NAMESPACES, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}}).done()
    api.delete(f"{NAMESPACES}/n").done()
    found = api.get(f"{NAMESPACES}/n").ok
    api.put(f"{NAMESPACES}/n/finalize?dryRun=All", found | {"spec": {}}).done()
    assert api.get(f"{NAMESPACES}/n").ok["spec"]["finalizers"] == ["kubernetes"]
    api.put(f"{NAMESPACES}/n/finalize", found | {"spec": {}}).done()
    assert api.get(f"{NAMESPACES}/n").status == 404


def test_a_dry_run_create_accepts_a_resource_version(api: Api) -> None:
    given = configmap("a", metadata={"resourceVersion": "7"})
    api.post(f"{CONFIGMAPS}?dryRun=All", given).done()
    assert api.post(CONFIGMAPS, given).status == 500


@pytest.mark.parametrize("target", [0, "", None])
def test_a_target_port_of_zero_is_the_port(api: Api, target: Any) -> None:
    port = {"port": 80, "targetPort": target}
    service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}, "spec": {"ports": [port]}}
    assert api.post(SERVICES, service).ok["spec"]["ports"][0]["targetPort"] == 80


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("https://user:secret@example.com/x", "user information is not permitted"),
        ("https://example.com/x?y=z", "query parameters are not permitted"),
        ("https://example.com/x#y", "fragments are not permitted"),
        ("https:///x", "host must be specified"),
        ("http://example.com", "only allowed URL scheme"),
        ("https://[::1", "must be a valid URL"),
    ],
)
def test_the_url_of_a_webhook_is_a_host_and_a_path(api: Api, url: str, what: str) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["y"]}
    hook = {"name": "w.example.com", "clientConfig": {"url": url}, "rules": [rule], "sideEffects": "None"}
    configuration = {
        "kind": "ValidatingWebhookConfiguration",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "w"},
        "webhooks": [hook | {"admissionReviewVersions": ["v1"]}],
    }
    answer = api.post(WEBHOOKS, configuration)
    assert answer.status == 422
    assert what in answer.message


def test_an_aggregation_rule_needs_a_selector(api: Api) -> None:
    role = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}}
    answer = api.post(f"{RBAC}/clusterroles", role | {"aggregationRule": {"clusterRoleSelectors": []}})
    assert answer.causes == [("aggregationRule.clusterRoleSelectors", "FieldValueRequired")]


def test_a_version_of_the_core_group_that_is_not_served_is_a_status(api: Api) -> None:
    assert api.get("/api/v9").refusal == (404, "NotFound")


def test_an_unsupported_patch_has_empty_details(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    answer = api.ask("PATCH", f"{CONFIGMAPS}/a", b"{}", headers={"content-type": "application/json"})
    assert answer.refusal == (415, "UnsupportedMediaType")
    assert answer.body["details"] == {}


def test_a_missing_uid_of_an_owner_is_required(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    answer = api.post(CONFIGMAPS, configmap("a", metadata={"ownerReferences": [owner]}))
    assert answer.causes == [("metadata.ownerReferences[0].uid", "FieldValueRequired")]


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"


def claim(**request: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": [{"name": "gpu", **request}]}}
    return {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c"}, "spec": spec}


def test_a_resource_claim_is_stored_with_its_defaults(api: Api) -> None:
    made = api.post(CLAIMS, claim(exactly={"deviceClassName": "gpu.example.com"})).ok
    exactly = made["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    api.patch(f"{CLAIMS}/c/status", {"status": {"reservedFor": reserved}}).done()
    assert api.get(f"{CLAIMS}/c").ok["status"]["reservedFor"] == reserved
    changed = made | {"spec": {"devices": {}}}
    assert api.put(f"{CLAIMS}/c", changed | {"metadata": {"name": "c"}}).refusal == (422, "Invalid")


def test_a_resource_claim_without_a_class_is_refused(api: Api) -> None:
    assert api.post(CLAIMS, claim()).status == 422
    answer = api.post(CLAIMS, claim(exactly={}, firstAvailable=[{"name": "a"}]))
    assert ("spec.devices.requests[0].firstAvailable[0].deviceClassName", "FieldValueRequired") in answer.causes


def test_a_template_of_resource_claims_is_stored(api: Api) -> None:
    template = claim() | {"kind": "ResourceClaimTemplate"}
    template["spec"] = {"spec": claim(exactly={"deviceClassName": "gpu.example.com"})["spec"]}
    made = api.post(TEMPLATES, template).ok
    assert made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def resource_slice(**spec: Any) -> dict[str, Any]:
    spec = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n"} | spec
    return {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "s"}, "spec": spec}


def test_a_device_class_is_stored_and_changed(api: Api) -> None:
    spec = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}
    made = api.post(CLASSES, {"metadata": {"name": "gpu.example.com"}, "spec": spec}).ok
    assert (made["spec"], made["metadata"]["generation"]) == (spec, 1)
    parameters = {"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Sharing", "count": 2}}}
    changed = api.patch(f"{CLASSES}/gpu.example.com", {"spec": {"config": [parameters]}}).ok
    assert (changed["spec"]["config"], changed["metadata"]["generation"]) == ([parameters], 2)


def test_a_device_class_with_an_empty_selector_is_refused(api: Api) -> None:
    spec = {"selectors": [{}, {"cel": {}}], "config": [{}]}
    answer = api.post(CLASSES, {"metadata": {"name": "c"}, "spec": spec})
    fields = ["spec.selectors[0].cel", "spec.selectors[1].cel.expression", "spec.config[0].opaque"]
    assert answer.causes == [(field, "FieldValueRequired") for field in fields]


def test_the_slices_of_a_node_and_of_a_driver_are_listed(api: Api) -> None:
    device = {"name": "gpu-0", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "80Gi"}}}
    made = api.post(SLICES, resource_slice(devices=[device])).ok
    assert made["spec"]["devices"] == [device]
    assert api.names(f"{SLICES}?fieldSelector=spec.nodeName%3Dn,spec.driver%3Dgpu.example.com") == ["s"]
    assert api.names(f"{SLICES}?fieldSelector=spec.nodeName%3Dm") == []


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"nodeName": None}, [("spec", "FieldValueRequired")]),
        ({"allNodes": True}, [("spec", "FieldValueInvalid")]),
        ({"driver": "G_"}, [("spec.driver", "FieldValueInvalid")]),
        ({"pool": {"name": "p"}}, [("spec.pool.resourceSliceCount", "FieldValueInvalid")]),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, [("spec.devices[1].name", "FieldValueDuplicate")]),
        (
            {"devices": [{"name": "a", "attributes": {"x": {}}}]},
            [("spec.devices[0].attributes[x]", "FieldValueRequired")],
        ),
        ({"devices": [{"name": f"d{number}"} for number in range(129)]}, [("spec.devices", "FieldValueTooMany")]),
    ],
)
def test_a_slice_that_cannot_be_is_refused(api: Api, spec: dict[str, Any], causes: list[tuple[str, str]]) -> None:
    assert api.post(SLICES, resource_slice(**spec)).causes == causes


def test_a_slice_stays_with_its_driver_pool_and_node(api: Api) -> None:
    api.post(SLICES, resource_slice()).done()
    other = {"driver": "other.example.com", "nodeName": "m", "pool": {"name": "q"}}
    answer = api.patch(f"{SLICES}/s", {"spec": other})
    assert answer.causes == [(f"spec.{name}", "FieldValueInvalid") for name in ("pool.name", "driver", "nodeName")]


REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def signing_request(**spec: Any) -> dict[str, Any]:
    fields = {"request": SIGNING_REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}
    return {
        "kind": "CertificateSigningRequest",
        "apiVersion": "certificates.k8s.io/v1",
        "metadata": {"name": "r"},
        "spec": fields | spec,
    }


def permit(api: Api, verb: str, resource: str, *names: str) -> None:
    """Let jane use a verb on a resource of certificates.k8s.io."""
    version, name = "rbac.authorization.k8s.io/v1", f"{verb}-{resource.replace('/', '-')}"
    rule = {"verbs": [verb], "apiGroups": ["certificates.k8s.io"], "resources": [resource]}
    rules = [rule | ({"resourceNames": list(names)} if names else {})]
    role = {"kind": "ClusterRole", "apiVersion": version, "metadata": {"name": name}, "rules": rules}
    api.post(f"{RBAC}/clusterroles", role).done()
    group = "rbac.authorization.k8s.io"
    binding = {
        "kind": "ClusterRoleBinding",
        "apiVersion": version,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    }
    api.post(f"{RBAC}/clusterrolebindings", binding).done()


def decision(kind: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "R"}


def test_a_signing_request_names_the_user_who_made_it(api: Api) -> None:
    permit(api, "create", "certificatesigningrequests")
    jane = {"impersonate-user": "jane"}
    made = api.post(REQUESTS, signing_request(username="root", groups=["system:masters"]), headers=jane).ok
    assert (made["spec"]["username"], made["spec"]["groups"]) == ("jane", ["system:authenticated"])


def test_a_signing_request_is_approved_and_signed_by_those_who_may(api: Api) -> None:
    made = api.post(REQUESTS, signing_request()).ok
    approved = made | {"status": {"conditions": [decision("Approved")]}}
    jane = {"impersonate-user": "jane"}
    permit(api, "update", "certificatesigningrequests/approval")
    assert api.put(f"{REQUESTS}/r/approval", approved, headers=jane).refusal == (403, "Forbidden")
    permit(api, "approve", "signers", "example.com/*")
    found = api.put(f"{REQUESTS}/r/approval", approved | {"spec": {}}, headers=jane).ok
    assert (found["status"]["conditions"][0]["type"], found["spec"]) == ("Approved", made["spec"])

    permit(api, "patch", "certificatesigningrequests/status")
    signed = {"status": {"certificate": base64.b64encode(b"x").decode(), "conditions": []}}
    assert api.patch(f"{REQUESTS}/r/status", signed, headers=jane).refusal == (403, "Forbidden")
    permit(api, "sign", "signers", "example.com/s")
    status = api.patch(f"{REQUESTS}/r/status", signed, headers=jane).ok["status"]
    assert status["certificate"] == signed["status"]["certificate"]
    assert [each["type"] for each in status["conditions"]] == ["Approved"], "a decision is not part of the status"


def test_a_decision_gets_its_times(api: Api) -> None:
    api.post(REQUESTS, signing_request()).done()
    bare = {"type": "Approved", "status": "True", "reason": "Test"}
    (made,) = api.patch(f"{REQUESTS}/r/approval", {"status": {"conditions": [bare]}}).ok["status"]["conditions"]
    assert made["lastUpdateTime"] == made["lastTransitionTime"] == "2030-01-01T00:00:00Z"


def test_a_write_of_the_status_approves_nothing(api: Api) -> None:
    api.post(REQUESTS, signing_request()).done()
    answer = api.patch(f"{REQUESTS}/r/status", {"status": {"conditions": [decision("Approved")]}})
    assert "conditions" not in answer.ok.get("status", {})


def test_a_signing_request_without_a_request_is_refused(api: Api) -> None:
    empty = b"-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n"
    for request in (b"no", empty):
        answer = api.post(REQUESTS, signing_request(request=base64.b64encode(request).decode()))
        assert answer.causes == [("spec.request", "FieldValueInvalid")]
    both = {"status": {"conditions": [decision("Approved"), decision("Denied")]}}
    api.post(REQUESTS, signing_request()).done()
    assert api.patch(f"{REQUESTS}/r/approval", both).refusal == (422, "Invalid")


def test_a_client_certificate_of_the_masters_is_refused(api: Api) -> None:
    request = base64.b64encode(certificate_request("jane", groups=["dev", "system:masters"])).decode()
    refused = api.post(REQUESTS, signing_request(request=request, signerName="kubernetes.io/kube-apiserver-client"))
    assert refused.refusal == (403, "Forbidden")
    assert "use of kubernetes.io/kube-apiserver-client signer with system:masters group" in refused.message
    api.post(REQUESTS, signing_request(request=request)).done()  # other signers have their own rules
