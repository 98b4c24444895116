"""Decisions: how long one takes, beside its bar and a yardstick.

Machines differ and are busy, so each time is also given as a multiple of a
yardstick measured in the same run: writing a realistic pod template as JSON
with the standard library.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.sizes import sized
from holdfast.kernel.fleet import Fleet, Pool
from holdfast.kernel.limits import resolve
from holdfast.kernel.preview import EPOCH, preview
from holdfast.kernel.rollout import Progress, Rollout, decide
from holdfast.meta.hashing import canonical_hash

CONTAINER: dict[str, Any] = {
    "name": "server",
    "image": "registry.example.com/team/server:v2.1.0@sha256:" + "0123456789abcdef" * 4,
    "args": [f"--option-{n}=value-{n}" for n in range(8)],
    "env": [{"name": f"SETTING_{n}", "value": f"value of setting {n}"} for n in range(12)],
    "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}},
    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
    "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 15},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/server"}, {"name": "cache", "mountPath": "/var/cache"}],
}
POD_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "server", "tier": "backend"}, "annotations": {"description": "serves"}},
    "spec": {
        "containers": [CONTAINER, {**CONTAINER, "name": "proxy"}],
        "volumes": [{"name": "config", "configMap": {"name": "server"}}, {"name": "cache", "emptyDir": {}}],
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "api", "effect": "NoSchedule"}],
    },
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Times of one call, in microseconds."""

    name: str
    bar: str
    median: float
    p99: float


def measure(name: str, bar: str, call: Callable[[], object], *, rounds: int = sized(2_000, 20)) -> Measured:
    for _ in range(rounds // 10):
        call()
    gc.collect()
    gc.disable()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1_000)
    gc.enable()
    return Measured(name, bar, statistics.median(times), statistics.quantiles(times, n=100)[98])


def report() -> None:
    rolling = Rollout(limits=resolve(100, max_surge="25%", max_unavailable="25%"))
    fleet = Fleet(old=Pool(available=60, unready=3), new=Pool(available=20, unready=10, settling=2))
    large = Rollout(limits=resolve(10_000, max_surge=1, max_unavailable=0))
    full = Fleet(old=Pool(available=10_000))
    yardstick = measure("yardstick: pod template as JSON (stdlib)", "", lambda: json.dumps(POD_TEMPLATE))
    rows = [
        measure(
            "one rollout decision",
            "p99 < 50 µs",
            lambda: decide(rolling, fleet, progress=Progress(), now=EPOCH),
            rounds=sized(20_000, 20),
        ),
        measure("preview, 10,000 replicas at surge 1", "< 5 ms", lambda: preview(large, full), rounds=sized(300, 20)),
        measure("canonical hash of a pod template", "< 50 µs", lambda: canonical_hash(POD_TEMPLATE)),
        yardstick,
    ]
    print(f"{'what':44} {'bar':>12} {'median':>12} {'p99':>12} {'yardsticks':>11}")
    for row in rows:
        ratio = row.median / yardstick.median
        print(f"{row.name:44} {row.bar:>12} {row.median:>9.1f} µs {row.p99:>9.1f} µs {ratio:>10.2f}x")
