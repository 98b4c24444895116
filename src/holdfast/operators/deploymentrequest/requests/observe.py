"""The world of one request: its Job, the output of the profiler, its deployment, and what it refers to.

`observe` reads and does not judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import CLAIMS, CONFIG_MAPS, JOBS, NODES, PODS, Resource
from holdfast.kernel import pod_problems
from holdfast.kernel.conditions import Condition
from holdfast.kernel.pod_problems import Diagnosis
from holdfast.kinds.nvidia import deployments
from holdfast.kinds.nvidia import requests as kind
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestStatus
from holdfast.meta.objects import Key
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.hardware import GpuNode
from holdfast.runtime.controllers import Index, View, Watch
from holdfast.runtime.references import References
from holdfast.runtime.status import prior_conditions

REQUESTS: Final = Resource.of(kind.KIND)
GRAPHS: Final = Resource.of(deployments.KIND)
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)

ASKED: Final = "request.json"
"""The key of the output that has what is asked; the profiler reads it from there."""

PROCESS: Final = "process"
"""The RuntimeClass, and its handler, of pods that run as processes of the machine of their node."""


class _Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of an object."""


# --- the Job


class _JobCondition(_Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _JobSpec(_Wire, frozen=True):
    active_deadline_seconds: int | None = None


class _JobStatus(_Wire, frozen=True):
    conditions: tuple[_JobCondition, ...] = ()
    active: int = 0
    completion_time: str | None = None


class Job(_Wire, frozen=True):
    """The fields of a Job that are read."""

    metadata: Meta = Meta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def attempt(self) -> str:
        return self.metadata.annotations.get(names.ATTEMPT, "")

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def completed(self) -> _JobCondition | None:
        return self._condition("Complete")

    @property
    def failed(self) -> _JobCondition | None:
        return self._condition("Failed")

    def _condition(self, type: str) -> _JobCondition | None:
        return next((each for each in self.status.conditions if each.type == type and each.status == "True"), None)


# --- the output


class Output(_Wire, frozen=True):
    """The ConfigMap that the profiler writes to."""

    metadata: Meta = Meta()
    data: dict[str, str] = {}

    @property
    def attempt(self) -> str:
        return self.metadata.annotations.get(names.ATTEMPT, "")


# --- the deployment


class _Component(_Wire, frozen=True):
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None

    @property
    def available(self) -> int:
        """Available, or ready where that is not reported: a PodClique reports only the latter."""
        reported = (self.available_replicas, self.ready_replicas)
        return next((each for each in reported if each is not None), 0)


class _RollingUpdate(_Wire, frozen=True):
    phase: str | None = None


class _GraphStatus(_Wire, frozen=True):
    state: str | None = None
    observed_generation: int | None = None
    components: dict[str, _Component] = {}
    rolling_update: _RollingUpdate | None = None


class _Wanted(_Wire, frozen=True):
    replicas: int | None = None


class _GraphSpec(_Wire, frozen=True):
    components: tuple[_Wanted, ...] = ()


class Graph(_Wire, frozen=True):
    """The fields of a DynamoGraphDeployment that are read."""

    metadata: Meta = Meta()
    spec: _GraphSpec = _GraphSpec()
    status: _GraphStatus = _GraphStatus()
    ready: Condition | None = None
    """Its condition Ready, read apart."""

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def attempt(self) -> str:
        return self.metadata.annotations.get(names.ATTEMPT, "")

    def belongs_to(self, uid: str) -> bool:
        """Whether it was created for the request with this UID."""
        return self.metadata.annotations.get(names.REQUEST_UID) == uid

    @property
    def replicas(self) -> int:
        """The replicas of all components: those that exist, or are wanted where none exists yet."""
        existing = sum(each.replicas or 0 for each in self.status.components.values())
        return existing or sum(1 if each.replicas is None else each.replicas for each in self.spec.components)

    @property
    def available(self) -> int:
        return sum(each.available for each in self.status.components.values())

    @property
    def current(self) -> bool:
        """Whether its status describes its present spec."""
        seen = self.status.observed_generation
        return seen is None or seen >= self.metadata.generation

    @property
    def whole(self) -> bool:
        return self.current and self.status.state == "successful"


# --- the world


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the request as it came
    request     the same, typed
    conditions  the conditions that it has
    claim       whether the volume of the model exists; True where none is asked for
    nodes       the nodes that have GPUs
    processes   whether pods can be run as processes of a machine
    job         the Job of the request
    problem     why the pod of the Job does not run, if it does not
    output      what the profiler has written
    graph       the deployment of the request's name, whether it is ours or not
    maps        the names of ConfigMaps that the deployment has
    foreign     objects with names that the request needs and that are not its own
    """

    object: Object
    request: DynamoGraphDeploymentRequest
    conditions: tuple[Condition, ...] = ()
    claim: bool = True
    nodes: tuple[GpuNode, ...] = ()
    processes: bool = False
    job: Job | None = None
    problem: Diagnosis | None = None
    output: Output | None = None
    graph: Graph | None = None
    maps: frozenset[str] = field(default_factory=frozenset)
    foreign: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def namespace(self) -> str:
        return self.object.key.namespace

    @property
    def status(self) -> DynamoGraphDeploymentRequestStatus:
        return self.request.status or DynamoGraphDeploymentRequestStatus()


def observe(view: View, key: Key) -> World | None:
    """The world of a request; None when it is gone (G1) or being deleted (G2): what it owns is collected."""
    obj = view.get(REQUESTS, key)
    if obj is None or obj.deleting:
        return None
    request = obj.decode(DynamoGraphDeploymentRequest)
    job = view.get(JOBS, Key(key.namespace, names.job(key.name)))
    output = view.get(CONFIG_MAPS, Key(key.namespace, names.output(key.name)))
    graph = view.get(GRAPHS, Key(key.namespace, (request.status and request.status.dgd_name) or _graph_name(request)))
    own = [each for each in (job, output) if each is not None and each.is_controlled_by(obj.uid)]
    claim = claim_of(request)
    return World(
        object=obj,
        request=request,
        conditions=prior_conditions(obj),
        claim=claim is None or view.get(CLAIMS, Key(key.namespace, claim)) is not None,
        # The hardware is looked for until the Job exists.
        nodes=() if request.status is not None and request.status.profiling_job_name else tuple(_nodes(view)),
        processes=_has_processes(view),
        job=job.decode(Job) if job is not None and job in own else None,
        problem=_problem(view, job) if job is not None and job in own else None,
        output=output.decode(Output) if output is not None and output in own else None,
        graph=None if graph is None else _graph(graph),
        maps=frozenset(each.key.name for each in view.owned(CONFIG_MAPS, graph.uid)) if graph else frozenset(),
        foreign=tuple(
            f"{each.resource.kind} {each.key.name}" for each in (job, output) if each is not None and each not in own
        ),
    )


def _graph(obj: Object) -> Graph:
    ready = next((each for each in prior_conditions(obj) if each.type == "Ready"), None)
    return msgspec.structs.replace(obj.decode(Graph), ready=ready)


def _graph_name(request: DynamoGraphDeploymentRequest) -> str:
    return names.deployment(request)


def _nodes(view: View) -> Iterator[GpuNode]:
    for each in view.list(NODES):
        node = each.decode(GpuNode)
        if node.gpus:
            yield node


class _RuntimeClass(_Wire, frozen=True):
    handler: str = ""


def _has_processes(view: View) -> bool:
    found = view.get(RUNTIME_CLASSES, Key("", PROCESS))
    return found is not None and found.decode(_RuntimeClass).handler == PROCESS


def _problem(view: View, job: Object) -> Diagnosis | None:
    """The gravest problem of the Job's pod, unless it passes by itself."""
    pods = (pod_problems.decode(each.raw) for each in view.owned(PODS, job.uid))
    found = pod_problems.diagnose(pods)
    return None if found is None or found.problem.passes else found


def claim_of(request: DynamoGraphDeploymentRequest) -> str | None:
    """The PersistentVolumeClaim that has the model."""
    cache = request.spec.model_cache
    return None if cache is None else cache.pvc_name


# --- which requests are reconciled when another object changes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str]]:
    """The objects that a request refers to, and the names of those that are created for it."""
    name, request = obj.key.name, obj.decode(DynamoGraphDeploymentRequest)
    claim = claim_of(request)
    if claim is not None:
        yield CLAIMS, claim
    yield JOBS, names.job(name)
    yield CONFIG_MAPS, names.output(name)
    yield GRAPHS, (request.status and request.status.dgd_name) or names.deployment(request)


REFERENCES: Final = References(REQUESTS, _mentions)


def _is_waiting(obj: Object) -> Iterable[str]:
    status = obj.decode(DynamoGraphDeploymentRequest).status
    return ("pending",) if status is None or status.phase in (None, "Pending") else ()


WAITING: Final = Index(resource=REQUESTS, name="waiting", values=_is_waiting)
"""Requests that may wait for hardware."""


def _waiting(obj: Object, view: View) -> Iterable[Key]:
    return [each.key for each in view.indexed(REQUESTS, WAITING.name, "pending")]


def _of_config_map(map: Object, view: View) -> Iterable[Key]:
    """The request for whose deployment a ConfigMap was created; it is created again when it is gone."""
    name = map.meta.labels.get(names.NAME)
    return () if name is None else (Key(map.meta.namespace, name),)


def _job_of_pod(pod: Object, view: View) -> Iterable[Key]:
    """The request of a pod of its Job; the pods of its deployment have the label too, and are its operator's."""
    name, owner = pod.meta.labels.get(names.NAME), pod.controller
    return () if name is None or owner is None or owner.kind != JOBS.kind else (Key(pod.meta.namespace, name),)


WATCHES: Final = (
    *REFERENCES.watches(CLAIMS, JOBS, CONFIG_MAPS, GRAPHS),
    Watch(resource=NODES, keys=_waiting),
    Watch(resource=RUNTIME_CLASSES, keys=_waiting),
    Watch(resource=PODS, keys=_job_of_pod),
    Watch(resource=CONFIG_MAPS, keys=_of_config_map, matters=lambda old, new: False),
)
