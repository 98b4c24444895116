"""Subresources with behaviour of their own: scale, eviction, binding, finalize, log.

Each is a function of the handlers and the request; the table at the end maps verbs and subresources to them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import msgspec

from holdfast.apiserver.http import bodies
from holdfast.apiserver.http.options import WriteOptions, delete_options, write_options
from holdfast.apiserver.resources import Object, ResourceType, Scale
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.verbs import metadata, patches
from holdfast.apiserver.verbs.handlers import Handlers, Subresource
from holdfast.apiserver.verbs.versions import prepared, shown
from holdfast.apiserver.verbs.writes import Change
from holdfast.apiserver.workers import compute
from holdfast.meta.errors import BadRequest, Cause, Conflict, Details, FieldError, Invalid, NotFound, TooManyRequests
from holdfast.meta.exchange import Request, Response, Upgrade
from holdfast.meta.schemas.walk import copied
from holdfast.meta.selectors import LabelSelector

SCALE: Final = ResourceType(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)

EVICTION: Final = replace(SCALE, group="policy", kind="Eviction", plural="evictions", singular="eviction")
BINDING: Final = replace(SCALE, group="", kind="Binding", plural="bindings", singular="binding")
TOKEN_REQUEST: Final = replace(
    SCALE, group="authentication.k8s.io", kind="TokenRequest", plural="tokenrequests", singular="tokenrequest"
)

LogSource = Callable[[Object, Request], AsyncIterator[bytes] | None]
"""The source of logs: returns the chunks for a pod and a request; None if no node has the pod."""

Connector = Callable[[Object, Request], Upgrade]
"""Connects a client with a pod, to run a command in it or to reach a port; raises `StatusError`."""

Connectors = Mapping[str, Connector]
"""The connectors of the subresources that a server serves: ``exec``, ``portforward``."""


# Scale.


def scale_of(obj: Object, scale: Scale) -> Object:
    """The Scale of an object."""
    meta = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    replicas = _count(obj, scale.spec)
    status: dict[str, Any] = {"replicas": _count(obj, scale.status)}
    selector = _selector(obj, scale)
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def _count(obj: Object, path: str) -> int:
    """The number at a path; a custom kind may have anything there."""
    value = _at(obj, path)
    return value if isinstance(value, int) else 0


def _selector(obj: Object, scale: Scale) -> str:
    value = _at(obj, scale.selector) if scale.selector else None
    match scale.selector_form, value:
        case "object", dict():
            return str(LabelSelector.from_object(value, "spec.selector"))
        case "labels", dict():
            return str(LabelSelector.from_object({"matchLabels": value}, "spec.selector"))
        case "text", str():
            return value
        case _:
            return ""


def scaled(obj: Object, kind: ResourceType, scale: Object) -> Object:
    """The object with the replicas of a Scale."""
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bodies.refused(SCALE, "spec.replicas must be a whole number")
    if replicas < 0 and not kind.custom:
        problem = FieldError.invalid("spec.replicas", replicas, detail="must be greater than or equal to 0")
        raise Invalid.of("Scale", obj["metadata"]["name"], group="autoscaling", problems=[problem])
    out: Object = copied(obj)
    _put(out, _scale(kind).spec, replicas)
    return out


async def get_scale(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    entry = handlers.entry(info, kind)
    await prepared((entry,), kind)
    return Response.of(scale_of(shown(entry, kind), _scale(kind)))


async def write_scale(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    scale = _scale(kind)
    patching = info.verb == "patch"
    writing = handlers.writing(request, info, kind, "PatchOptions" if patching else "UpdateOptions")
    wanted = await (_scale_patch(request, info, kind, writing.options) if patching else _scale_update(request))

    def change_scale(obj: Object) -> Object:
        target = wanted(scale_of(obj, scale))
        metadata.check_target(target, info.name, info.namespace)
        given = target["metadata"].get("resourceVersion")
        if given and given != obj["metadata"]["resourceVersion"]:
            raise Conflict.of(kind.plural, info.name, group=kind.group)
        return scaled(obj, kind, target)

    with patches.refused_as_patch(request) if patching else nullcontext():
        written = await handlers.writer.update(writing, info.name, change_scale)
    return Response.of(scale_of(bodies.read_json(written.value), scale))


async def _scale_update(request: Request) -> Change:
    asked = await bodies.read_object(request, SCALE)
    return lambda shown: asked


async def _scale_patch(request: Request, info: RequestInfo, kind: ResourceType, options: WriteOptions) -> Change:
    given = patches.media_type(request, kind)
    apply = given == patches.APPLY_YAML
    patches.check_options(options, apply=apply, force_given=bool(request.param("force")))
    if not apply:
        return await compute(len(request.body), lambda: patches.change_of(given, request.body, SCALE))
    config = await patches.applied(request, SCALE, info.name)
    return lambda shown: {**shown, **config, "metadata": {**shown["metadata"], **config["metadata"]}}


def _scale(kind: ResourceType) -> Scale:
    if kind.scale is None:
        raise NotFound.of_path()
    return kind.scale


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for name in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _put(obj: Object, path: str, value: Any) -> None:
    *parents, last = path.strip(".").split(".")
    for name in parents:
        obj = obj.setdefault(name, {})
        if not isinstance(obj, dict):
            raise bodies.refused(SCALE, f"{path} cannot be set, because {name} is not an object")
    obj[last] = value


# Pods.


async def evict(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    """Delete a pod if the disruption budgets that select it allow one more disruption."""
    pod = shown(handlers.entry(info, kind), kind)
    eviction, said = await handlers.admitted(request, info, kind, await posted(request, info, EVICTION))
    options = delete_options(request, eviction.get("deleteOptions") or {})
    if not _already_down(pod):
        await _take_from_budgets(handlers, pod, dry_run=options.dry_run)
    await handlers.remove(kind, info.namespace, info.name, options)
    return _done(said)


async def posted(request: Request, info: RequestInfo, form: ResourceType) -> Object:
    """The object that is posted to a subresource; its name and namespace default to those of the path."""
    try:
        body = await bodies.read_body(request) if request.body else {}
    except ValueError as error:
        raise BadRequest(f"couldn't read the {form.kind}: {error}") from None
    if not isinstance(body, dict):
        raise BadRequest(f"the {form.kind} must be an object")
    # Old clients send other versions of these, with the same fields.
    obj = bodies.checked_object(body | {"kind": form.kind, "apiVersion": form.api_version}, form)
    return obj | {"metadata": {"name": info.name, "namespace": info.namespace} | obj["metadata"]}


def _done(said: tuple[str, ...]) -> Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Response.of(status, 201, warnings=said)


def _already_down(pod: Object) -> bool:
    """Whether a pod is pending, finished or being deleted, so that its eviction needs no budget."""
    status = pod.get("status") or {}
    return status.get("phase") in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


async def _take_from_budgets(handlers: Handlers, pod: Object, *, dry_run: bool) -> None:
    budgets = handlers.registry.get("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None, "budgets are built in"
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    selecting = [
        budget
        for budget in (shown(entry, budgets) for entry in handlers.store.list(budgets.key, namespace))
        if LabelSelector.from_object((budget.get("spec") or {}).get("selector"), "spec.selector").matches(labels)
    ]
    if len(selecting) > 1:
        raise BadRequest(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for budget in selecting:
        writing = handlers.writing_by_server(budgets, namespace, subresource="status", dry_run=dry_run)
        await handlers.writer.update(
            writing, budget["metadata"]["name"], lambda live: _with_one_less(live, pod, stamp=handlers.stamp())
        )


def _with_one_less(budget: Object, pod: Object, *, stamp: str) -> Object:
    """The budget after one more disruption; raises if it allows none."""
    status, meta = budget.get("status") or {}, budget["metadata"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise _over_budget(f"{meta['name']} is still being processed by the server.", retry_after_seconds=10)
    healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if not _is_ready(pod):
        # It does not count as healthy, so its eviction does not reduce the healthy pods.
        always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or healthy >= needed > 0:
            return budget
    left = status.get("disruptionsAllowed", 0)
    if left <= 0:
        raise _over_budget(f"{meta['name']} needs {needed} healthy pods and has {healthy} currently")
    disrupted = (status.get("disruptedPods") or {}) | {pod["metadata"]["name"]: stamp}
    return {**budget, "status": {**status, "disruptionsAllowed": left - 1, "disruptedPods": disrupted}}


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _over_budget(why: str, *, retry_after_seconds: int = 0) -> TooManyRequests:
    """Without Retry-After, because with it most clients would retry without reporting the refusal."""
    cause = Cause(reason="DisruptionBudget", message=f"The disruption budget {why}")
    return TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details=Details(causes=(cause,), retry_after_seconds=retry_after_seconds),
    )


async def bind(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    """Assign a pod to a node, once."""
    handlers.entry(info, kind)
    binding, said = await handlers.admitted(request, info, kind, await posted(request, info, BINDING))
    target = binding.get("target")
    node = target.get("name") if isinstance(target, dict) else None
    if not node or not isinstance(node, str):
        problem = FieldError.required("target.name")
        raise Invalid.of("Binding", info.name, problems=[problem])
    dry_run = write_options(request, "CreateOptions").dry_run
    writing = handlers.writing_by_server(kind, info.namespace, subresource="binding", dry_run=dry_run)

    meant = binding["metadata"].get("uid")

    def bound(pod: Object) -> Object:
        spec = pod.get("spec") or {}
        if meant and meant != pod["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {meant}, UID in object meta: {pod['metadata']['uid']}"
            raise Conflict.of("pods/binding", info.name, why=why)
        if spec.get("nodeName"):
            why = f'pod {info.name} is already assigned to node "{spec["nodeName"]}"'
            raise Conflict.of("pods/binding", info.name, why=why)
        if pod["metadata"].get("deletionTimestamp"):
            raise Conflict.of(
                "pods/binding", info.name, why=f"pod {info.name} is being deleted, cannot be assigned to a host"
            )
        status = dict(pod.get("status") or {})
        conditions = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": handlers.stamp(),
        }
        return {
            **pod,
            "spec": {**spec, "nodeName": node},
            "status": {**status, "conditions": [*conditions, scheduled]},
        }

    await handlers.writer.update(writing, info.name, bound)
    return _done(said)


def logs_from(source: LogSource | None) -> Subresource:
    """The ``log`` subresource, with the logs of a `LogSource`."""

    async def log(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        pod = shown(handlers.entry(info, kind), kind)
        spec = pod.get("spec") or {}
        containers = [each["name"] for each in spec.get("containers") or []]
        initial = [each["name"] for each in spec.get("initContainers") or []]
        name = request.param("container")
        if not name and len(containers) > 1:
            listed = " ".join(containers)
            raise BadRequest(f"a container name must be specified for pod {info.name}, choose one of: [{listed}]")
        if name and name not in (*containers, *initial):
            raise BadRequest(f"container {name} is not valid for pod {info.name}")
        chunks = source(pod, request) if source is not None else None
        if chunks is None:
            waiting = name or (containers[0] if containers else "")
            raise BadRequest(f'container "{waiting}" in pod "{info.name}" is waiting to start: no node runs it')
        return Response(200, stream=chunks, content_type="text/plain")

    return log


def connected_by(connector: Connector) -> Subresource:
    """A subresource that connects clients with pods."""

    async def connect(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        # A WebSocket begins with a GET, and users who may only read must not run commands.
        handlers.authorize(request.user, msgspec.structs.replace(info, verb="create"))
        pod = shown(handlers.entry(info, kind), kind)
        return Response(101, upgrade=connector(pod, request))

    return connect


# Namespaces.


async def finalize(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    """Set the finalizers of a Namespace; without finalizers, a deleted one is removed."""
    obj = await bodies.read_object(request, kind)
    dry_run = write_options(request, "UpdateOptions").dry_run
    writing = handlers.writing_by_server(kind, "", subresource="finalize", dry_run=dry_run)

    def finalized(old: Object) -> Object:
        spec = {**(old.get("spec") or {}), "finalizers": (obj.get("spec") or {}).get("finalizers") or []}
        if not spec["finalizers"]:
            del spec["finalizers"]
        return {**old, "spec": spec}

    written = await handlers.writer.update(writing, info.name, finalized)
    return Response(200, written.value)


# Certificate signing requests.


async def get_approval(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    return Response.of(shown(handlers.entry(info, kind), kind))


async def write_approval(handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
    """Approve or deny a request: of what is sent, only the conditions are taken."""
    patching = info.verb == "patch"
    writing = handlers.writing(request, info, kind, "PatchOptions" if patching else "UpdateOptions")
    change = await (_approval_patch if patching else _approval_update)(request, info, kind)

    def decided(old: Object) -> Object:
        new = change(old)
        status = {**(old.get("status") or {}), "conditions": (new.get("status") or {}).get("conditions") or []}
        version = {"resourceVersion": new["metadata"].get("resourceVersion", "")}
        return {**old, "metadata": {**old["metadata"], **version}, "status": status}

    written = await handlers.writer.update(writing, info.name, decided)
    return Response(200, written.value, warnings=written.warnings)


async def _approval_patch(request: Request, info: RequestInfo, kind: ResourceType) -> Change:
    given = patches.media_type(request, kind)
    return await compute(len(request.body), lambda: patches.change_of(given, request.body, kind))


async def _approval_update(request: Request, info: RequestInfo, kind: ResourceType) -> Change:
    sent = await bodies.read_object(request, kind)
    metadata.check_target(sent, info.name, "")
    return lambda old: sent


def table(
    log_source: LogSource | None = None, connectors: Connectors = MappingProxyType({})
) -> dict[tuple[str, str], Subresource]:
    """The handlers by verb and subresource."""
    connections = {(verb, name): connected_by(each) for name, each in connectors.items() for verb in ("get", "create")}
    return {
        **connections,
        ("get", "scale"): get_scale,
        ("update", "scale"): write_scale,
        ("patch", "scale"): write_scale,
        ("create", "eviction"): evict,
        ("create", "binding"): bind,
        ("get", "log"): logs_from(log_source),
        ("update", "finalize"): finalize,
        ("get", "approval"): get_approval,
        ("update", "approval"): write_approval,
        ("patch", "approval"): write_approval,
    }
