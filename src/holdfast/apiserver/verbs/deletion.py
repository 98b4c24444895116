"""Deletion: preconditions, grace periods, finalizers and propagation.

It decides whether an object is removed now or marked for deletion; controllers outside the server collect dependents
and finalize namespaces.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.apiserver.http.options import DeleteOptions
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import times
from holdfast.meta.errors import Conflict
from holdfast.meta.schemas.walk import copied

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
NAMESPACES: Final = "/namespaces"
PODS_STAY: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)

RETURNED: Final = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
    }
)
"""Built-in kinds whose deletion returns the deleted object, not a Status."""


def check_preconditions(kind: ResourceType, obj: Object, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise Conflict.of(kind.kind, meta["name"], group=kind.group, why=why)
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise Conflict.of(kind.kind, meta["name"], group=kind.group, why=why)


_LONGEST: Final = 2**31 - 1
"""Seconds of grace at most: the end of a longer one is no date."""


def marked(kind: ResourceType, obj: Object, options: DeleteOptions, *, now: datetime) -> Object | None:
    """The object marked for deletion; None if it can be removed now."""
    if kind.on_delete is not None and "deletionTimestamp" not in obj["metadata"]:
        obj = copied(obj)
        kind.on_delete(obj, now)
    meta = dict(obj["metadata"])
    finalizers = _finalizers(kind, list(meta.get("finalizers") or []), options.propagation)
    grace = min(_grace(kind, obj, options), _LONGEST)
    if not (finalizers or grace or waits(kind, obj)):
        return None
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    before, given = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds") or 0
    if before is None or grace < given:
        # A shorter grace period counts from the original deletion.
        since = now if before is None else times.parse(before) - timedelta(seconds=given)
        meta["deletionTimestamp"] = times.format(since + timedelta(seconds=grace))
        if kind.key != NAMESPACES:
            meta["deletionGracePeriodSeconds"] = grace
        if before is None and meta.get("generation"):
            meta["generation"] += 1
    return {**obj, "metadata": meta}


def waits(kind: ResourceType, obj: Object) -> bool:
    """Whether an object waits for more than its finalizers: a Namespace waits for its content."""
    return kind.key == NAMESPACES and bool((obj.get("spec") or {}).get("finalizers"))


def advice(kind: ResourceType, options: DeleteOptions) -> tuple[str, ...]:
    """The warnings for a deletion without a propagation policy."""
    if kind.key != "batch/jobs" or options.propagation:
        return ()
    return (PODS_STAY,)


def _finalizers(kind: ResourceType, present: list[str], propagation: str) -> list[str]:
    """The propagation policy is stored as a finalizer until the garbage collector has carried it out."""
    if kind.dependents == "none":
        return [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if kind.dependents == "orphan" and not propagation and FOREGROUND not in present:
        propagation = "Orphan"
    if propagation in ("", "Background"):
        return [name for name in present if name not in (ORPHAN, FOREGROUND)] if propagation else present
    wanted, other = (ORPHAN, FOREGROUND) if propagation == "Orphan" else (FOREGROUND, ORPHAN)
    kept = [name for name in present if name != other]
    return kept if wanted in kept else [*kept, wanted]


def _grace(kind: ResourceType, obj: Object, options: DeleteOptions) -> int:
    """Only scheduled pods have a grace period; a negative one means one second."""
    if kind.key != "/pods":
        return 0
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    given = obj["metadata"].get("deletionGracePeriodSeconds") or spec.get("terminationGracePeriodSeconds", 30)
    asked = options.grace_seconds if options.grace_seconds is not None else given
    return 1 if asked < 0 else int(asked)
