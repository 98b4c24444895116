"""Certificates: the server's own certificate authority, and the serving certificate that it signs.

Pure apart from the random numbers of keys: this module reads no file and no clock.  All keys are on the elliptic
curve P-256, which takes well under a millisecond to generate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
LEAF_LIFETIME: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=90)
"""A certificate with less validity left than this is renewed."""

_SKEW: Final = timedelta(hours=1)
"""Certificates are valid from this long ago, for clients whose clock is behind."""

SERVICE_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK: Final = ("127.0.0.1", "::1")


class CertificateError(ValueError):
    """Bytes that are not a certificate, or not a usable key."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Pair:
        """Read PEM; the two must belong together."""
        try:
            pair = cls(x509.load_pem_x509_certificate(certificate), load_key(key))
        except ValueError as error:
            raise CertificateError(f"not a certificate in PEM: {error}") from error
        if pair.certificate.public_key() != pair.key.public_key():
            raise CertificateError("the certificate belongs to another key")
        return pair

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)

    @property
    def renew_at(self) -> datetime:
        return self.certificate.not_valid_after_utc - RENEWED_BEFORE


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"not a private key in PEM: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise CertificateError("not a P-256 key")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def new_authority(now: datetime) -> Pair:
    """A certificate authority that can sign leaf certificates only."""
    key = new_key()
    name = _name("holdfast-ca")
    certificate = (
        _builder(name, name, key=key, now=now, lifetime=AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True, digital_signature=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate, key)


def new_serving(authority: Pair, hosts: Iterable[str], *, now: datetime) -> Pair:
    """A serving certificate for `hosts`: names and addresses."""
    key = new_key()
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    certificate = (
        _builder(_name("kube-apiserver"), authority.certificate.subject, key=key, now=now, lifetime=LEAF_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(alternatives, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate, key)


def hosts_for(bind: str) -> tuple[str, ...]:
    """The names and addresses of a server that is bound to an address; the unspecified address is left out."""
    extra = () if _address(bind) in (IPv4Address(0), IPv6Address(0)) else (bind,)
    return tuple(dict.fromkeys((*SERVICE_NAMES, *LOOPBACK, *extra)))


def serves(pair: Pair, authority: Pair, *, hosts: Iterable[str], now: datetime) -> bool:
    """Whether a serving certificate is usable: signed by the authority, not about to expire, and for all hosts."""
    if now >= pair.renew_at or pair.certificate.issuer != authority.certificate.subject:
        return False
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
        names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return all(_general_name(host) in names for host in hosts)


def expired(authority: Pair, now: datetime) -> bool:
    """Whether an authority expires before a new leaf certificate would."""
    return authority.certificate.not_valid_after_utc < now + LEAF_LIFETIME


def _builder(
    subject: x509.Name, issuer: x509.Name, *, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(**on: bool) -> x509.KeyUsage:
    off: dict[str, Any] = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(**off | on)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    address = _address(host)
    return x509.DNSName(host) if address is None else x509.IPAddress(address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
