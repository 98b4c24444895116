"""TLS of the servers of a Tenant, and which certificates are in use.

This module must not know pools, nor who issues certificates.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holdfast.kinds.model import Duration, Label, Model, Name, Positive, Rule, Time, Total, api
from holdfast.kinds.rustfs.references import LocalReference

Host = Annotated[Name, api(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$")]


class CaReference(LocalReference):
    """A Secret in the Tenant's namespace that holds certificates of authorities."""

    key: Annotated[Name, api("The key that holds them.", default="ca.crt")] | None = None


class CaTrust(Model):
    """Which authorities the servers trust."""

    source: (
        Annotated[
            Literal["CertificateSecretCa", "SecretRef", "SystemCa"],
            api("Where the authorities come from.", default="CertificateSecretCa"),
        ]
        | None
    ) = None
    ca_secret_ref: Annotated[CaReference, api("The authorities, with source SecretRef.")] | None = None
    client_ca_secret_ref: (
        Annotated[CaReference, api("The authorities of clients; if set, clients must present a certificate.")] | None
    ) = None
    trust_system_ca: Annotated[bool, api("Whether the image's authorities are trusted too.", default=False)] | None = (
        None
    )
    trust_leaf_certificate_as_ca: (
        Annotated[bool, api("Whether the server's own certificate is trusted.", default=False)] | None
    ) = None


class IssuerReference(Model):
    """The cert-manager issuer that signs a certificate."""

    group: Annotated[str, api("The API group of the issuer.", default="cert-manager.io")] | None = None
    kind: Annotated[str, api("The kind of the object.", default="Issuer")] | None = None
    name: Annotated[Name, api("The name of the object.")]


class PrivateKey(Model):
    """The key of a certificate, as cert-manager has it."""

    algorithm: Annotated[str, api("The algorithm, such as ECDSA.")] | None = None
    encoding: Annotated[str, api("The encoding, such as PKCS8.")] | None = None
    size: Annotated[Positive, api("The size in bits.")] | None = None
    rotation_policy: Annotated[str, api("Whether a renewal creates a new key.")] | None = None


class CertManagerTls(Model):
    """A certificate that cert-manager keeps in a Secret."""

    manage_certificate: Annotated[bool, api("Whether the Certificate is created.", default=False)] | None = None
    secret_name: Annotated[Name, api("The Secret with the certificate.")] | None = None
    secret_type: Annotated[str, api("The type that the Secret must have.")] | None = None
    certificate_name: Annotated[Name, api("The name of the Certificate object.")] | None = None
    issuer_ref: Annotated[IssuerReference, api("The issuer that signs the certificate.")] | None = None
    common_name: Annotated[str, api("The common name in the certificate.")] | None = None
    dns_names: Annotated[tuple[str, ...], api("The DNS names in the certificate.")] = ()
    include_generated_dns_names: (
        Annotated[bool, api("Whether the names of the Tenant's Services are added.")] | None
    ) = None
    duration: Annotated[Duration, api("How long it is valid.")] | None = None
    renew_before: Annotated[Duration, api("How long before its end it is renewed.")] | None = None
    private_key: Annotated[PrivateKey, api("How the certificate's key is created.")] | None = None
    usages: Annotated[tuple[str, ...], api("What it may be used for.")] = ()
    ca_trust: Annotated[CaTrust, api("Which authorities the servers trust.")] | None = None


class TlsCertificate(Model):
    """One of several certificates, chosen by the name that a client asks for."""

    RULES: ClassVar = (
        Rule(
            rule="self.default || has(self.hosts)",
            message="a certificate needs hosts unless it is the default one",
            reason="FieldValueRequired",
            field_path=".hosts",
        ),
        Rule(
            rule="self.default || !has(self.certManager.caTrust)",
            message="only the default certificate can have caTrust",
            reason="FieldValueForbidden",
            field_path=".certManager.caTrust",
        ),
    )

    name: Annotated[Label, api("The name of the certificate.")]
    default: Annotated[bool, api("Whether clients that ask for no known name get it.", default=False)] | None = None
    hosts: Annotated[
        tuple[Host, ...], api("The names that it is for.", list_type="set", min_length=1, max_length=32)
    ] = ()
    cert_manager: Annotated[CertManagerTls, api("Where it comes from.")]


