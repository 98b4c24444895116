"""The operator of inference gangs: PodCliqueSets, and the PodCliques and scaling groups that they are made of.

    PodCliqueSet ──► PodClique ──► Pod
         │ └──► PodCliqueScalingGroup ──► PodClique ──► Pod
         └──► Service, autoscalers, identity

    PodGang: the pods of several PodCliques that are placed together

Each kind has a controller of its own.  What a set wants of its parts is in its status
and in their labels; what they have come to is in theirs; nobody asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import (
    AUTOSCALERS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import (
    cliques_decide,
    cliques_observe,
    cliques_status,
    gangs,
    groups_decide,
    groups_observe,
    groups_status,
    render,
    sets_decide,
    sets_observe,
    sets_status,
)
from holdfast.operators.podcliqueset.mandates import cliques_concerned, groups_concerned
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.runtime.controllers import Controller, View, Watch

__all__ = ["CONTROLLERS", "controllers"]

IMAGE: Final = f"holdfast:{version('holdfast')}"
"""What pods that start in an order wait with, unless somebody says otherwise."""


def _owning_set(part: Object, view: View) -> Iterable[Key]:
    """The set that owns a part directly; what belongs to a scaling group is that group's to report."""
    owner = part.controller
    return (Key(part.meta.namespace, owner.name),) if owner is not None and owner.kind == SETS.kind else ()


def controllers(*, image: str = IMAGE) -> tuple[Controller[Any], ...]:
    """The controllers of inference gangs; `image` is what an ordered start waits with."""
    return (
        Controller(
            name="podcliqueset",
            resource=SETS,
            # PodCliques and scaling groups are not children that are kept as they were rendered: they scale alone.
            owns=(SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS, SERVICES, AUTOSCALERS),
            watches=(Watch(resource=CLIQUES, keys=_owning_set), Watch(resource=GROUPS, keys=_owning_set)),
            writes=(CLIQUES, GROUPS),
            grants=render.GRANTS,
            observe=sets_observe.observe,
            decide=sets_decide.decide,
            explain=sets_status.explain,
        ),
        Controller(
            name="podcliquescalinggroup",
            resource=GROUPS,
            owns=(CLIQUES,),
            watches=(Watch(resource=SETS, keys=groups_concerned),),
            observe=groups_observe.observe,
            decide=groups_decide.decide,
            explain=groups_status.explain,
        ),
        Controller(
            name="podclique",
            resource=CLIQUES,
            owns=(PODS,),
            watches=(Watch(resource=SETS, keys=cliques_concerned),),
            observe=cliques_observe.observe,
            decide=partial(cliques_decide.decide, image=image),
            explain=cliques_status.explain,
        ),
        Controller(
            name="podgang",
            resource=GANGS,
            watches=(Watch(resource=PODS, keys=gangs.of_pod), Watch(resource=CLIQUES, keys=gangs.of_clique)),
            reads=(SETS, GROUPS),
            writes=(PODS, GANGS),
            observe=gangs.observe,
            decide=gangs.decide,
        ),
    )


CONTROLLERS: Final = controllers()
