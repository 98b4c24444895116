"""No object, whatever it says, ends a pass of an operator or of the cluster with an exception."""

from __future__ import annotations

import json
import logging
from random import Random
from typing import Any

import pytest
from tests.fuzz.mutations import applied, drawn, fields, schema_fields
from tests.fuzz.places import FUZZED, on_cluster, place

from holdfast.client.resources import PODS
from holdfast.meta.errors import StatusError
from holdfast.testing.clusters import Cluster

SEED = 20
"""Printed with every failure; `make torture` tries others."""


ACCEPTED = 20
"""How many mutations that the API accepts are given to a cluster; most are refused."""


@pytest.mark.parametrize("name", FUZZED)
def test_a_mutated_object_is_reported_in_a_status_and_raises_nothing(name: str) -> None:
    found = place(name).fuzzed(FUZZED[name].mutated, seed=SEED, rounds=300)
    assert not found, f"seed {SEED}, {len(found)} mutations:\n\n" + "\n\n".join(found[:5])


@pytest.mark.parametrize("name", FUZZED)
def test_what_the_api_accepts_gets_a_status_with_a_reason(name: str, caplog: pytest.LogCaptureFixture) -> None:
    fuzzed, random = FUZZED[name], Random(SEED)
    resource, manifest = fuzzed.made[-1]
    schema = place(name).schemas[resource]
    paths = [path for path in (*fields(manifest), *schema_fields(schema)) if path[0] == "spec"]

    async def story(cluster: Cluster) -> None:
        accepted = 0
        for number in range(800):
            mutations = drawn(random, paths)
            made = applied(manifest, mutations)
            made["metadata"] = {**made["metadata"], "name": f"f{number}"}
            try:
                await cluster.create(resource, made)
            except (StatusError, ValueError, OverflowError):
                continue  # refused, or nothing that can be sent
            accepted += 1
            await cluster.advance(2)
            status = (await cluster.get(resource, f"f{number}")).get("status") or {}
            reasons = [each["reason"] for each in status.get("conditions", ())]
            assert reasons, f"seed {SEED}: no reason with {', '.join(map(str, mutations))}: {json.dumps(status)}"
            await cluster.delete(resource, f"f{number}")
            if accepted == ACCEPTED:
                return
        raise AssertionError(f"seed {SEED}: only {accepted} mutations were accepted")

    with caplog.at_level(logging.ERROR):
        on_cluster(name, story)
    assert caplog.messages == []


ODD: tuple[dict[str, Any], ...] = (
    {"metadata": {"annotations": {"sim.holdfast.dev/exit-code": "9" * 5000, "sim.holdfast.dev/run-for": "1s"}}},
    {"metadata": {"annotations": {"sim.holdfast.dev/ready-after": "9" * 5000 + "h"}}},
    {"metadata": {"annotations": {"sim.holdfast.dev/fail-probability": "1e999"}}},
    {"metadata": {"annotations": {"sim.holdfast.dev/crash-after": "-1s", "holdfast.dev/starts-after": "a\0b:x,:"}}},
    {"metadata": {"annotations": {"holdfast.dev/starts-after": "a:" + "9" * 5000}}},
    {"metadata": {"labels": {"grove.io/podgang": "none"}}},
    {"spec": {"volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "a\0b"}]}}]}},
    {"spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "9" * 300}}]}},
    {"spec": {"terminationGracePeriodSeconds": 2**62}},
    {"spec": {"activeDeadlineSeconds": 2**31 - 1}},
    {"spec": {"nodeSelector": {"a": ""}, "tolerations": [{"operator": "Exists", "tolerationSeconds": -(2**62)}]}},
)


def test_no_pod_however_odd_stops_the_nodes_or_the_controllers(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: Cluster) -> None:
        for number, odd in enumerate(ODD):
            spec = {"containers": [{"name": "c", "image": "i"}], **odd.get("spec", {})}
            try:
                await cluster.create(
                    PODS, {"metadata": {**odd.get("metadata", {}), "name": f"p{number}"}, "spec": spec}
                )
            except StatusError:
                continue
            await cluster.advance(2)
            await cluster.delete(PODS, f"p{number}")
        await cluster.create(
            PODS, {"metadata": {"name": "sound"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        )

        async def runs() -> bool:
            phase = (await cluster.get(PODS, "sound"))["status"]["phase"]
            return bool(phase == "Running")

        await cluster.until(runs, within=60)

    with caplog.at_level(logging.ERROR):
        on_cluster("workload", story)
    assert caplog.messages == []
