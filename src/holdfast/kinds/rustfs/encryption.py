"""Encryption of a Tenant's objects at rest, and where the keys are stored.

This module must not know what is encrypted.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holdfast.kinds.model import Model, Rule, api
from holdfast.kinds.rustfs.references import KeyReference, LocalReference


class VaultKms(Model):
    """A Vault that stores the keys."""

    endpoint: Annotated[str, api("Its address, such as https://vault.example.com:8200.", min_length=1)]


class LocalKms(Model):
    """A directory that stores the keys."""

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
    backend: Annotated[Literal["local", "vault"], api("Where the keys are stored.", default="local")] | None = None
    vault: Annotated[VaultKms, api("The Vault that stores the keys, with backend vault.")] | None = None
    local: Annotated[LocalKms, api("The directory that stores the keys, with backend local.")] | None = None
    kms_secret: Annotated[LocalReference, api("The Secret with the key vault-token.")] | None = None
    default_key_id: Annotated[str, api("The key for objects that name none.")] | None = None
