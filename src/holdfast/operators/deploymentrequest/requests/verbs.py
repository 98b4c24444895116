"""The verbs of a request: what each of them changes, or why it is not supported.  Pure."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import JOBS, PODS
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest
from holdfast.meta import times
from holdfast.operators import pausing
from holdfast.operators.deploymentrequest.graphs.resources import CLIQUES
from holdfast.operators.deploymentrequest.requests import names, view
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, REQUESTS
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind


def _annotated(name: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {name: value}}}


def _phase(case: Case) -> str | None:
    status = case.object.decode(DynamoGraphDeploymentRequest).status
    return None if status is None else status.phase


def pause(case: Case) -> Answer:
    note = "a profiling Job that runs goes on; nothing is created and the status stays as it is until it is resumed"
    return pausing.pause(case, note)


def promote(case: Case) -> Answer:
    """Create the deployment that was generated for review."""
    if _phase(case) != "Ready":
        return Refusal(
            f"only a request that is Ready waits for a promotion; it is {_phase(case) or 'new'}",
            "spec.autoApply false makes a request wait for one when its deployment was generated",
        )
    return Change({"spec": {"autoApply": True}}, "promoted")


def retry(case: Case) -> Answer:
    """Begin a new attempt after a failed one."""
    if _phase(case) != "Failed":
        return Refusal(
            f"only a request that is Failed can be retried; it is {_phase(case) or 'new'}",
            "create another request to profile the model again",
        )
    now = times.format(case.now)
    if case.object.meta.annotations.get(names.RETRY) == now:
        return Already("already retried this second")
    return Change(_annotated(names.RETRY, now), "retried")


_NO_EARLIER: Final = Refusal(
    "a request keeps no earlier result",
    "the deployment can be changed by itself; delete the request to keep the deployment as it is",
)

ROLLOUT: Final = RolloutKind(
    resource=REQUESTS,
    parts=(JOBS, PODS, GRAPHS, CLIQUES),
    selector=lambda obj: f"{names.NAME}={obj.key.name}",
    fresh=view.fresh,
    standing=view.standing,
    tree=view.tree,
    headline=view.headline,
    tables=(view.CANDIDATES,),
    verbs={"pause": pause, "resume": pausing.resume, "promote": promote, "retry": retry},
    unsupported={
        "abort": _NO_EARLIER,
        "undo": _NO_EARLIER,
        "restart": Refusal(
            "a request has no pods of its own but those of its Job",
            "restart the deployment: 'status' shows its name",
        ),
        "history": _NO_EARLIER,
        "plan": Refusal(
            "what a request leads to is found by its profiling Job",
            "'holdfast profile MODEL' finds the same without a cluster",
        ),
    },
)
