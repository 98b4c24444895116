"""Authentication: tokens, certificates, impersonation, and reviews of them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.apiserver.auth import certificates, reviews
from holdfast.apiserver.auth.authentication import (
    ADMIN,
    Authenticator,
    account_of,
    certificate_user,
    impersonation,
    is_open,
)
from holdfast.apiserver.auth.tokens import ISSUER, Issuer, Reference, TokenError
from holdfast.meta.errors import BadRequest, Conflict, Invalid, NotFound, Unauthorized
from holdfast.meta.exchange import ANONYMOUS, Request, User

NOW = datetime(2025, 1, 15, 10, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = certificates.new_key()
ADMIN_TOKEN = "an-admin-token-that-cannot-be-guessed"

EXISTING = {
    ("serviceaccounts", "ns", "robot"): "uid-1",
    ("pods", "ns", "pod"): "uid-2",
    ("secrets", "ns", "secret"): "uid-3",
    ("nodes", "", "node"): "uid-4",
}


def authenticator(existing: dict[tuple[str, str, str], str] | None = None) -> Authenticator:
    found = EXISTING if existing is None else existing
    return Authenticator(
        admin_token=ADMIN_TOKEN, issuer=Issuer(KEY), uid_of=lambda *key: found.get((key[0], key[1], key[2]))
    )


def token(**changes: Any) -> str:
    settings: dict[str, Any] = {"uid": "uid-1", "now": NOW, "lifetime": HOUR} | changes
    return Issuer(KEY).issue("ns", "robot", **settings).token


def asking(authorization: str | None) -> Request:
    return Request("GET", "/api", headers={} if authorization is None else {"authorization": authorization})


def test_the_admin_token_is_a_master() -> None:
    user = authenticator().user(asking(f"Bearer {ADMIN_TOKEN}"), NOW)
    assert user == ADMIN
    assert user.groups == ("system:masters", "system:authenticated")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", " Bearer "])
def test_the_scheme_is_read_as_http_has_it(scheme: str) -> None:
    assert authenticator().user(asking(f"{scheme} {ADMIN_TOKEN}"), NOW) == ADMIN


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Digest x"])
def test_a_request_without_a_token_is_anonymous(header: str | None) -> None:
    assert authenticator().user(asking(header), NOW) == ANONYMOUS


@pytest.mark.parametrize("wrong", ["wrong", ADMIN_TOKEN[:-1], ADMIN_TOKEN + "x", "a.b.c", "é" * 40, "..", "\udcff"])
def test_a_token_without_a_user_is_refused(wrong: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        authenticator().user(asking(f"Bearer {wrong}"), NOW)
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@given(st.text())
def test_no_token_text_breaks_anything(text: str) -> None:
    with pytest.raises(TokenError):
        authenticator().verify(text, now=NOW)


def test_who_the_connection_proved_needs_no_token() -> None:
    request = replace(asking("Bearer wrong"), user=User("jane"))
    assert authenticator().user(request, NOW) == User("jane")


def test_a_service_account_token_is_its_user() -> None:
    bound = ("Pod", Reference("pod", "uid-2"))
    user = authenticator().user(asking(f"Bearer {token(bound=bound)}"), NOW)
    assert user.name == "system:serviceaccount:ns:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.uid == "uid-1"
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("pod",)
    assert user.extra["authentication.kubernetes.io/pod-uid"] == ("uid-2",)


def test_a_token_says_what_kubernetes_tokens_say() -> None:
    header, claims, _ = (part + "=" * (-len(part) % 4) for part in token(bound=("Pod", Reference("p", "u"))).split("."))
    assert json.loads(base64.urlsafe_b64decode(header))["alg"] == "ES256"
    said = json.loads(base64.urlsafe_b64decode(claims))
    start = int(NOW.timestamp())
    assert said.pop("jti")
    assert said == {
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:robot",
        "aud": [ISSUER],
        "exp": start + 3600,
        "iat": start,
        "nbf": start,
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "robot", "uid": "uid-1"},
            "pod": {"name": "p", "uid": "u"},
        },
    }


REFUSED = {
    "after its end": (token(), NOW + HOUR),
    "before its beginning": (token(), NOW - timedelta(seconds=1)),
    "for another audience": (token(audiences=["vault"]), NOW),
    "of an account that was replaced": (token(uid="older"), NOW),
    "of an account that is gone": (Issuer(KEY).issue("ns", "gone", uid="uid-1", now=NOW).token, NOW),
    "bound to a pod that is gone": (token(bound=("Pod", Reference("gone", "uid-2"))), NOW),
    "bound to a pod that was replaced": (token(bound=("Pod", Reference("pod", "older"))), NOW),
    "bound to a secret that is gone": (token(bound=("Secret", Reference("gone", "uid-3"))), NOW),
    "bound to a node that is gone": (token(bound=("Node", Reference("gone", "uid-4"))), NOW),
    "signed by another key": (Issuer(certificates.new_key()).issue("ns", "robot", uid="uid-1", now=NOW).token, NOW),
    "of another issuer": (Issuer(KEY, url="https://x").issue("ns", "robot", uid="uid-1", now=NOW).token, NOW),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_token_is_refused(what: str) -> None:
    presented, now = REFUSED[what]
    with pytest.raises(TokenError):
        authenticator().verify(presented, now=now)


def test_a_known_token_is_still_refused_after_its_end_or_its_accounts() -> None:
    presented, existing = token(), dict(EXISTING)
    known = authenticator(existing)
    known.verify(presented, now=NOW)
    with pytest.raises(TokenError, match="expired"):
        known.verify(presented, now=NOW + HOUR)
    del existing["serviceaccounts", "ns", "robot"]
    with pytest.raises(TokenError, match="no longer exists"):
        known.verify(presented, now=NOW)


@given(st.data())
def test_a_token_with_any_character_changed_is_refused(data: st.DataObject) -> None:
    presented = TOKEN
    index = data.draw(st.integers(0, len(presented) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_."))
    changed = presented[:index] + letter + presented[index + 1 :]
    if changed == presented or base64_equal(changed, presented):
        return
    with pytest.raises(TokenError):
        authenticator().verify(changed, now=NOW)


def base64_equal(one: str, other: str) -> bool:
    """Whether two tokens differ only in bits of the signature's last letter that no byte holds."""
    return one[:-1] == other[:-1]


