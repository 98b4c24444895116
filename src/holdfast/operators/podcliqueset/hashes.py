"""Hashes of what pods are made from: they move when the meaning moves, and at no other time.

The order of fields, and of lists whose order means nothing to Kubernetes, does not
count, nor does writing down what would be so anyway.  A hash carries the version of
its algorithm, and one that was made by an earlier version is kept while it still
holds, so that an upgrade restarts nothing (`settled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.kinds.grove.templates import CliqueTemplate
from holdfast.meta import hashing

_DEFAULTS: Final = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
"""What a pod has if it says nothing, so that saying it is no change."""

_UNORDERED: Final = frozenset({"tolerations", "volumeMounts", "ports", "imagePullSecrets", "hostAliases"})
"""Lists of a pod spec whose order means nothing and whose items have no name, or not always."""


def template_of(clique: CliqueTemplate, *, priority_class: str | None) -> dict[str, Any]:
    """What each pod of a clique is made from; the priority of the set goes before the clique's own."""
    spec = _DEFAULTS | clique.spec.pod_spec
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"labels": clique.labels, "annotations": clique.annotations, "spec": _sorted(spec)}


def template_hash(template: Mapping[str, Any], *, recorded: Iterable[str] = ()) -> str:
    """The hash of one clique's template: one of those `recorded`, if it still holds."""
    return settled(template, recorded)


def generation_hash(templates: Mapping[str, Mapping[str, Any]], *, recorded: str | None = None) -> str:
    """The hash of the templates of all cliques, by name, in whatever order they were written."""
    return settled(templates, () if recorded is None else (recorded,))


def settled(value: Mapping[str, Any], recorded: Iterable[str]) -> str:
    """The hash of a value; an earlier version's, if that is what is recorded and it still holds."""
    plain = dict(value)
    made = hashing.short_hash(plain)
    known = tuple(dict.fromkeys(recorded))
    return made if made in known else next((old for old in known if _holds(plain, old)), made)


def _holds(value: dict[str, Any], old: str) -> bool:
    try:
        return hashing.verify(value, old)
    except hashing.MalformedHash:
        return False
    except hashing.UnknownHashVersion:
        return True  # a newer release made it: what cannot be compared is not rolled


def _sorted(value: Any, field: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [_sorted(item) for item in value]
        return sorted(items, key=_canonical) if field in _UNORDERED else items
    return value


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
