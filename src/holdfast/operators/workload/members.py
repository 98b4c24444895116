"""A replica of a Workload, as far as its pod alone says what it is.

A pass reads all replicas, and hardly any has changed since the last one.  So what follows from a pod is kept with
that version of the pod (`Object.derive`), and a pass adds only what follows from other objects and from the time.
"""

from __future__ import annotations

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod
from holdfast.kernel import pod_problems
from holdfast.kernel.fleet import Replica
from holdfast.kernel.pod_problems import Problem, ReportedPod
from holdfast.meta import times
from holdfast.operators.workload.render import REVISION, WORKLOAD


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """
    controller  the UID of its controller; empty: none
    workload    the label with the name of its Workload
    replica     as the engine sees it
    serves      it is ready, and neither ended nor terminating
    reported    of one that is not ready and not terminating: how its problems are read
    problem     why that one is not ready
    """

    meta: Meta
    controller: str
    workload: str
    replica: Replica
    serves: bool
    finished: bool
    ready: bool
    reported: ReportedPod | None = None
    problem: Problem | None = None

    @property
    def active(self) -> bool:
        """It runs or will: neither finished nor terminating."""
        return not self.finished and not self.replica.terminating

    @property
    def decisive(self) -> tuple[object, ...]:
        """What is decided by: not where it runs, nor what of its start passes by itself."""
        problem = None if self.problem is None or self.problem.passes else self.problem
        each = self.replica
        seen = each.revision, each.ready_since, each.terminating, each.restarts
        return self.meta.labels, self.controller, seen, self.finished, self.ready, problem


def member(obj: Object) -> Member:
    """What a pod says; to be asked for with `Object.derive`."""
    pod, controller = Pod.of(obj), obj.controller
    replica = Replica(
        id=pod.metadata.name,
        # One without the label belongs to no revision and is replaced.
        revision=pod.metadata.labels.get(REVISION, ""),
        created_at=times.parse(pod.metadata.creation_timestamp or ""),
        ready_since=pod.ready_since(),
        terminating=pod.deleting,
        node=pod.spec.node_name,
        restarts=pod.restarts,
    )
    reported = None if pod.ready or pod.deleting else pod_problems.decode(obj.raw)
    return Member(
        meta=obj.meta,
        controller="" if controller is None else controller.uid,
        workload=pod.metadata.labels.get(WORKLOAD, ""),
        replica=replica,
        serves=pod.active and replica.ready_since is not None,
        finished=pod.finished,
        ready=pod.ready,
        reported=reported,
        problem=None if reported is None else pod_problems.problem(reported),
    )
