"""Enforcement of ValidatingAdmissionPolicies: which policies concern a request, and what their expressions say of it.

A policy acts through its bindings, which may narrow it, name its parameters, and say whether a failed validation
refuses the request or warns.  An expression that fails counts as its `failurePolicy` says.  As with webhooks, the
server's own writes and those of admission configuration are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from holdfast.apiserver.admission.webhooks import matching
from holdfast.apiserver.admission.webhooks.calls import request_of
from holdfast.apiserver.admission.webhooks.dispatch import GROUP, in_version, question_of, seen_object
from holdfast.apiserver.admission.webhooks.matching import Client, Hook, Question, Rule
from holdfast.apiserver.http import bodies
from holdfast.apiserver.resources import Object, Registry, ResourceType
from holdfast.apiserver.storage.store import Entry, Store
from holdfast.apiserver.verbs import versions
from holdfast.apiserver.verbs.writes import SERVER, Writing
from holdfast.apiserver.workers import LARGE, compute
from holdfast.meta.errors import Forbidden, StatusError, from_status
from holdfast.meta.objects import GVK
from holdfast.meta.selectors import EVERYTHING, LabelSelector

POLICIES: Final = f"{GROUP}/validatingadmissionpolicies"
BINDINGS: Final = f"{GROUP}/validatingadmissionpolicybindings"
_CODES: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True, slots=True)
class _Scope:
    """The requests that a policy or a binding is about.

    rules, excluded   with the names of objects to which a rule is limited, if it is
    """

    rules: tuple[tuple[Rule, frozenset[str]], ...]
    excluded: tuple[tuple[Rule, frozenset[str]], ...]
    hook: Hook
    """Its selectors and whether it is about all versions of a resource, as those of a webhook."""

    @classmethod
    def read(cls, name: str, found: Mapping[str, Any]) -> _Scope:
        hook = Hook(
            name=name,
            client=Client(),
            rules=(),
            versions=(),
            namespaces=LabelSelector.from_object(found.get("namespaceSelector") or {}, "namespaceSelector"),
            objects=LabelSelector.from_object(found.get("objectSelector") or {}, "objectSelector"),
            equivalent=found.get("matchPolicy") != "Exact",
        )
        return cls(_rules(found.get("resourceRules")), _rules(found.get("excludeResourceRules")), hook)

    def version_for(self, question: Question, others: Iterable[ResourceType]) -> ResourceType | None:
        """The version of the resource that is judged; None if the scope does not include the request."""
        versions = tuple(others)
        if self.excluded and matching.version_for(self._with(self.excluded, question), question, versions) is not None:
            return None
        if not self.rules:
            return question.kind
        return matching.version_for(self._with(self.rules, question), question, versions)

    def _with(self, rules: tuple[tuple[Rule, frozenset[str]], ...], question: Question) -> Hook:
        return replace(self.hook, rules=tuple(rule for rule, names in rules if not names or question.name in names))


def _rules(rules: Iterable[Mapping[str, Any]] | None) -> tuple[tuple[Rule, frozenset[str]], ...]:
    return tuple((Rule.read(rule), frozenset(rule.get("resourceNames") or ())) for rule in rules or ())


@dataclass(frozen=True, slots=True)
class _Policy:
    name: str
    scope: _Scope
    spec: Mapping[str, Any]

    @property
    def lenient(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")


@dataclass(frozen=True, slots=True)
class _Binding:
    name: str
    policy: _Policy
    scope: _Scope | None
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Finding:
    """A validation that failed, or could not be computed."""

    message: str
    reason: str = "Invalid"


class Policies:
    """The policies that are stored."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._known: tuple[tuple[int, int], tuple[_Binding, ...]] = ((-1, -1), ())

    async def judge(self, writing: Writing, obj: Object | None, old: Object | None, operation: str) -> tuple[str, ...]:
        """Refuse what a policy denies; returns the warnings of the others."""
        bindings = () if writing.user is SERVER or writing.kind.group == GROUP else self._bindings()
        if not bindings:
            return ()
        subject = obj if obj is not None else old
        assert subject is not None, "a request is about an object"
        question = question_of(writing, subject, operation)
        seen, before = seen_object(writing, obj), seen_object(writing, old)
        denied: list[StatusError] = []
        said: list[str] = []
        for binding in bindings:
            for finding in await self._findings(binding, question, seen, before, size=writing.size):
                actions = binding.spec.get("validationActions") or ()
                if "Deny" in actions:
                    denied.append(_denial(binding, question, finding))
                elif "Warn" in actions:
                    name = f"'{binding.policy.name}' with binding '{binding.name}'"
                    said.append(f"Validation failed for ValidatingAdmissionPolicy {name}: {finding.message}")
        if denied:
            raise denied[0]
        return tuple(said)

    def _bindings(self) -> tuple[_Binding, ...]:
        """All bindings of policies that exist, in the order of their names."""
        changed = self._store.changed_at(POLICIES), self._store.changed_at(BINDINGS)
        if self._known[0] != changed:
            self._known = changed, tuple(self._read())
        return self._known[1]

    def _read(self) -> Iterator[_Binding]:
        policies = {}
        for entry in self._store.list(POLICIES):
            spec = bodies.read_json(entry.value).get("spec") or {}
            scope = _Scope.read(entry.name, spec.get("matchConstraints") or {})
            policies[entry.name] = _Policy(entry.name, scope, spec)
        for entry in self._store.list(BINDINGS):
            spec = bodies.read_json(entry.value).get("spec") or {}
            policy, found = policies.get(spec.get("policyName", "")), spec.get("matchResources")
            if policy is not None:
                narrowed = None if found is None else _Scope.read(entry.name, found)
                yield _Binding(entry.name, policy, narrowed, spec)

    async def _findings(
        self, binding: _Binding, question: Question, obj: Object | None, old: Object | None, *, size: int
    ) -> list[_Finding]:
        kind = self._concerned(binding, question, obj, old)
        if kind is None:
            return []
        policy = binding.policy
        try:
            params = await self._params(binding, question)
        except _NoParams as problem:
            return [] if policy.lenient else [_Finding(str(problem))]
        request = request_of(
            question, kind, await in_version(question, kind, obj), await in_version(question, kind, old), uid=""
        )
        values = {
            "object": request.pop("object"),
            "oldObject": request.pop("oldObject"),
            "request": request,
            "namespaceObject": self._namespace(question),
        }
        # A small change may be of a large object, so its size says little.
        return await compute(
            max(size, LARGE),
            lambda: [each for param in params for each in _evaluated(policy, values | {"params": param})],
        )

    def _concerned(
        self, binding: _Binding, question: Question, obj: Object | None, old: Object | None
    ) -> ResourceType | None:
        """The version in which the object is judged; None if the binding is not about the request."""
        others = [each for each in self._registry if each.key == question.kind.key and each.gvk != question.kind.gvk]
        kind = binding.policy.scope.version_for(question, others)
        for scope in (binding.policy.scope, binding.scope):
            if scope is None or kind is None:
                continue
            if scope.version_for(question, others) is None:
                return None
            if not matching.selects(scope.hook, question, obj, old, labels_of=self._labels_of):
                return None
        return kind

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        entry = self._store.get(matching.NAMESPACES, "", namespace)
        return entry.labels if entry is not None else {}

    def _namespace(self, question: Question) -> Object | None:
        if not question.namespace or question.kind.key == matching.NAMESPACES:
            return None
        entry = self._store.get(matching.NAMESPACES, "", question.namespace)
        return None if entry is None else bodies.read_json(entry.value)

    async def _params(self, binding: _Binding, question: Question) -> list[Object | None]:
        """The parameters with which a policy is evaluated, one after another; None is no parameter."""
        wanted, ref = binding.policy.spec.get("paramKind"), binding.spec.get("paramRef")
        if wanted is None or ref is None:
            return [None]
        group, _, version = wanted["apiVersion"].rpartition("/")
        kind = next((each for each in self._registry if each.gvk == GVK(group, version, wanted["kind"])), None)
        if kind is None:
            why = f"failed to find resource referenced by paramKind: '{wanted['apiVersion']}, Kind={wanted['kind']}'"
            raise _NoParams(f"failed to configure policy: {why}")
        entries = self._referred(kind, ref, question)
        if not entries and ref.get("parameterNotFoundAction") != "Allow":
            why = "no params found for policy binding with `Deny` parameterNotFoundAction"
            raise _NoParams(f"failed to configure binding: {why}")
        await versions.prepared(entries, kind)
        return [versions.shown(entry, kind) for entry in entries]

    def _referred(self, kind: ResourceType, ref: Mapping[str, Any], question: Question) -> list[Entry]:
        namespace = (ref.get("namespace") or question.namespace) if kind.namespaced else ""
        if ref.get("name"):
            found = self._store.get(kind.key, namespace, ref["name"])
            return [] if found is None else [found]
        selector = LabelSelector.from_object(ref.get("selector") or {}, "selector")
        entries = self._store.list(kind.key, namespace or None)
        return [each for each in entries if selector == EVERYTHING or selector.matches(each.labels)]


