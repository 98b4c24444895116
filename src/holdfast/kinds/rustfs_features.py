"""What a Tenant of ``rustfs.com/v1alpha1`` can ask for beyond servers and volumes.

TLS, encryption, and the policies, users and buckets to be made inside the
store: what people write, and the status of each.  They stand apart from
`rustfs` because a Tenant is complete without any of them.  This module must not
know pools, nor how any of this is carried out.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holdfast.kinds.model import Duration, Model, Rule, Time, api

ObjectName = Annotated[str, api(min_length=1, max_length=253)]
Word = Annotated[str, api(min_length=1, max_length=253, pattern=r"^\S+$")]
Host = Annotated[str, api(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$")]


class LocalReference(Model):
    """An object in the Tenant's namespace."""

    name: Annotated[ObjectName, api("Its name.")]


class KeyReference(LocalReference):
    """A key of a Secret or ConfigMap in the Tenant's namespace."""

    key: Annotated[str, api("The key.", min_length=1, max_length=253)]


# --- TLS -----------------------------------------------------------------------


class CaReference(LocalReference):
    """A Secret in the Tenant's namespace that holds certificates of authorities."""

    key: Annotated[str, api("The key that holds them.", default="ca.crt", min_length=1, max_length=253)] | None = None


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
        Annotated[CaReference, api("The authorities of clients; set, clients must show a certificate.")] | None
    ) = None
    trust_system_ca: Annotated[bool, api("Whether the image's authorities are trusted too.", default=False)] | None = (
        None
    )
    trust_leaf_certificate_as_ca: (
        Annotated[bool, api("Whether the server's own certificate is trusted.", default=False)] | None
    ) = None


class IssuerReference(Model):
    """The cert-manager issuer that signs a certificate."""

    group: Annotated[str, api("Its API group.", default="cert-manager.io")] | None = None
    kind: Annotated[str, api("Its kind.", default="Issuer")] | None = None
    name: Annotated[ObjectName, api("Its name.")]


class PrivateKey(Model):
    """The key of a certificate, in cert-manager's words."""

    algorithm: Annotated[str, api("The algorithm, such as ECDSA.")] | None = None
    encoding: Annotated[str, api("The encoding, such as PKCS8.")] | None = None
    size: Annotated[int, api("The size in bits.", ge=1, format="int32")] | None = None
    rotation_policy: Annotated[str, api("Whether renewal makes a new key.")] | None = None


class CertManagerTls(Model):
    """A certificate that cert-manager keeps in a Secret."""

    manage_certificate: Annotated[bool, api("Whether the Certificate is made for you.", default=False)] | None = None
    secret_name: Annotated[ObjectName, api("The Secret with the certificate.")] | None = None
    secret_type: Annotated[str, api("The type that the Secret must have.")] | None = None
    certificate_name: Annotated[ObjectName, api("The Certificate.")] | None = None
    issuer_ref: Annotated[IssuerReference, api("Who signs it.")] | None = None
    common_name: Annotated[str, api("The common name in it.")] | None = None
    dns_names: Annotated[tuple[str, ...], api("The DNS names in it.")] = ()
    include_generated_dns_names: (
        Annotated[bool, api("Whether the names of the Tenant's Services are added.")] | None
    ) = None
    duration: Annotated[Duration, api("How long it is valid.")] | None = None
    renew_before: Annotated[Duration, api("How long before its end it is renewed.")] | None = None
    private_key: Annotated[PrivateKey, api("Its key.")] | None = None
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

    name: Annotated[
        str, api("What it is called.", min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    ]
    default: Annotated[bool, api("Whether clients that ask for no known name get it.", default=False)] | None = None
    hosts: Annotated[
        tuple[Host, ...], api("The names that it is for.", list_type="set", min_length=1, max_length=32)
    ] = ()
    cert_manager: Annotated[CertManagerTls, api("Where it comes from.")]


class Tls(Model):
    """How the servers speak TLS."""

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
            Literal["disabled", "external", "certManager"], api("Who keeps the certificates.", default="disabled")
        ]
        | None
    ) = None
    mount_path: Annotated[str, api("Where the certificates are mounted.", default="/var/run/rustfs/tls")] | None = None
    rotation_strategy: (
        Annotated[Literal["Rollout", "HotReload"], api("How a new certificate gets in.", default="Rollout")] | None
    ) = None
    enable_internode_https: (
        Annotated[bool, api("Whether servers speak TLS to each other too.", default=False)] | None
    ) = None
    require_san_match: (
        Annotated[bool, api("Whether a certificate must cover the Tenant's names.", default=True)] | None
    ) = None
    cert_manager: Annotated[CertManagerTls, api("The only certificate.")] | None = None
    certificates: Annotated[
        tuple[TlsCertificate, ...], api("Several certificates, by host.", keys=("name",), max_length=64)
    ] = ()
    ca_trust: Annotated[CaTrust, api("Which authorities the servers trust.")] | None = None


