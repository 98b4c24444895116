"""Verbs are refused, and raise nothing, where an object that they read is stored in another form than its type."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.dashboard.stub import WORKLOADS, Cluster, workload

from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.meta.objects import Key
from holdfast.operators import steering
from holdfast.operators.operator import load
from holdfast.operators.rollouts import Refusal, RolloutKind
from holdfast.operators.steering import Order

KEY = Key("default", "shop")
HINT = "correct the field and apply it again"


def the_kind() -> RolloutKind:
    kinds = (kind.rollout for operator in load() for kind in operator.shown_kinds())
    return next(each for each in kinds if each is not None and each.resource == WORKLOADS)


def carried_out(verb: str, cluster: Any) -> Any:
    order = Order(resource=WORKLOADS, key=KEY, verb=verb)
    return asyncio.run(steering.carried_out(cluster, the_kind(), order))


def test_every_verb_for_an_object_that_cannot_be_read_is_answered() -> None:
    cluster, wire = Cluster(), workload("shop")
    wire["spec"]["replicas"] = "three"
    wire["status"]["observedGeneration"] = "one"
    cluster.put(WORKLOADS, wire)
    for verb in the_kind().verbs:
        answer = carried_out(verb, cluster)
        assert isinstance(answer, Refusal), verb
        assert answer.message.startswith("it cannot be read: "), answer
        assert answer.hint == HINT


def test_a_revision_that_cannot_be_read_is_named() -> None:
    cluster = Cluster()
    cluster.put(WORKLOADS, workload("shop"))
    owner = {"apiVersion": WORKLOADS.api_version, "kind": "Workload", "name": "shop", "uid": "uid-shop"}
    cluster.put(
        CONTROLLER_REVISIONS,
        {"metadata": {"name": "shop-1", "ownerReferences": [{**owner, "controller": True}]}, "revision": "first"},
    )
    answer = carried_out("undo", cluster)
    assert isinstance(answer, Refusal)
    assert "default/shop-1 cannot be read: " in answer.message
    assert "$.revision" in answer.message
    assert answer.hint == HINT