TOKEN = token()


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256"])
def test_a_token_cannot_choose_its_algorithm(algorithm: str) -> None:
    key_id = Issuer(KEY).jwks()["keys"][0]["kid"]
    header = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "kid": key_id}).encode()).rstrip(b"=").decode()
    _, claims, signature = TOKEN.split(".")
    for forged in (f"{header}.{claims}.{signature}", f"{header}.{claims}."):
        with pytest.raises(TokenError):
            authenticator().verify(forged, now=NOW)


def test_a_client_certificate_is_its_subject() -> None:
    certificate = {
        "subject": ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "jane"),)),
        "notAfter": "Jan 15 10:00:01 2025 GMT",
    }
    assert certificate_user(certificate, NOW) == User("jane", ("dev", "ops", "system:authenticated"))
    with pytest.raises(Unauthorized):
        certificate_user(certificate, NOW + timedelta(seconds=1))
    assert certificate_user(certificate | {"subject": ()}, NOW) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/healthz", True),
        ("/livez/ping", True),
        ("/readyz", True),
        ("/version", True),
        ("/healthzz", False),
        ("/metrics", False),
        ("/version/x", False),
        ("/", False),
        ("/api", False),
    ],
)
def test_only_health_and_version_are_open(path: str, expected: bool) -> None:
    assert is_open(path) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system:serviceaccount:ns:robot", ("ns", "robot")),
        ("system:serviceaccount:ns:", None),
        ("system:serviceaccount:ns:a:b", None),
        ("jane", None),
    ],
)
def test_the_user_name_of_a_service_account_is_recognised(name: str, expected: tuple[str, str] | None) -> None:
    assert account_of(name) == expected


