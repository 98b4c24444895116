"""The verbs of a graph: what each of them changes, or why it is not supported.

Pure.  A graph keeps no earlier spec and its updates have no steps, so there is nothing to undo, promote or abort.
"""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import PODS
from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment
from holdfast.meta import times
from holdfast.operators import pausing
from holdfast.operators.deploymentrequest.graphs import names, view
from holdfast.operators.deploymentrequest.graphs.resources import CLIQUES, GRAPHS
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind
from holdfast.runtime.controllers import is_paused

_HELD: Final = (
    "what was passed to the PodCliqueSet is finished, and lost pods are replaced; the graph itself is neither changed, "
    "scaled nor restarted until it is resumed"
)
_AGAIN: Final = "apply the earlier manifest: only pods that were already updated are replaced"


def pause(case: Case) -> Answer:
    return pausing.pause(case, _HELD)


def restart(case: Case) -> Answer:
    """Ask for a restart by `spec.restart.id`, with the strategy that the spec has."""
    now = times.format(case.now)
    asked = case.object.decode(DynamoGraphDeployment).spec.restart
    if asked is not None and asked.id == now:
        return Already("already restarted this second")
    notes = ("it is paused, so nothing happens before it is resumed",) if is_paused(case.object) else ()
    return Change({"spec": {"restart": {"id": now}}}, "restarted", notes)


ROLLOUT: Final = RolloutKind(
    resource=GRAPHS,
    parts=(PODS, CLIQUES),
    selector=lambda obj: f"{names.GRAPH}={names.label(obj.key.name)}",
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    verbs={"pause": pause, "resume": pausing.resume, "restart": restart},
    unsupported={
        "promote": Refusal(
            "an update of a DynamoGraphDeployment has no steps that need an approval",
            "'pause' keeps later changes of the spec from being rolled out",
        ),
        "abort": Refusal("a DynamoGraphDeployment keeps no earlier spec to return to", _AGAIN),
        "retry": Refusal(
            "no spec of a DynamoGraphDeployment is ever rejected",
            "'restart' replaces the pods; 'status' says what it waits for",
        ),
        "undo": Refusal("a DynamoGraphDeployment keeps no earlier spec to return to", _AGAIN),
        "history": Refusal(
            "a DynamoGraphDeployment keeps no earlier specs",
            "'status' shows the update; earlier specs are in the history of your manifests",
        ),
        "plan": Refusal(
            "a DynamoGraphDeployment cannot be planned yet",
            "'holdfast rollout plan pcs/NAME' plans the PodCliqueSet that it becomes",
        ),
    },
)
