"""Privilege escalation: refuses a role or binding that grants permissions which its author does not have.

The verb ``escalate`` on a role, and ``bind`` on the role that a binding refers to, permit it, as in Kubernetes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.apiserver.auth.rbac import ALL, GROUP, Authorizer, Rule, key_of, quoted, rules_in
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import Forbidden
from holdfast.meta.exchange import User

EVERYTHING: Final = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), paths=(ALL,)))


@dataclass(frozen=True, slots=True)
class _Grant:
    """The rules that a write grants, and the verb that permits it without a check."""

    rules: tuple[Rule, ...]
    verb: str
    plural: str
    name: str


def check_escalation(authorizer: Authorizer, user: User, obj: Object, *, old: Object | None = None) -> None:
    """Refuse a role or binding that would grant more than its author may do; other kinds pass."""
    match obj.get("kind"):
        case "Role" | "ClusterRole":
            grant = _granted_by_role(obj, old)
        case "RoleBinding" | "ClusterRoleBinding":
            grant = _granted_by_binding(authorizer, obj, old)
        case _:
            return
    namespace, name = key_of(obj)
    if grant is None or _lifted(authorizer, user, grant, namespace):
        return
    beyond = authorizer.policy.missing(user, grant.rules, namespace=namespace)
    if beyond:
        lines = "\n".join(map(str, beyond))
        who = f'user "{user.name}" (groups={quoted(user.groups)})'
        why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
        raise Forbidden.of(_plural(obj["kind"]), name, why=why, group=GROUP)


def _granted_by_role(role: Object, old: Object | None) -> _Grant | None:
    rules = rules_in(role)
    if old is not None and rules_in(old) == rules and old.get("aggregationRule") == role.get("aggregationRule"):
        return None
    if role.get("aggregationRule"):
        rules = EVERYTHING  # aggregation may select roles that do not exist yet
    return _Grant(rules, "escalate", _plural(role["kind"]), key_of(role)[1])


def _granted_by_binding(authorizer: Authorizer, binding: Object, old: Object | None) -> _Grant | None:
    if old is not None and old.get("subjects") == binding.get("subjects"):
        return None  # the role that a binding refers to never changes
    reference = binding.get("roleRef") or {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    # The rules of a role that does not exist yet are unknown.
    rules = authorizer.policy.role(kind, name, namespace=key_of(binding)[0])
    return _Grant(EVERYTHING if rules is None else rules, "bind", _plural(kind), name)


def _lifted(authorizer: Authorizer, user: User, grant: _Grant, namespace: str) -> bool:
    info = RequestInfo(
        verb=grant.verb,
        path="",
        is_resource=True,
        group=GROUP,
        resource=grant.plural,
        namespace=namespace,
        name=grant.name,
    )
    return authorizer.allowed(user, info).allowed


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"
