"""Patches that bring PodCliques, scaling groups and PodGangs to their template.

A patch changes only fields that are rendered: users and autoscalers set `spec.replicas`,
and labels and annotations of others stay until the template changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from holdfast.client.objects import Object
from holdfast.kernel.children import differences
from holdfast.meta.patches import merge
from holdfast.operators.podcliqueset import labels
from holdfast.runtime.decisions import Patch, Write
from holdfast.runtime.status import present


def patched(have: Object, wanted: Mapping[str, Any]) -> Iterator[Write]:
    """The patch from an object to what is rendered; none where they are equal."""
    observed = have.wire()
    content = {"labels": wanted["metadata"]["labels"], "annotations": wanted["metadata"].get("annotations") or {}}
    metadata = observed["metadata"]
    spec = observed.get("spec")
    fields = {name: spec.get(name) if isinstance(spec, dict) else None for name in wanted["spec"]}
    another = metadata.get("labels", {}).get(labels.TEMPLATE_HASH) != content["labels"].get(labels.TEMPLATE_HASH)
    drifted = chain(differences(metadata, content), differences(fields, wanted["spec"], whole_lists=True))
    if not another and not any(drifted):
        return
    before = {"metadata": {name: metadata.get(name) or {} for name in content}, "spec": present(fields)}
    patch = merge.diff(before, {"metadata": content, "spec": wanted["spec"]})
    if patch:
        yield Patch(because="its template changed", resource=have.resource, key=have.key, patch=patch, uid=have.uid)
