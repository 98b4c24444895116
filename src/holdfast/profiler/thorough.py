"""The thorough search: the best candidates are deployed one after the other, and measured under load.

A candidate is a DynamoGraphDeployment of its own, with a name and labels by which it is found again.  It is deleted
whatever happens to its measurement, and those that an earlier run left behind are deleted first.  A candidate that
does not become ready, or does not answer, is skipped, with the reason.  Everything has a deadline.

On a machine that runs pods as processes the candidates are mock workers.  Such a machine sends far fewer tokens than
GPUs do, so a part of the replicas is measured under the same part of the load, and where one replica is still too
fast, it is slowed down and its figures are scaled back.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import msgspec

from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import Client, Scope, Unreachable
from holdfast.client.resources import Resource
from holdfast.kinds.nvidia import deployments, requests
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec, Features, Mocker
from holdfast.meta.errors import NotFound, StatusError
from holdfast.profiler import explanations, manifests, search, targets
from holdfast.profiler.load import generator
from holdfast.profiler.load.figures import Figures, figures
from holdfast.profiler.load.generator import Plan, Unusable
from holdfast.profiler.load.targets import NotReady, endpoint
from holdfast.profiler.request import Request
from holdfast.profiler.results import Point, Progress, Result, SubPhase

GRAPHS: Final = Resource.of(deployments.KIND)

CANDIDATE_OF: Final = "dgdr.nvidia.com/candidate-of"
"""The label of a candidate: the UID of its request."""

MOST_CANDIDATES: Final = 6

_log: Final = logging.getLogger("holdfast.profiler.thorough")

Report = Callable[[Progress], None]


class Skipped(Exception):
    """A candidate that could not be measured; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What measuring may take.

    ready_seconds   until a candidate is ready
    answer_seconds  from then until it can be reached
    gone_seconds    until it is deleted
    least_seconds   of load, and `most_seconds`
    tokens          tokens a second that the machine can carry; None where that is the servers' own matter
    """

    ready_seconds: float = 3600.0
    answer_seconds: float = 30.0
    gone_seconds: float = 300.0
    least_seconds: float = 60.0
    most_seconds: float = 600.0
    tokens: float | None = None


ON_A_LAPTOP: Final = Bounds(ready_seconds=120.0, gone_seconds=60.0, least_seconds=8.0, most_seconds=40.0, tokens=4000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a candidate is measured.

    point    the candidate as it is deployed: perhaps with fewer replicas
    part     the part of the replicas, and of the load, that is measured
    speed    how many times as fast as the GPU the mock workers are
    seconds  how long requests are sent, and `warmup` how long those are not counted
    """

    point: Point
    part: float = 1.0
    speed: float = 1.0
    seconds: float
    warmup: float


def trial(request: Request, point: Point, bounds: Bounds) -> Trial:
    """How to measure a candidate within bounds; raises `Skipped` where that cannot be."""
    part, deployed = 1.0, point
    speed = 1.0
    if bounds.tokens is not None and point.tokens_per_second > bounds.tokens:
        deployed, part = _fewer(point)
        speed = min(1.0, bounds.tokens / (point.tokens_per_second * part))
    whole = (point.ttft_ms + point.itl_ms * max(0, request.traffic.osl - 1)) / 1000 / speed
    warmup = whole
    seconds = max(bounds.least_seconds, 2 * whole) + warmup
    if seconds > bounds.most_seconds:
        raise Skipped(
            f"{point.tokens_per_second * part:.0f} tokens/s would take {seconds:.0f} s here, "
            f"more than the {bounds.most_seconds:.0f} s for one candidate"
        )
    return Trial(point=deployed, part=part, speed=speed, seconds=seconds, warmup=warmup)


