"""RBAC: decides requests by Roles, ClusterRoles and their bindings, with the semantics of Kubernetes.

A `Policy` holds the rules of all roles and bindings and is evaluated for many requests; `Authorizer` updates it by the
objects that have changed.  This module does not know where objects are stored or how a user was authenticated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from holdfast.apiserver.auth.authentication import MASTERS
from holdfast.apiserver.auth.tokens import subject
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import MOST_PROBLEMS, Details, Forbidden
from holdfast.meta.exchange import User
from holdfast.meta.patches.json import hashable
from holdfast.meta.selectors import LabelSelector, SelectorError

GROUP: Final = "rbac.authorization.k8s.io"
ALL: Final = "*"

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


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
    """The role that a binding grants to a subject: its kind, and its namespace and name."""

    kind: str
    role: tuple[str, str]
    description: str


_Subject = tuple[str, str]
_Key = tuple[str, str]
"""Namespace and name."""


class Policy:
    """What all roles and bindings together allow.  Objects are added, replaced and removed one by one."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._roles: dict[_Key, tuple[Rule, ...]] = {}
        self._cluster_roles: dict[_Key, Object] = {}
        self._resolved: dict[_Key, tuple[Rule, ...]] = {}
        """The rules of those cluster roles that were used since one of them changed."""
        self._subjects: dict[tuple[str, _Key], tuple[_Subject, ...]] = {}
        """The subjects of each binding, by its kind and key."""
        self._grants: dict[str, dict[_Subject, dict[tuple[str, _Key], _Grant]]] = {}
        """Grants by namespace, empty for the whole cluster, subject and binding."""
        for obj in objects:
            self.put(obj)

    def put(self, obj: Object) -> None:
        """Add a role or a binding, or replace it."""
        key = key_of(obj)
        match obj.get("kind"):
            case "ClusterRole":
                self._cluster_roles[key] = obj
                self._resolved.clear()
            case "Role":
                self._roles[key] = rules_in(obj)
            case "RoleBinding" | "ClusterRoleBinding":
                self.remove(obj["kind"], key)
                self._bind(obj)

    def remove(self, kind: str, key: _Key) -> None:
        """Remove a role or a binding, if it is there."""
        match kind:
            case "ClusterRole":
                self._cluster_roles.pop(key, None)
                self._resolved.clear()
            case "Role":
                self._roles.pop(key, None)
            case _:
                grants = self._grants.get(key[0], {})
                for subject in self._subjects.pop((kind, key), ()):
                    del grants[subject][kind, key]
                    if not grants[subject]:
                        del grants[subject]

    def allowed(self, user: User, info: RequestInfo) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        problems = []
        for grant in self._given(user, info.namespace):
            rules = self._rules(grant)
            if rules is None:
                problems.append(f'{grant.kind.lower()}.{GROUP} "{grant.role[1]}" not found')
            elif any(rule.allows(info) for rule in rules):
                return Decision(True, f"RBAC: allowed by {grant.description}")
        return Decision(False, f"RBAC: {_joined(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> tuple[Rule, ...]:
        """All rules of a user in a namespace, or in the whole cluster if it is empty."""
        return tuple(dict.fromkeys(rule for grant in self._given(user, namespace) for rule in self._rules(grant) or ()))

    def role(self, kind: str, name: str, *, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role that a binding in `namespace` refers to; None if there is no such role."""
        if kind == "Role":
            return self._roles.get((namespace, name))
        key = ("", name)
        if key not in self._cluster_roles:
            return None
        rules = self._resolved.get(key)
        if rules is None:
            merged = aggregated(self._cluster_roles[key], self._cluster_roles.values())
            rules = self._resolved[key] = tuple(map(Rule.read, merged))
        return rules

    def _given(self, user: User, namespace: str) -> Iterator[_Grant]:
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for scope in dict.fromkeys(("", namespace)):
            grants = self._grants.get(scope)
            if grants:
                for each in subjects:
                    yield from grants.get(each, {}).values()

    def _rules(self, grant: _Grant) -> tuple[Rule, ...] | None:
        return self.role(grant.kind, grant.role[1], namespace=grant.role[0])

    def _bind(self, binding: Object) -> None:
        key = namespace, name = key_of(binding)
        reference = binding.get("roleRef") or {}
        kind, role = reference.get("kind", ""), reference.get("name", "")
        shown = f"{name}/{namespace}" if namespace else name
        grants = self._grants.setdefault(namespace, {})
        subjects: dict[_Subject, None] = {}
        for each in binding.get("subjects") or ():
            subject, description = _subject(each)
            subjects[subject] = None
            words = f'{binding["kind"]} "{shown}" of {kind} "{role}" to {description}'
            grants.setdefault(subject, {})[binding["kind"], key] = _Grant(kind, (namespace, role), words)
        self._subjects[binding["kind"], key] = tuple(subjects)


class Held:
    """Rules that a user has, indexed to find what another rule allows beyond them.

    The index has, for each verb, group, resource, name and path, the set of rules that mention it, as the bits of an
    integer.  Values of a rule with the same set are covered alike, so that sets are combined instead of values: a rule
    with a thousand verbs, groups and resources costs as much as the sets that its values have.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._verbs = _bits(rule.verbs for rule in rules)
        self._groups = _bits(rule.groups for rule in rules)
        self._resources = _bits(rule.resources for rule in rules)
        self._names = _bits(rule.names for rule in rules)
        self._paths = _bits(rule.paths for rule in rules)
        self._unnamed = sum(1 << at for at, rule in enumerate(rules) if not rule.names)
        self._prefix_lengths = sorted({len(path) - 1 for path in self._paths if path.endswith(ALL)})

    def uncovered(self, wanted: Rule) -> Iterator[Rule]:
        """The part of a rule that these rules do not allow, as rules for one resource or path each."""
        verbs = _classes(wanted.verbs, lambda verb: self._verbs.get(verb, 0) | self._verbs.get(ALL, 0))
        for path in wanted.paths:
            missing = _disjoint(verbs, self._with_path(path))
            if missing:
                yield Rule(missing, paths=(path,))
        groups = _classes(wanted.groups, lambda group: self._groups.get(group, 0) | self._groups.get(ALL, 0))
        resources = _classes(wanted.resources, self._with_resource)
        names = _classes(wanted.names, lambda name: self._names.get(name, 0) | self._unnamed)
        if not wanted.names:
            names = {self._unnamed: [""]}
        if len(groups) * len(resources) * len(names) > _MOST_COMBINATIONS:
            yield wanted  # too many to compare: it is refused as if nothing of it was held
            return
        for sets in product(groups, resources, names):
            missing = _disjoint(verbs, sets[0] & sets[1] & sets[2])
            if missing:
                for group, resource, name in product(groups[sets[0]], resources[sets[1]], names[sets[2]]):
                    yield Rule(missing, (group,), (resource,), (name,) if wanted.names else ())

    def _with_resource(self, resource: str) -> int:
        found = self._resources.get(resource, 0) | self._resources.get(ALL, 0)
        _, slash, subresource = resource.partition("/")
        return found | self._resources.get(f"*/{subresource}", 0) if slash else found

    def _with_path(self, path: str) -> int:
        found = self._paths.get(path, 0)
        for length in self._prefix_lengths:
            if length > len(path):
                break
            found |= self._paths.get(path[:length] + ALL, 0)
        return found


def missing(held: Sequence[Rule], rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The part of `rules` that `held` does not allow; of very much, the first."""
    index = Held(held)
    return _compact(islice((left for rule in rules for left in index.uncovered(rule)), MOST_PROBLEMS))


_MOST_COMBINATIONS: Final = 100_000
"""The most sets of groups, resources and names that are compared for one rule."""


def _bits(values: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """By value, the rules that mention it, as bits."""
    found: dict[str, int] = {}
    for at, each in enumerate(values):
        for value in each:
            found[value] = found.get(value, 0) | 1 << at
    return found


def _classes(values: Iterable[str], bits: Callable[[str], int]) -> dict[int, list[str]]:
    """The values by the rules that mention them."""
    found: dict[int, list[str]] = {}
    for value in dict.fromkeys(values):
        found.setdefault(bits(value), []).append(value)
    return found


def _disjoint(verbs: Mapping[int, list[str]], rules: int) -> tuple[str, ...]:
    """The verbs that none of these rules mentions."""
    return tuple(verb for bits, those in verbs.items() if not bits & rules for verb in those)


class Record(Protocol):
    """One stored object: its version and its JSON."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def rv(self) -> int: ...
    @property
    def value(self) -> bytes: ...


class Source(Protocol):
    """The stored roles and bindings.  `changed_at` changes whenever `list` would return other records."""

    def changed_at(self, resource: str) -> int: ...
    def list(self, resource: str) -> Sequence[Record]: ...


KINDS: Final[Mapping[str, str]] = {
    f"{GROUP}/{kind.lower()}s": kind for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
}
"""The kinds of roles and bindings by their store keys."""


class Authorizer:
    """Evaluates the current policy, which it updates by what has changed in the source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen = dict.fromkeys(KINDS, -1)
        self._known: dict[str, dict[_Key, int]] = {resource: {} for resource in KINDS}
        """The versions of the objects in the policy."""
        self._policy = Policy()

    @property
    def policy(self) -> Policy:
        for resource, seen in self._seen.items():
            revision = self._source.changed_at(resource)
            if revision != seen:
                self._update(resource)
                self._seen[resource] = revision
        return self._policy

    def _update(self, resource: str) -> None:
        before, now = self._known[resource], self._source.list(resource)
        after = {(record.namespace, record.name): record.rv for record in now}
        for key in before.keys() - after.keys():
            self._policy.remove(KINDS[resource], key)
        for record in now:
            if before.get((record.namespace, record.name)) != record.rv:
                self._policy.put(_decode(record.value))
        self._known[resource] = after

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
    found: dict[Hashable, dict[str, Any]] = {}
    visited: set[str] = set()

    def visit(each: Object) -> None:
        _, name = key_of(each)
        if name in visited:
            return
        visited.add(name)
        selectors = _selectors(each)
        if selectors is None:
            for rule in each.get("rules") or ():
                found.setdefault(hashable(rule), rule)
            return
        for other in cluster_roles:
            labels = other.get("metadata", {}).get("labels")
            if any(selector.matches(labels) for selector in selectors):
                visit(other)

    visit(role)
    return list(found.values())


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


def _compact(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules that differ in their verbs alone as one rule."""
    verbs: dict[Rule, dict[str, None]] = {}
    for rule in rules:
        rest = Rule((), rule.groups, rule.resources, rule.names, rule.paths)
        verbs.setdefault(rest, {}).update(dict.fromkeys(rule.verbs))
    return tuple(
        Rule(tuple(found), rest.groups, rest.resources, rest.names, rest.paths) for rest, found in verbs.items()
    )


def _joined(problems: list[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(values: Sequence[str]) -> str:
    """The values as Kubernetes writes them; of very many, the first."""
    shown = [f'"{value}"' for value in values[:MOST_PROBLEMS]]
    return f"[{' '.join(shown)}{' ...' if len(values) > MOST_PROBLEMS else ''}]"
