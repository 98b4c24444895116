"""Patches that bring PodCliques, scaling groups and PodGangs to their template.

A patch changes only fields that are rendered: users and autoscalers set `spec.replicas`,
and labels and annotations of others stay until the template changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.client.objects import Object
from holdfast.kernel.children import differences
from holdfast.meta.patches import merge
from holdfast.operators.podcliqueset import labels
from holdfast.runtime.decisions import Patch, Write
from holdfast.runtime.status import present


def _has_more_items(observed: Any, wanted: Any) -> bool:
    """Whether a list has items that are no longer rendered; a field that is not rendered does not count."""
    if isinstance(observed, Mapping) and isinstance(wanted, Mapping):
        return any(_has_more_items(observed.get(name), value) for name, value in wanted.items())
    if isinstance(observed, list) and isinstance(wanted, list):
        return len(observed) > len(wanted) or any(map(_has_more_items, observed, wanted))
    return False


def patched(have: Object, wanted: Mapping[str, Any]) -> Iterator[Write]:
    """The patch from an object to what is rendered; none where they are equal."""
    observed = have.wire()
    content = {"labels": wanted["metadata"]["labels"], "annotations": wanted["metadata"].get("annotations") or {}}
    metadata = observed["metadata"]
    spec = observed.get("spec")
    fields = {name: spec.get(name) if isinstance(spec, dict) else None for name in wanted["spec"]}
    another = metadata.get("labels", {}).get(labels.TEMPLATE_HASH) != content["labels"].get(labels.TEMPLATE_HASH)
    same = not any(differences(metadata, content)) and not any(differences(fields, wanted["spec"]))
    if not another and same and not _has_more_items(fields, wanted["spec"]):
        return
    before = {"metadata": {name: metadata.get(name) or {} for name in content}, "spec": present(fields)}
    patch = merge.diff(before, {"metadata": content, "spec": wanted["spec"]})
    if patch:
        yield Patch(because="its template changed", resource=have.resource, key=have.key, patch=patch, uid=have.uid)
