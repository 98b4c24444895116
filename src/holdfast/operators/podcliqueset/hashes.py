"""Hashes of pod templates: they change when the meaning of a template changes, and only then.

The order of fields, the order of lists that have none for Kubernetes, and explicit
defaults do not count.  A hash carries the version of its algorithm, and one of an
earlier version is kept while it is valid, so that an upgrade restarts nothing
(`settled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.kinds.grove.templates import CliqueTemplate
from holdfast.meta import hashing

_DEFAULTS: Final = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
"""Defaults of a pod spec; setting them explicitly is no change."""

_UNORDERED: Final = frozenset({"tolerations", "volumeMounts", "ports", "imagePullSecrets", "hostAliases"})
"""Lists of a pod spec without an order, whose items may have no name."""


def template_of(clique: CliqueTemplate, *, priority_class: str | None) -> dict[str, Any]:
    """The pod template of a clique; the priority class of the set overrides that of the clique."""
    spec = _DEFAULTS | clique.spec.pod_spec
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"labels": clique.labels, "annotations": clique.annotations, "spec": _sorted(spec)}


def template_hash(template: Mapping[str, Any], *, recorded: Iterable[str] = ()) -> str:
    """The hash of the template of one clique: one of those `recorded`, if it is still valid."""
    return settled(template, recorded)


def generation_hash(templates: Mapping[str, Mapping[str, Any]], *, recorded: str | None = None) -> str:
    """The hash of the templates of all cliques by name, independent of their order."""
    return settled(templates, () if recorded is None else (recorded,))


def settled(value: Mapping[str, Any], recorded: Iterable[str]) -> str:
    """The hash of a value; a recorded one of an earlier version, if it is still valid."""
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
        return True  # of a newer release: without a comparison nothing is rolled out


def _sorted(value: Any, field: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = [_sorted(item) for item in value]
        return sorted(items, key=_canonical) if field in _UNORDERED else items
    return value


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
