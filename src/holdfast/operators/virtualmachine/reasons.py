"""The reasons of the conditions and Events of virtual machines, what each means, and what a user can do about it.

One registry: a reason with its meaning, and the next action (`NEXT`), which ends every message that carries the
reason.  The documentation is checked against it.  Errors of providers have one reason for each code (`of_code`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.kernel.reasons import Reason
from holdfast.providers.contract import Code


class MachineReason(Reason):
    """Reasons of a VirtualMachine, and of what it uses."""

    # Nothing is wrong.
    SUCCEEDED = "ReconcileSucceeded", "The object is as its spec asks for."
    NOT_PROVISIONING = "Provisioned", "The machine exists."
    NOT_RECONFIGURING = "NothingToChange", "The machine has the hardware and the power state of its spec."
    NOT_DELETING = "NotDeleting", "The object is not being deleted."
    NO_DRIFT = "NoDrift", "The machine was not changed by other means than its spec."

    # What is being done.
    CREATING = "Creating", "The provider creates the machine."
    STARTING = "Starting", "The machine is being started."
    STOPPING = "Stopping", "The machine is being stopped."
    REBOOTING = "Rebooting", "The machine is being rebooted."
    UPDATING = "Updating", "The provider changes the hardware of the machine."
    REVERTING = "Reverting", "The machine goes back to a snapshot."
    RUNNING_HOOK = "RunningHook", "A lifecycle hook of the machine runs."
    DELETING = "Deleting", "The provider deletes the machine."

    # What a machine waits for.
    WAITING = "WaitingForDependencies", "An object that the spec refers to does not exist or is not ready."
    WAITING_FOR_ADOPTION = "WaitingForAdoption", "The machine is adopted, and its identifier is not known yet."
    IMAGE_MISSING = "MissingOnProvider", "The image is not on the provider, and the image says not to import it."
    WAITING_FOR_IMAGE = "WaitingForImage", "The image is not on the provider yet."
    WAITING_FOR_SNAPSHOT = "WaitingForSnapshot", "The snapshot to revert to does not exist or is not ready."
    WAITING_FOR_PLACE = "WaitingForPlacement", "The VMPlacementPolicy has not chosen a host for the machine yet."
    UNPLACEABLE = "Unplaceable", "No host meets the VMPlacementPolicy of the machine and has room for it."
    RESTART_REQUIRED = "RestartRequired", "A change needs a restart that the spec does not allow at this time."
    DRIFTED = "Drifted", "The machine was changed by other means than its spec."
    HEALING = "Healing", "The machine is being changed back to what its spec asks for."

    # What a user must correct.
    INVALID_SPEC = "InvalidSpec", "The spec asks for something that is not possible."
    NO_CLOUD_INIT_KEY = "NoCloudInitKey", "The Secret has none of the keys under which cloud-init data is looked for."
    PROVIDER_CHANGED = "ProviderChanged", "Another Provider has the name of the one that runs the machine."

    # What a provider said.
    NOT_FOUND = "NotFoundOnProvider", "The provider does not have something that it was asked for."
    REFUSED = "RefusedByProvider", "The provider says that the request is invalid."
    UNAVAILABLE = "ProviderUnavailable", "The provider did not answer; it is asked again."
    UNAUTHORIZED = "ProviderUnauthorized", "The hypervisor refuses the credentials of the provider."
    QUOTA = "QuotaExceeded", "The hypervisor has no room for it."
    CONFLICT = "ProviderConflict", "Something on the hypervisor contradicts the request."
    UNSUPPORTED = "UnsupportedByProvider", "The provider cannot do this."
    FAILED = "ProviderError", "The provider failed with an internal error; it is asked again."

    # Events.
    PLACED = "Placed", "The VMPlacementPolicy chose a host for the machine."
    FORCED = "DeletionForced", "The object was removed although the provider has not confirmed the deletion."
    HOOK_FAILED = "HookFailed", "A lifecycle hook failed; the machine goes on without it."
    HOOK_DONE = "HookSucceeded", "A lifecycle hook succeeded."
    REBOOTED = "Rebooted", "The machine was rebooted as an annotation asked for."
    REVERTED = "Reverted", "The machine went back to a snapshot."


class ProviderReason(Reason):
    """Reasons of a Provider."""

    READY = "ProviderReady", "The process runs and the hypervisor answers."
    HEALTHY = "ProviderHealthy", "The hypervisor answers."
    CONNECTED = "Connected", "The process answers calls."
    NOT_CHECKED = "HealthCheckDisabled", "The spec disables health checks."
    NOT_CHECKED_YET = "NotCheckedYet", "The hypervisor has not been asked yet."
    UNHEALTHY = "HealthCheckFailed", "The hypervisor did not answer as often in a row as the threshold says."
    NOT_CONNECTED = "NotConnected", "The process does not answer calls."
    EXTERNAL = "ExternalEndpoint", "The endpoint names a process that runs already."
    DEPLOYMENT_READY = "DeploymentReady", "The process runs."
    STARTING = "DeploymentStarting", "The pods of the process are starting."
    NOT_READY = "DeploymentNotReady", "No pod of the process exists."
    DEPLOYMENT_FAILED = "DeploymentFailed", "The pods of the process cannot run."
    ON_DEMAND = "StartsOnDemand", "The process starts when the first machine refers to the Provider."
    STOPPING = "Stopping", "The Provider is being deleted."
    INVALID_CONFIGURATION = "InvalidConfiguration", "The spec of the runtime is not valid."
    TLS_ENABLED = "Enabled", "Calls are encrypted, and both sides prove who they are."
    TLS_DISABLED = "ExplicitlyDisabled", "The spec disables encryption: calls can be read on the network."
    TLS_SECRET_MISSING = "SecretMissing", "The Secret with the certificates does not exist or lacks a key."
    CAPABILITIES = "CapabilitiesFetched", "The provider said what it can do."
    NO_CAPABILITIES = "CapabilitiesUnavailable", "The provider has not said yet what it can do."
    IN_USE = "InUse", "Machines still run on the provider, so its process is kept."
    ADOPTED = "Adopted", "A machine that existed on the hypervisor was adopted."
    INVALID_FILTER = "InvalidAdoptFilter", "The annotation that filters machines to adopt is not valid."


class ImageReason(Reason):
    """Reasons of a VMImage."""

    READY = "ImageReady", "The image is available on every provider that needs it."
    NOT_USED = "NotUsed", "No machine uses the image, so it is on no provider."
    DOWNLOADING = "Downloading", "A provider downloads the image."
    NOT_DOWNLOADING = "NotDownloading", "No provider says that it downloads the image."
    IMPORTING = "Importing", "A provider imports the image."
    NOT_IMPORTING = "NotImporting", "No provider imports the image."
    WAITING = "WaitingForProvider", "A provider that needs the image does not answer."
    FAILED = "ImportFailed", "A provider could not import the image."
    TIMED_OUT = "ImportTimedOut", "A provider did not finish the import within the time that the spec allows."
    VALID = "Valid", "The source is complete."
    NO_SOURCE = "NoSource", "The image has no source for the kind of a provider that needs it."
    CHECKSUM_MISMATCH = "ChecksumMismatch", "The image has another checksum than the spec."


class ClassReason(Reason):
    """Reasons of a VMClass."""

    VALID = "ClassValid", "Every provider whose machines use the class can run it."
    UNSUPPORTED = "ClassUnsupported", "A provider whose machines use the class cannot run it."
    INVALID = "ClassInvalid", "The class contradicts itself."
    CHANGED = "ClassChanged", "The class was changed while machines use it."


class NetworkReason(Reason):
    """Reasons of a VMNetworkAttachment."""

    READY = "NetworkReady", "Machines can join the network."
    NO_CONFIGURATION = "NoConfiguration", "The network is described for no kind of provider whose machines use it."
    CONFLICT = "AddressConflict", "Two machines have the same address on the network."
    VALID = "NetworkValid", "The description is complete, and no addresses collide."
    NOT_CONFIGURING = "NotConfiguring", "Nothing is being configured."


class PolicyReason(Reason):
    """Reasons of a VMPlacementPolicy."""

    VALID = "PolicyValid", "The policy can be followed on every provider whose machines refer to it."
    INVALID = "PolicyInvalid", "Rules of the policy contradict each other."
    IMPOSSIBLE = "PolicyImpossible", "A provider has none of the places that the policy requires."
    UNSUPPORTED = "PolicyUnsupported", "A provider reports no hosts, so only the hard constraints are passed on to it."
    CONFLICTS = "PolicyConflicts", "Another policy contradicts the policy."
    NO_CONFLICTS = "NoConflicts", "No other policy contradicts the policy."


class SnapshotReason(Reason):
    """Reasons of a VMSnapshot, beside those of what a provider says."""

    CREATED = "SnapshotReady", "The snapshot is taken."
    CREATING = "SnapshotCreating", "The provider takes the snapshot."
    NOT_CREATING = "NotCreating", "No snapshot is being taken."
    DELETING = "SnapshotDeleting", "The provider deletes the snapshot."
    EXPIRED = "RetentionExpired", "The snapshot is past its retention, and is deleted after the grace period."
    KEPT = "WithinRetention", "The snapshot is not past its retention."
    PINNED = "Pinned", "The snapshot is pinned, so it does not expire."
    WAITING = "WaitingForMachine", "The machine, or its Provider, does not exist or is not ready."
    MACHINE_DELETED = "MachineDeleted", "The machine was deleted, and its snapshots on the hypervisor with it."
    NOT_QUIESCED = "NotQuiesced", "The provider cannot quiesce guests, so the snapshot is as after a loss of power."
    SCHEDULED = "Scheduled", "Snapshots are taken by the schedule."
    SUSPENDED = "ScheduleSuspended", "The schedule is suspended or disabled."
    STARTED = "SnapshotScheduled", "The schedule made a VMSnapshot."
    MISSED = "MissedRuns", "Times of the schedule went by without a snapshot; one is taken for all of them."
    ACTIVE = "PreviousRunActive", "The schedule waits for the last snapshot, which is still being taken."


class CloneReason(Reason):
    """Reasons of a VMClone, beside those of what a provider says."""

    COMPLETED = "CloneReady", "The machine is made."
    PREPARING = "Preparing", "What the clone needs is there, and the provider is about to be asked."
    CLONING = "Cloning", "The provider makes the clone."
    CUSTOMIZING = "Customizing", "The clone becomes a VirtualMachine of its own, or commands run in its guest."
    POWERING_ON = "PoweringOn", "The clone is being started."
    NOT_CLONING = "NotCloning", "No clone is being made."
    NOT_CUSTOMIZING = "NotCustomizing", "The clone is not being customized."
    NOT_FAILED = "NotFailed", "Nothing has failed."
    REMOVING = "Removing", "What was made of a clone that does not become a machine is deleted."
    WAITING = "WaitingForSource", "What is cloned, or something that the clone needs, does not exist or is not ready."
    TARGET_EXISTS = "TargetExists", "A VirtualMachine of this name exists that the VMClone has not made."
    TARGET_DELETED = "TargetDeleted", "The VirtualMachine was deleted before the clone was ready."
    LINKED_UNSUPPORTED = "LinkedCloneUnsupported", "The provider cannot make linked clones."
    INSTANT_UNSUPPORTED = "InstantCloneUnsupported", "The provider cannot make instant clones."
    TIMED_OUT = "CloneTimedOut", "The provider did not finish the clone within the time that the spec allows."


OF_CODE: Final[Mapping[Code, MachineReason]] = {
    Code.NOT_FOUND: MachineReason.NOT_FOUND,
    Code.INVALID: MachineReason.REFUSED,
    Code.RETRYABLE: MachineReason.UNAVAILABLE,
    Code.UNAUTHORIZED: MachineReason.UNAUTHORIZED,
    Code.QUOTA: MachineReason.QUOTA,
    Code.CONFLICT: MachineReason.CONFLICT,
    Code.UNSUPPORTED: MachineReason.UNSUPPORTED,
    Code.INTERNAL: MachineReason.FAILED,
}
"""The reason of each code of a provider."""

CORRECTED_BY_USER: Final = frozenset(
    {MachineReason.REFUSED, MachineReason.UNSUPPORTED, MachineReason.NOT_FOUND, MachineReason.INVALID_SPEC}
)
"""The reasons for which a machine has failed: they rarely go away by themselves."""


def reason_named(text: str) -> Reason:
    """The reason that a status has recorded; that of an internal error if it is not one of them."""
    known: tuple[Reason, ...] = (*MachineReason, *CloneReason)
    return next((each for each in known if each == text), MachineReason.FAILED)


NEXT: Final[Mapping[str, str]] = {
    MachineReason.WAITING_FOR_ADOPTION: "wait for the Provider to write status.id, or delete the VirtualMachine",
    MachineReason.IMAGE_MISSING: (
        "import the image on the provider, or set spec.prepare.onMissing of the VMImage to Import"
    ),
    MachineReason.WAITING_FOR_IMAGE: "nothing to do: the machine is created once the image is there",
    MachineReason.UNPLACEABLE: (
        "free capacity, add hosts, or relax the VMPlacementPolicy; it is tried again when something changes"
    ),
    MachineReason.RESTART_REQUIRED: (
        "power the machine off, or allow a restart with spec.reconfigure.restart Always or InWindow"
    ),
    MachineReason.INVALID_SPEC: "correct the field",
    MachineReason.NO_CLOUD_INIT_KEY: "add one of these keys to the Secret",
    MachineReason.PROVIDER_CHANGED: "create the VirtualMachine again, or bring back the Provider that created it",
    MachineReason.NOT_FOUND: "correct the name in the spec, or create it on the hypervisor",
    MachineReason.REFUSED: "correct the spec",
    MachineReason.UNAVAILABLE: "nothing to do: it is retried; see the conditions of the Provider if it lasts",
    MachineReason.UNAUTHORIZED: "correct the Secret that spec.credentialSecretRef of the Provider names",
    MachineReason.QUOTA: "free capacity on the hypervisor, or choose a smaller VMClass or another placement",
    MachineReason.CONFLICT: "see the message; it is retried",
    MachineReason.UNSUPPORTED: "remove it from the spec, or use a provider that supports it",
    MachineReason.FAILED: "nothing to do: it is retried; see the log of the provider if it lasts",
    MachineReason.DRIFTED: "change the spec to what the machine is, or set spec.driftPolicy to Heal",
    ProviderReason.UNHEALTHY: "see that spec.endpoint answers and the credentials are right",
    ProviderReason.NOT_CONNECTED: "see the log of the provider's pod",
    ProviderReason.DEPLOYMENT_FAILED: "see the pods of the Deployment (kubectl describe pod)",
    ProviderReason.INVALID_CONFIGURATION: "correct spec.runtime",
    ProviderReason.TLS_DISABLED: "set spec.runtime.service.tls.enabled to true",
    ProviderReason.TLS_SECRET_MISSING: "create the Secret with tls.crt, tls.key and ca.crt, or remove tls.secretRef",
    ProviderReason.INVALID_FILTER: "correct the annotation virtrigaud.io/adopt-filter",
    ProviderReason.IN_USE: "delete the machines first",
    ImageReason.FAILED: "correct spec.source; it is retried",
    ImageReason.TIMED_OUT: "raise spec.prepare.timeout, or see why the source is slow",
    ImageReason.NO_SOURCE: "add the source to spec.source",
    ImageReason.CHECKSUM_MISMATCH: "correct the checksum, or the source",
    ClassReason.UNSUPPORTED: "use the class on another provider, or remove what is not supported",
    ClassReason.INVALID: "correct the class",
    NetworkReason.NO_CONFIGURATION: "describe the network for this kind of provider in spec.network",
    NetworkReason.CONFLICT: "give one of the machines another address",
    PolicyReason.INVALID: "correct the policy",
    PolicyReason.IMPOSSIBLE: "correct the names in the policy, or add these places on the hypervisor",
    PolicyReason.UNSUPPORTED: "use a provider that reports its hosts, or hard constraints alone",
    PolicyReason.CONFLICTS: "change one of the policies, or give one of them a higher spec.priority",
    CloneReason.TARGET_EXISTS: "choose another spec.target.name, or delete that VirtualMachine",
    CloneReason.TARGET_DELETED: "create the VMClone again",
    CloneReason.LINKED_UNSUPPORTED: "set spec.options.type to FullClone, or use a provider that supports it",
    CloneReason.INSTANT_UNSUPPORTED: "set spec.options.type to FullClone, or use a provider that supports it",
    CloneReason.TIMED_OUT: "raise spec.options.timeout, or see why the provider is slow",
    SnapshotReason.EXPIRED: "set spec.metadata.pinned to true to keep it",
    SnapshotReason.MACHINE_DELETED: "delete the VMSnapshot",
}
"""What a user can do; reasons that pass by themselves have none."""


def advised(reason: str, message: str) -> str:
    """A message that ends with what to do."""
    advice = NEXT.get(reason)
    return f"{message}; {advice}" if advice else message
