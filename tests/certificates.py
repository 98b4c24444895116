"""Client certificates and certificate requests for tests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.apiserver.auth.certificates import Pair, new_key


def client_certificate(authority: Pair, user: str, *, groups: Iterable[str] = (), now: datetime) -> Pair:
    """A certificate of a user, valid for a year: the common name is the user, organizations are groups."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    key = new_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate, key)


def certificate_request(
    user: str, *, groups: Iterable[str] = (), names: Iterable[x509.GeneralName] = (), key: PrivateKey | None = None
) -> bytes:
    """A certificate request of a user in PEM, with alternative names, signed by a key or a new one."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder(
        subject_name=x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    )
    if alternatives := list(names):
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key or new_key(), hashes.SHA256()).public_bytes(Encoding.PEM)
