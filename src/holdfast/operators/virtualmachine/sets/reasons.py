"""The reasons of the conditions and Events of a VMSet, beside the engine's."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class SetReason(Reason):
    """Reasons of a VMSet."""

    ALL_AVAILABLE = "AllMachinesAvailable", "As many machines are available as the spec asks for."
    NOT_AVAILABLE = "MachinesNotAvailable", "Fewer machines are available than the spec asks for."
    UPDATING = "UpdatingReplicas", "Machines of earlier revisions are replaced or changed."
    UPDATED = "ReplicasUpdated", "Every machine that the update concerns has the revision of the template."
    SCALING_UP = "ScalingUp", "Fewer machines exist than the spec asks for, so machines are created."
    SCALING_DOWN = "RemovingMachines", "More machines exist than the spec asks for, so machines are deleted."
    SCALED = "ReplicasAsDesired", "As many machines exist as the spec asks for."
    NO_FAILURE = "NoReplicaFailure", "No machine has failed, and every request was accepted."
    MACHINES_FAILED = "MachinesFailed", "Machines have failed, or what is done to them fails and is tried again."
    NAME_TAKEN = "NameTaken", "A VirtualMachine with the name of a machine of the set does not belong to the set."
    REQUEST_REFUSED = "RequestRefused", "The API server refused a request of the controller."