def _fewer(point: Point) -> tuple[Point, float]:
    """The candidate with as few replicas as share its load evenly, and the part of it that they are."""
    divisor = math.gcd(*(engine.replicas for engine in point.engines))
    engines = tuple(msgspec.structs.replace(each, replicas=each.replicas // divisor) for each in point.engines)
    return msgspec.structs.replace(point, engines=engines), 1 / divisor


def plan(request: Request, trial: Trial, url: str) -> Plan:
    """The load test of a candidate: the load that is asked for, or all that it has room for."""
    traffic, point = request.traffic, trial.point
    room = sum(each.batch * each.replicas for each in point.engines if each.role != "prefill")
    in_flight = room if traffic.concurrency is None else traffic.concurrency * trial.part
    rate = None if traffic.request_rate is None else traffic.request_rate * trial.part * trial.speed
    return Plan(
        url=url,
        isl=traffic.isl,
        osl=traffic.osl,
        rate=rate,
        concurrency=max(1, round(in_flight)) if rate is None else None,
        duration=trial.seconds,
        timeout=max(60.0, 10 * trial.warmup),
    )


def measured(request: Request, point: Point, trial: Trial, found: Figures) -> Point:
    """The candidate with the figures that were measured; raises `Skipped` where there are none."""
    if found.ttft_ms is None or found.completed < found.requests / 2:
        errors = "; ".join(f"{count} times {error}" for error, count in found.errors.items())
        raise Skipped(f"{found.completed} of {found.requests} requests were answered: {errors or 'no answer came'}")
    ttft = found.ttft_ms.mean * trial.speed
    itl = (found.itl_ms.mean if found.itl_ms is not None else 0.0) * trial.speed or point.itl_ms
    scale = 1 / (trial.part * trial.speed)
    tokens = found.tokens_per_second * scale
    return msgspec.structs.replace(
        point,
        ttft_ms=ttft,
        itl_ms=itl,
        requests_per_second=found.requests_per_second * scale,
        tokens_per_second=tokens,
        tokens_per_second_per_gpu=tokens / point.gpus,
        tokens_per_second_per_user=1000 / itl,
        sla_met=targets.meets(ttft, itl, request),
        measured=True,
    )


# --- the search


class Stage(Protocol):
    """Where candidates are deployed."""

    def deployed(self, number: int, trial: Trial) -> AbstractAsyncContextManager[str]:
        """The URL of a candidate, which is deleted at the end of the block; raises `Skipped`."""
        ...


async def sweep(request: Request, stage: Stage, report: Report, *, bounds: Bounds) -> Result:
    """Measure the best candidates of the search, and choose among them."""
    predicted = await asyncio.to_thread(search.search, request, report=report)
    candidates = _candidates(predicted)
    points, skipped = [], []
    totals = {
        phase: sum(_phase(each) == phase for each in candidates) for phase in ("SweepingPrefill", "SweepingDecode")
    }
    done = dict.fromkeys(totals, 0)
    for number, point in enumerate(candidates):
        phase = _phase(point)
        described = explanations.described(point)
        report(Progress(phase=phase, message=f"measuring {described}", done=done[phase], total=totals[phase]))
        try:
            points.append(await _measured(request, point, number, stage, bounds))
        except Skipped as error:
            _log.warning("candidate skipped", extra={"fields": {"candidate": described, "reason": str(error)}})
            skipped.append(f"{described}: {error}")
        done[phase] += 1
    report(Progress(phase="SelectingConfig", message=f"choosing between {len(points)} measured configurations"))
    return _answer(request, predicted, points, skipped)


def _phase(point: Point) -> SubPhase:
    return "SweepingDecode" if point.disaggregated else "SweepingPrefill"


def _candidates(predicted: Result) -> list[Point]:
    """The best predicted points, those of one kind together."""
    best = [each for each in (predicted.chosen or predicted.closest, *predicted.runners_up) if each is not None]
    return sorted(best[:MOST_CANDIDATES], key=lambda each: each.disaggregated)


async def _measured(request: Request, point: Point, number: int, stage: Stage, bounds: Bounds) -> Point:
    how = trial(request, point, bounds)
    async with stage.deployed(number, how) as url:
        try:
            # The way to a deployment that is ready may still be made: routes follow readiness.
            await generator.answering(url, within=bounds.answer_seconds)
            samples = await generator.run(plan(request, how, url))
        except Unusable as error:
            raise Skipped(str(error)) from None
    return measured(request, point, how, figures(samples, warmup=how.warmup))


def _answer(request: Request, predicted: Result, points: Sequence[Point], skipped: Sequence[str]) -> Result:
    """What was measured decides; where nothing could be measured, the prediction stands, and the answer says so."""
    missed = f"; not measured: {'; '.join(skipped)}" if skipped else ""
    if not points:
        return msgspec.structs.replace(predicted, why=f"{predicted.why}{missed}" if predicted.why else "")
    found = search.choose(request, points)
    return msgspec.structs.replace(
        found,
        why=f"measured: {found.why}{missed}" if found.chosen is not None else "",
        considered=predicted.considered,
        pareto=search.pareto(points),
    )


# --- on a cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The request that candidates are measured for.

    reference  the owner of candidates, with which they are deleted: the service account of the Job, which the
               controller deletes when the Job has ended, however it did; the request, where there is none
    """

    name: str
    namespace: str
    uid: str
    spec: DynamoGraphDeploymentRequestSpec
    reference: Mapping[str, Any]


class _Account(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Holder(msgspec.Struct, frozen=True):
    serviceaccount: _Account


class _Claims(msgspec.Struct, frozen=True):
    holder: _Holder = msgspec.field(name="kubernetes.io")


def account_reference(token: str) -> dict[str, Any] | None:
    """The service account that a token is of, as an owner; None where the token does not say it."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError):
        return None
    account = claims.holder.serviceaccount
    return {"apiVersion": "v1", "kind": "ServiceAccount", "name": account.name, "uid": account.uid}


def request_reference(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": requests.KIND.api_version, "kind": requests.KIND.name, "name": name, "uid": uid}


class Cluster:
    """Candidates as DynamoGraphDeployments."""

    def __init__(self, client: Client, owner: Owner, request: Request, bounds: Bounds, *, mock: bool) -> None:
        self._client = client
        self._owner = owner
        self._request = request
        self._bounds = bounds
        # A candidate is measured as it is predicted: without a planner that would change it.
        features = Features(mocker=Mocker(enabled=True)) if mock else _mocker_of(owner.spec)
        self._spec = msgspec.structs.replace(owner.spec, features=features)

    async def clear(self) -> None:
        """Delete the candidates that an earlier run left behind."""
        scope = Scope(namespace=self._owner.namespace, labels=f"{CANDIDATE_OF}={self._owner.uid}")
        for each in (await self._client.list(GRAPHS, scope)).objects:
            await self._delete(each)

    @contextlib.asynccontextmanager
    async def deployed(self, number: int, trial: Trial) -> AsyncIterator[str]:
        made = await self._create(number, trial)
        try:
            await self._ready(made)
            yield await self._endpoint(made)
        finally:
            # Also where the Job is being stopped: its grace is enough to ask for the deletion.
            await asyncio.shield(self._delete(made))

    async def _create(self, number: int, trial: Trial) -> Object:
        result = Result(backend=_backend(self._request), chosen=trial.point)
        name = f"{self._owner.name[:20].rstrip('-.')}-c{number}"
        (*_, manifest) = manifests.deployment(
            self._request, result, name=name, spec=self._spec, namespace=self._owner.namespace
        )
        metadata = manifest["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), CANDIDATE_OF: self._owner.uid}
        metadata["ownerReferences"] = [dict(self._owner.reference)]
        if trial.speed != 1:
            _slow_down(manifest, trial.speed)
        try:
            return await self._client.create(GRAPHS, manifest)
        except (StatusError, Unreachable) as error:
            raise Skipped(f"it cannot be deployed: {error}") from None

    async def _ready(self, made: Object) -> None:
        seconds = self._bounds.ready_seconds
        try:
            found = await waiting.until(self._client, GRAPHS, made.key, _is_settled, timeout=seconds)
        except TimeoutError:
            latest = await self._client.get(GRAPHS, made.key)
            raise Skipped(f"it was not ready within {seconds:.0f} s: {_ready_message(latest)}") from None
        if found is None:
            raise Skipped("it was deleted before it was ready")
        if _state(found) == "failed":
            raise Skipped(f"it failed: {_ready_message(found)}")

    async def _endpoint(self, made: Object) -> str:
        try:
            return await endpoint(self._client, made.key.namespace, made.key.name)
        except (NotReady, StatusError, Unreachable) as error:
            raise Skipped(str(error)) from None

    async def _delete(self, made: Object) -> None:
        try:
            await self._client.delete(GRAPHS, made.key, uid=made.uid, propagation="Foreground")
            await waiting.until(
                self._client,
                GRAPHS,
                made.key,
                lambda found: found is None or found.uid != made.uid,
                timeout=self._bounds.gone_seconds,
            )
        except NotFound:
            return
        except (StatusError, Unreachable, TimeoutError) as error:
            _log.warning("candidate not deleted", extra={"fields": {"candidate": str(made.key), "error": str(error)}})


def _mocker_of(spec: DynamoGraphDeploymentRequestSpec) -> Features | None:
    return None if spec.features is None or spec.features.mocker is None else Features(mocker=spec.features.mocker)


def _backend(request: Request) -> Literal["sglang", "trtllm", "vllm"]:
    return "vllm" if request.backend == "auto" else request.backend


def _slow_down(manifest: dict[str, Any], speed: float) -> None:
    for component in manifest["spec"]["components"]:
        for container in component["podTemplate"]["spec"]["containers"]:
            if container.get("command", [])[-2:] == ["mocker", "serve"]:
                container["args"] = [*container["args"], "--speed", f"{speed:.6f}"]


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    state: str = ""
    observed_generation: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Graph(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def _state(found: Object) -> str:
    """The state of a deployment, if it is about its current spec."""
    status = found.decode(_Graph).status
    return status.state if status.observed_generation >= found.meta.generation else ""


def _is_settled(found: Object | None) -> bool:
    return found is None or _state(found) in ("successful", "failed")


def _ready_message(found: Object) -> str:
    conditions = found.decode(_Graph).status.conditions
    return next((each.message for each in conditions if each.type == "Ready" and each.message), "no reason is given")


async def measure(
    client: Client, owner: Owner, request: Request, report: Report, *, mock: bool = False, bounds: Bounds | None = None
) -> Result:
    """The thorough search on a cluster.  With `mock`, candidates are mock workers that run on this machine."""
    mocked = mock or bool((features := _mocker_of(owner.spec)) and features.mocker and features.mocker.enabled)
    limits = bounds or (ON_A_LAPTOP if mocked else Bounds())
    cluster = Cluster(client, owner, request, limits, mock=mock)
    await cluster.clear()
    return await sweep(request, cluster, report, bounds=limits)
