"""What an object waits for, and why: the first lines of ``describe``.

Pure: an object in, phrases out, the most important first; none if it waits for nothing.
Built-in kinds are known here, by the status that their controllers write; custom kinds
are read by their conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Object = Mapping[str, Any]

SUMMARIES: Final = ("Ready", "Available", "Healthy", "Established", "Synced")
"""Conditions that summarize a whole object, where they are True."""


def waits(obj: Object) -> tuple[str, ...]:
    """Everything that the object waits for."""
    return tuple(_sentences(obj))


def _sentences(obj: Object) -> Iterator[str]:
    meta, status = obj.get("metadata") or {}, obj.get("status") or {}
    if meta.get("deletionTimestamp"):
        yield from _deleting(obj)
    observed, generation = status.get("observedGeneration"), meta.get("generation")
    if observed is not None and generation is not None and observed < generation:
        yield f"its controller, which has observed generation {observed}, not {generation} yet"
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    yield from _KINDS.get((group, str(obj.get("kind", ""))), _generic)(obj)


def conditions(obj: Object) -> list[Object]:
    found = (obj.get("status") or {}).get("conditions") or []
    return [each for each in found if isinstance(each, Mapping)]


def condition(obj: Object, type: str) -> Object | None:
    return next((each for each in conditions(obj) if each.get("type") == type), None)


def because(stated: Object) -> str:
    """The reason and the message of a condition or a container's state: ``Unschedulable: 0/3 nodes are free``."""
    return ": ".join(str(stated[name]) for name in ("reason", "message") if stated.get(name))


def _with(what: str, why: str) -> str:
    return f"{what} ({why})" if why else what


def _deleting(obj: Object) -> Iterator[str]:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizers:
        yield f"its deletion: {', '.join(finalizers)} must be removed first"
    elif obj.get("kind") == "Pod":
        grace = obj["metadata"].get("deletionGracePeriodSeconds")
        yield f"its deletion: its containers have {grace} seconds to end" if grace else "its deletion"
    else:
        yield "its deletion"


# Any kind.


def _generic(obj: Object) -> Iterator[str]:
    found = next((each for type in SUMMARIES if (each := condition(obj, type))), None)
    if found is not None and found.get("status") != "True":
        yield _with(f"{found['type']}, which is {found.get('status')}", because(found))


# Pods.


def _pod(obj: Object) -> Iterator[str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if status.get("phase") == "Succeeded":
        return
    if status.get("phase") == "Failed":
        yield _with("nothing: it has failed", because(status) or _ended(status))
        return
    scheduled = condition(obj, "PodScheduled")
    if gates := [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]:
        yield f"its scheduling gates: {', '.join(gates)}"
    elif scheduled is not None and scheduled.get("status") != "True":
        yield _with("a node", because(scheduled))
    elif not spec.get("nodeName"):
        yield "a node: no scheduler has tried to place it yet"
    else:
        yield from _containers(status)
        for gate in spec.get("readinessGates") or ():
            found = condition(obj, gate["conditionType"])
            if found is None or found.get("status") != "True":
                yield _with(f"the readiness gate {gate['conditionType']}", because(found or {}))


def _containers(status: Object) -> Iterator[str]:
    for each in status.get("initContainerStatuses") or ():
        state = each.get("state") or {}
        ended = state.get("terminated") or {}
        if not each.get("ready") and not each.get("started") and ended.get("exitCode") != 0:
            yield _with(f"init container {each.get('name')}", _state(state))
            return
    statuses = status.get("containerStatuses") or ()
    if not statuses:
        yield "its node, which has not reported the state of its containers yet"
    for each in statuses:
        if not each.get("ready"):
            yield _with(f"container {each.get('name')} to be ready", _state(each.get("state") or {}))


def _state(state: Object) -> str:
    if "waiting" in state:
        return because(state["waiting"]) or "waiting"
    if "terminated" in state:
        ended = state["terminated"]
        return because(ended) or f"ended with exit code {ended.get('exitCode')}"
    return "it runs, and its readiness probe does not succeed" if "running" in state else ""


def _ended(status: Object) -> str:
    """Which containers ended badly."""
    bad = [
        f"{each.get('name')} ended with exit code {code}"
        for each in status.get("containerStatuses") or ()
        if (code := ((each.get("state") or {}).get("terminated") or {}).get("exitCode"))
    ]
    return ", ".join(bad)


# Owners of pods.


def _deployment(obj: Object) -> Iterator[str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted, total = spec.get("replicas", 1), status.get("replicas", 0)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if spec.get("paused"):
        yield "a user to resume it: spec.paused is true"
    if updated < wanted:
        yield _with(f"{wanted - updated} of {wanted} replicas to be updated", _trouble(obj))
    elif total > updated:
        yield _with(f"{total - updated} old replicas to end", _trouble(obj))
    elif available < updated:
        yield _with(f"{updated - available} of {updated} updated replicas to be available", _trouble(obj))


def _trouble(obj: Object) -> str:
    """The problem that a Deployment reports."""
    for type, bad in (("ReplicaFailure", "True"), ("Progressing", "False")):
        found = condition(obj, type)
        if found is not None and found.get("status") == bad:
            return because(found)
    return ""


def _replica_set(obj: Object) -> Iterator[str]:
    wanted, ready = _replicas(obj)
    if ready < wanted:
        yield _with(f"{wanted - ready} of {wanted} replicas to be ready", _trouble(obj))


def _stateful_set(obj: Object) -> Iterator[str]:
    status = obj.get("status") or {}
    wanted, ready = _replicas(obj)
    current, update = status.get("currentRevision"), status.get("updateRevision")
    if ready < wanted:
        yield f"{wanted - ready} of {wanted} replicas to be ready"
    elif current != update:
        partition = (((obj.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {}).get(
            "partition", 0
        )
        left = wanted - partition - status.get("updatedReplicas", 0)
        if left > 0:
            yield f"{left} of {wanted - partition} replicas to be updated"


def _replicas(obj: Object) -> tuple[int, int]:
    return (obj.get("spec") or {}).get("replicas", 1), (obj.get("status") or {}).get("readyReplicas", 0)


def _job(obj: Object) -> Iterator[str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    true = {each["type"]: each for each in conditions(obj) if each.get("status") == "True"}
    if "Failed" in true:
        yield _with("nothing: it has failed", because(true["Failed"]))
    elif spec.get("suspend"):
        yield "a user to resume it: spec.suspend is true"
    elif "Complete" not in true:
        completions = spec.get("completions") or 1
        yield f"{completions - status.get('succeeded', 0)} of {completions} completions"


# Other built-in kinds.


def _node(obj: Object) -> Iterator[str]:
    ready = condition(obj, "Ready")
    if ready is None or ready.get("status") != "True":
        yield _with("its kubelet to report that it is ready", because(ready or {}))
    for each in conditions(obj):
        if each.get("type") != "Ready" and each.get("status") == "True":
            yield _with(f"an end of {each['type']}", because(each))
    if (obj.get("spec") or {}).get("unschedulable"):
        yield "a user to uncordon it: no pods are scheduled to it"


def _namespace(obj: Object) -> Iterator[str]:
    for each in conditions(obj):
        if each.get("status") == "True":
            yield because(each)


def _claim(obj: Object) -> Iterator[str]:
    if (obj.get("status") or {}).get("phase") == "Pending":
        yield "a volume"


_KINDS: Final[Mapping[tuple[str, str], Callable[[Object], Iterator[str]]]] = {
    ("", "Pod"): _pod,
    ("", "Node"): _node,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolumeClaim"): _claim,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
}
