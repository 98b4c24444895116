"""The reasons that conditions of DynamoGraphDeploymentScalingAdapters give."""

from __future__ import annotations

from holdfast.kernel.reasons import Reason


class AdapterReason(Reason):
    """Reasons of DynamoGraphDeploymentScalingAdapters."""

    SCALED = "Scaled", "The component has the size that the adapter asks for."
    SCALING = "Scaling", "The component does not have the size that the adapter asks for yet."
    NO_COMPONENT = "ComponentNotFound", "There is no such graph, or no such component with a scalingAdapter in it."
