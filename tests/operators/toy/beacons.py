"""The Beacon kind: replicas of one image."""

from __future__ import annotations

from typing import Annotated, Final

from holdfast.kinds.model import Column, Count, Kind, Model, Resource, Status, api


class BeaconSpec(Model):
    """What to run."""

    image: Annotated[str, api("The container image.")]
    replicas: Annotated[Count, api("How many replicas to run.")]
    paused: Annotated[bool, api("Whether the rollout is paused.")] | None = None


class BeaconStatus(Status):
    """What is observed of a Beacon."""

    phase: Annotated[str, api("What the controller does.")] | None = None
    message: Annotated[str, api("Why.")] | None = None
    ready: Annotated[Count, api("How many replicas are ready.")] | None = None
    updated: Annotated[Count, api("How many replicas run the image of the spec.")] | None = None


class Beacon(Resource):
    """Replicas of one image."""

    spec: BeaconSpec
    status: BeaconStatus | None = None


KINDS: Final = (
    Kind(
        model=Beacon,
        group="toy.example.com",
        version="v1",
        plural="beacons",
        columns=(Column(name="Phase", path=".status.phase"),),
    ),
)
