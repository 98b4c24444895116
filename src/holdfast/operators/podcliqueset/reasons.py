"""Why a PodCliqueSet, or a part of it, is as it is: the reasons of its conditions and events."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class Why(Reason):
    """Reasons of inference gangs, beside those of the engine."""

    # PodCliques.
    ENOUGH_SCHEDULED = "SufficientScheduledPods", "At least minAvailable pods have a node."
    TOO_FEW_SCHEDULED = "InsufficientScheduledPods", "Fewer than minAvailable pods have a node."
    SCHEDULED_BELOW_MINIMUM = "ScheduledReplicasBelowMinAvailable", "Fewer than minAvailable pods have a node."
    TOO_FEW_READY = "InsufficientReadyPods", "Fewer than minAvailable pods are ready, or still starting."
    ENOUGH_READY = "SufficientReadyPods", "At least minAvailable pods are ready, or still starting."
    UPDATING = "UpdateInProgress", "An update replaces pods, so what is missing is no fault."

    # PodCliqueScalingGroups.
    TOO_FEW_GROUP_REPLICAS = (
        "InsufficientAvailablePodCliqueScalingGroupReplicas",
        "Fewer than minAvailable replicas of the group are complete and without a fault.",
    )
    ENOUGH_GROUP_REPLICAS = (
        "SufficientAvailablePodCliqueScalingGroupReplicas",
        "At least minAvailable replicas of the group are complete and without a fault.",
    )
    TERMINATING = (
        "GangTerminationActive",
        "The gang was ended, because it was incomplete for too long, and begins anew.",
    )

    # What an update of a part does, and what it waits for.
    NOT_UPDATING = "NotUpdating", "No update is going on."
    REPLACING_UNPLACED = "ReplacingUnplaced", "What is outdated and has no node is replaced, which costs nothing."
    REPLACING_UNREADY = "ReplacingUnready", "What is outdated and not ready is replaced, a few at a time."
    REPLACING_READY = "ReplacingReady", "The next one that is outdated and ready is replaced."
    WAITING_FOR_REPLACEMENT = "WaitingForReplacement", "What was taken down last is not replaced by a ready one yet."
    WAITING_FOR_MINIMUM = "WaitingForMinimum", "Fewer than minAvailable are ready, so none is taken down."
    WAITING_FOR_ALL = "WaitingForAll", "Everything is of the wanted template, and not all of it is ready yet."
    UPDATED = "Updated", "Everything is of the wanted template, and ready."
    OUTDATED = "Outdated", "Pods of an earlier template are left, and are replaced when somebody deletes them."

    # PodCliqueSets.
    ALL_AVAILABLE = "AllReplicasAvailable", "Every replica has enough ready pods in every part."
    NOT_ALL_AVAILABLE = "ReplicasNotAvailable", "Parts of replicas that the message names have too few ready pods."
    NONE_WANTED = "NoReplicasWanted", "No replicas are asked for."
    CREATING = "Creating", "Replicas that are asked for are being made."
    ROLLING = "RollingUpdate", "Replicas are updated, one after the other."
    SETTLED = "Settled", "Everything that is asked for is there."
    DEGRADED = "Degraded", "Replicas that were there are not available now."
    NOT_BLOCKED = "NotBlocked", "Nothing keeps the set from what is asked for."
    NO_PLACE = "NoPlace", "Pods have no node, because the scheduler finds none for them."
    INVALID = "InvalidSpec", "What is asked for cannot be had; the message says what to change."
    TOPOLOGY_DISABLED = (
        "TopologyAwareSchedulingDisabled",
        "The template has topology constraints, and no topology of the cluster is known.",
    )

    # Events.
    ALL_SCHEDULED_LOST = "AllScheduledReplicasLost", "There were pods on nodes, and there are none now."
    REPLICA_DELETED = "PodCliqueSetReplicaDeleteSuccessful", "A replica was incomplete for too long and begins anew."
    GROUP_REPLICA_DELETED = (
        "PodCliqueScalingGroupReplicaDeleteSuccessful",
        "A replica of a scaling group was incomplete for too long and begins anew.",
    )
    UPDATE_STARTED = "UpdateStarted", "A changed template begins to reach the pods."
    UPDATE_ENDED = "UpdateEnded", "The changed template has reached all pods."

    # PodGangs.
    PODS_PENDING = "PodGangPodsCreationPending", "Pods of the gang do not exist yet."
    PODS_CREATED = "PodGangPodsCreated", "All pods of the gang exist."
