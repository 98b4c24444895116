"""Parts of requests that a client may send: queries, headers, paths and kinds, sound and odd."""

from __future__ import annotations

from typing import Any

KNOWN_500 = (
    "resourceVersion should not be set on objects to be created",
    'strconv.ParseUint: parsing "',
)
"""What a real API server answers with 500, too: creating with a version, watching from one that is none."""


def definition(plural: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                    },
                }
            ],
        },
    }


WIDGET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 5", "message": "too large"}],
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "when": {"type": "string", "format": "date-time"},
                "limit": {"x-kubernetes-int-or-string": True},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {"port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}},
                    },
                },
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "fixed": {
                    "type": "string",
                    "nullable": True,
                    "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
                },
            },
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TYPE = {"apiVersion": "example.com/v1", "kind": "Widget"}


OPTIONS = [
    *(
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
    ),
    *(
        "watch",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "pretty",
    ),
    *("propagationPolicy", "gracePeriodSeconds", "orphanDependents", "includeObject", "container", "tailLines"),
]
VALUES = [
    *(
        "a=b",
        "a in (b,c)",
        "!a",
        "a",
        "a>1",
        "metadata.name=a",
        "status.phase=Running",
        "1",
        "0",
        "-1",
        "true",
        "false",
    ),
    *(
        "All",
        "Strict",
        "Exact",
        "NotOlderThan",
        "Background",
        "Metadata",
        "None",
        "a,,b",
        "a==",
        "(",
        "\\",
        "99999999999",
    ),
]


SEGMENTS = [
    *("api", "apis", "v1", "apps", "namespaces", "default", "pods", "a", "configmaps", "widgets", "example.com"),
    *("status", "scale", "log", "watch", "", ".", "..", "openapi", "v2", "v3", "version", "healthz", "metrics"),
    *("deployments", "customresourcedefinitions", "apiextensions.k8s.io", "%", "\x00", "é", "proxy", "finalize"),
]

ACCEPTS = [
    *(
        "*/*",
        "application/*",
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "text/html",
        "",
    ),
    *(
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json",
    ),
    *(
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;stream=watch",
        ";;;",
        "a/b;q=x",
        ",",
    ),
    *("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;as=Nothing;g=x;v=y"),
]


BELOW = [
    "pods/a/eviction",
    "pods/a/binding",
    "serviceaccounts/a/token",
    "pods/a/log",
    "pods/a/exec",
    "namespaces/a/finalize",
]
REVIEWS = [
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
]
