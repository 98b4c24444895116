"""The reasons that conditions and Events of DynamoGraphDeployments give."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class GraphReason(Reason):
    """Reasons of DynamoGraphDeployments; those in lower case are the ones that clients of the API know."""

    # Ready.
    ALL_READY = "all_resources_are_ready", "All replicas of all components are updated and ready."
    NOT_READY = "some_resources_are_not_ready", "Objects of components do not exist yet."
    NO_CAPACITY = "insufficient_capacity", "Pods of a component are not scheduled: no node has room for them."
    PODS_NOT_READY = "pods_not_ready", "Pods of a component are scheduled and not ready yet."
    UPDATING = "updating", "Replicas of a component are not of the newest template yet."
    MIXED = "mixed_not_ready_reasons", "Several components are not ready, for different reasons that the message lists."
    ROLLING_UPDATE = "rolling_update_in_progress", "A changed template is rolled out to the components."
    FAILED = (
        "failed_to_reconcile_the_resources",
        "An object of the graph cannot be written or is not valid; the message says what to change.",
    )
    INVALID = "InvalidSpec", "The spec cannot be carried out; the message says what to change."

    # Available.
    SERVING = "Serving", "Every component has minAvailable available replicas."
    NOT_SERVING = "NotServing", "A component has fewer available replicas than minAvailable."

    # TopologyLevelsAvailable.
    TOPOLOGY_UNKNOWN = (
        "TopologyConditionPending",
        "The graph has topology constraints, which are not applied: no topology of the cluster is known.",
    )

    # Events.
    UPDATE_STARTED = "RollingUpdateStarted", "The rollout of a changed template began."
    UPDATE_COMPLETED = "RollingUpdateCompleted", "A changed template is rolled out to all components."
    RESTART_STARTED = "RestartStarted", "The components are restarted, because spec.restart.id changed."
    RESTART_COMPLETED = "RestartCompleted", "All components were restarted."
    SET_REPLACED = (
        "PodCliqueSetReplaced",
        "The PodCliqueSet of an earlier layout is deleted, because its successor is ready.",
    )
