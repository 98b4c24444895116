"""RBAC: decides requests by Roles, ClusterRoles and their bindings, with the semantics of Kubernetes.

A `Policy` is computed from the objects once and evaluated for many requests; `Authorizer` computes a new one when the
objects have changed.  This module does not know where objects are stored or how a user was authenticated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from holdfast.apiserver.auth.authentication import MASTERS
from holdfast.apiserver.auth.tokens import subject
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import Details, Forbidden
from holdfast.meta.exchange import User
from holdfast.meta.selectors import LabelSelector, SelectorError

GROUP: Final = "rbac.authorization.k8s.io"
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role: verbs on resources, or on paths."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def read(cls, rule: Mapping[str, Any]) -> Rule:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(field) or ()) for field in fields))

    def allows(self, info: RequestInfo) -> bool:
        if not _has(self.verbs, info.verb):
            return False
        if not info.is_resource:
            return _path_matches(self.paths, info.path)
        return (
            _has(self.groups, info.group)
            and _resource_matches(self.resources, info.full_resource)
            and (not self.names or info.name in self.names)
        )

    def atoms(self) -> Iterator[Rule]:
        """The rule as atoms: one verb on one resource or path each."""
        for verb, path in product(self.verbs, self.paths):
            yield Rule((verb,), paths=(path,))
        for verb, group, resource in product(self.verbs, self.groups, self.resources):
            if not self.names:
                yield Rule((verb,), (group,), (resource,))
            for name in self.names:
                yield Rule((verb,), (group,), (resource,), (name,))

    def covers(self, atom: Rule) -> bool:
        """Whether this rule allows everything that an atom allows."""
        if not _has(self.verbs, atom.verbs[0]):
            return False
        if atom.paths:
            return _path_matches(self.paths, atom.paths[0])
        return (
            _has(self.groups, atom.groups[0])
            and _resource_matches(self.resources, atom.resources[0])
            and (not self.names or (bool(atom.names) and atom.names[0] in self.names))
        )

    def __str__(self) -> str:
        fields = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.paths,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in fields.items() if values) + "}"


class Decision(NamedTuple):
    """Whether a request is allowed, and by which binding; for a refusal, errors during evaluation."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Grant:
    """The rules that a binding grants to a subject."""

    rules: tuple[Rule, ...]
    description: str
    problem: str = ""


_Subject = tuple[str, str]


class Policy:
    """What all roles and bindings together allow."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        """Rules by namespace and name; cluster roles have no namespace."""
        self._grants: dict[str, dict[_Subject, list[_Grant]]] = {}
        """Grants by namespace, empty for the whole cluster, and subject."""
        cluster_roles, bindings = [], []
        for obj in objects:
            match obj.get("kind"):
                case "ClusterRole":
                    cluster_roles.append(obj)
                case "Role":
                    self._roles[key_of(obj)] = rules_in(obj)
                case "RoleBinding" | "ClusterRoleBinding":
                    bindings.append(obj)
        for obj in cluster_roles:
            self._roles[key_of(obj)] = tuple(map(Rule.read, aggregated(obj, cluster_roles)))
        for obj in bindings:
            self._bind(obj)

    def allowed(self, user: User, info: RequestInfo) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        problems = []
        for grant in self._given(user, info.namespace):
            if any(rule.allows(info) for rule in grant.rules):
                return Decision(True, f"RBAC: allowed by {grant.description}")
            if grant.problem:
                problems.append(grant.problem)
        return Decision(False, f"RBAC: {_joined(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> tuple[Rule, ...]:
        """All rules of a user in a namespace, or in the whole cluster if it is empty."""
        return tuple(dict.fromkeys(rule for grant in self._given(user, namespace) for rule in grant.rules))

    def role(self, kind: str, name: str, *, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role that a binding in `namespace` refers to; None if there is no such role."""
        return self._roles.get((namespace if kind == "Role" else "", name))

    def missing(self, user: User, rules: Iterable[Rule], *, namespace: str) -> tuple[Rule, ...]:
        """The rules that the user does not have."""
        if MASTERS in user.groups:
            return ()
        held = self.rules_of(user, namespace)
        atoms = dict.fromkeys(atom for rule in rules for atom in rule.atoms())
        return _compact(atom for atom in atoms if not any(rule.covers(atom) for rule in held))

    def _given(self, user: User, namespace: str) -> Iterator[_Grant]:
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for scope in dict.fromkeys(("", namespace)):
            grants = self._grants.get(scope)
            if grants:
                for each in subjects:
                    yield from grants.get(each, ())

    def _bind(self, binding: Object) -> None:
        namespace, name = key_of(binding)
        reference = binding.get("roleRef") or {}
        kind, role = reference.get("kind", ""), reference.get("name", "")
        rules = self.role(kind, role, namespace=namespace)
        problem = f'{kind.lower()}.{GROUP} "{role}" not found' if rules is None else ""
        shown = f"{name}/{namespace}" if namespace else name
        grants = self._grants.setdefault(namespace, {})
        for each in binding.get("subjects") or ():
            key, description = _subject(each)
            words = f'{binding["kind"]} "{shown}" of {kind} "{role}" to {description}'
            grants.setdefault(key, []).append(_Grant(rules or (), words, problem))


