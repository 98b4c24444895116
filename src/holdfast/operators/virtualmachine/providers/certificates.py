"""Certificates for the calls between the operator and a provider: both sides prove who they are.

A set is one authority, a certificate for the process and one for the operator.  The key of the authority is not
kept: a set is renewed as a whole.  Pure but for the random numbers of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.operators.virtualmachine.connections import CA, CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY, KEY

LIFETIME: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=90)
"""A set with less validity left than this is renewed."""

_SKEW: Final = timedelta(hours=1)


def issue(names: Sequence[str], *, now: datetime) -> Mapping[str, bytes]:
    """A set for a process of these names, by the keys of its Secret."""
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("holdfast-provider-authority", authority.public_key(), authority, None, now=now, names=())
    server, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    served = _certificate(names[0][:64], server.public_key(), authority, root, now=now, names=names)
    called = _certificate(
        "holdfast-operator", client.public_key(), authority, root, now=now, names=("holdfast-operator",)
    )
    return {
        CA: _pem(root),
        CERTIFICATE: _pem(served),
        KEY: _key(server),
        CLIENT_CERTIFICATE: _pem(called),
        CLIENT_KEY: _key(client),
    }


def expires(certificate: bytes) -> datetime | None:
    """Until when a certificate is valid; None where it is not one."""
    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return None


def _certificate(
    name: str,
    public: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    *,
    now: datetime,
    names: Sequence[str],
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(
            x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), critical=True
        )
    )
    if names:
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
