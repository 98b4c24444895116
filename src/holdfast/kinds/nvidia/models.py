"""DynamoModel: a model, or an adapter of one, that components of graphs serve.

This module must not know who serves it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from holdfast.kinds.model import AGE, Column, Count, Group, Model, Resource, Status, api

GROUP: Final = Group("nvidia.com", "v1alpha1")


class ModelSource(Model):
    """Where a model comes from."""

    uri: Annotated[
        str,
        api("Where it comes from, such as s3://bucket/path or hf://org/model@revision.", min_length=1),
    ]


class DynamoModelSpec(Model):
    """The model, and the base model of the components that serve it."""

    model_name: Annotated[str, api("The whole name of the model.", min_length=1)]
    base_model_name: Annotated[str, api("The model that components name in modelRef.", min_length=1)]
    model_type: (
        Annotated[Literal["base", "lora", "adapter"], api("Whether it is a model or an adapter.", default="base")]
        | None
    ) = None
    source: ModelSource | None = None


class ModelEndpoint(Model):
    """A pod that serves the model."""

    address: Annotated[str, api("Its address, such as http://10.0.1.5:9090.")]
    pod_name: Annotated[str, api("The name of the pod.")] | None = None
    ready: Annotated[bool, api("Whether the pod is ready.")]


class DynamoModelStatus(Status):
    """The pods that serve a model."""

    endpoints: Annotated[tuple[ModelEndpoint, ...], api("The pods that serve it.", list_type="atomic")] = ()
    ready_endpoints: Annotated[Count, api("How many of them are ready.")] | None = None
    total_endpoints: Annotated[Count, api("How many there are.")] | None = None


class DynamoModel(Resource):
    """A model, or an adapter of one, that components of graphs serve."""

    spec: DynamoModelSpec
    status: DynamoModelStatus | None = None


KIND: Final = GROUP.kind(
    DynamoModel,
    "dynamomodels",
    Column("BaseModel", ".spec.baseModelName"),
    Column("Type", ".spec.modelType"),
    Column("Ready", ".status.readyEndpoints", type="integer"),
    Column("Total", ".status.totalEndpoints", type="integer"),
    AGE,
    short="dm",
)