class _NoParams(Exception):
    """A binding whose parameters cannot be found."""


def _denial(binding: _Binding, question: Question, finding: _Finding) -> StatusError:
    name = f"'{binding.policy.name}' with binding '{binding.name}'"
    why = f"ValidatingAdmissionPolicy {name} denied request: {finding.message}"
    status = Forbidden.of(question.kind.plural, question.name, group=question.kind.group, why=why).to_status()
    code = _CODES[finding.reason]
    details = {**status["details"], "causes": [{"message": why}]}
    return from_status({**status, "reason": finding.reason, "code": code, "details": details}, code)


# --- evaluation: values in, findings out


def _evaluated(policy: _Policy, values: Mapping[str, Any]) -> Iterator[_Finding]:
    from holdfast.apiserver.cel.admission import (
        ExpressionError,
        evaluate,
    )  # loads the CEL engine only where it is needed

    spec = policy.spec
    computed = _Variables(spec.get("variables") or (), values, evaluate)

    def holds(expression: str) -> bool:
        result = evaluate(expression, {**values, "variables": computed.of(expression)})
        if not isinstance(result, bool):
            raise ExpressionError(f"expression '{expression}' resulted in error: must evaluate to bool")
        return result

    problems = []
    for condition in spec.get("matchConditions") or ():
        try:
            if not holds(condition["expression"]):
                return
        except ExpressionError as error:
            problems.append(_Finding(str(error)))
    if problems:
        yield from () if policy.lenient else problems[:1]
        return
    for validation in spec.get("validations") or ():
        try:
            if holds(validation["expression"]):
                continue
        except ExpressionError as error:
            if not policy.lenient:
                yield _Finding(str(error))
            continue
        message = validation.get("message") or f"failed expression: {validation['expression'].strip()}"
        if validation.get("messageExpression"):
            try:
                made = evaluate(
                    validation["messageExpression"],
                    {**values, "variables": computed.of(validation["messageExpression"])},
                )
                message = made.strip() if isinstance(made, str) and made.strip() and "\n" not in made else message
            except ExpressionError:
                pass  # the fixed message is as good
        yield _Finding(message, validation.get("reason") or "Invalid")


class _Variables:
    """The variables of a policy, each computed when the first expression mentions it; a failure is the expression's."""

    def __init__(
        self, declared: Iterable[Mapping[str, Any]], values: Mapping[str, Any], evaluate: Callable[..., Any]
    ) -> None:
        self._declared = {each["name"]: each["expression"] for each in declared}
        self._values = values
        self._evaluate = evaluate
        self._known: dict[str, Any] = {}

    def of(self, expression: str) -> dict[str, Any]:
        """The variables that an expression mentions."""
        return {name: self._value(name) for name in self._declared if f"variables.{name}" in expression}

    def _value(self, name: str) -> Any:
        if name not in self._known:
            expression = self._declared[name]
            earlier = takewhile(lambda each: each != name, self._declared)
            used = {each: self._value(each) for each in earlier if f"variables.{each}" in expression}
            self._known[name] = self._evaluate(expression, {**self._values, "variables": used})
        return self._known[name]