class CertificateReference(Model):
    """A Certificate object, as last seen."""

    api_version: Annotated[str, api("Its API version.")]
    kind: Annotated[str, api("Its kind.")]
    name: Annotated[str, api("Its name.")]
    observed_generation: Annotated[int, api("The generation that was seen.")] | None = None
    ready: Annotated[bool, api("Whether it was ready.")] | None = None
    reason: Annotated[str, api("Why it was not.")] | None = None


class SecretReference(Model):
    """A Secret, as last seen."""

    name: Annotated[str, api("Its name.")]
    key: Annotated[str, api("The key that was read.")] | None = None
    resource_version: Annotated[str, api("The version that was seen.")] | None = None


class TlsCertificateStatus(Model):
    """What is mounted for one of several certificates."""

    name: Annotated[str, api("What it is called.")]
    default: Annotated[bool, api("Whether it is the default one.")] | None = None
    hosts: Annotated[tuple[str, ...], api("The names that it is for.")] = ()
    managed_certificate: Annotated[bool, api("Whether the Certificate was made for you.")] | None = None
    certificate_ref: Annotated[CertificateReference, api("The Certificate.")] | None = None
    server_secret_ref: Annotated[SecretReference, api("The Secret.")]
    dns_names: Annotated[tuple[str, ...], api("The DNS names in it.")] = ()


class TlsStatus(Model):
    """Which certificates are in use."""

    mode: Annotated[str, api("Who keeps the certificates.")]
    ready: Annotated[bool, api("Whether all is there that the servers need.")]
    managed_certificate: Annotated[bool, api("Whether the Certificate was made for you.")] | None = None
    rotation_strategy: Annotated[str, api("How a new certificate gets in.")] | None = None
    mount_path: Annotated[str, api("Where the certificates are mounted.")] | None = None
    certificate_ref: Annotated[CertificateReference, api("The Certificate.")] | None = None
    server_secret_ref: Annotated[SecretReference, api("The Secret with the certificate.")] | None = None
    certificates: Annotated[tuple[TlsCertificateStatus, ...], api("Several certificates.")] = ()
    ca_secret_ref: Annotated[SecretReference, api("The Secret with the authorities.")] | None = None
    client_ca_secret_ref: Annotated[SecretReference, api("The Secret with the authorities of clients.")] | None = None
    observed_hash: Annotated[str, api("What is mounted, as a hash without private keys.")] | None = None
    not_before: Annotated[Time, api("Since when the certificate is valid.")] | None = None
    not_after: Annotated[Time, api("Until when the certificate is valid.")] | None = None
    expires_in_seconds: Annotated[int, api("How long it was still valid when last seen.")] | None = None
    dns_names: Annotated[tuple[str, ...], api("The DNS names in it.")] = ()
    ip_addresses: Annotated[tuple[str, ...], api("The addresses in it.")] = ()
    san_matched: Annotated[bool, api("Whether it covers the Tenant's names.")] | None = None
    trust_source: Annotated[str, api("Where the authorities come from.")] | None = None
    last_validated_time: Annotated[Time, api("When it was last checked.")] | None = None
    last_rollout_trigger_time: Annotated[Time, api("When a new certificate last caused a rollout.")] | None = None
    last_error_reason: Annotated[str, api("What was last wrong, for machines.")] | None = None
    last_error_message: Annotated[str, api("What was last wrong, for people.")] | None = None


class CertificatesStatus(Model):
    """The certificates of a Tenant."""

    tls: Annotated[TlsStatus, api("Those of its servers.")] | None = None


# --- encryption ----------------------------------------------------------------


class VaultKms(Model):
    """A Vault that keeps the keys."""

    endpoint: Annotated[str, api("Its address, such as https://vault.example.com:8200.", min_length=1)]


class LocalKms(Model):
    """A directory that keeps the keys."""

    key_directory: (
        Annotated[
            str,
            api(
                "The directory, below a data volume.",
                max_length=1024,
                pattern=r"^/.+",
                rules=(
                    Rule(
                        rule="self != '/data/kms-keys'",
                        message="/data/kms-keys is not on a data volume; move the keys below one, such as"
                        " /data/rustfs0/.kms-keys",
                    ),
                ),
            ),
        ]
        | None
    ) = None
    master_key_secret_ref: Annotated[KeyReference, api("The key that encrypts the keys.")] | None = None
    allow_insecure_dev_defaults: (
        Annotated[bool, api("Whether to run without a master key, for development.", default=False)] | None
    ) = None


