"""The labels of the objects of a PodCliqueSet."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from holdfast.meta.selectors import LabelSelector

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PART_OF: Final = "app.kubernetes.io/part-of"
NAME: Final = "app.kubernetes.io/name"
COMPONENT: Final = "app.kubernetes.io/component"

SET_INDEX: Final = "grove.io/podcliqueset-replica-index"
GROUP: Final = "grove.io/podcliquescalinggroup"
GROUP_INDEX: Final = "grove.io/podcliquescalinggroup-replica-index"
CLIQUE: Final = "grove.io/podclique"
POD_INDEX: Final = "grove.io/podclique-pod-index"
GANG: Final = "grove.io/podgang"
BASE_GANG: Final = "grove.io/base-podgang"
TEMPLATE_HASH: Final = "grove.io/pod-template-hash"
SCHEDULER: Final = "grove.io/scheduler-name"

TEMPLATE: Final = "holdfast.dev/clique"
"""The name of the clique, or scaling group, in the template that an object was made from."""

OPERATOR: Final = "grove-operator"
"""The value of `managed-by` that Grove sets, which other tools select by."""

DOMAIN: Final = "grove.io/"


class Component(StrEnum):
    """The role of an object in its PodCliqueSet."""

    SERVICE_ACCOUNT = "pod-service-account"
    ROLE = "pod-role"
    ROLE_BINDING = "pod-role-binding"
    TOKEN_SECRET = "pod-sa-token-secret"
    SERVICE = "pcs-headless-service"
    CLIQUE = "pcs-podclique"
    GROUP = "pcs-podcliquescalinggroup"
    MEMBER = "pcsg-podclique"
    AUTOSCALER = "pcs-hpa"
    GANG = "podgang"


def of_set(set_name: str) -> dict[str, str]:
    """The labels that all objects of a set have."""
    return {MANAGED_BY: OPERATOR, PART_OF: set_name}


def of_replica(set_name: str, index: int) -> dict[str, str]:
    """The labels that all objects of one replica of a set have."""
    return of_set(set_name) | {SET_INDEX: str(index)}


def of_pods(clique: str, marks: Mapping[str, str]) -> dict[str, str]:
    """The labels by which Services, gangs and budgets select the pods of a PodClique that has the labels `marks`."""
    selecting = (MANAGED_BY, PART_OF, SET_INDEX, GANG)
    return {CLIQUE: clique, **{label: marks[label] for label in selecting if label in marks}}


def common(set_name: str, name: str, component: Component) -> dict[str, str]:
    """The labels of any object of a set."""
    return {**of_set(set_name), NAME: name, COMPONENT: component.value}


def index(labels: Mapping[str, str], label: str) -> int | None:
    """The index in a label; None where there is none."""
    text = labels.get(label, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def selector(labels: Mapping[str, str]) -> LabelSelector:
    return _selector(tuple(labels.items()))


@lru_cache(maxsize=1024)  # passes select by the same labels again and again
def _selector(labels: tuple[tuple[str, str], ...]) -> LabelSelector:
    return LabelSelector.from_object({"matchLabels": dict(labels)})


def text(labels: Mapping[str, str]) -> str:
    """Labels as a label selector in text form."""
    return ",".join(f"{name}={value}" for name, value in labels.items())
