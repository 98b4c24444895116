"""CustomResourceDefinition, the webhook configurations and APIService.

The meaning of a definition is validated in ``apiserver/crd``; this module has its type, defaults and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, CREATED_AT, NAME, column, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import ALL_METADATA, Object, ResourceType
from holdfast.meta import names
from holdfast.meta.errors import FieldError

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_WEBHOOK_WORDS: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}


def _default_definition(obj: Object) -> None:
    spec = obj["spec"]
    called = spec["names"]
    if called.get("kind"):
        called.setdefault("singular", called["kind"].lower())
        called.setdefault("listKind", f"{called['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def _validate_webhooks(obj: Object, old: Object | None) -> list[FieldError]:
    problems: list[FieldError] = []
    for place, webhook in each(obj.get("webhooks"), "webhooks"):
        problems += _webhook(webhook, place)
    return [*problems, *checks.unique(obj.get("webhooks"), "webhooks", key="name")]


def _webhook(webhook: Object, path: str) -> Problems:
    name = webhook.get("name", "")
    yield from checks.named(name, f"{path}.name")
    if name and name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        yield FieldError.invalid(f"{path}.name", name, detail=detail)
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        detail = "must specify one of v1, v1beta1"
        yield FieldError.required(f"{path}.admissionReviewVersions", detail)
    elif not {"v1", "v1beta1"} & set(versions):
        detail = "must include at least one of v1, v1beta1"
        yield FieldError.invalid(f"{path}.admissionReviewVersions", versions, detail=detail)
    for word, among in _WEBHOOK_WORDS.items():
        yield from checks.maybe_chosen(webhook.get(word), f"{path}.{word}", among=among)
    effects, at = webhook.get("sideEffects"), f"{path}.sideEffects"
    if not effects:
        yield FieldError.required(at, "must specify one of None, NoneOnDryRun")
    elif effects not in ("None", "NoneOnDryRun"):
        yield FieldError.not_supported(at, effects, supported=("None", "NoneOnDryRun"))
    seconds = webhook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield FieldError.invalid(f"{path}.timeoutSeconds", seconds, detail=detail)
    for name in ("namespaceSelector", "objectSelector"):
        yield from checks.label_selector(webhook.get(name), f"{path}.{name}")
    for place, rule in each(webhook.get("rules"), f"{path}.rules"):
        yield from rule_problems(rule, place)
    yield from _client(webhook.get("clientConfig") or {}, f"{path}.clientConfig")


def rule_problems(rule: Object, path: str) -> Problems:
    for name in ("operations", "apiGroups", "apiVersions", "resources"):
        yield from checks.required(rule.get(name), f"{path}.{name}")
    for place, operation in each(rule.get("operations"), f"{path}.operations"):
        yield from checks.chosen(operation, place, among=OPERATIONS)
    yield from checks.maybe_chosen(rule.get("scope"), f"{path}.scope", among=("*", "Cluster", "Namespaced"))


def _client(client: Object, path: str) -> Problems:
    """A client configuration must have either a URL or a service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield FieldError.required(path, "exactly one of url or service is required")
    if url is not None:
        yield from _url(url, f"{path}.url")
    if service is not None:
        yield from checks.required(service.get("name"), f"{path}.service.name", detail="service name is required")
        detail = "service namespace is required"
        yield from checks.required(service.get("namespace"), f"{path}.service.namespace", detail=detail)


_FORM: Final = "; desired format: https://host[/path]"


def _url(url: str, path: str) -> Problems:
    """A webhook is called at a host and a path; other parts of a URL could carry credentials or be lost."""
    try:
        parts = urlsplit(url)
        user, _, _ = parts.netloc.rpartition("@")
    except ValueError as error:
        yield FieldError.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield FieldError.invalid(path, url, detail=f'"https" is the only allowed URL scheme{_FORM}')
    if not parts.netloc:
        yield FieldError.invalid(path, parts.netloc, detail=f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        yield FieldError.invalid(path, user, detail=f"user information is not permitted in the URL{_FORM}")
    if parts.fragment:
        yield FieldError.invalid(path, parts.fragment, detail=f"fragments are not permitted in the URL{_FORM}")
    if parts.query:
        yield FieldError.invalid(path, parts.query, detail=f"query parameters are not permitted in the URL{_FORM}")


def _available(obj: Object) -> str:
    conditions: Iterator[Object] = iter(get(obj, "status", "conditions", default=()))
    found = next((each for each in conditions if each.get("type") == "Available"), None)
    if found is None:
        return "Unknown"
    return "True" if found.get("status") == "True" else f"{found.get('status')} ({found.get('reason', '')})"


def _service(obj: Object) -> str:
    service = get(obj, "spec", "service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _validate_api_service(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    name = obj["metadata"].get("name", "")
    problems = list(checks.named(spec.get("version"), "spec.version", rule=names.dns_1035_label))
    if name != wanted:
        detail = f'must be `spec.version+"."+spec.group`: {wanted!r}'
        problems.append(FieldError.invalid("metadata.name", name, detail=detail))
    return problems


_CONFIGURATION: Final[dict[str, Any]] = {
    "group": "admissionregistration.k8s.io",
    "namespaced": False,
    "categories": ("api-extensions",),
    "columns": (NAME, column("Webhooks", lambda obj: len(obj.get("webhooks") or ()), type="integer"), AGE),
    "validate": _validate_webhooks,
    "unconditional": False,
}
DEFINITION: Final = builtin(
    "CustomResourceDefinition",
    group="apiextensions.k8s.io",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    status=True,
    columns=(NAME, CREATED_AT),
    default=_default_definition,
    unconditional=False,
    status_leaves=ALL_METADATA,
)
VALIDATING: Final = builtin("ValidatingWebhookConfiguration", **_CONFIGURATION)
MUTATING: Final = builtin("MutatingWebhookConfiguration", **_CONFIGURATION)
API_SERVICE: Final = builtin(
    "APIService",
    group="apiregistration.k8s.io",
    namespaced=False,
    categories=("api-extensions",),
    status=True,
    columns=(NAME, column("Service", _service), column("Available", _available), AGE),
    validate=_validate_api_service,
    unconditional=False,
    status_leaves=ALL_METADATA,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (DEFINITION, VALIDATING, MUTATING, API_SERVICE)
