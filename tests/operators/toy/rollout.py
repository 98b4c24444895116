"""The rollout of a Beacon: how it is shown, planned and paused."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tests.operators.toy.beacons import Beacon, BeaconStatus
from tests.operators.toy.controller import BEACON, BEACONS, IMAGE, revision, rollout

from holdfast import kinds
from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.operators.rollouts import (
    Already,
    Answer,
    Case,
    Change,
    Headline,
    Observed,
    OfflinePlanner,
    OfflineRollout,
    Refusal,
    RolloutKind,
    Wire,
    generation_seen,
    is_current,
    status_of,
)
from holdfast.views.descriptions import Age, StatusTable
from holdfast.views.rollouts import Because, Floor, RolloutState, Standing
from holdfast.views.trees import NEW, OLD, Branch, Pod, Tree, leaves


def fresh(obj: Object) -> bool:
    return generation_seen(obj, _status(obj.decode(Beacon)).observed_generation)


def standing(observed: Observed) -> Standing:
    beacon = observed.object.decode(Beacon)
    status, bounds = _status(beacon), rollout(beacon).limits
    states = {"Ready": RolloutState.COMPLETED, "Paused": RolloutState.WAITING}
    return Standing(
        name=observed.object.key.name,
        strategy="RollingUpdate",
        state=states.get(status.phase or "", RolloutState.UNDER_WAY) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=status.phase or "New",
        because=Because(status.phase or "", status.message or ""),
        desired=bounds.replicas,
        ready=status.ready or 0,
        available=status.ready or 0,
        updated=status.updated or 0,
        floors=(Floor(ready=status.ready or 0, desired=bounds.replicas, floor=bounds.floor, most=bounds.replicas),),
        target=revision(beacon.spec.image),
    )


def tree(observed: Observed, now: datetime) -> Tree:
    state = standing(observed)
    pods = [each.decode(Pod) for each in observed.view.owned(PODS, observed.object.uid)]

    def index(pod: Pod) -> int:
        return NEW if pod.metadata.labels.get(IMAGE) == state.target else OLD

    branch = Branch(name="replicas", index=NEW, children=leaves(pods, index=index, now=now))
    return Tree(standing=state, branches=(branch,), now=now, size=state.desired)


def headline(wire: Wire) -> Headline:
    status = status_of(wire)
    phase = status.get("phase", "New")
    return Headline(phase, status.get("message", ""), is_current(wire) and phase == "Ready")


def pause(case: Case) -> Answer:
    if case.object.decode(Beacon).spec.paused:
        return Already("already paused")
    return Change({"spec": {"paused": True}}, "paused")


def resume(case: Case) -> Answer:
    return Change({"spec": {"paused": None}}, "resumed")


def described(manifest: Wire) -> OfflineRollout:
    beacon = kinds.decode(manifest)
    assert isinstance(beacon, Beacon), "the manifest is of this kind"
    strategy = RolloutStrategy(max_unavailable=1)
    spec = WorkloadSpec(name=beacon.metadata.name or "", replicas=beacon.spec.replicas, rollout=strategy)
    return OfflineRollout(spec=spec, revision=revision(beacon.spec.image))


def images(wire: Wire, age: Age) -> list[list[str]]:
    return [["IMAGE", "AGE"], [wire["spec"]["image"], age(wire["metadata"].get("creationTimestamp"))]]


def _status(beacon: Beacon) -> BeaconStatus:
    return beacon.status or BeaconStatus()


_NO_STEPS: Final = Refusal("a Beacon keeps no revisions and has no steps", "apply another manifest")

ROLLOUT: Final = RolloutKind(
    resource=BEACONS,
    parts=(PODS,),
    selector=lambda obj: f"{BEACON}={obj.key.name}",
    fresh=fresh,
    standing=standing,
    tree=tree,
    headline=headline,
    verbs={"pause": pause, "resume": resume},
    unsupported=dict.fromkeys(("promote", "abort", "retry", "undo", "restart", "history", "plan"), _NO_STEPS),
    tables=(StatusTable(title="Images", field="phase", rows=images),),
    settings={"replicas": "spec.replicas"},
    offline=OfflinePlanner(rollout=described, minimal={}),
)
