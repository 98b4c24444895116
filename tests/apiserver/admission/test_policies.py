"""ValidatingAdmissionPolicies refuse and warn as their bindings say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.servers import CONFIGMAPS, NAMESPACES, Api, configmap

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
NEVER = [{"expression": "false", "message": "never"}]


def policy(name: str = "p", **spec: Any) -> dict[str, Any]:
    fields = {"matchConstraints": {"resourceRules": [RULE]}, "validations": NEVER} | spec
    return {"metadata": {"name": name}, "spec": fields}


def binding(name: str = "b", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"policyName": "p", "validationActions": ["Deny"]} | spec}


def enforce(api: Api, bound: dict[str, Any] | None = None, **spec: Any) -> None:
    """Put a policy into effect."""
    api.post(POLICIES, policy(**spec)).done()
    api.post(BINDINGS, bound or binding()).done()


def test_a_request_that_fails_a_validation_is_refused(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("old", data={})).done()
    enforce(api, validations=[{"expression": "size(object.data) <= 1", "message": "one entry at most"}])
    api.post(CONFIGMAPS, configmap("a", data={"a": "1"})).done()
    answer = api.post(CONFIGMAPS, configmap("b", data={"a": "1", "b": "2"}))
    assert answer.refusal == (422, "Invalid")
    why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: one entry at most"
    assert answer.message == f'configmaps "b" is forbidden: {why}'
    assert answer.body["details"]["causes"] == [{"message": why}]
    assert api.patch(f"{CONFIGMAPS}/old", {"data": {"a": "1", "b": "2"}}).refusal == (422, "Invalid")
    assert api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}}).status == 201
    api.delete(f"{CONFIGMAPS}/old").done()


def test_without_a_binding_a_policy_does_nothing(api: Api) -> None:
    api.post(POLICIES, policy()).done()
    api.post(CONFIGMAPS, configmap("a")).done()
    api.post(BINDINGS, binding()).done()
    assert api.post(CONFIGMAPS, configmap("b")).status == 422
    api.delete(f"{BINDINGS}/b").done()
    api.post(CONFIGMAPS, configmap("b")).done()


def test_a_warning_lets_the_request_through(api: Api) -> None:
    enforce(api, binding(validationActions=["Warn", "Audit"]))
    answer = api.post(CONFIGMAPS, configmap("a"))
    answer.done()
    assert answer.warnings == ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never",)


def test_a_reason_and_a_computed_message_are_reported(api: Api) -> None:
    validation = {
        "expression": "variables.twice <= 2",
        "messageExpression": "'found ' + string(variables.n) + ' in ' + namespaceObject.metadata.name",
        "reason": "Forbidden",
    }
    variables = [
        {"name": "n", "expression": "size(object.data)"},
        {"name": "twice", "expression": "variables.n * 2"},
        {"name": "unused", "expression": "object.none.none"},
    ]
    enforce(api, validations=[validation], variables=variables)
    answer = api.post(CONFIGMAPS, configmap("a", data={"a": "1", "b": "2"}))
    assert answer.refusal == (403, "Forbidden")
    assert answer.message.endswith("denied request: found 2 in default")


def test_the_default_message_is_the_expression(api: Api) -> None:
    enforce(api, validations=[{"expression": " request.userInfo.username == 'jane' ", "messageExpression": "''"}])
    assert api.post(CONFIGMAPS, configmap("a")).message.endswith(
        "denied request: failed expression: request.userInfo.username == 'jane'"
    )


@pytest.mark.parametrize(("failure", "status"), [("Fail", 422), ("Ignore", 201)])
@pytest.mark.parametrize(
    "spec",
    [
        {"validations": [{"expression": "object.data.none == 'x'"}]},
        {"validations": [{"expression": "variables.v"}], "variables": [{"name": "v", "expression": "object.none"}]},
        {"matchConditions": [{"name": "c", "expression": "object.none == 'x'"}], "validations": NEVER},
    ],
)
def test_an_expression_that_fails_counts_as_the_policy_says(
    api: Api, spec: dict[str, Any], failure: str, status: int
) -> None:
    enforce(api, failurePolicy=failure, **spec)
    answer = api.post(CONFIGMAPS, configmap("a", data={}))
    assert answer.status == status
    assert failure == "Ignore" or "resulted in error: " in answer.message


SELECTED = {"matchLabels": {"kubernetes.io/metadata.name": "other"}}


@pytest.mark.parametrize(
    ("constraints", "bound"),
    [
        pytest.param({}, {"namespaceSelector": SELECTED}, id="the binding is about another namespace"),
        pytest.param({"namespaceSelector": SELECTED}, None, id="the policy is about another namespace"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, None, id="about other objects"),
        pytest.param({"excludeResourceRules": [RULE]}, None, id="the kind is excluded"),
        pytest.param({}, {"excludeResourceRules": [{**RULE, "resourceNames": ["a"]}]}, id="the name is excluded"),
        pytest.param({"resourceRules": [{**RULE, "resourceNames": ["b"]}]}, None, id="about another name"),
        pytest.param({"resourceRules": [{**RULE, "operations": ["DELETE"]}]}, None, id="about another operation"),
    ],
)
def test_a_policy_leaves_alone_what_it_is_not_about(
    api: Api, constraints: dict[str, Any], bound: dict[str, Any] | None
) -> None:
    scope = {} if bound is None else {"matchResources": bound}
    enforce(api, binding(**scope), matchConstraints={"resourceRules": [RULE]} | constraints)
    api.post(CONFIGMAPS, configmap("a")).done()


def test_a_condition_that_is_false_leaves_the_request_alone(api: Api) -> None:
    conditions = [{"name": "error", "expression": "object.none"}, {"name": "no", "expression": "oldObject != null"}]
    enforce(api, matchConditions=conditions)
    api.post(CONFIGMAPS, configmap("a")).done()
    conditions = [{"name": "yes", "expression": "request.operation == 'CREATE'"}]
    api.put(f"{POLICIES}/p", policy(matchConditions=conditions)).done()
    assert api.post(CONFIGMAPS, configmap("b")).status == 422


def test_a_deletion_is_judged_by_the_old_object(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("kept", data={"keep": "yes"})).done()
    api.post(CONFIGMAPS, configmap("other", data={"a": "1"})).done()
    constraints = {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}
    enforce(api, matchConstraints=constraints, validations=[{"expression": "!('keep' in oldObject.data)"}])
    assert api.delete(f"{CONFIGMAPS}/kept").refusal == (422, "Invalid")
    api.delete(f"{CONFIGMAPS}/other").done()


PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
LIMIT = [{"expression": "params == null || size(object.data) <= int(params.data.most)"}]


def test_parameters_are_read_where_the_binding_says(api: Api) -> None:
    api.post(NAMESPACES, {"metadata": {"name": "limits"}}).done()
    ref = {"name": "limit", "namespace": "limits", "parameterNotFoundAction": "Allow"}
    enforce(api, binding(paramRef=ref), validations=LIMIT, **PARAMS)
    two = {"a": "1", "b": "2"}
    api.post(CONFIGMAPS, configmap("a", data=two)).done()
    limit = {"metadata": {"name": "limit", "labels": {"is": "limit"}}, "data": {"most": "1"}}
    api.post("/api/v1/namespaces/limits/configmaps", limit).done()
    assert api.post(CONFIGMAPS, configmap("b", data=two)).status == 422
    by_label = {"namespace": "limits", "selector": {"matchLabels": {"is": "limit"}}, "parameterNotFoundAction": "Deny"}
    api.put(f"{BINDINGS}/b", binding(paramRef=by_label)).done()
    assert api.post(CONFIGMAPS, configmap("b", data=two)).status == 422
    api.post(CONFIGMAPS, configmap("c", data={"a": "1"})).done()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ConfigMap", "no params found for policy binding with `Deny` parameterNotFoundAction"),
        ("Nothing", "failed to find resource referenced by paramKind: 'v1, Kind=Nothing'"),
    ],
)
def test_missing_parameters_refuse_the_request(api: Api, kind: str, words: str) -> None:
    ref = {"name": "none", "parameterNotFoundAction": "Deny"}
    enforce(api, binding(paramRef=ref), paramKind={"apiVersion": "v1", "kind": kind}, validations=LIMIT)
    assert words in api.post(CONFIGMAPS, configmap("a")).message


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"matchConstraints": None}, [("spec.matchConstraints", "FieldValueRequired")]),
        ({"validations": [{"expression": "foo"}]}, [("spec.validations[0].expression", "FieldValueInvalid")]),
        ({"validations": [{"expression": "1"}]}, [("spec.validations[0].expression", "FieldValueInvalid")]),
        ({"validations": [{"expression": " "}]}, [("spec.validations[0].expression", "FieldValueRequired")]),
        ({"failurePolicy": "X"}, [("spec.failurePolicy", "FieldValueNotSupported")]),
        (
            {"validations": [{"expression": "true", "reason": "X"}]},
            [("spec.validations[0].reason", "FieldValueNotSupported")],
        ),
        (
            {"validations": []},
            [("spec.validations", "FieldValueRequired"), ("spec.auditAnnotations", "FieldValueRequired")],
        ),
    ],
)
def test_a_policy_that_cannot_be_enforced_is_refused(
    api: Api, spec: dict[str, Any], causes: list[tuple[str, str]]
) -> None:
    assert api.post(POLICIES, policy(**spec)).causes == causes


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"policyName": ""}, [("spec.policyName", "FieldValueRequired")]),
        ({"validationActions": []}, [("spec.validationActions", "FieldValueRequired")]),
        ({"validationActions": ["Deny", "Warn"]}, [("spec.validationActions", "FieldValueInvalid")]),
        (
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}},
            [("spec.paramRef.name", "FieldValueForbidden"), ("spec.paramRef.selector", "FieldValueForbidden")],
        ),
        (
            {"paramRef": {}},
            [("spec.paramRef", "FieldValueRequired"), ("spec.paramRef.parameterNotFoundAction", "FieldValueRequired")],
        ),
    ],
)
def test_a_binding_that_says_nothing_clear_is_refused(
    api: Api, spec: dict[str, Any], causes: list[tuple[str, str]]
) -> None:
    assert api.post(BINDINGS, binding(**spec)).causes == causes


def test_a_broken_policy_can_be_repaired(api: Api) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
    enforce(api, matchConstraints={"resourceRules": [everything]})
    assert api.post(CONFIGMAPS, configmap("a")).status == 422
    api.delete(f"{POLICIES}/p").done()
    api.post(CONFIGMAPS, configmap("a")).done()
