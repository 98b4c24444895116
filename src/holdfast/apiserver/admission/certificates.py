"""Admission of certificate signing requests: who asks, who may approve, and who may sign.

The author of a request is set from the user who creates it.  A decision needs the verb ``approve``, a certificate the
verb ``sign`` on the signer, as in Kubernetes; a signer is named itself or by its domain (``example.com/*``).
Requests for client certificates of ``system:masters``, whose members may do everything, are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from cryptography.x509.oid import NameOID

from holdfast.apiserver.auth.authentication import MASTERS
from holdfast.apiserver.auth.rbac import Authorizer
from holdfast.apiserver.auth.reviews import user_info
from holdfast.apiserver.builtins.certificates import DECISIONS, GROUP, parsed
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.verbs.writes import Admit, Writing
from holdfast.meta import times
from holdfast.meta.errors import Forbidden
from holdfast.meta.exchange import User

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
KEY: Final = f"{GROUP}/certificatesigningrequests"
_AUTHOR: Final = ("username", "uid", "groups", "extra")


def signing_requests(authorizer: Authorizer, *, now: Callable[[], datetime]) -> Admit:
    """Set the author of a new request and the times of its conditions, and check the permissions."""

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        if writing.kind.key != KEY:
            return obj, ()
        spec = obj.get("spec") or {}
        if old is None:
            for name in _AUTHOR:
                spec.pop(name, None)
            spec.update(user_info(writing.user))
            _check_groups(obj, spec)
        elif writing.subresource == "approval":
            _check(authorizer, writing.user, obj, verb="approve")
        elif writing.subresource == "status":
            status = obj.setdefault("status", {})
            status["conditions"] = [*_conditions(old, decisions=True), *_conditions(obj, decisions=False)]
            if not status["conditions"]:
                del status["conditions"]
            if status.get("certificate") != (old.get("status") or {}).get("certificate"):
                _check(authorizer, writing.user, obj, verb="sign")
        for condition in (obj.get("status") or {}).get("conditions") or ():
            for stamp in ("lastUpdateTime", "lastTransitionTime"):
                condition[stamp] = condition.get(stamp) or times.format(now())
        return obj, ()

    return admit


def _check_groups(obj: Object, spec: Object) -> None:
    request = parsed(str(spec.get("request", ""))) if spec.get("signerName") == CLIENT_SIGNER else None
    organizations = [] if request is None else request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(each.value == MASTERS for each in organizations):
        why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        raise Forbidden.of("certificatesigningrequests", obj["metadata"].get("name", ""), why=why, group=GROUP)


def _conditions(obj: Object, *, decisions: bool) -> list[Any]:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return [each for each in conditions if (each.get("type") in DECISIONS) == decisions]


def _check(authorizer: Authorizer, user: User, obj: Object, *, verb: str) -> None:
    signer = str((obj.get("spec") or {}).get("signerName", ""))
    domain = f"{signer.partition('/')[0]}/*"
    if not any(authorizer.allowed(user, _on(verb, name)).allowed for name in (signer, domain)):
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        raise Forbidden.of("certificatesigningrequests", obj["metadata"]["name"], why=why, group=GROUP)


def _on(verb: str, signer: str) -> RequestInfo:
    return RequestInfo(verb=verb, path="", is_resource=True, group=GROUP, resource="signers", name=signer)
