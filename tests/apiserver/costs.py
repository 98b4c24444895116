"""Requests that cost little to send and could cost much to answer, each of a size that can be changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.apiserver.servers import CONFIGMAPS, DEFINITIONS, DEPLOYMENTS, PATCHES, PODS

from holdfast.meta.exchange import Request

Object = dict[str, Any]

JSON = "application/json"
YAML = "application/yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True)
class Costly:
    """One request: `make` returns its body for a size, after the objects of `before` are created."""

    name: str
    method: str
    path: str
    size: int
    make: Callable[[int], Any]
    media: str = JSON
    before: Callable[[int], Iterator[tuple[str, Any]]] = lambda n: iter(())
    user: str = ""
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: tuple[int, ...] = (200, 201, 400, 413, 422)

    def request(self, n: int, token: str) -> Request:
        return request(self.method, self.path, self.make(n), token, media=self.media, user=self.user, query=self.query)

    def preparations(self, n: int, token: str) -> Iterator[Request]:
        for path, obj in self.before(n):
            yield request("POST", path, obj, token)


def request(
    method: str,
    path: str,
    body: Any,
    token: str,
    *,
    media: str = JSON,
    user: str = "",
    query: Mapping[str, tuple[str, ...]] | None = None,
) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": media}
    if user:
        headers["impersonate-user"] = user
    dry = {"dryRun": ("All",)} if method == "POST" and user else {}
    return Request(method, path, {**dry, **(query or {})}, headers, raw)


def named(kind: str, version: str, name: str = "x", **fields: Any) -> Object:
    return {"kind": kind, "apiVersion": version, "metadata": {"name": name}} | fields


def with_metadata(**metadata: Any) -> Object:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"} | metadata}


ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def policy(*expressions: str) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    validations = [{"expression": each} for each in expressions]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    return named("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", spec=spec)


def judged(expression: str, *more: Callable[[int], tuple[str, Any]]) -> Callable[[int], Iterator[tuple[str, Any]]]:
    """Some objects, and then a policy in effect."""
    bound = {"policyName": "x", "validationActions": ["Deny"]}

    def before(n: int) -> Iterator[tuple[str, Any]]:
        yield from (each(n) for each in more)
        yield f"{ADMISSION}/validatingadmissionpolicies", policy(expression)
        yield (
            f"{ADMISSION}/validatingadmissionpolicybindings",
            named("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", spec=bound),
        )

    return before


def owner(n: int, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"u{n}"} | more


def pod(**spec: Any) -> Object:
    return named("Pod", "v1", spec={"containers": [{"name": "c", "image": "i"}]} | spec)


def widget_definition(spec: Object) -> Object:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return named(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "widgets.example.com",
        spec={"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    )


def widget(spec: Any) -> Object:
    return named("Widget", "example.com/v1", spec=spec)


def defined(schema: Callable[[int], Object], *objects: Callable[[int], Object]) -> Callable[[int], Any]:
    def before(n: int) -> Iterator[tuple[str, Any]]:
        yield DEFINITIONS, widget_definition(schema(n))
        for each in objects:
            yield WIDGETS, each(n)

    return before


def stored(path: str, obj: Callable[[int], Object]) -> Callable[[int], Any]:
    return lambda n: iter([(path, obj(n))])


def grants_of_a_user(n: int) -> Iterator[tuple[str, Any]]:
    """A user who may write roles and holds a few rules."""
    rules = [
        {"verbs": ["create", "patch"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "services"]},
        {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a", "b"]},
    ]
    version = "rbac.authorization.k8s.io/v1"
    yield ROLES, named("Role", version, "held", rules=rules)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "held"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    bound = named("RoleBinding", version, "held", roleRef=reference, subjects=[subject])
    yield f"{RBAC}/namespaces/default/rolebindings", bound


def finalizers(n: int) -> list[str]:
    return [f"example.com/f{k}" for k in range(n)]


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}, "v": {"type": "integer"}}},
}

REQUESTS: tuple[Costly, ...] = (
    # YAML.
    Costly("base 60", "POST", REVIEWS, 100_000, lambda n: b"spec: " + b"1:" * n + b"1", YAML),
    Costly("a base 60 key", "POST", REVIEWS, 100_000, lambda n: b"{spec: {'a': " + b"1:" * n + b"1}}", YAML),
    Costly("digits", "POST", REVIEWS, 100_000, lambda n: b"spec: " + b"9" * n, YAML),
    Costly("a YAML list", "POST", REVIEWS, 40_000, lambda n: b"spec: [" + b"a," * n + b"]", YAML),
    Costly("YAML objects", "POST", REVIEWS, 10_000, lambda n: b"spec:\n" + b"- a: b\n  c: d\n" * n, YAML),
    Costly("merge keys", "POST", REVIEWS, 10_000, lambda n: b"a: &a {b: c}\nspec:\n" + b"- <<: *a\n" * n, YAML),
    Costly("aliases", "POST", REVIEWS, 10_000, lambda n: b"a: &a {b: c}\nspec:\n" + b"- *a\n" * n, YAML),
    Costly("anchors", "POST", REVIEWS, 10_000, lambda n: b"".join(b"- &a%d x\n" % k for k in range(n)), YAML),
    Costly(
        "tag directives", "POST", REVIEWS, 10_000, lambda n: b"".join(b"%%TAG !a%d! x\n" % k for k in range(n)), YAML
    ),
    Costly("comments", "POST", REVIEWS, 50_000, lambda n: b"# a comment\n" * n, YAML),
    Costly("YAML keys", "POST", REVIEWS, 10_000, lambda n: b"".join(b"k%d: x\n" % k for k in range(n)), YAML),
    Costly("large YAML", "POST", REVIEWS, 250_000, lambda n: b"spec: [" + b"a, b, " * n + b"]", YAML),
    # Metadata.
    Costly("owners", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(ownerReferences=[owner(k) for k in range(n)])),
    Costly(
        "controllers",
        "POST",
        CONFIGMAPS,
        10_000,
        lambda n: with_metadata(ownerReferences=[owner(k, controller=True) for k in range(n)]),
    ),
    Costly("repeated owners", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(ownerReferences=[owner(1)] * n)),
    Costly(
        "empty owners",
        "POST",
        CONFIGMAPS,
        10_000,
        lambda n: with_metadata(ownerReferences=[{"a": k} for k in range(n)]),
    ),
    Costly("labels", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(labels={f"k{k}": "v" for k in range(n)})),
    Costly(
        "invalid labels", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(labels={f"/{k}": "!" for k in range(n)})
    ),
    Costly(
        "annotations", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(annotations={f"k{k}": "v" for k in range(n)})
    ),
    Costly("a long label", "POST", CONFIGMAPS, 200_000, lambda n: with_metadata(labels={"a" * n: "b" * n})),
    Costly("a long name", "POST", CONFIGMAPS, 200_000, lambda n: named("ConfigMap", "v1", "a." * n)),
    Costly("finalizers", "POST", CONFIGMAPS, 10_000, lambda n: with_metadata(finalizers=finalizers(n))),
    Costly(
        "managed fields",
        "POST",
        CONFIGMAPS,
        2_000,
        lambda n: with_metadata(
            managedFields=[
                {
                    "manager": f"m{k}",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {f"f:{k}": {}},
                }
                for k in range(n)
            ]
        ),
    ),
    # JSON.
    Costly(
        "duplicate keys",
        "POST",
        CONFIGMAPS,
        20_000,
        lambda n: (
            b'{"metadata":{"name":"x"},"data":{' + b",".join(b'"k%d":"","k%d":""' % (k, k) for k in range(n)) + b"}}"
        ),
    ),
    Costly(
        "duplicate keys below a long one",
        "POST",
        CONFIGMAPS,
        20_000,
        lambda n: (
            b'{"metadata":{"name":"x"},"%s":{' % (b"a" * 10 * n)
            + b",".join(b'"k%d":"","k%d":""' % (k, k) for k in range(n))
            + b"}}"
        ),
    ),
    Costly(
        "unknown fields below a long key",
        "POST",
        PODS,
        10_000,
        lambda n: pod(nodeSelector={"a" * 20 * n: "b"}, **{f"u{k}": 1 for k in range(n)}),
    ),
    Costly(
        "data", "POST", CONFIGMAPS, 10_000, lambda n: named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)})
    ),
    Costly(
        "invalid data",
        "POST",
        CONFIGMAPS,
        10_000,
        lambda n: named("ConfigMap", "v1", data={f"!{k}": 1 for k in range(n)}),
    ),
    # Built-in kinds.
    Costly(
        "containers", "POST", PODS, 500, lambda n: pod(containers=[{"name": f"c{k}", "image": "i"} for k in range(n)])
    ),
    Costly("equal containers", "POST", PODS, 500, lambda n: pod(containers=[{"name": "c", "image": "i"}] * n)),
    Costly("empty containers", "POST", PODS, 2_000, lambda n: pod(containers=[{}] * n)),
    Costly(
        "environment",
        "POST",
        PODS,
        3_000,
        lambda n: pod(
            containers=[{"name": "c", "image": "i", "env": [{"name": f"E{k}", "value": "v"} for k in range(n)]}]
        ),
    ),
    Costly(
        "container ports",
        "POST",
        PODS,
        2_000,
        lambda n: pod(
            containers=[
                {
                    "name": "c",
                    "image": "i",
                    "ports": [{"name": f"p{k}", "containerPort": k + 1, "hostPort": k + 1} for k in range(n)],
                }
            ]
        ),
    ),
    Costly(
        "volumes",
        "POST",
        PODS,
        1_000,
        lambda n: pod(
            volumes=[{"name": f"v{k}", "emptyDir": {}} for k in range(n)],
            containers=[
                {
                    "name": "c",
                    "image": "i",
                    "volumeMounts": [{"name": f"v{k}", "mountPath": f"/m{k}"} for k in range(n)],
                }
            ],
        ),
    ),
    Costly(
        "tolerations",
        "POST",
        PODS,
        2_000,
        lambda n: pod(tolerations=[{"key": f"k{k}", "operator": "Exists"} for k in range(n)]),
    ),
    Costly("pull secrets", "POST", PODS, 3_000, lambda n: pod(imagePullSecrets=[{"name": f"s{k}"} for k in range(n)])),
    Costly(
        "readiness gates",
        "POST",
        PODS,
        3_000,
        lambda n: pod(readinessGates=[{"conditionType": f"a/b{k}"} for k in range(n)]),
    ),
    Costly(
        "host aliases",
        "POST",
        PODS,
        3_000,
        lambda n: pod(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]} for k in range(n)]),
    ),
    Costly(
        "spread constraints",
        "POST",
        PODS,
        1_000,
        lambda n: pod(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": f"k{k}", "whenUnsatisfiable": "DoNotSchedule"} for k in range(n)
            ]
        ),
    ),
    Costly(
        "service ports",
        "POST",
        "/api/v1/namespaces/default/services",
        2_000,
        lambda n: named("Service", "v1", spec={"ports": [{"name": f"p{k}", "port": k + 1} for k in range(n)]}),
        query={"dryRun": ("All",)},
    ),
    Costly(
        "endpoints",
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        900,
        lambda n: named(
            "EndpointSlice",
            "discovery.k8s.io/v1",
            addressType="IPv4",
            endpoints=[{"addresses": ["10.0.0.1"]}] * n,
            ports=[],
        ),
    ),
    Costly(
        "endpoint ports",
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        3_000,
        lambda n: named(
            "EndpointSlice",
            "discovery.k8s.io/v1",
            addressType="IPv4",
            endpoints=[],
            ports=[{"name": f"p{k}", "port": k + 1} for k in range(n)],
        ),
    ),
    Costly(
        "ingress rules",
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        1_000,
        lambda n: named(
            "Ingress",
            "networking.k8s.io/v1",
            spec={
                "rules": [
                    {
                        "host": f"h{k}.example.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                    for k in range(n)
                ]
            },
        ),
    ),
    Costly(
        "match expressions",
        "POST",
        DEPLOYMENTS,
        2_000,
        lambda n: named(
            "Deployment",
            "apps/v1",
            spec={
                "selector": {"matchExpressions": [{"key": f"k{k}", "operator": "Exists"} for k in range(n)]},
                "template": {
                    "metadata": {"labels": {f"k{k}": "v" for k in range(n)}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        ),
    ),
    Costly(
        "selector values",
        "POST",
        DEPLOYMENTS,
        10_000,
        lambda n: named(
            "Deployment",
            "apps/v1",
            spec={
                "selector": {
                    "matchExpressions": [{"key": "k", "operator": "In", "values": [f"v{k}" for k in range(n)]}]
                },
                "template": {
                    "metadata": {"labels": {"k": "v1"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        ),
    ),
    Costly(
        "webhooks",
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        500,
        lambda n: named(
            "ValidatingWebhookConfiguration",
            "admissionregistration.k8s.io/v1",
            webhooks=[
                {
                    "name": f"w{k}.example.com",
                    "clientConfig": {"url": "https://localhost/x"},
                    "rules": [
                        {"operations": ["CREATE"], "apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["y"]}
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
                for k in range(n)
            ],
        ),
        query={"dryRun": ("All",)},
    ),
    Costly(
        "conditions",
        "PUT",
        f"{PODS}/x/status",
        2_000,
        lambda n: pod() | {"status": {"conditions": [{"type": f"t{k}", "status": "True"} for k in range(n)]}},
        before=stored(PODS, lambda n: pod()),
    ),
    # Roles.
    Costly(
        "products of a rule",
        "POST",
        ROLES,
        500,
        lambda n: named(
            "Role",
            "rbac.authorization.k8s.io/v1",
            rules=[
                {
                    "verbs": [f"v{k}" for k in range(n)] + ["get"],
                    "apiGroups": [f"g{k}" for k in range(n)] + [""],
                    "resources": [f"r{k}" for k in range(n)] + ["pods"],
                    "resourceNames": [f"n{k}" for k in range(n)] + ["a"],
                }
            ],
        ),
        before=grants_of_a_user,
        user="jane",
        code=(403,),
    ),
    Costly(
        "values of a rule",
        "POST",
        ROLES,
        10_000,
        lambda n: named(
            "Role",
            "rbac.authorization.k8s.io/v1",
            rules=[
                {
                    "verbs": [f"v{k}" for k in range(n)],
                    "apiGroups": [f"g{k}" for k in range(n)],
                    "resources": [f"r{k}" for k in range(n)],
                }
            ],
        ),
        before=grants_of_a_user,
        user="jane",
        code=(403,),
    ),
    Costly(
        "rules",
        "POST",
        ROLES,
        3_000,
        lambda n: named(
            "Role",
            "rbac.authorization.k8s.io/v1",
            rules=[
                {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [f"n{k}"]}
                for k in range(n)
            ],
        ),
        before=grants_of_a_user,
        user="jane",
    ),
    Costly(
        "equal rules of a cluster role",
        "POST",
        f"{RBAC}/clusterroles",
        3_000,
        lambda n: named(
            "ClusterRole",
            "rbac.authorization.k8s.io/v1",
            rules=[{"verbs": [f"v{k}"], "apiGroups": [""], "resources": ["pods"]} for k in range(n)],
        ),
    ),
    Costly(
        "subjects",
        "POST",
        f"{RBAC}/namespaces/default/rolebindings",
        5_000,
        lambda n: named(
            "RoleBinding",
            "rbac.authorization.k8s.io/v1",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"u{k}"} for k in range(n)],
        ),
    ),
    # Custom kinds.
    Costly(
        "numbers of an enum",
        "POST",
        WIDGETS,
        3_000,
        lambda n: widget(list(range(n))),
        before=defined(lambda n: {"type": "array", "items": {"type": "integer", "enum": list(range(n))}}),
    ),
    Costly(
        "numbers outside an enum",
        "POST",
        WIDGETS,
        3_000,
        lambda n: widget(list(range(n, 2 * n))),
        before=defined(lambda n: {"type": "array", "items": {"type": "integer", "enum": list(range(n))}}),
    ),
    Costly(
        "missing fields",
        "POST",
        WIDGETS,
        1_000,
        lambda n: widget([{}] * n),
        before=defined(
            lambda n: {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": [f"f{k}" for k in range(n)],
                    "properties": {f"f{k}": {"type": "string"} for k in range(n)},
                },
            }
        ),
    ),
    Costly(
        "entries of a map",
        "POST",
        WIDGETS,
        5_000,
        lambda n: widget([{"k": k} for k in range(n)]),
        before=defined(lambda n: KEYED),
    ),
    Costly(
        "equal entries of a set",
        "POST",
        WIDGETS,
        5_000,
        lambda n: widget([{"k": {"a": k % 2}} for k in range(n)]),
        before=defined(
            lambda n: {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"x-kubernetes-map-type": "atomic", **OPEN},
            }
        ),
    ),
    Costly(
        "problems that an update left",
        "PUT",
        f"{WIDGETS}/x",
        2_000,
        lambda n: widget([{"k": k, "v": "wrong"} for k in range(n)] + [{"k": n, "v": 1}]),
        before=defined(lambda n: KEYED, lambda n: widget([{"k": k, "v": 1} for k in range(n)])),
    ),
    Costly(
        "unknown fields",
        "POST",
        WIDGETS,
        10_000,
        lambda n: widget({f"u{k}": k for k in range(n)}),
        before=defined(lambda n: {"type": "object", "properties": {"a": {"type": "string"}}}),
    ),
    Costly(
        "properties of a definition",
        "POST",
        DEFINITIONS,
        1_000,
        lambda n: widget_definition({"type": "object", "properties": {f"p{k}": {"type": "string"} for k in range(n)}}),
        query={"dryRun": ("All",)},
    ),
    Costly(
        "branches of a definition",
        "POST",
        DEFINITIONS,
        500,
        lambda n: widget_definition(
            {
                "type": "object",
                "properties": {f"p{k}": {"type": "string"} for k in range(n)},
                "anyOf": [{"required": [f"p{k}"], "properties": {f"p{k}": {"minLength": 1}}} for k in range(n)],
            }
        ),
        query={"dryRun": ("All",)},
    ),
    Costly(
        "a branch of a definition",
        "POST",
        DEFINITIONS,
        1_000,
        lambda n: widget_definition(
            {
                "type": "object",
                "properties": {f"p{k}": {"type": "string"} for k in range(n)},
                "allOf": [{"properties": {f"p{k}": {"minLength": 1} for k in range(n)}}],
            }
        ),
        query={"dryRun": ("All",)},
    ),
    Costly(
        "an enum of a definition",
        "POST",
        DEFINITIONS,
        5_000,
        lambda n: widget_definition({"type": "string", "enum": [f"v{k}" for k in range(n)], "default": "v1"}),
        query={"dryRun": ("All",)},
    ),
    # Patches.
    Costly(
        "deletions from a set",
        "PATCH",
        f"{CONFIGMAPS}/x",
        5_000,
        lambda n: {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers(n)}},
        PATCHES["strategic"],
        before=stored(CONFIGMAPS, lambda n: with_metadata(finalizers=finalizers(n))),
    ),
    Costly(
        "orders of a set",
        "PATCH",
        f"{CONFIGMAPS}/x",
        5_000,
        lambda n: {"metadata": {"$setElementOrder/finalizers": finalizers(n)[::-1]}},
        PATCHES["strategic"],
        before=stored(CONFIGMAPS, lambda n: with_metadata(finalizers=finalizers(n))),
    ),
    Costly(
        "retained keys",
        "PATCH",
        f"{CONFIGMAPS}/x",
        10_000,
        lambda n: {"data": {"$retainKeys": [f"k{k}" for k in range(n)], **{f"k{k}": "w" for k in range(n)}}},
        PATCHES["strategic"],
        before=stored(CONFIGMAPS, lambda n: named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)})),
    ),
    Costly(
        "deleted items",
        "PATCH",
        f"{CONFIGMAPS}/x",
        3_000,
        lambda n: {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": f"u{k}"} for k in range(n)]}},
        PATCHES["strategic"],
        before=stored(CONFIGMAPS, lambda n: with_metadata(ownerReferences=[owner(k) for k in range(n)])),
    ),
    # Each shifts the whole array: quadratic beyond this size, until MAX_SHIFTED_ITEMS ends it.
    Costly(
        "operations at the front",
        "PATCH",
        f"{WIDGETS}/x",
        1_000,
        lambda n: [{"op": "add", "path": "/spec/l/0", "value": k} for k in range(n)],
        PATCHES["json"],
        before=defined(lambda n: OPEN, lambda n: widget({"l": list(range(2 * n))})),
    ),
    Costly(
        "operations on an object",
        "PATCH",
        f"{WIDGETS}/x",
        2_000,
        lambda n: [{"op": "add", "path": f"/spec/{k}", "value": k} for k in range(n)],
        PATCHES["json"],
        before=defined(lambda n: OPEN, lambda n: widget({f"k{k}": k for k in range(10 * n)})),
    ),
    Costly(
        "copies",
        "PATCH",
        f"{WIDGETS}/x",
        2_000,
        lambda n: [{"op": "copy", "from": "/spec/a", "path": f"/spec/l/{k}"} for k in range(n)],
        PATCHES["json"],
        before=defined(lambda n: OPEN, lambda n: widget({"a": {"b": [1]}, "l": list(range(2 * n))})),
    ),
    Costly(
        "an object before a policy",
        "POST",
        CONFIGMAPS,
        4_500,
        lambda n: named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)}),
        before=judged("object.data.all(k, k != 'x')"),
    ),
    Costly(
        "a small change of a large object before a policy",
        "PATCH",
        f"{CONFIGMAPS}/x",
        20_000,
        lambda n: {"data": {"k0": "w"}},
        PATCHES["merge"],
        before=judged(
            "size(object.data) > 0",
            lambda n: (CONFIGMAPS, named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)})),
        ),
    ),
    Costly(
        "expressions of a policy",
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        400,
        lambda n: policy(*(f"object.a != {k}" for k in range(n))),
    ),
    Costly(
        "an expression of a policy",
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        5_000,
        lambda n: policy("[" + ",".join(map(str, range(n))) + "].all(k, k >= 0)"),
    ),
    Costly(
        "merged fields",
        "PATCH",
        f"{CONFIGMAPS}/x",
        10_000,
        lambda n: {"data": {f"k{k}": None for k in range(n)}},
        PATCHES["merge"],
        before=stored(CONFIGMAPS, lambda n: named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)})),
    ),
    Costly(
        "applied items in another order",
        "PATCH",
        f"{CONFIGMAPS}/x",
        3_000,
        lambda n: with_metadata(finalizers=[f"example.com/g{k}" for k in range(n)] + finalizers(n)[::-1]),
        PATCHES["apply"],
        before=stored(CONFIGMAPS, lambda n: with_metadata(finalizers=finalizers(n))),
        query={"fieldManager": ("m",)},
    ),
    Costly(
        "conflicts",
        "PATCH",
        f"{CONFIGMAPS}/x",
        5_000,
        lambda n: named("ConfigMap", "v1", data={f"k{k}": "w" for k in range(n)}),
        PATCHES["apply"],
        before=stored(CONFIGMAPS, lambda n: named("ConfigMap", "v1", data={f"k{k}": "v" for k in range(n)})),
        query={"fieldManager": ("m",)},
        code=(409,),
    ),
    Costly(
        "applied YAML",
        "PATCH",
        f"{CONFIGMAPS}/x",
        5_000,
        lambda n: (
            b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata:\n"
            + b"".join(b"  k%d: w\n" % k for k in range(n))
        ),
        PATCHES["apply"],
        query={"fieldManager": ("m",)},
    ),
)
