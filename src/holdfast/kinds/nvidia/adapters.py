"""DynamoGraphDeploymentScalingAdapter: the size of one component of a graph, for autoscalers.

This module must not know who scales, nor what is scaled.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from holdfast.kinds.conversion import Content, Conversion
from holdfast.kinds.model import AGE, Column, Count, Model, Older, Resource, Scale, Status, Time, api
from holdfast.kinds.nvidia.runtimes import GROUP

_SCALE: Final = Scale(selector=".status.selector")


class ComponentReference(Model):
    """A component of a DynamoGraphDeployment."""

    name: Annotated[str, api("The DynamoGraphDeployment, in the same namespace.", min_length=1)]
    component_name: Annotated[str, api("The component that is scaled.", min_length=1)]


class ScalingAdapterSpec(Model):
    """The size of a component."""

    replicas: Annotated[Count, api("How many replicas are wanted.")]
    dgd_ref: Annotated[ComponentReference, api("The component that is scaled.")]


class ScalingAdapterStatus(Status):
    """The size that a component has."""

    replicas: Annotated[Count, api("How many replicas there are.")] | None = None
    selector: Annotated[str, api("The pods of the component, as a label selector.")] | None = None
    last_scale_time: Annotated[Time, api("When the number of replicas last changed.")] | None = None


class DynamoGraphDeploymentScalingAdapter(Resource):
    """The size of one component of a graph, which autoscalers set."""

    spec: ScalingAdapterSpec
    status: ScalingAdapterStatus | None = None


# --- the older version


class ServiceReference(Model):
    """A service of a DynamoGraphDeployment."""

    name: Annotated[str, api("The DynamoGraphDeployment, in the same namespace.", min_length=1)]
    service_name: Annotated[str, api("The service that is scaled.", min_length=1)]


class _OldSpec(Model):
    """The size of a service."""

    replicas: Annotated[Count, api("How many replicas are wanted.")]
    dgd_ref: Annotated[ServiceReference, api("The service that is scaled.")]


class _Old(Resource):
    """The size of one service of a graph, which autoscalers set."""

    spec: _OldSpec
    status: ScalingAdapterStatus | None = None


def _renamed(content: Content, before: str, after: str) -> Content:
    """The content with another name of a field of `spec.dgdRef`."""
    spec = content.get("spec")
    reference: Any = spec.get("dgdRef") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(reference, dict) or before not in reference:
        return dict(content)
    other = {name: value for name, value in reference.items() if name not in (before, after)}
    return {**content, "spec": {**spec, "dgdRef": {**other, after: reference[before]}}}


CONVERSION: Final = Conversion(
    group=GROUP.name,
    older="v1alpha1",
    newer=GROUP.version,
    up=lambda content: _renamed(content, "serviceName", "componentName"),
    down=lambda content: _renamed(content, "componentName", "serviceName"),
)

KIND: Final = GROUP.kind(
    DynamoGraphDeploymentScalingAdapter,
    "dynamographdeploymentscalingadapters",
    Column("DGD", ".spec.dgdRef.name"),
    Column("Component", ".spec.dgdRef.componentName"),
    Column("Replicas", ".status.replicas", type="integer"),
    AGE,
    short="dgdsa",
    scale=_SCALE,
    older=Older(
        version="v1alpha1",
        model=_Old,
        conversion=CONVERSION,
        columns=(
            Column("DGD", ".spec.dgdRef.name"),
            Column("Service", ".spec.dgdRef.serviceName"),
            Column("Replicas", ".status.replicas", type="integer"),
            AGE,
        ),
        deprecation=(
            "nvidia.com/v1alpha1 DynamoGraphDeploymentScalingAdapter is deprecated; "
            "use nvidia.com/v1beta1 DynamoGraphDeploymentScalingAdapter"
        ),
    ),
)
