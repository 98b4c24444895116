"""The reasons that conditions and Events of PodCliqueSets and their parts give, beside those of the engine."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class PodCliqueSetReason(Reason):
    """Reasons of PodCliqueSets, PodCliques, PodCliqueScalingGroups and PodGangs."""

    # PodCliques.
    ENOUGH_SCHEDULED = "SufficientScheduledPods", "At least minAvailable pods are scheduled."
    TOO_FEW_SCHEDULED = "InsufficientScheduledPods", "Fewer than minAvailable pods are scheduled."
    SCHEDULED_BELOW_MINIMUM = "ScheduledReplicasBelowMinAvailable", "Fewer than minAvailable pods are scheduled."
    TOO_FEW_READY = "InsufficientReadyPods", "Fewer than minAvailable pods are ready or starting."
    ENOUGH_READY = "SufficientReadyPods", "At least minAvailable pods are ready or starting."
    UPDATING = "UpdateInProgress", "An update replaces pods, so missing pods are not a breach of minAvailable."

    ALL_PODS_READY = "AllPodsReady", "All wanted pods exist and are ready."

    # PodCliqueScalingGroups.
    TOO_FEW_GROUP_REPLICAS = (
        "InsufficientAvailablePodCliqueScalingGroupReplicas",
        "Fewer than minAvailable replicas of the scaling group are complete and without a breach.",
    )
    ENOUGH_GROUP_REPLICAS = (
        "SufficientAvailablePodCliqueScalingGroupReplicas",
        "At least minAvailable replicas of the scaling group are complete and without a breach.",
    )
    TERMINATING = (
        "GangTerminationActive",
        "The gang was incomplete for longer than terminationDelay, was deleted, and is being recreated.",
    )

    # Updates of PodCliques and scaling groups; while one is running, the reason is the engine's.
    NOT_UPDATING = "NotUpdating", "No update is running."
    UPDATED = "Updated", "All replicas have the wanted template and are available."
    OUTDATED = "Outdated", "Pods of an earlier template are left; with OnDelete they are replaced when you delete them."

    # PodCliqueSets.
    ALL_AVAILABLE = "AllReplicasAvailable", "Every part of every replica has minAvailable ready pods."
    NOT_ALL_AVAILABLE = "ReplicasNotAvailable", "Parts that the message names have fewer ready pods than minAvailable."
    NONE_WANTED = "NoReplicasWanted", "spec.replicas is 0."
    CREATING = "Creating", "Replicas are being created."
    ROLLING = "RollingUpdate", "Replicas are updated, one after the other."
    SETTLED = "Settled", "All replicas exist and are available."
    DEGRADED = "Degraded", "Replicas that were available are not available now."
    NOT_BLOCKED = "NotBlocked", "No part is kept from minAvailable, or from its update."
    INVALID = "InvalidSpec", "The spec cannot be carried out; the message says what to change."
    TOPOLOGY_DISABLED = (
        "TopologyAwareSchedulingDisabled",
        "The template has topology constraints, which are not applied: no topology of the cluster is known.",
    )

    # Events.
    ALL_SCHEDULED_LOST = "AllScheduledReplicasLost", "Pods were scheduled, and none is now."
    REPLICA_DELETED = (
        "PodCliqueSetReplicaDeleteSuccessful",
        "A replica was incomplete for longer than terminationDelay and is recreated.",
    )
    GROUP_REPLICA_DELETED = (
        "PodCliqueScalingGroupReplicaDeleteSuccessful",
        "A replica of a scaling group was incomplete for longer than terminationDelay and is recreated.",
    )
    UPDATE_STARTED = "UpdateStarted", "The rollout of a changed template began."
    UPDATE_ENDED = "UpdateEnded", "The changed template is rolled out to all pods."

    # PodGangs.
    PODS_PENDING = "PodGangPodsCreationPending", "Pods of the gang do not exist yet."
    PODS_CREATED = "PodGangPodsCreated", "All pods of the gang exist."
