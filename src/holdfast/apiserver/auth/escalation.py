"""Privilege escalation: refuses a role or binding that grants permissions which its author does not have.

The verb ``escalate`` on a role, and ``bind`` on the role that a binding refers to, permit it, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.apiserver.auth.rbac import ALL, GROUP, KINDS, Authorizer, Rule, key_of, missing, quoted, rules_in
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import Forbidden
from holdfast.meta.exchange import User

EVERYTHING: Final = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), paths=(ALL,)))


_COLLECTED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion"})
"""The metadata that a write may change without a check, as the garbage collector does."""


def check_escalation(authorizer: Authorizer, user: User, obj: Object, *, old: Object | None = None) -> None:
    """Refuse a role or binding that would grant more than its author may do; other kinds pass."""
    check = prepared(authorizer, user, obj, old=old)
    if check is not None:
        check()


def prepared(
    authorizer: Authorizer, user: User, obj: Object, *, old: Object | None = None
) -> Callable[[], None] | None:
    """The check of a write, as a computation that uses nothing of the authorizer; None if nothing is to be checked.

    An update is checked as a whole: a label alone can add a role to an aggregated one.
    """
    kind = obj.get("kind", "")
    if kind not in KINDS.values() or (old is not None and _without_collected(old) == _without_collected(obj)):
        return None
    namespace, name = key_of(obj)
    bound = kind.endswith("Binding")
    reference = obj.get("roleRef") or {} if bound else {"kind": kind, "name": name}
    permission = _Permission("bind" if bound else "escalate", reference.get("kind", ""), reference.get("name", ""))
    if _permitted(authorizer, user, permission, namespace):
        return None
    policy = authorizer.policy
    # The rules of a role that does not exist yet are unknown.
    found = policy.role(permission.kind, permission.name, namespace=namespace) if bound else ()
    referred = EVERYTHING if found is None else found
    held, held_everywhere = policy.rules_of(user, namespace), policy.rules_of(user, "")

    def check() -> None:
        beyond = missing(held, referred if bound else rules_in(obj))
        if beyond:
            lines = "\n".join(map(str, beyond))
            who = f'user "{user.name}" (groups={quoted(user.groups)})'
            why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
            raise Forbidden.of(_plural(kind), name, why=why, group=GROUP)
        aggregates = any((each or {}).get("aggregationRule") is not None for each in (obj, old))
        if aggregates and missing(held_everywhere, EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise Forbidden.of(_plural(kind), name, why=why, group=GROUP)

    return check


@dataclass(frozen=True, slots=True)
class _Permission:
    """The verb on a role that permits a write without a check of its rules."""

    verb: str
    kind: str
    name: str


def _without_collected(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return {**obj, "metadata": metadata}


def _permitted(authorizer: Authorizer, user: User, permission: _Permission, namespace: str) -> bool:
    info = RequestInfo(
        verb=permission.verb,
        path="",
        is_resource=True,
        group=GROUP,
        resource=_plural(permission.kind),
        namespace=namespace,
        name=permission.name,
    )
    return authorizer.allowed(user, info).allowed


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"
