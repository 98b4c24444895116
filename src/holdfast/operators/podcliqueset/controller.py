"""The controllers of inference gangs: one for each kind.

The set writes what it wants of its parts into its status and their labels; the parts
write what they have reached into their statuses; each controller reads the others'
objects and writes its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import (
    AUTOSCALERS,
    BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import render
from holdfast.operators.podcliqueset.cliques.decide import decide as decide_clique
from holdfast.operators.podcliqueset.cliques.observe import ORPHANS, OTHERS_BUDGETS, WITHOUT_CONTROLLER
from holdfast.operators.podcliqueset.cliques.observe import is_urgent as is_pod_urgent
from holdfast.operators.podcliqueset.cliques.observe import observe as observe_clique
from holdfast.operators.podcliqueset.cliques.observe import sight as sight_clique
from holdfast.operators.podcliqueset.cliques.status import explain as explain_clique
from holdfast.operators.podcliqueset.gangs.decide import decide as decide_gang
from holdfast.operators.podcliqueset.gangs.observe import CLIQUES_OF_GANG, PODS_OF_GANG
from holdfast.operators.podcliqueset.gangs.observe import matters as matters_of_gang
from holdfast.operators.podcliqueset.gangs.observe import observe as observe_gang
from holdfast.operators.podcliqueset.groups.decide import decide as decide_group
from holdfast.operators.podcliqueset.groups.observe import observe as observe_group
from holdfast.operators.podcliqueset.groups.observe import sight as sight_group
from holdfast.operators.podcliqueset.groups.status import explain as explain_group
from holdfast.operators.podcliqueset.part_status import is_urgent
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.operators.podcliqueset.sets.decide import decide as decide_set
from holdfast.operators.podcliqueset.sets.observe import observe as observe_set
from holdfast.operators.podcliqueset.sets.status import explain as explain_set
from holdfast.operators.podcliqueset.turns import on_changed_set
from holdfast.runtime import disruption
from holdfast.runtime.controllers import SOON, Controller, View, Watch
from holdfast.runtime.status import Invalid

IMAGE: Final = f"holdfast:{version('holdfast')}"
"""The default image of the init container that waits for other PodCliques."""


def _owning_set(part: Object, view: View) -> Iterable[Key]:
    """The set that owns a part directly; a scaling group reports for its own PodCliques."""
    owner = part.controller
    return (Key(part.meta.namespace, owner.name),) if owner is not None and owner.kind == SETS.kind else ()


def controllers(*, image: str = IMAGE) -> tuple[Controller[Any], ...]:
    """The controllers; `image` is the image of the init container that waits for other PodCliques."""
    return (
        Controller(
            name="podcliqueset",
            resource=SETS,
            # PodCliques and scaling groups are not children: users and autoscalers set their replicas.
            owns=(SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS, SERVICES, AUTOSCALERS),
            watches=tuple(
                Watch(resource=part, keys=_owning_set, within=SOON, urgent=is_urgent) for part in (CLIQUES, GROUPS)
            ),
            writes=(CLIQUES, GROUPS),
            grants=render.GRANTS,
            observe=observe_set,
            decide=decide_set,
            explain=explain_set,
            invalid=Invalid(conditions={"Ready": False, "Blocked": True}),
        ),
        Controller(
            name="podcliquescalinggroup",
            resource=GROUPS,
            owns=(CLIQUES,),
            urgent=is_urgent,
            watches=(on_changed_set(GROUPS),),
            observe=observe_group,
            sight=sight_group,
            decide=decide_group,
            explain=explain_group,
        ),
        Controller(
            name="podclique",
            resource=CLIQUES,
            owns=(PODS, BUDGETS),
            urgent=is_pod_urgent,
            watches=(
                WITHOUT_CONTROLLER,
                on_changed_set(CLIQUES),
                disruption.in_namespace_of_budget(CLIQUES),
                disruption.on_changed_node(CLIQUES),
            ),
            indexes=(disruption.PODS_BY_NODE, OTHERS_BUDGETS, ORPHANS),
            observe=observe_clique,
            sight=sight_clique,
            decide=partial(decide_clique, image=image),
            explain=explain_clique,
        ),
        Controller(
            name="podgang",
            resource=GANGS,
            matters=matters_of_gang,
            watches=(PODS_OF_GANG, CLIQUES_OF_GANG),
            reads=(SETS, GROUPS),
            writes=(PODS, GANGS),
            observe=observe_gang,
            decide=decide_gang,
        ),
    )


CONTROLLERS: Final = controllers()
