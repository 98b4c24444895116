"""What `holdfast rollout` shows of a request, and what its verbs change."""

from __future__ import annotations

from typing import Any

from tests.operators.deploymentrequest.requests.stories import (
    NAME,
    Cluster,
    Phases,
    graph_is,
    job_ends,
    job_runs,
    play_story,
    reports,
    request,
    status_of,
    succeeds,
    until_deployed,
)

from holdfast.client.objects import Object
from holdfast.client.resources import JOBS
from holdfast.meta.objects import Key
from holdfast.operators.deploymentrequest.requests import names, view
from holdfast.operators.deploymentrequest.requests.observe import REQUESTS
from holdfast.operators.deploymentrequest.requests.verbs import ROLLOUT
from holdfast.operators.rollouts import Already, Answer, Case, Change, Observed, Refusal
from holdfast.views.rollouts import RolloutState, Standing
from holdfast.views.trees import Tree


async def found(cluster: Cluster) -> Observed:
    await cluster.settle()
    return Observed(await cluster.client.get(REQUESTS, Key("default", NAME)), cluster.manager.caches)


async def standing(cluster: Cluster) -> Standing:
    return view.standing(await found(cluster))


async def tree(cluster: Cluster) -> Tree:
    observed = await found(cluster)
    # The cluster of a story watches no pods of deployments; a tree without a deployment needs none.
    return view.tree(observed, cluster.now())


async def asked(cluster: Cluster, verb: str) -> Answer:
    return ROLLOUT.answer(verb, Case(object=(await found(cluster)).object, now=cluster.now()))


async def carried_out(cluster: Cluster, verb: str) -> None:
    answer = await asked(cluster, verb)
    assert isinstance(answer, Change), answer
    await cluster.patch(REQUESTS, NAME, answer.patch)
    await cluster.settle()


def test_a_request_is_followed_through_its_job() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        await reports(cluster, phase="SweepingPrefill", message="evaluating tp 1", progress="3 of 7")
        shown = await tree(cluster)
        (job,) = shown.branches
        assert (job.name, job.marks, job.note) == ("profile-qwen", ("Job", "SweepingPrefill"), "3 of 7")
        assert (shown.standing.state, shown.standing.phase) == (RolloutState.UNDER_WAY, "Profiling")
        assert shown.standing.facts == ("Qwen/Qwen3-0.6B", "up to 8 x h200_sxm")

    play_story(story)


def test_what_was_predicted_is_shown_beside_what_was_asked() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await until_deployed(cluster)
        made = await standing(cluster)
        assert (made.state, made.ready, made.desired) == (RolloutState.COMPLETED, 3, 3)
        assert made.facts[-1] == "predicted ttft 778 ms of 2,000, itl 28.6 ms of 30"
        wire = (await found(cluster)).object.wire()
        headline = view.headline(wire)
        assert (headline.phase, headline.at_rest) == ("Deployed", True)
        titles, best, *others = view.CANDIDATES.rows(wire, str)
        assert dict(zip(titles, best, strict=True)) == {
            "CONFIGURATION": "2 x worker tp 1, batch 96",
            "GPUS": "2",
            "TTFT": "778 ms",
            "ITL": "28.6 ms",
            "TOKENS/S/GPU": "900",
            "MEETS TARGETS": "yes",
        }
        assert len(others) == 5

    play_story(story)


def test_a_request_that_waits_for_a_review_is_promoted() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request(autoApply=False))
        assert isinstance(await asked(cluster, "promote"), Refusal)
        await job_runs(cluster)
        await succeeds(cluster)
        made = await standing(cluster)
        assert (made.state, made.verb) == (RolloutState.WAITING, "promote")
        await carried_out(cluster, "promote")
        await graph_is(cluster, "successful")
        assert (await status_of(cluster))["phase"] == "Deployed"

    play_story(story)


def test_a_request_that_failed_is_retried() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        assert isinstance(await asked(cluster, "retry"), Refusal)
        await cluster.delete(JOBS, names.job(NAME), propagation="Background")
        made = await standing(cluster)
        assert (made.state, made.verb) == (RolloutState.FAILED, "retry")
        await cluster.stop()
        answer = await asked_while_stopped(cluster)
        assert isinstance(answer, Change)
        patched = await cluster.patch(REQUESTS, NAME, answer.patch)
        assert not view.fresh(Object.of(REQUESTS, patched))
        await cluster.restart()
        await job_runs(cluster)
        await succeeds(cluster)
        await graph_is(cluster, "successful")
        assert (await standing(cluster)).state is RolloutState.COMPLETED
        assert phases.of() == ["Pending", "Profiling", "Failed"]

    async def asked_while_stopped(cluster: Cluster) -> Answer:
        obj = await cluster.client.get(REQUESTS, Key("default", NAME))
        return ROLLOUT.answer("retry", Case(object=obj, now=cluster.now()))

    play_story(story)


def test_a_request_that_is_paused_is_left_alone_until_it_is_resumed() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        await carried_out(cluster, "pause")
        assert isinstance(await asked(cluster, "pause"), Already)
        await succeeds(cluster)
        assert (await status_of(cluster))["phase"] == "Profiling"
        assert (await standing(cluster)).phase == "Paused"
        await carried_out(cluster, "resume")
        assert (await status_of(cluster))["phase"] == "Deploying"

    play_story(story)


def test_an_sla_that_is_not_met_is_a_warning_and_a_failure_needs_none() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        await job_ends(cluster, "Failed", reason="DeadlineExceeded")
        await cluster.advance(10)
        made: Any = await standing(cluster)
        assert made.state is RolloutState.FAILED
        assert made.warnings == ()

    play_story(story)
