"""What the controller does for a DynamoGraphDeployment next: its objects, the sizes of its components, its status.

    components ──► PodCliqueSet ──► PodCliques and scaling groups     the podcliqueset operator rolls them out
         ├──► their `spec.replicas`                                   sizes change without a new template
         └──► Services, ConfigMap of workers

The cliques of a PodCliqueSet cannot be changed.  Where the spec asks for other components, another PodCliqueSet is
created beside the one there is, and that one is deleted when the new one is ready.  Services select the pods of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.deploymentrequest.graphs import names, render, status
from holdfast.operators.deploymentrequest.graphs.components import clique_name, is_group, scales_itself
from holdfast.operators.deploymentrequest.graphs.facts import Facts, assess
from holdfast.operators.deploymentrequest.graphs.observe import World
from holdfast.operators.deploymentrequest.graphs.reasons import GraphReason
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, CLIQUES, GROUPS, SETS
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write


def decide(world: World, now: datetime) -> Decision:
    facts = assess(world)
    reported, notices = status.report(facts, now)
    return Decision(
        children=tuple(_children(facts)),
        writes=tuple(_writes(facts)),
        status=reported,
        notices=notices,
    )


def explain(world: World, failure: Failure, now: datetime) -> Mapping[str, Any]:
    """The status of a pass that failed; one that is tried again reports what was observed."""
    if failure.reason == GraphReason.INVALID:
        return status.INVALID.status(world.object, failure, now)
    return status.report(assess(world), now, failure=failure if isinstance(failure, Permanent) else None)[0]


def _children(facts: Facts) -> Iterator[Desired]:
    """Services and addresses come before the pods that need them."""
    graph = facts.world.graph
    for service in render.services(graph):
        yield Desired(service)
    if render.has_workers_file(graph):
        yield Desired(render.workers(graph, facts.world.addresses))
    yield facts.desired


def _writes(facts: Facts) -> Iterator[Write]:
    yield from _scaling(facts)
    yield from _adapters(facts)
    if not facts.complete:
        return
    for gang in facts.outgoing:
        because = "it has other cliques than the spec, and its successor is ready"
        yield Delete(because=because, resource=SETS, key=gang.object.key, uid=gang.object.uid)


def _adapters(facts: Facts) -> Iterator[Write]:
    """A scaling adapter for each component that has one, created with its size and then left to autoscalers."""
    world = facts.world
    wanted = {each.name: each for each in facts.components if each.component.scaling_adapter is not None}
    for name, each in wanted.items():
        if name not in world.adapters:
            made = render.adapter(world.graph, each.component)
            made["metadata"]["ownerReferences"] = [owner_reference(world.object.wire())]
            yield Create(because=f"component {name} has a scalingAdapter", resource=ADAPTERS, manifest=made)
    for name, adapter in world.adapters.items():
        if name not in wanted:
            because = f"component {name} has no scalingAdapter"
            yield Delete(because=because, resource=ADAPTERS, key=adapter.object.key, uid=adapter.object.uid)


def _scaling(facts: Facts) -> Iterator[Write]:
    """The sizes of components, which their PodCliques and scaling groups have; a template does not change them."""
    for each in facts.components:
        if facts.current is None or each.part is None or (each.adapter is None and scales_itself(each.component)):
            continue
        if each.part.spec.replicas != each.wanted:
            name = names.part(facts.current.name, clique_name(each.component))
            yield Patch(
                because=f"component {each.name} asks for {each.wanted} replicas",
                resource=GROUPS if is_group(each.component) else CLIQUES,
                key=Key(facts.world.object.key.namespace, name),
                patch={"spec": {"replicas": each.wanted}},
                uid=each.part.metadata.uid,
            )