class Tls(Model):
    """TLS of the servers."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!has(self.certificates) || self.certificates.size() == 0 || self.certificates.exists_one(c, c.default)"
            ),
            message="exactly one certificate must be the default one",
            field_path=".certificates",
        ),
        Rule(
            rule=(
                "!has(self.certificates) || self.certificates.all(c, !has(c.hosts) || c.hosts.all(h,"
                " self.certificates.exists_one(d, has(d.hosts) && h in d.hosts)))"
            ),
            message="a host can belong to one certificate only",
            reason="FieldValueDuplicate",
            field_path=".certificates",
        ),
    )

    mode: (
        Annotated[
            Literal["disabled", "external", "certManager"], api("Where the certificates come from.", default="disabled")
        ]
        | None
    ) = None
    mount_path: Annotated[str, api("Where the certificates are mounted.", default="/var/run/rustfs/tls")] | None = None
    rotation_strategy: (
        Annotated[Literal["Rollout", "HotReload"], api("How servers get a new certificate.", default="Rollout")] | None
    ) = None
    enable_internode_https: (
        Annotated[bool, api("Whether servers use TLS between each other too.", default=False)] | None
    ) = None
    require_san_match: (
        Annotated[bool, api("Whether a certificate must cover the Tenant's names.", default=True)] | None
    ) = None
    cert_manager: Annotated[CertManagerTls, api("The certificate, where there is only one.")] | None = None
    certificates: Annotated[
        tuple[TlsCertificate, ...], api("Several certificates, by host.", keys=("name",), max_length=64)
    ] = ()
    ca_trust: Annotated[CaTrust, api("Which authorities the servers trust.")] | None = None


class CertificateReference(Model):
    """A Certificate object, as last seen."""

    api_version: Annotated[str, api("The API version of the object.")]
    kind: Annotated[str, api("The kind of the object.")]
    name: Annotated[str, api("The name of the object.")]
    observed_generation: Annotated[Total, api("The generation that was seen.")] | None = None
    ready: Annotated[bool, api("Whether it was ready.")] | None = None
    reason: Annotated[str, api("Why it was not.")] | None = None


class SecretReference(Model):
    """A Secret, as last seen."""

    name: Annotated[str, api("The name of the object.")]
    key: Annotated[str, api("The key that was read.")] | None = None
    resource_version: Annotated[str, api("The version that was seen.")] | None = None


class TlsCertificateStatus(Model):
    """What is mounted for one of several certificates."""

    name: Annotated[str, api("The name of the certificate.")]
    default: Annotated[bool, api("Whether it is the default one.")] | None = None
    hosts: Annotated[tuple[str, ...], api("The names that it is for.")] = ()
    managed_certificate: Annotated[bool, api("Whether the operator created the Certificate.")] | None = None
    certificate_ref: Annotated[CertificateReference, api("The Certificate object, as last seen.")] | None = None
    server_secret_ref: Annotated[SecretReference, api("The Secret with the certificate, as last seen.")]
    dns_names: Annotated[tuple[str, ...], api("The DNS names in the certificate.")] = ()


class TlsStatus(Model):
    """Which certificates are in use."""

    mode: Annotated[str, api("Where the certificates come from.")]
    ready: Annotated[bool, api("Whether everything that the servers need exists.")]
    managed_certificate: Annotated[bool, api("Whether the operator created the Certificate.")] | None = None
    rotation_strategy: Annotated[str, api("How servers get a new certificate.")] | None = None
    mount_path: Annotated[str, api("Where the certificates are mounted.")] | None = None
    certificate_ref: Annotated[CertificateReference, api("The Certificate object, as last seen.")] | None = None
    server_secret_ref: Annotated[SecretReference, api("The Secret with the certificate.")] | None = None
    certificates: Annotated[
        tuple[TlsCertificateStatus, ...], api("What is mounted for each of several certificates.")
    ] = ()
    ca_secret_ref: Annotated[SecretReference, api("The Secret with the authorities.")] | None = None
    client_ca_secret_ref: Annotated[SecretReference, api("The Secret with the authorities of clients.")] | None = None
    observed_hash: Annotated[str, api("A hash of what is mounted, without private keys.")] | None = None
    not_before: Annotated[Time, api("Since when the certificate is valid.")] | None = None
    not_after: Annotated[Time, api("Until when the certificate is valid.")] | None = None
    expires_in_seconds: Annotated[int, api("How long it was still valid when last seen.")] | None = None
    dns_names: Annotated[tuple[str, ...], api("The DNS names in the certificate.")] = ()
    ip_addresses: Annotated[tuple[str, ...], api("The addresses in it.")] = ()
    san_matched: Annotated[bool, api("Whether it covers the Tenant's names.")] | None = None
    trust_source: Annotated[str, api("Where the authorities come from.")] | None = None
    last_validated_time: Annotated[Time, api("When it was last checked.")] | None = None
    last_rollout_trigger_time: Annotated[Time, api("When a new certificate last caused a rollout.")] | None = None
    last_error_reason: Annotated[str, api("The reason of the last error, as one word.")] | None = None
    last_error_message: Annotated[str, api("The last error, as a sentence.")] | None = None


class CertificatesStatus(Model):
    """The certificates of a Tenant."""

    tls: Annotated[TlsStatus, api("Those of its servers.")] | None = None
