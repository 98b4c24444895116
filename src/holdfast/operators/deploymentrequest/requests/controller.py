"""The controller of DynamoGraphDeploymentRequests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from holdfast.client.resources import CONFIG_MAPS, JOBS, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, SERVICES
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.reasons import Reason
from holdfast.operators.deploymentrequest.requests.decide import decide, explain
from holdfast.operators.deploymentrequest.requests.observe import (
    GRAPHS,
    REFERENCES,
    REQUESTS,
    WAITING,
    WATCHES,
    observe,
)
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason
from holdfast.operators.deploymentrequest.requests.render import Settings
from holdfast.operators.deploymentrequest.requests.status import INVALID
from holdfast.operators.deploymentrequest.requests.verbs import ROLLOUT
from holdfast.operators.operator import Setting
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller, Grant

DEFAULTS: Final = Settings(image=f"holdfast:{version('holdfast')}")


def controllers(settings: Settings = DEFAULTS) -> tuple[Controller[Any], ...]:
    """The controllers, with the settings of an installation."""
    return (
        Controller(
            name="deploymentrequest",
            resource=REQUESTS,
            owns=(SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS),
            watches=WATCHES,
            writes=(JOBS, CONFIG_MAPS, GRAPHS),
            grants=(
                Grant(resource=CONFIG_MAPS, verbs=("get", "patch")),
                Grant(resource=GRAPHS, verbs=("create", "get", "list", "watch", "delete")),
                Grant(resource=PODS, verbs=("get", "list", "watch")),
                Grant(resource=SERVICES, verbs=("get", "list", "watch")),
            ),
            indexes=(REFERENCES.index, WAITING),
            observe=observe,
            decide=partial(decide, settings=settings),
            explain=explain,
            invalid=INVALID,
        ),
    )


CONTROLLERS: Final = controllers()
ROLLOUTS: Final[tuple[RolloutKind, ...]] = (ROLLOUT,)
REASONS: Final[tuple[type[Reason], ...]] = (RequestReason, PodReason)


# --- settings


def _image_problem(text: str) -> str | None:
    return None if text and not any(each.isspace() for each in text) else "it is not the name of an image"


IMAGE: Final = Setting(
    name="deploymentrequest.image",
    variable="HOLDFAST_PROFILER_IMAGE",
    default=DEFAULTS.image,
    meaning="The image of the profiling Job; it has the command holdfast.",
    problem=_image_problem,
)
SETTINGS: Final = (IMAGE,)


def configure(values: Mapping[str, str]) -> tuple[Controller[Any], ...]:
    """The controllers with the settings of an installation."""
    return controllers(Settings(image=values.get(IMAGE.name, IMAGE.default)))
