"""Rehearsals: a replacement that the API refuses costs nothing that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, PODS, SECRETS, Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Retry
from holdfast.meta.errors import BadRequest, Forbidden, Invalid, StatusError
from holdfast.meta.objects import Key, Ref
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import Decision, Delete, Rehearsal
from holdfast.runtime.passes.failures import Refused
from holdfast.runtime.passes.rehearsals import REFUSED_FOR, Rehearsals, pod_of_stateful_set
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.loops import EPOCH

STOP = Delete(because="replaced", resource=PODS, key=Key("default", "old"), uid="1")


def pod(image: str = "web:2") -> dict[str, Any]:
    metadata = {"generateName": "web-", "namespace": "default", "ownerReferences": [{"uid": "not yet"}]}
    return {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": image}]}}


def rehearsal(image: str = "web:2", **more: Any) -> Rehearsal:
    return Rehearsal(about="the pod template of revision 2", resource=PODS, manifest=pod(image), **more)


class Api:
    """A server that answers dry runs, one after the other, and then accepts everything."""

    def __init__(self, *answers: StatusError) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, Any]] = []

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        assert dry_run, "nothing is created"
        self.asked.append(manifest)
        if self.answers:
            raise self.answers.pop(0)
        return Object.of(resource, dict(manifest))


def refused(api: Any, *decisions: Decision, apart: timedelta = timedelta(seconds=1)) -> list[list[str]]:
    """What each of some decisions is refused with, in turn."""
    rehearsals = Rehearsals(api)

    async def asked() -> list[list[str]]:
        answers = [await rehearsals.refused(each, EPOCH + n * apart) for n, each in enumerate(decisions)]
        return [[failure.message for failure in failures] for failures, _ in answers]

    return asyncio.run(asked())


def test_an_accepted_template_costs_one_request_and_its_owners_are_left_out() -> None:
    api = Api()
    decision = Decision(rehearse=(rehearsal(),), writes=(STOP,))
    assert refused(api, decision, decision, decision) == [[], [], []]
    (asked,) = api.asked
    assert "ownerReferences" not in asked["metadata"]


def test_nothing_is_rehearsed_where_nothing_is_deleted_and_no_child_waits() -> None:
    api = Api()
    refused(api, Decision(rehearse=(rehearsal(),)))
    assert api.asked == []


def test_a_refusal_names_the_template_and_what_the_api_says_and_is_asked_for_again_later() -> None:
    api = Api(Invalid("spec.containers[0].image: Required value"))
    decision = Decision(rehearse=(rehearsal(),), writes=(STOP,))
    first, second, third = refused(api, decision, decision, decision, apart=REFUSED_FOR / 2)
    assert first == second
    assert "the pod template of revision 2 is not rolled out and nothing is deleted" in first[0]
    assert "spec.containers[0].image: Required value" in first[0]
    assert third == [], "it was accepted meanwhile"
    assert len(api.asked) == 2


def test_what_may_pass_is_asked_for_again_at_once() -> None:
    api = Api(Forbidden("violates PodSecurity"))
    decision = Decision(rehearse=(rehearsal(),), writes=(STOP,))
    first, second = refused(api, decision, decision)
    assert "violates PodSecurity" in first[0]
    assert second == []


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3"),
        BadRequest('admission webhook "injector" does not support dry run'),
    ],
    ids=["quota", "webhook"],
)
def test_a_quota_without_room_and_a_webhook_without_dry_runs_are_no_objection(error: StatusError) -> None:
    assert refused(Api(error), Decision(rehearse=(rehearsal(),), writes=(STOP,))) == [[]]


def test_a_pod_of_a_stateful_set_has_its_claims_as_volumes() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"volumes": [{"name": "tmp", "emptyDir": {}}]}}
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    made = pod_of_stateful_set(
        {
            "metadata": {"name": "db", "namespace": "prod"},
            "spec": {"template": template, "volumeClaimTemplates": claims},
        }
    )
    assert made == {
        "metadata": {"labels": {"a": "b"}, "generateName": "db-", "namespace": "prod"},
        "spec": {
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
            ]
        },
    }


def test_while_a_replacement_is_refused_nothing_is_deleted_and_other_children_are_written() -> None:
    failures: list[type] = []

    def observe(view: View, key: Key) -> Object | None:
        return view.get(CONFIG_MAPS, key)

    def secret(name: str, **data: str) -> Desired:
        metadata = {"name": name, "namespace": "default"}
        return Desired({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def decide(owner: Object, now: datetime) -> Decision:
        held, free = secret("held", a="MQ=="), secret("free", a="MQ==")
        broken = pod(image="")
        refs: tuple[Ref, ...] = (held.ref,)
        return Decision(
            rehearse=(Rehearsal(about="the pod template", resource=PODS, manifest=broken, holds=refs),),
            children=(held, free),
            writes=(STOP,),
        )

    def explain(owner: Object, failure: Exception, now: datetime) -> None:
        failures.append(type(failure))

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await cluster.settle()
        assert [each["metadata"]["name"] for each in await cluster.list(SECRETS)] == ["free"]
        assert set(failures) <= {Refused, Retry}
        assert failures

    controller = Controller(
        name="t", resource=CONFIG_MAPS, observe=observe, decide=decide, owns=(SECRETS,), reads=(PODS,), explain=explain
    )
    play(story, controllers=[controller])
