"""What is created inside a Tenant's store: policies, users, buckets, and the state of each.

This module must not know the servers.
"""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.kinds.model import Model, Name, ObservedGeneration, Rule, Time, Total, api
from holdfast.kinds.rustfs.references import KeyReference, LocalReference

Word = Annotated[Name, api(pattern=r"^\S+$")]

Retain = Annotated[Literal["Retain"], api("What happens to it when its entry is removed.", default="Retain")]


class PolicyDocument(Model):
    """Where the text of a policy is."""

    config_map_key_ref: Annotated[KeyReference, api("The key of a ConfigMap that holds it, as JSON.")]


class Policy(Model):
    """A policy of the store."""

    name: Annotated[Word, api("The name of the policy.")]
    document: Annotated[PolicyDocument, api("Where the text of the policy is.")]
    deletion_policy: Retain | None = None


class User(Model):
    """A user of the store."""

    name: Annotated[Word, api("The name of the user.")]
    creds_secret: (
        Annotated[LocalReference, api("The Secret with the keys; the one named as the user if unset.")] | None
    ) = None
    policies: Annotated[
        tuple[Word, ...], api("The policies of the user.", list_type="set", min_length=1, max_length=64)
    ]
    deletion_policy: Retain | None = None


Users = Annotated[
    tuple[User, ...],
    api(
        "Users to be created in the store.",
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
            "The name of the bucket.",
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
    region: Annotated[str, api("The region that the bucket is in.")] | None = None
    object_lock: Annotated[bool, api("Whether its objects can be locked.")] | None = None
    deletion_policy: Retain | None = None


class ItemStatus(Model):
    """The state of a policy, user or bucket."""

    name: Annotated[str, api("The name of the item.")]
    state: Annotated[Literal["Pending", "Ready", "Failed", "Retained"], api("The state of the item.")]
    reason: Annotated[str, api("The reason of its state, as one word.")]
    message: Annotated[str, api("The reason of its state, as a sentence.")] | None = None
    last_transition_time: Annotated[Time, api("When its state last changed.")] | None = None
    desired_hash: Annotated[str, api("A hash of what the spec asks for.")] | None = None
    last_applied_hash: Annotated[str, api("A hash of what was last applied.")] | None = None
    last_applied_generation: Annotated[Total, api("The generation that was last applied.")] | None = None
    observed_secret_resource_version: Annotated[str, api("The version of its Secret that was used.")] | None = None
    observed_secret_name: Annotated[str, api("The Secret that was used.")] | None = None
    last_applied_access_key_hash: Annotated[str, api("A hash of the access key that was used.")] | None = None
    policies: Annotated[tuple[str, ...], api("The policies of the user.")] = ()
    region: Annotated[str, api("The region that the bucket is in.")] | None = None
    object_lock: Annotated[bool, api("Whether its objects can be locked.")] | None = None


class UserOwnership(Model):
    """The claim to a user of the store, recorded before the user is created."""

    state: Annotated[Literal["PendingCreate", "Managed"], api("Whether the user has been created.")]
    tenant_uid: Annotated[str, api("The Tenant that claims the user.")]
    user_name: Annotated[str, api("The name of the user that is claimed.")]
    access_key_hash: Annotated[str, api("A hash of the user's access key.")]


class UserStatus(ItemStatus):
    """The state of a user."""

    ownership: Annotated[UserOwnership, api("The claim to the user.")] | None = None


class ProvisioningStatus(Model):
    """The state of policies, users and buckets."""

    observed_generation: ObservedGeneration | None = None
    phase: Annotated[Literal["Pending", "Ready", "Failed"], api("The state of all of them.")] | None = None
    policies: Annotated[tuple[ItemStatus, ...], api("The state of each policy.", keys=("name",))] = ()
    users: Annotated[tuple[UserStatus, ...], api("The state of each user.", keys=("name",))] = ()
    buckets: Annotated[tuple[ItemStatus, ...], api("The state of each bucket.", keys=("name",))] = ()
