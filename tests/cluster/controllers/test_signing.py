"""Approved signing requests are signed by the authority of the cluster, if their signer accepts them."""

from __future__ import annotations

import base64
import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.certificates import certificate_request

from holdfast.apiserver.auth.certificates import new_authority, new_key
from holdfast.client.objects import Object
from holdfast.cluster.controllers import signing
from holdfast.cluster.controllers.signing import SIGNING_REQUESTS, Authority
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look

NOW = datetime(2030, 1, 1, tzinfo=UTC)
_PAIR = new_authority(NOW)
AUTHORITY = Authority(_PAIR.certificate, _PAIR.key)
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
KEY = new_key()
JANE = certificate_request("jane", groups=["dev"], key=KEY)
NODE = {"groups": ["system:nodes"], "user": "system:node:n"}
DNS, IP = x509.DNSName("n.example.com"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
EMAIL, URI = x509.RFC822Name("n@example.com"), x509.UniformResourceIdentifier("https://n.example.com")
CLIENT_USAGES = ["digital signature", "key encipherment", "client auth"]
SERVER_USAGES = ["digital signature", "key encipherment", "server auth"]


def manifest(request: bytes, signer: str, usages: list[str], **spec: Any) -> dict[str, Any]:
    fields = {"request": base64.b64encode(request).decode(), "signerName": signer, "usages": usages}
    return {"metadata": {"name": "r"}, "spec": fields | spec}


def decided(wire: dict[str, Any], *conditions: str) -> dict[str, Any] | None:
    """The status that is written for a request with these conditions."""
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
    decision = signing.decide(AUTHORITY, Object.of(SIGNING_REQUESTS, {"status": status} | wire), NOW)
    return None if decision.status is None else dict(decision.status)


def issued(status: dict[str, Any] | None) -> x509.Certificate:
    assert status is not None
    assert "certificate" in status, status
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


def test_a_client_certificate_has_the_names_and_the_key_that_were_requested() -> None:
    status = decided(manifest(JANE, CLIENT, ["client auth", "digital signature"]), "Approved")
    certificate = issued(status)
    certificate.verify_directly_issued_by(AUTHORITY.certificate)
    assert certificate.public_key() == KEY.public_key()
    assert certificate.subject.rfc4514_string() == "CN=jane,O=dev"
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, False, False)
    extended = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(extended) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert status is not None
    assert [each["type"] for each in status["conditions"]] == ["Approved"]


def test_a_serving_certificate_has_the_alternative_names() -> None:
    request = certificate_request(NODE["user"], groups=NODE["groups"], names=[DNS, IP])
    certificate = issued(decided(manifest(request, SERVING, SERVER_USAGES), "Approved"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [DNS, IP]


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [
        (None, timedelta(days=365, minutes=-5)),
        (86_400, timedelta(days=1, minutes=-5)),
        (3_600, timedelta(hours=1)),
        (1, timedelta(minutes=10)),
        (10**9, timedelta(days=365, minutes=-5)),
    ],
)
def test_a_certificate_lives_as_long_as_requested_and_at_most_a_year(seconds: int | None, lifetime: timedelta) -> None:
    spec = {} if seconds is None else {"expirationSeconds": seconds}
    certificate = issued(decided(manifest(JANE, CLIENT, CLIENT_USAGES, **spec), "Approved"))
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + lifetime


@pytest.mark.parametrize(
    ("wire", "conditions"),
    [
        pytest.param(manifest(JANE, CLIENT, CLIENT_USAGES), (), id="it is not approved"),
        pytest.param(manifest(JANE, CLIENT, CLIENT_USAGES), ("Denied",), id="it is denied"),
        pytest.param(manifest(JANE, CLIENT, CLIENT_USAGES), ("Approved", "Failed"), id="it has failed"),
        pytest.param(manifest(JANE, "example.com/s", CLIENT_USAGES), ("Approved",), id="it is for another signer"),
        pytest.param(
            manifest(JANE, CLIENT, CLIENT_USAGES)
            | {"status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="}},
            (),
            id="it has a certificate",
        ),
    ],
)
def test_a_request_is_left_alone_while(wire: dict[str, Any], conditions: tuple[str, ...]) -> None:
    assert decided(wire, *conditions) is None


def node(*names: x509.GeneralName, user: str = "system:node:n", group: str = "system:nodes") -> bytes:
    return certificate_request(user, groups=[group], names=names)


def forged() -> bytes:
    """A request whose signature was changed."""
    first, *body, last = JANE.decode().splitlines()
    der = base64.b64decode("".join(body))
    return f"{first}\n{base64.b64encode(der[:-1] + bytes([der[-1] ^ 1])).decode()}\n{last}\n".encode()


@pytest.mark.parametrize(
    ("request_", "signer", "usages", "message"),
    [
        (JANE, CLIENT, ["client auth", "server auth"], "invalid usage for client certificate: server auth"),
        (JANE, CLIENT, ["digital signature"], "missing required usage for client certificate: client auth"),
        (JANE, KUBELET, CLIENT_USAGES, "subject organization is not system:nodes"),
        (node(user="n"), KUBELET, CLIENT_USAGES, "subject common name does not begin with system:node:"),
        (node(DNS), KUBELET, CLIENT_USAGES, "DNS subjectAltNames are not allowed"),
        (node(IP), KUBELET, CLIENT_USAGES, "IP subjectAltNames are not allowed"),
        (
            node(),
            KUBELET,
            ["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (node(), SERVING, SERVER_USAGES, "DNS or IP subjectAltName is required"),
        (node(DNS, EMAIL), SERVING, SERVER_USAGES, "Email subjectAltNames are not allowed"),
        (node(DNS, URI), SERVING, SERVER_USAGES, "URI subjectAltNames are not allowed"),
        (node(DNS, user="n"), SERVING, SERVER_USAGES, "subject common name does not begin with system:node:"),
        (
            node(DNS),
            SERVING,
            CLIENT_USAGES,
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (b"no", CLIENT, CLIENT_USAGES, "unable to parse csr: "),
        (forged(), CLIENT, CLIENT_USAGES, "the signature of the request does not belong to its key"),
    ],
)
def test_a_request_that_its_signer_does_not_accept_fails(
    request_: bytes, signer: str, usages: list[str], message: str
) -> None:
    status = decided(manifest(request_, signer, usages), "Approved")
    assert status is not None
    assert "certificate" not in status
    condition = status["conditions"][-1]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Failed",
        "True",
        "SignerValidationFailure",
    )
    assert condition["message"].startswith(message)


def test_a_kubelet_gets_its_certificate() -> None:
    issued(decided(manifest(node(), KUBELET, ["digital signature", "client auth"]), "Approved"))


async def signed_and_refused(cluster: Cluster) -> None:
    for name, usages in (("good", CLIENT_USAGES), ("bad", SERVER_USAGES)):
        wire = manifest(JANE, CLIENT, usages) | {"metadata": {"name": name}}
        await cluster.create(SIGNING_REQUESTS, wire)
        approved = {"type": "Approved", "status": "True", "reason": "Test"}
        await cluster.patch(
            SIGNING_REQUESTS, name, {"status": {"conditions": [approved]}}, namespace="", subresource="approval"
        )

    async def finished() -> bool:
        statuses = [each["status"] for each in await cluster.list(SIGNING_REQUESTS)]
        return all("certificate" in each or len(each["conditions"]) == 2 for each in statuses)

    await cluster.until(finished)


SCENARIO = Scenario(
    name="a request that is signed and one that is refused",
    controllers=(signing.controller(AUTHORITY),),
    story=signed_and_refused,
    ignored=frozenset({"certificate"}),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)