IMPERSONATED = [
    ({"impersonate-user": "jane"}, User("jane", ("system:authenticated",)), ["users/jane"]),
    (
        {"impersonate-user": "jane", "impersonate-group": "dev\nops"},
        User("jane", ("dev", "ops", "system:authenticated")),
        ["users/jane", "groups/dev", "groups/ops"],
    ),
    (
        {"impersonate-user": "system:serviceaccount:ns:robot"},
        User(
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        ["serviceaccounts/robot"],
    ),
    (
        {"impersonate-user": "jane", "impersonate-uid": "7", "impersonate-extra-acme.com%2fscope": "a\nb"},
        User("jane", ("system:authenticated",), "7", {"acme.com/scope": ("a", "b")}),
        ["users/jane", "userextras/acme.com/scope/a", "userextras/acme.com/scope/b", "uids/7"],
    ),
    ({"impersonate-user": "system:anonymous"}, ANONYMOUS, ["users/system:anonymous"]),
]


@pytest.mark.parametrize(("headers", "user", "needs"), IMPERSONATED)
def test_impersonation_names_a_user_and_what_it_needs(headers: dict[str, str], user: User, needs: list[str]) -> None:
    wanted = impersonation(headers)
    assert wanted is not None
    assert wanted.user == user
    assert [f"{need.full_resource}/{need.name}" for need in wanted.needs] == needs
    assert {need.verb for need in wanted.needs} == {"impersonate"}


def test_impersonation_needs_a_user() -> None:
    assert impersonation({"authorization": "x"}) is None
    with pytest.raises(BadRequest):
        impersonation({"impersonate-group": "system:masters"})


def test_a_token_review_says_whose_token_it_is() -> None:
    review = {"kind": "TokenReview", "spec": {"token": TOKEN, "audiences": [ISSUER, "x"]}}
    status = reviews.token_review(authenticator(), review, now=NOW)["status"]
    assert status["authenticated"] is True
    assert status["audiences"] == [ISSUER]
    assert status["user"]["username"] == "system:serviceaccount:ns:robot"


@pytest.mark.parametrize("spec", [{"token": "x"}, {"token": TOKEN, "audiences": ["x"]}])
def test_a_token_review_of_a_bad_token_is_an_answer(spec: dict[str, Any]) -> None:
    status = reviews.token_review(authenticator(), {"spec": spec}, now=NOW)["status"]
    assert status["user"] == {}
    assert status["error"]
    assert "authenticated" not in status


def test_a_token_review_without_a_token_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="token is required"):
        reviews.token_review(authenticator(), {"spec": {}}, now=NOW)


ACCOUNT = {"metadata": {"name": "robot", "namespace": "ns", "uid": "uid-1"}}


def requested(spec: dict[str, Any]) -> Any:
    return reviews.token_request(
        Issuer(KEY),
        ACCOUNT,
        {"kind": "TokenRequest", "spec": spec},
        uid_of=lambda *key: EXISTING.get((key[0], key[1], key[2])),
        now=NOW,
    )


def test_a_requested_token_is_good_for_what_was_asked() -> None:
    answer = requested({"expirationSeconds": 600, "boundObjectRef": {"kind": "Pod", "name": "pod"}})
    assert answer["status"]["expirationTimestamp"] == "2025-01-15T10:10:00Z"
    assert answer["spec"]["audiences"] == [ISSUER]
    verified = authenticator().verify(answer["status"]["token"], now=NOW)
    assert verified.user.extra["authentication.kubernetes.io/pod-uid"] == ("uid-2",)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"expirationSeconds": 599}, Invalid),
        ({"expirationSeconds": 2**33}, Invalid),
        ({"boundObjectRef": {"kind": "Job", "name": "x"}}, BadRequest),
        ({"boundObjectRef": {"kind": "Pod", "name": "gone"}}, NotFound),
        ({"boundObjectRef": {"kind": "Pod", "name": "pod", "uid": "older"}}, Conflict),
    ],
)
def test_a_token_that_cannot_be_given_is_refused(spec: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        requested(spec)


def test_others_can_verify_tokens_by_the_published_key() -> None:
    (key,) = Issuer(KEY).jwks()["keys"]
    numbers = KEY.public_key().public_numbers()
    assert int.from_bytes(base64.urlsafe_b64decode(key["x"] + "="), "big") == numbers.x
    assert int.from_bytes(base64.urlsafe_b64decode(key["y"] + "="), "big") == numbers.y
    assert Issuer(KEY).discovery()["issuer"] == ISSUER
