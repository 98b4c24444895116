"""ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding; ``apiserver/admission/policies`` enforces them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, UNSET, column, field, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.extensions import rule_problems
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.errors import FieldError

GROUP: Final = "admissionregistration.k8s.io"
ACTIONS: Final = ("Audit", "Deny", "Warn")
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)


def _validate_policy(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return [*_policy_problems(spec), *_expression_problems(spec)]


def _policy_problems(spec: Object) -> Problems:
    yield from checks.chosen(spec.get("failurePolicy"), "spec.failurePolicy", among=("Fail", "Ignore"))
    constraints = spec.get("matchConstraints")
    if constraints is None:
        yield FieldError.required("spec.matchConstraints")
    else:
        yield from checks.required(constraints.get("resourceRules"), "spec.matchConstraints.resourceRules")
        yield from _scope_problems(constraints, "spec.matchConstraints")
    param = spec.get("paramKind")
    if param is not None:
        yield from checks.required(param.get("apiVersion"), "spec.paramKind.apiVersion")
        yield from checks.required(param.get("kind"), "spec.paramKind.kind")
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        yield FieldError.required("spec.validations", detail)
        yield FieldError.required("spec.auditAnnotations", detail)
    for place, validation in each(spec.get("validations"), "spec.validations"):
        yield from checks.maybe_chosen(validation.get("reason"), f"{place}.reason", among=REASONS)
    for name in ("matchConditions", "variables"):
        yield from checks.unique(spec.get(name), f"spec.{name}", key="name")
        for place, item in each(spec.get(name), f"spec.{name}"):
            yield from checks.required(item.get("name"), f"{place}.name")


def _scope_problems(scope: Object, path: str) -> Problems:
    for name in ("namespaceSelector", "objectSelector"):
        yield from checks.label_selector(scope.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for place, rule in each(scope.get(name), f"{path}.{name}"):
            yield from rule_problems(rule, place)
    yield from checks.maybe_chosen(scope.get("matchPolicy"), f"{path}.matchPolicy", among=("Equivalent", "Exact"))


def _expressions(spec: Object) -> Iterator[tuple[str, str, str]]:
    """Every expression of a policy with its path and the type that it returns; one that is missing is empty."""
    for name, returns in (("validations", "bool"), ("matchConditions", "bool"), ("variables", "")):
        for place, item in each(spec.get(name), f"spec.{name}"):
            yield f"{place}.expression", item.get("expression", ""), returns
            if item.get("messageExpression"):
                yield f"{place}.messageExpression", item["messageExpression"], "string"
    for place, item in each(spec.get("auditAnnotations"), "spec.auditAnnotations"):
        yield f"{place}.valueExpression", item.get("valueExpression", ""), ""


def _expression_problems(spec: Object) -> Problems:
    from holdfast.apiserver.cel.admission import problem  # loads the CEL engine only where it is needed

    for place, expression, returns in _expressions(spec):
        if not expression.strip():
            yield FieldError.required(place, "expression is not specified")
        elif found := problem(expression, returns=returns):
            yield FieldError.invalid(place, expression, detail=found)


def _validate_binding(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return [*_binding_problems(spec), *_param_problems(spec.get("paramRef"))]


def _binding_problems(spec: Object) -> Problems:
    yield from checks.named(spec.get("policyName"), "spec.policyName")
    if spec.get("matchResources") is not None:
        yield from _scope_problems(spec["matchResources"], "spec.matchResources")
    actions = spec.get("validationActions") or []
    detail = "at least one validation action is required"
    yield from checks.required(actions, "spec.validationActions", detail=detail)
    for place, action in each(actions, "spec.validationActions"):
        yield from checks.chosen(action, place, among=ACTIONS)
    if {"Deny", "Warn"} <= set(actions):
        yield FieldError.invalid("spec.validationActions", actions, detail=_BOTH)


def _param_problems(param: Object | None) -> Problems:
    if param is None:
        return
    given = [name for name in ("name", "selector") if name in param]
    if not given:
        yield FieldError.required("spec.paramRef", "one of name or selector must be specified")
    elif len(given) > 1:
        for name in given:
            yield FieldError.forbidden(f"spec.paramRef.{name}", "name and selector are mutually exclusive")
    path = "spec.paramRef.parameterNotFoundAction"
    yield from checks.chosen(param.get("parameterNotFoundAction"), path, among=("Deny", "Allow"))
    yield from checks.label_selector(param.get("selector"), "spec.paramRef.selector")


def _param_kind(obj: Object) -> str:
    param = get(obj, "spec", "paramKind")
    return f"{param.get('apiVersion', '')}/{param.get('kind', '')}" if param else UNSET


def _param(obj: Object) -> str:
    param = get(obj, "spec", "paramRef")
    if not param:
        return UNSET
    return f"{param.get('namespace') or '*'}/{param.get('name') or '*'}"


POLICY: Final = builtin(
    "ValidatingAdmissionPolicy",
    group=GROUP,
    plural="validatingadmissionpolicies",
    namespaced=False,
    status=True,
    categories=("api-extensions",),
    columns=(
        NAME,
        column("Validations", lambda obj: len(get(obj, "spec", "validations", default=())), type="integer"),
        column("ParamKind", _param_kind),
        AGE,
    ),
    validate=_validate_policy,
)
BINDING: Final = builtin(
    "ValidatingAdmissionPolicyBinding",
    group=GROUP,
    namespaced=False,
    categories=("api-extensions",),
    columns=(NAME, field("PolicyName", "spec", "policyName"), column("ParamRef", _param), AGE),
    validate=_validate_binding,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (POLICY, BINDING)
