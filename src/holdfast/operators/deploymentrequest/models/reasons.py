"""The reasons that conditions of DynamoModels give."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class ModelReason(Reason):
    """Reasons of DynamoModels."""

    SERVICES_FOUND = "ServicesFound", "Components of graphs serve the base model."
    NO_SERVICES = "NoServicesFound", "No component of a graph in this namespace names the base model in modelRef."
    ALL_READY = "AllEndpointsReady", "All pods that serve the model are ready."
    NOT_READY = "NotReady", "Pods that serve the model are not ready, or there are none."