class Encryption(Model):
    """Encryption of objects at rest."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!self.enabled || self.backend != 'local' || (has(self.local)"
                " && (has(self.local.masterKeySecretRef) || self.local.allowInsecureDevDefaults))"
            ),
            message="the local backend needs local.masterKeySecretRef (or, in development, allowInsecureDevDefaults)",
            reason="FieldValueRequired",
            field_path=".local",
        ),
        Rule(
            rule="!self.enabled || self.backend != 'vault' || (has(self.vault) && has(self.kmsSecret))",
            message="the vault backend needs vault.endpoint and kmsSecret",
            reason="FieldValueRequired",
            field_path=".vault",
        ),
    )

    enabled: Annotated[bool, api("Whether objects are encrypted.", default=False)] | None = None
    backend: Annotated[Literal["local", "vault"], api("Who keeps the keys.", default="local")] | None = None
    vault: Annotated[VaultKms, api("The Vault.")] | None = None
    local: Annotated[LocalKms, api("The directory.")] | None = None
    kms_secret: Annotated[LocalReference, api("The Secret whose key vault-token opens the Vault.")] | None = None
    default_key_id: Annotated[str, api("The key for objects that ask for none.")] | None = None


# --- policies, users, buckets --------------------------------------------------

Retain = Annotated[Literal["Retain"], api("What happens to it when its entry is removed.", default="Retain")]


class PolicyDocument(Model):
    """Where the text of a policy is."""

    config_map_key_ref: Annotated[KeyReference, api("The key of a ConfigMap that holds it, as JSON.")]


class Policy(Model):
    """A policy of the store."""

    name: Annotated[Word, api("What it is called.")]
    document: Annotated[PolicyDocument, api("Its text.")]
    deletion_policy: Retain | None = None


class User(Model):
    """A user of the store."""

    name: Annotated[Word, api("What the user is called.")]
    creds_secret: (
        Annotated[LocalReference, api("The Secret with the keys; the one named as the user if unset.")] | None
    ) = None
    policies: Annotated[
        tuple[Word, ...], api("The policies that hold for the user.", list_type="set", min_length=1, max_length=64)
    ]
    deletion_policy: Retain | None = None


Users = Annotated[
    tuple[User, ...],
    api(
        "Users to be made in the store.",
        keys=("name",),
        max_length=256,
        rules=(
            Rule(
                rule=(
                    "self.all(u, self.exists_one(v, (has(v.credsSecret) ? v.credsSecret.name : v.name)"
                    " == (has(u.credsSecret) ? u.credsSecret.name : u.name)))"
                ),
                message="each user needs a Secret of its own",
                reason="FieldValueDuplicate",
            ),
        ),
    ),
]


class Bucket(Model):
    """A bucket of the store."""

    name: Annotated[
        str,
        api(
            "What it is called.",
            min_length=3,
            max_length=63,
            pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
            rules=(
                Rule(
                    rule=(
                        "self != 'rustfs' && !self.matches('^[0-9]+([.][0-9]+){3}$')"
                        " && !self.contains('..') && !self.contains('.-') && !self.contains('-.')"
                    ),
                    message="a bucket is named like a host: not rustfs, not like an address, no .. or .- or -. in it",
                ),
            ),
        ),
    ]
    region: Annotated[str, api("Its region.")] | None = None
    object_lock: Annotated[bool, api("Whether its objects can be locked.")] | None = None
    deletion_policy: Retain | None = None


class ItemStatus(Model):
    """What became of a policy, user or bucket."""

    name: Annotated[str, api("What it is called.")]
    state: Annotated[Literal["Pending", "Ready", "Failed", "Retained"], api("What became of it.")]
    reason: Annotated[str, api("Why, for machines.")]
    message: Annotated[str, api("Why, for people.")] | None = None
    last_transition_time: Annotated[Time, api("When its state last changed.")] | None = None
    desired_hash: Annotated[str, api("What is wanted, as a hash.")] | None = None
    last_applied_hash: Annotated[str, api("What was last made, as a hash.")] | None = None
    last_applied_generation: Annotated[int, api("The generation that was last made.")] | None = None
    observed_secret_resource_version: Annotated[str, api("The version of its Secret that was used.")] | None = None
    observed_secret_name: Annotated[str, api("The Secret that was used.")] | None = None
    last_applied_access_key_hash: Annotated[str, api("The access key that was used, as a hash.")] | None = None
    policies: Annotated[tuple[str, ...], api("The policies that hold for it.")] = ()
    region: Annotated[str, api("Its region.")] | None = None
    object_lock: Annotated[bool, api("Whether its objects can be locked.")] | None = None


class UserOwnership(Model):
    """The claim to a user of the store, written down before the user is made."""

    state: Annotated[Literal["PendingCreate", "Managed"], api("Whether the user has been made.")]
    tenant_uid: Annotated[str, api("The Tenant that claims the user.")]
    user_name: Annotated[str, api("The user.")]
    access_key_hash: Annotated[str, api("The user's access key, as a hash.")]


class UserStatus(ItemStatus):
    """What became of a user."""

    ownership: Annotated[UserOwnership, api("The claim to the user.")] | None = None


class ProvisioningStatus(Model):
    """What became of policies, users and buckets."""

    observed_generation: Annotated[int, api("The generation that this is about.")] | None = None
    phase: Annotated[Literal["Pending", "Ready", "Failed"], api("What became of them together.")] | None = None
    policies: Annotated[tuple[ItemStatus, ...], api("The policies.", keys=("name",))] = ()
    users: Annotated[tuple[UserStatus, ...], api("The users.", keys=("name",))] = ()
    buckets: Annotated[tuple[ItemStatus, ...], api("The buckets.", keys=("name",))] = ()
