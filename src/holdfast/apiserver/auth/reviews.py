"""Reviews: requests about users and permissions that are created, answered and never stored.

Each function takes the posted object and returns it with its status.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.apiserver.auth.authentication import Authenticator, UidOf
from holdfast.apiserver.auth.rbac import Authorizer, Rule
from holdfast.apiserver.auth.tokens import BINDABLE, DEFAULT_LIFETIME, LONGEST, SHORTEST, Issuer, Reference, TokenError
from holdfast.apiserver.resources import Object
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta import times
from holdfast.meta.errors import BadRequest, Conflict, FieldError, Invalid, NotFound
from holdfast.meta.exchange import User

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


def token_review(authenticator: Authenticator, review: Object, *, now: datetime) -> Object:
    """TokenReview: the user of a token."""
    spec = _mapping(review, "spec")
    token = _text(spec, "token")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        verified = authenticator.verify(token, now=now, audiences=_texts(spec, "audiences"))
    except TokenError as error:
        return review | {"status": {"user": {}, "error": str(error)}}
    user, audiences = user_info(verified.user), list(verified.audiences)
    return review | {"status": {"authenticated": True, "user": user, "audiences": audiences}}


def self_subject_review(user: User, review: Object) -> Object:
    """SelfSubjectReview: the current user."""
    return review | {"status": {"userInfo": user_info(user)}}


def access_review(authorizer: Authorizer, user: User, review: Object) -> Object:
    """SubjectAccessReview, SelfSubjectAccessReview and LocalSubjectAccessReview: whether a user may do something."""
    kind = review.get("kind", "")
    spec = _mapping(review, "spec")
    problems = _attribute_problems(spec)
    if kind != "SelfSubjectAccessReview":
        if not _text(spec, "user") and not _texts(spec, "groups"):
            at_least = "at least one of user or group must be specified"
            problems.append(FieldError.invalid("spec.user", _text(spec, "user"), detail=at_least))
        user = _named_user(spec)
    if kind == "LocalSubjectAccessReview":
        problems += _namespace_problems(review, spec)
    if problems:
        raise Invalid.of(kind, "", group=AUTHORIZATION, problems=problems)
    decision = authorizer.allowed(user, _attributes(spec))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason" if decision.allowed else "evaluationError"] = decision.reason
    return review | {"status": status}


def rules_review(authorizer: Authorizer, user: User, review: Object) -> Object:
    """SelfSubjectRulesReview: the rules of the current user in a namespace."""
    namespace = _text(_mapping(review, "spec"), "namespace")
    if not namespace:
        raise BadRequest("no namespace on request")
    rules = authorizer.policy.rules_of(user, namespace)
    status = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [{"verbs": rule.verbs, "nonResourceURLs": rule.paths} for rule in rules if rule.paths],
        "incomplete": False,
    }
    return review | {"status": status}


def token_request(issuer: Issuer, account: Object, request: Object, *, uid_of: UidOf, now: datetime) -> Object:
    """TokenRequest: issue a token for an existing service account."""
    spec = _mapping(request, "spec")
    metadata = account["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    lifetime = _lifetime(spec, name)
    issued = issuer.issue(
        namespace,
        name,
        uid=metadata["uid"],
        now=now,
        lifetime=lifetime,
        audiences=_texts(spec, "audiences"),
        bound=_bound(spec, namespace, name, uid_of=uid_of),
    )
    answered = {
        "audiences": list(_texts(spec, "audiences") or issuer.audiences),
        "expirationSeconds": int(lifetime.total_seconds()),
        "boundObjectRef": spec.get("boundObjectRef"),
    }
    status = {"token": issued.token, "expirationTimestamp": times.format(issued.expires)}
    described = {"name": name, "namespace": namespace, "creationTimestamp": times.format(now)}
    return request | {"metadata": described, "spec": answered, "status": status}


def user_info(user: User) -> Object:
    """A user as reviews and admission write it."""
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _named_user(spec: Mapping[str, Any]) -> User:
    extra = {key: _texts(_mapping(spec, "extra"), key) for key in _mapping(spec, "extra")}
    return User(_text(spec, "user"), _texts(spec, "groups"), _text(spec, "uid"), extra)


def _attributes(spec: Mapping[str, Any]) -> RequestInfo:
    if spec.get("resourceAttributes") is None:
        path = _mapping(spec, "nonResourceAttributes")
        return RequestInfo(verb=_text(path, "verb"), path=_text(path, "path"))
    resource = _mapping(spec, "resourceAttributes")
    return RequestInfo(
        path="",
        is_resource=True,
        **{key: _text(resource, key) for key in ("verb", "group", "version", "resource", "subresource", "namespace")},
        name=_text(resource, "name"),
    )


def _attribute_problems(spec: Mapping[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [FieldError.invalid("spec.resourceAttributes", None, detail=why)]
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [FieldError.invalid("spec.nonResourceAttributes", path, detail=why)]
    return []


def _namespace_problems(review: Object, spec: Mapping[str, Any]) -> list[FieldError]:
    namespace = _text(_mapping(review, "metadata"), "namespace")
    asked = _text(_mapping(spec, "resourceAttributes"), "namespace")
    if asked == namespace:
        return []
    why = "must match metadata.namespace"
    return [FieldError.invalid("spec.resourceAttributes.namespace", asked, detail=why)]


def _resource_rule(rule: Rule) -> Object:
    shown: Object = {"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources}
    return shown | ({"resourceNames": rule.names} if rule.names else {})


def _lifetime(spec: Mapping[str, Any], name: str) -> timedelta:
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        return DEFAULT_LIFETIME
    why = ""
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise BadRequest("expirationSeconds must be a whole number")
    if seconds < SHORTEST.total_seconds():
        why = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST.total_seconds():
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        problem = FieldError.invalid("spec.expirationSeconds", seconds, detail=why)
        raise Invalid.of("TokenRequest", name, group=AUTHENTICATION, problems=[problem])
    return timedelta(seconds=seconds)


def _bound(spec: Mapping[str, Any], namespace: str, account: str, *, uid_of: UidOf) -> tuple[str, Reference] | None:
    reference = _mapping(spec, "boundObjectRef")
    if not reference:
        return None
    kind, name, uid = (_text(reference, key) for key in ("kind", "name", "uid"))
    resource = BINDABLE.get(kind)
    if resource is None:
        raise BadRequest(f"cannot bind token to object of kind {kind!r}; write one of {', '.join(BINDABLE)}")
    found = uid_of(resource, "" if resource == "nodes" else namespace, name)
    if found is None:
        raise NotFound.of(resource, name)
    if uid and uid != found:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record"
        raise Conflict.of("serviceaccounts/token", account, why=why)
    return kind, Reference(name, found)


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise BadRequest(f"{key} must be an object")
    return found


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise BadRequest(f"{key} must be a string")
    return found


def _texts(value: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = value.get(key)
    if found is None:
        return ()
    if not (isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)):
        raise BadRequest(f"{key} must be a list of strings")
    return tuple(found)