class Authorizer:
    """Evaluates the current policy.  `revision` changes whenever `snapshot` would return other objects."""

    def __init__(self, snapshot: Callable[[], Iterable[Object]], *, revision: Callable[[], int]) -> None:
        self._snapshot = snapshot
        self._revision = revision
        self._seen: int | None = None
        self._policy = Policy(())

    @property
    def policy(self) -> Policy:
        revision = self._revision()
        if revision != self._seen:
            self._policy = Policy(self._snapshot())
            self._seen = revision
        return self._policy

    def allowed(self, user: User, info: RequestInfo) -> Decision:
        return self.policy.allowed(user, info)

    def check(self, user: User, info: RequestInfo) -> None:
        """Raise `Forbidden` if a request is not allowed."""
        decision = self.allowed(user, info)
        if not decision.allowed:
            raise forbidden(user, info, reason=decision.reason)


def forbidden(user: User, info: RequestInfo, *, reason: str = "") -> Forbidden:
    """The error message of Kubernetes for a refusal."""
    who = f'User "{user.name}" cannot {info.verb}'
    tail = f": {reason}" if reason else ""
    if not info.is_resource:
        return Forbidden(f'forbidden: {who} path "{info.path}"{tail}', details=Details())
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    why = f'{who} resource "{info.full_resource}" in API group "{info.group}" {where}{tail}'
    return Forbidden.of(info.resource, info.name, why=why, group=info.group)


def aggregated(role: Object, cluster_roles: Iterable[Object]) -> list[dict[str, Any]]:
    """The rules of a cluster role: its own, or those of all roles that its aggregation rule selects."""
    cluster_roles = tuple(cluster_roles)
    found: list[dict[str, Any]] = []
    visited: set[str] = set()

    def visit(each: Object) -> None:
        _, name = key_of(each)
        if name in visited:
            return
        visited.add(name)
        selectors = _selectors(each)
        if selectors is None:
            found.extend(rule for rule in each.get("rules") or () if rule not in found)
            return
        for other in cluster_roles:
            labels = other.get("metadata", {}).get("labels")
            if any(selector.matches(labels) for selector in selectors):
                visit(other)

    visit(role)
    return found


def _selectors(role: Object) -> list[LabelSelector] | None:
    rule = role.get("aggregationRule")
    if rule is None:
        return None
    selectors = []
    for selector in rule.get("clusterRoleSelectors") or ():
        try:
            selectors.append(LabelSelector.from_object(selector))
        except SelectorError:
            continue  # an invalid selector selects nothing
    return selectors


def rules_in(role: Object) -> tuple[Rule, ...]:
    return tuple(map(Rule.read, role.get("rules") or ()))


def key_of(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _subject(each: Mapping[str, Any]) -> tuple[_Subject, str]:
    kind, name = each.get("kind", ""), each.get("name", "")
    if kind != "ServiceAccount":
        return (kind, name), f'{kind} "{name}"'
    namespace = each.get("namespace", "")
    return ("User", subject(namespace, name)), f'{kind} "{name}/{namespace}"'


def _has(values: tuple[str, ...], value: str) -> bool:
    return value in values or ALL in values


def _resource_matches(resources: tuple[str, ...], resource: str) -> bool:
    if _has(resources, resource):
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in resources


def _path_matches(paths: tuple[str, ...], path: str) -> bool:
    return any(path == each or (each.endswith(ALL) and path.startswith(each[:-1])) for each in paths)


def _compact(atoms: Iterable[Rule]) -> tuple[Rule, ...]:
    """Atoms that differ in their verb alone as one rule."""
    verbs: dict[Rule, list[str]] = {}
    for atom in atoms:
        verbs.setdefault(Rule((), atom.groups, atom.resources, atom.names, atom.paths), []).append(atom.verbs[0])
    return tuple(
        Rule(tuple(found), rest.groups, rest.resources, rest.names, rest.paths) for rest, found in verbs.items()
    )


def _joined(problems: list[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
