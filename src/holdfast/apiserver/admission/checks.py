"""Admission by the server: the namespace of an object must exist and not be terminating; grants must not escalate.

`in_order` combines these checks and the webhooks into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from holdfast.apiserver.auth.escalation import prepared
from holdfast.apiserver.auth.rbac import Authorizer
from holdfast.apiserver.resources import Object
from holdfast.apiserver.storage.store import Entry, Store
from holdfast.apiserver.verbs.writes import Admit, Writing
from holdfast.apiserver.workers import compute
from holdfast.meta.errors import Cause, Details, Forbidden, NotFound, StatusError

NAMESPACES: Final = "/namespaces"
PROTECTED: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that always exist: the server creates them at its start, and they cannot be deleted."""


def namespaces(store: Store) -> Admit:
    """Refuse to create objects in a namespace that does not exist or is terminating."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        name = writing.namespace
        if operation == "CREATE" and writing.kind.namespaced and name:
            entry = store.get(NAMESPACES, "", name)
            if entry is None:
                raise NotFound.of("namespaces", name)
            if entry.deleting:
                raise _going(writing, obj, name)
        return obj, ()

    return admit


def _going(writing: Writing, obj: Object, namespace: str) -> Forbidden:
    kind = writing.kind
    name = obj["metadata"].get("name", "")
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = Forbidden.of(kind.plural, name, group=kind.group, why=why)
    causes = (
        Cause(
            reason="NamespaceTerminating",
            message=f"namespace {namespace} is being terminated",
            field="metadata.namespace",
        ),
    )
    return Forbidden(str(error), details=Details(name=name, group=kind.group, kind=kind.plural, causes=causes))


def check_deletable(entry: Entry) -> None:
    """Refuse to delete the namespaces in `PROTECTED`."""
    if entry.resource == NAMESPACES and entry.name in PROTECTED:
        raise Forbidden.of("namespaces", entry.name, why="this namespace may not be deleted")


def in_order(*each: Admit) -> Admit:
    """Run admission steps in order; each gets the object that the previous one returned."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        said: tuple[str, ...] = ()
        for ask in each:
            obj, more = await ask(writing, obj, old, operation)
            said += more
        return obj, said

    return admit


class OwnAdmission(Protocol):
    """Functions of the process itself that are called where another server would call webhooks."""

    def defaulted(self, new: Object, old: Object | None) -> Mapping[str, Any]:
        """An object with its defaults, beside the one that it replaces: itself, if it lacks none."""

    def refusal(self, new: Mapping[str, Any], old: Object | None) -> StatusError | None:
        """Why an object is refused, if it is."""


def own(admission: OwnAdmission) -> Admit:
    """Default and review custom objects by functions of the process itself; not their statuses."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        if not writing.kind.custom or operation not in ("CREATE", "UPDATE") or writing.subresource:
            return obj, ()
        completed = admission.defaulted(obj, old)
        refusal = admission.refusal(completed, old)
        if refusal is not None:
            raise refusal
        return (obj if completed is obj else dict(completed)), ()

    return admit


def no_escalation(authorizer: Authorizer) -> Admit:
    """Refuse to grant permissions that the user does not have."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        check = prepared(authorizer, writing.user, obj, old=old)
        if check is not None:
            await compute(writing.size, check)
        return obj, ()

    return admit
