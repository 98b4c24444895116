"""The search: what is chosen, why, and what is said where nothing meets the targets."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.profiler.request import Machines, Request, Targets, Traffic, Unanswerable
from holdfast.profiler.results import Point, Progress
from holdfast.profiler.search import RUNNERS_UP, search

QWEN = Request(model="Qwen/Qwen3-32B", machines=Machines(sku="h200_sxm", gpus=8))
MODES = {
    "default": QWEN,
    "rate": msgspec.structs.replace(QWEN, traffic=Traffic(request_rate=4)),
    "concurrency": msgspec.structs.replace(QWEN, traffic=Traffic(concurrency=100)),
    "planner": msgspec.structs.replace(QWEN, planner=True),
}


def meets(point: Point, request: Request) -> bool:
    targets = request.targets
    if targets.e2e_ms is not None:
        return point.ttft_ms + (request.traffic.osl - 1) * point.itl_ms <= targets.e2e_ms
    return point.ttft_ms <= (targets.ttft_ms or 1e9) and point.itl_ms <= (targets.itl_ms or 1e9)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_chosen_meets_the_targets_within_the_gpus(mode: str) -> None:
    request = MODES[mode]
    result = search(request)
    assert result.chosen is not None
    for point in (result.chosen, *result.runners_up):
        assert meets(point, request)
        assert point.sla_met
        assert point.gpus <= request.machines.gpus
        assert not point.estimated
    assert len(result.runners_up) <= RUNNERS_UP
    assert result.why
    assert not result.remedy


def test_without_a_load_the_most_tokens_a_second_win() -> None:
    result = search(QWEN)
    assert result.chosen is not None
    assert all(point.tokens_per_second <= result.chosen.tokens_per_second for point in result.runners_up)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B"])
def test_more_gpus_never_serve_less(model: str) -> None:
    sizes = (1, 2, 3, 4, 6, 8, 12, 16)
    found = [search(Request(model=model, machines=Machines(sku="h200_sxm", gpus=gpus))) for gpus in sizes]
    rates = [result.chosen.tokens_per_second for result in found if result.chosen is not None]
    assert len(rates) == len(found)
    assert rates == sorted(rates)


def test_more_load_never_needs_fewer_gpus() -> None:
    machines = Machines(sku="h200_sxm", gpus=64)
    found = [
        search(msgspec.structs.replace(QWEN, machines=machines, traffic=Traffic(request_rate=rate)))
        for rate in (0.5, 1, 2, 4, 8, 16)
    ]
    gpus = [result.chosen.gpus for result in found if result.chosen is not None]
    assert len(gpus) == len(found)
    assert gpus == sorted(gpus)


def test_with_a_load_the_fewest_gpus_win_and_serve_it() -> None:
    for rate, fewest in ((0.5, 1), (4, 4)):
        request = msgspec.structs.replace(QWEN, traffic=Traffic(request_rate=rate))
        result = search(request)
        assert result.chosen is not None
        assert result.chosen.requests_per_second == pytest.approx(rate)
        assert result.chosen.gpus >= fewest
        assert all(point.gpus >= result.chosen.gpus for point in result.runners_up)


def test_workers_take_more_at_once_than_the_mean_where_requests_come_at_random() -> None:
    result = search(msgspec.structs.replace(QWEN, traffic=Traffic(request_rate=4)))
    assert result.chosen is not None
    point = result.chosen
    decoding = point.requests_per_second * 999 * point.itl_ms / 1000
    assert point.engines[-1].replicas * point.engines[-1].batch > 1.2 * decoding


def test_a_planner_gets_one_prefill_and_one_decode_worker() -> None:
    result = search(MODES["planner"])
    assert result.chosen is not None
    assert [(engine.role, engine.replicas) for engine in result.chosen.engines] == [("prefill", 1), ("decode", 1)]


def test_latency_can_be_favoured() -> None:
    fast = search(msgspec.structs.replace(QWEN, targets=Targets(favour="latency"))).chosen
    busy = search(QWEN).chosen
    assert fast is not None
    assert busy is not None
    assert fast.itl_ms < busy.itl_ms


def test_runners_up_differ_in_their_layout() -> None:
    result = search(QWEN)
    assert result.chosen is not None
    layouts = [
        tuple((engine.role, engine.tensor_parallel) for engine in point.engines)
        for point in (result.chosen, *result.runners_up)
    ]
    assert len(set(layouts)) == len(layouts)


def test_no_point_of_the_front_beats_another() -> None:
    front = search(QWEN).pareto
    users = [point.tokens_per_second_per_user for point in front]
    gpus = [point.tokens_per_second_per_gpu for point in front]
    assert users == sorted(users, reverse=True)
    assert gpus == sorted(gpus)


def test_targets_are_not_relaxed_where_nothing_meets_them() -> None:
    request = msgspec.structs.replace(
        QWEN, machines=Machines(sku="h200_sxm", gpus=4), targets=Targets(ttft_ms=2000, itl_ms=7)
    )
    result = search(request)
    assert result.chosen is None
    assert result.closest is not None
    assert not result.closest.sla_met
    assert result.remedy.startswith("itl 7 ms needs fp8 or 8 GPUs (tp 8); the best within 4 GPUs is ")


def test_a_way_that_is_named_works() -> None:
    request = msgspec.structs.replace(
        QWEN, machines=Machines(sku="h200_sxm", gpus=4), targets=Targets(ttft_ms=2000, itl_ms=7)
    )
    assert search(msgspec.structs.replace(request, precision="fp8")).chosen is not None
    assert search(msgspec.structs.replace(request, machines=Machines(sku="h200_sxm", gpus=8))).chosen is not None


def test_a_target_that_no_way_meets_is_answered_with_what_can_be_met() -> None:
    request = msgspec.structs.replace(QWEN, targets=Targets(ttft_ms=2000, itl_ms=1))
    result = search(request)
    assert result.chosen is None
    assert "cannot be met" in result.remedy
    possible = float(result.remedy.rpartition("itl: ")[2])
    eased = msgspec.structs.replace(request, targets=Targets(ttft_ms=2000, itl_ms=possible))
    assert search(eased).chosen is not None


def test_a_model_that_does_not_fit_says_what_it_needs() -> None:
    request = Request(model="meta-llama/Llama-3.1-70B", machines=Machines(sku="h200_sxm", gpus=1))
    result = search(request)
    assert result.chosen is None
    assert result.closest is None
    assert "do not fit into 1 h200_sxm of 140 GiB; it needs fp8 or 2 GPUs (tp 2)" in result.remedy


def test_a_load_that_is_too_much_says_how_many_gpus_serve_it() -> None:
    result = search(msgspec.structs.replace(QWEN, traffic=Traffic(request_rate=20)))
    assert result.chosen is None
    assert result.remedy.startswith("20 requests/s are more than 8 GPUs can serve; it needs ")


def test_a_planner_needs_two_workers() -> None:
    request = Request(model="Qwen/Qwen3-0.6B", machines=Machines(sku="h200_sxm", gpus=1), planner=True)
    assert search(request).remedy == "a prefill and a decode worker do not fit into 1 GPU; it needs 2 GPUs (tp 1)"


def test_gpus_that_were_not_measured_are_marked_as_estimated() -> None:
    result = search(Request(model="Qwen/Qwen3-0.6B", machines=Machines(sku="l4", gpus=4)))
    assert result.chosen is not None
    assert all(point.estimated for point in (result.chosen, *result.runners_up, *result.pareto))


def test_a_model_larger_than_a_node_spans_nodes() -> None:
    result = search(Request(model="meta-llama/Llama-3.1-405B", machines=Machines(sku="h100_sxm", gpus=16)))
    assert result.chosen is not None
    assert result.chosen.engines[0].nodes == 2


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("spec.model", msgspec.structs.replace(QWEN, model="nothing/like-this")),
        ("spec.hardware.gpuSku", msgspec.structs.replace(QWEN, machines=Machines(sku="h300", gpus=8))),
        ("spec.hardware.totalGpus", msgspec.structs.replace(QWEN, machines=Machines(sku="h200_sxm", gpus=0))),
        ("spec.sla.ttft", msgspec.structs.replace(QWEN, targets=Targets(ttft_ms=-1))),
        ("spec.sla.itl", msgspec.structs.replace(QWEN, targets=Targets(itl_ms=float("nan")))),
        ("spec.workload.isl", msgspec.structs.replace(QWEN, traffic=Traffic(isl=0))),
        ("spec.workload.requestRate", msgspec.structs.replace(QWEN, traffic=Traffic(concurrency=1, request_rate=1))),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(field: str, request_: Request) -> None:
    with pytest.raises(Unanswerable) as refused:
        search(request_)
    assert refused.value.field == field


def test_progress_is_reported_in_the_order_of_the_phases() -> None:
    seen: list[Progress] = []
    search(QWEN, report=seen.append)
    phases = list(dict.fromkeys(progress.phase for progress in seen))
    assert phases == ["Initializing", "SweepingPrefill", "SweepingDecode", "SelectingConfig"]


def test_a_result_survives_its_way_through_json() -> None:
    result = search(QWEN)
    assert msgspec.json.decode(msgspec.json.encode(result), type=type(result)) == result
