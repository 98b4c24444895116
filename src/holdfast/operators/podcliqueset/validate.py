"""Problems of a PodCliqueSet that the API server does not find.

The CRD refuses what its schema and rules can check: names, sizes, immutable fields.  The
rest needs several parts at once, or the syntax of a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.kinds import Problem
from holdfast.kinds.grove.templates import CliqueTemplate
from holdfast.meta import names
from holdfast.operators.podcliqueset.startup import cycle
from holdfast.operators.podcliqueset.templates import Layout, replicas

_AT = "spec.template"

MOST_PODS: Final = 100_000
"""A set that asks for more pods is refused before an object of it is made: it is a mistake, and costs all others."""


def problems(layout: Layout) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return (
        *_sizes(layout),
        *_cycles(layout),
        *(problem for clique in layout.cliques for problem in _clique_problems(clique)),
    )


def has_topology(layout: Layout) -> bool:
    """Whether the template has topology constraints."""
    constraints = [layout.template.topology_constraint]
    constraints += [clique.topology_constraint for clique in layout.cliques]
    constraints += [group.topology_constraint for group in layout.groups]
    return any(constraint is not None for constraint in constraints)


def _sizes(layout: Layout) -> Iterator[Problem]:
    gang = sum(replicas(clique) for clique in layout.standalone) + sum(
        replicas(group) * sum(map(replicas, layout.members(group))) for group in layout.groups
    )
    if layout.replicas * gang > MOST_PODS:
        message = f"{layout.replicas:,} replicas of {gang:,} pods are more than {MOST_PODS:,} pods"
        yield Problem("spec.replicas", message, "ask for fewer replicas, or for several sets")


def _cycles(layout: Layout) -> Iterator[Problem]:
    found = cycle(layout)
    if found:
        path = " after ".join((*found, found[0]))
        yield Problem(f"{_AT}.cliques", f"cliques start after each other in a cycle: {path}", "remove one startsAfter")


def _clique_problems(clique: CliqueTemplate) -> Iterator[Problem]:
    at = f"{_AT}.cliques[{clique.name}]"
    for key in clique.labels:
        yield from (Problem(f"{at}.labels", f"{key!r} {problem}") for problem in names.label_key(key))
    for key in clique.annotations:
        yield from (Problem(f"{at}.annotations", f"{key!r} {problem}") for problem in names.annotation_key(key))
    pod_spec = clique.spec.pod_spec
    for field in ("initContainers", "containers"):
        path = f"{at}.spec.podSpec.{field}"
        if _is_list_of_objects(pod_spec.get(field)):
            for container in pod_spec.get(field) or ():
                yield from _variable_problems(container, f"{path}[{container.get('name')}].env")
        else:
            yield Problem(path, "it must be a list of containers", "write each as an object with name and image")
    if not pod_spec.get("containers"):
        yield Problem(f"{at}.spec.podSpec.containers", "a pod needs a container", "write at least one")


def _items(value: Any) -> Sequence[Any]:
    """The items of a list; anything else counts as one item, so that it is reported."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _variable_problems(container: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not _is_list_of_objects(container.get("env")):
        yield Problem(path, "it must be a list of variables", "write each as an object with name and value")
        return
    counted = Counter(variable.get("name") for variable in container.get("env") or ())
    for name, times in counted.items():
        if not name:
            yield Problem(path, "a variable has no name", "give it one")
        elif times > 1:
            yield Problem(path, f"{name} is set {times} times", "keep one of them")


def _is_list_of_objects(value: Any) -> bool:
    """Whether a field is absent or a list of objects; a set may have been stored without the schema of the CRD."""
    return value is None or (isinstance(value, list) and all(isinstance(each, Mapping) for each in value))
