"""The pods of a stateful set and their volumes: which pod has which ordinal, and what each one is made of.

A replica is known by its ordinal: its name, its host name and its claims follow from
that, so that one that is made again finds its volumes.  This module must not know
when a pod is made or stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.client.objects import Meta, OwnerReference
from holdfast.client.pods import from_template
from holdfast.client.resources import CLAIMS, PODS, STATEFUL_SETS, Resource
from holdfast.meta.objects import owner_reference
from holdfast.runtime.adoption import wired

REVISION_LABEL: Final = "controller-revision-hash"
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def ordinal_of(name: str, set_name: str) -> int | None:
    """The ordinal in the name of a replica; None if the name is not that of one of this set's."""
    stem, _, digits = name.rpartition("-")
    if stem != set_name or not (digits.isascii() and digits.isdigit()) or digits != str(int(digits)):
        return None
    return int(digits)


def ordinals(owner: Mapping[str, Any]) -> range:
    """Those that a set should have."""
    start = (owner["spec"].get("ordinals") or {}).get("start") or 0
    return range(start, start + owner["spec"].get("replicas", 1))


def identity(name: str, ordinal: int) -> dict[str, str]:
    """The labels by which a replica can be selected."""
    return {NAME_LABEL: name, INDEX_LABEL: str(ordinal)}


def manifest(owner: Mapping[str, Any], template: Mapping[str, Any], *, ordinal: int, revision: str) -> dict[str, Any]:
    """The pod of one ordinal at a revision."""
    set_name = owner["metadata"]["name"]
    name = f"{set_name}-{ordinal}"
    made = from_template(template, owner, name=name, labels={REVISION_LABEL: revision, **identity(name, ordinal)})
    made["metadata"]["generateName"] = f"{set_name}-"
    spec = made["spec"]
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    volumes = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim_name(owner, volume, ordinal)}}
        for volume in claim_templates(owner)
    ]
    if volumes:
        # A claim's template wins over a volume of its name.
        others = [each for each in spec.get("volumes") or () if each["name"] not in claim_templates(owner)]
        spec["volumes"] = volumes + others
    return made


# --- claims


def claim_templates(owner: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The templates of claims, by the name of the volume that each is for."""
    return {each["metadata"]["name"]: each for each in owner["spec"].get("volumeClaimTemplates") or ()}


def claim_name(owner: Mapping[str, Any], volume: str, ordinal: int) -> str:
    return f"{volume}-{owner['metadata']['name']}-{ordinal}"


def claim_names(owner: Mapping[str, Any], ordinal: int) -> tuple[str, ...]:
    return tuple(claim_name(owner, volume, ordinal) for volume in claim_templates(owner))


def claim_manifests(owner: Mapping[str, Any], ordinal: int) -> Iterator[dict[str, Any]]:
    """The claims of one ordinal, labelled so that the set's selector finds them too."""
    for volume, template in claim_templates(owner).items():
        given = template["metadata"]
        metadata: dict[str, Any] = {
            "name": claim_name(owner, volume, ordinal),
            "namespace": owner["metadata"].get("namespace", "default"),
        }
        labels = {**(given.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
        if labels:
            metadata["labels"] = labels
        if given.get("annotations"):
            metadata["annotations"] = given["annotations"]
        if deletes(owner, "whenDeleted"):
            metadata["ownerReferences"] = [owner_reference(owner)]
        yield {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": metadata,
            "spec": template.get("spec") or {},
        }


def deletes(owner: Mapping[str, Any], when: str) -> bool:
    """Whether claims are deleted when the set is deleted (``whenDeleted``) or scaled in (``whenScaled``)."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(when) == "Delete")


def is_left_over(claim: Meta, pod_name: str) -> bool:
    """Whether a claim belongs to an earlier pod of that name, and is about to be deleted with it."""
    return any(_names(each, PODS, pod_name) for each in claim.owner_references)


def owners_wanted(owner: Mapping[str, Any], claim: Meta, *, pod: Meta, leaving: bool) -> list[dict[str, Any]] | None:
    """The owner of a claim by the retention policy: its set, its pod if that is being removed, or none.

    None if all is well, or if the claim belongs to a predecessor of the set or the pod, so that it is left to
    the garbage collector.
    """
    set_meta = owner["metadata"]
    theirs: list[OwnerReference] = []
    ours: list[OwnerReference] = []
    for each in claim.owner_references:
        is_set, is_pod = _names(each, STATEFUL_SETS, set_meta["name"]), _names(each, PODS, pod.name)
        if (is_set and each.uid != set_meta["uid"]) or (is_pod and each.uid != pod.uid):
            return None
        (ours if is_set or is_pod else theirs).append(each)
    if any(each.controller for each in theirs):
        wanted = []  # An object has one controller; where that is another one, the policy does not apply.
    elif leaving and deletes(owner, "whenScaled"):
        wanted = [_pod_reference(pod)]
    elif deletes(owner, "whenDeleted"):
        wanted = [owner_reference(owner)]
    else:
        wanted = []
    if [(each.uid, bool(each.controller)) for each in ours] == [(each["uid"], True) for each in wanted]:
        return None
    return [*wired(theirs), *wanted]


def _pod_reference(pod: Meta) -> dict[str, Any]:
    metadata = {"name": pod.name, "uid": pod.uid}
    return owner_reference({"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata})


def _names(reference: OwnerReference, resource: Resource, name: str) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (resource.api_version, resource.kind, name)
