"""Whether a document would be accepted, and what is said if not."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import kinds
from holdfast.kinds import checks
from holdfast.kinds.cloudless import KINDS, Rollout, Workload, WorkloadSpec
from holdfast.kinds.model import Quantity
from holdfast.meta import quantities

(WORKLOAD,) = KINDS


def workload(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "web"},
        "spec": {"image": "nginx", **(spec or {})},
    }


def said(doc: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in checks.problems(WORKLOAD, doc)]


def test_nothing_is_said_of_a_sound_document() -> None:
    assert said(workload()) == []


PORT = {"containerPort": 80}
STRATEGIES = "RollingUpdate, Recreate, BlueGreen, Canary, OnDelete"
AMOUNT = "write an amount such as 2, 500m or 1Gi"
COUNT_OR_PERCENTAGE = "write a count such as 2 or a percentage such as 25%"

WRONG: list[tuple[dict[str, Any], list[str]]] = [
    # unknown fields
    ({"restart_policy": {}}, ["spec.restart_policy: unknown field; did you mean restartPolicy?"]),
    ({"replcas": 3}, ["spec.replcas: unknown field; did you mean replicas?"]),
    ({"minAvailable": 3}, ["spec.minAvailable: unknown field; did you mean rollout.minAvailable?"]),
    (
        {"rollout": {"zzz": 1, "max_surge": 1}},
        [
            f"spec.rollout.zzz: unknown field; known here: {', '.join(Rollout.__struct_encode_fields__)}",
            "spec.rollout.max_surge: unknown field; did you mean maxSurge?",
        ],
    ),
    ({"ports": [{**PORT, "nmae": "x"}]}, ["spec.ports[0].nmae: unknown field; did you mean name?"]),
    # types
    ({"replicas": "3"}, ["spec.replicas: must be an integer, not a string; write 3, without quotes"]),
    ({"replicas": 2.5}, ["spec.replicas: must be an integer, not a number"]),
    ({"replicas": True}, ["spec.replicas: must be an integer, not a boolean"]),
    ({"env": {"PORT": 80}}, ['spec.env.PORT: must be a string, not an integer; write "80", in quotes']),
    ({"env": {"ON": True}}, ['spec.env.ON: must be a string, not a boolean; write "true", in quotes']),
    ({"env": {"EMPTY": None}}, ['spec.env.EMPTY: must not be null; leave it out, or write ""']),
    ({"env": {80: "a"}}, ['spec.env: the key 80 must be a string; write "80", in quotes']),
    ({"env": {"a/b.c": 1}}, ['spec.env[a/b.c]: must be a string, not an integer; write "1", in quotes']),
    (
        {"rollout": {"paused": "yes"}},
        ["spec.rollout.paused: must be a boolean, not a string; write true, without quotes"],
    ),
    ({"command": "run"}, ['spec.command: must be an array, not a string; write ["run"]']),
    ({"ports": PORT}, ["spec.ports: must be an array, not an object; begin each entry with a dash"]),
    ({"env": [{"name": "A"}]}, ["spec.env: must be an object, not an array; write fields without dashes"]),
    (
        {"resources": {"limits": {"cpu": 0.5}}},
        ['spec.resources.limits.cpu: must be an integer or string, not a number; write "0.5", in quotes'],
    ),
    # bounds and forms
    *(
        (
            {"resources": {"limits": {"memory": amount}}},
            [f"spec.resources.limits.memory: {amount!r} is not in the expected form; {AMOUNT}"],
        )
        for amount in ("lots", "-1Gi", "1 Gi", "1gb", "")
    ),
    ({"resources": {"limits": {"memory": -1}}}, ["spec.resources.limits.memory: must be at least 0, is -1"]),
    ({"replicas": -1}, ["spec.replicas: must be at least 0, is -1"]),
    (
        {"replicas": 10**12},
        ["spec.replicas: must be at most 1000000, is 1000000000000"],
    ),
    ({"rollout": {"maxSurge": -1}}, ["spec.rollout.maxSurge: must be at least 0, is -1"]),
    ({"rollout": {"maxSurge": 2**40}}, ["spec.rollout.maxSurge: must be at most 2147483647, is 1099511627776"]),
    (
        {"rollout": {"maxSurge": "-1%"}},
        [f"spec.rollout.maxSurge: '-1%' is not in the expected form; {COUNT_OR_PERCENTAGE}"],
    ),
    ({"rollout": {"maxSurge": "1000000%"}}, ["spec.rollout.maxSurge: must have at most 6 characters, has 8"]),
    (
        {"rollout": {"maxSurge": "much"}},
        [f"spec.rollout.maxSurge: 'much' is not in the expected form; {COUNT_OR_PERCENTAGE}"],
    ),
    (
        {"rollout": {"pauseDuration": "30"}},
        ["spec.rollout.pauseDuration: '30' is not in the expected form; write a duration such as 30s, 5m or 1h30m"],
    ),
    (
        {"rollout": {"strategy": "rolling_update"}},
        [f"spec.rollout.strategy: must be one of {STRATEGIES}, not 'rolling_update'; did you mean RollingUpdate?"],
    ),
    ({"image": ""}, ["spec.image: must not be empty"]),
    ({"image": None}, ["spec.image: is required; The container image"]),
    ({"ports": [{}]}, ["spec.ports[0].containerPort: is required; The port inside the container"]),
    ({"rollout": {"canary": {"steps": []}}}, ["spec.rollout.canary.steps: must have at least 1 items, has 0"]),
    (
        {"ports": [PORT, {"containerPort": 80, "protocol": "TCP"}]},
        ["spec.ports[1]: repeats containerPort 80 and protocol 'TCP' of spec.ports[0]; give each entry its own"],
    ),
    (
        {"imagePullSecrets": ["a", "b", "a"]},
        ["spec.imagePullSecrets[2]: repeats 'a' of spec.imagePullSecrets[0]; give each entry its own"],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), WRONG, ids=[str(spec) for spec, _ in WRONG])
def test_a_problem_says_where_it_is_and_what_to_write_instead(spec: dict[str, Any], expected: list[str]) -> None:
    assert said(workload(spec)) == expected


def test_all_problems_are_reported_at_once() -> None:
    assert len(said(workload({"replicas": -1, "restart_policy": {}, "ports": [{}], "env": {"A": 1}}))) == 4


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"kind": "Wrkload"}, ["kind: must be Workload, not 'Wrkload'"]),
        ({"metadata": None}, ["metadata: is required; Standard object metadata"]),
        ({"metadata": {}}, ["metadata.name: is required; give the object a name, or a generateName"]),
        ({"metadata": {"generateName": "web-"}}, []),
        ({"metadata": {"name": "web", "lables": {}}}, ["metadata.lables: unknown field; did you mean labels?"]),
        ({"metadata": {"name": "web", "creationTimestamp": None}}, []),
        (
            {"metadata": {"name": "web", "creationTimestamp": "today"}},
            ["metadata.creationTimestamp: 'today' is not a time; write it like 2026-01-31T12:00:00Z"],
        ),
        (
            {"spec": None},
            ["spec: is required; The containers, the replicas, their scheduling, and how changes are rolled out"],
        ),
        ({"sepc": {}}, ["sepc: unknown field; did you mean spec?"]),
    ],
)
def test_the_root_of_a_document_is_judged_too(root: dict[str, Any], expected: list[str]) -> None:
    assert said({**workload(), **root}) == expected


def test_defaults_are_written_as_an_api_server_writes_them() -> None:
    doc = workload({"ports": [{"containerPort": 80}], "rollout": {"minAvailable": 2, "strategy": None}})
    assert checks.defaulted(WORKLOAD, doc)["spec"] == {
        "image": "nginx",
        "replicas": 1,
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "rollout": {
            "minAvailable": 2,
            "strategy": "RollingUpdate",
            "progressDeadline": "10m",
            "onFailure": "hold",
            "replacement": "immediately",
            "disruptionBudget": "Managed",
            "revisionHistoryLimit": 10,
        },
    }


def test_defaulting_leaves_the_document_alone_and_is_done_once() -> None:
    doc = workload({"rollout": {}})
    before = msgspec.json.encode(doc)
    once = checks.defaulted(WORKLOAD, doc)
    assert msgspec.json.encode(doc) == before
    assert checks.defaulted(WORKLOAD, once) == once


def test_decoding_never_fills_in_what_was_not_written() -> None:
    web = checks.decode(WORKLOAD, workload({"volumes": None}))
    assert isinstance(web, Workload)
    assert (web.spec.image, web.spec.replicas, web.spec.rollout, web.spec.volumes) == ("nginx", None, None, ())


def test_decoding_refuses_with_every_problem() -> None:
    with pytest.raises(kinds.InvalidDocument) as refused:
        checks.decode(WORKLOAD, workload({"replicas": -1, "replcas": 1}))
    assert [problem.path for problem in refused.value.problems] == ["spec.replicas", "spec.replcas"]
    assert str(refused.value).splitlines() == [
        "spec.replicas: must be at least 0, is -1",
        "spec.replcas: unknown field; did you mean replicas?",
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Workload.__struct_encode_fields__, "rollout", 1, None]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(doc=ANYTHING, field=st.sampled_from(list(WorkloadSpec.__struct_encode_fields__)))
def test_nothing_that_yaml_can_say_is_answered_with_a_traceback(doc: Any, field: str) -> None:
    for candidate in (doc, {**workload(), "metadata": doc}, {**workload(), "spec": doc}, workload({field: doc})):
        with contextlib.suppress(kinds.DocumentError):
            kinds.decode(candidate)


AMOUNTS = st.from_regex(checks._pattern_of(Quantity)) | st.text("0123456789.eE+-inumkKMGTP \n", max_size=6)


@given(text=AMOUNTS)
def test_an_amount_is_accepted_if_and_only_if_it_can_be_counted(text: str) -> None:
    accepted = len(text) <= 64 and said(workload({"resources": {"limits": {"memory": text}}})) == []
    try:
        countable = quantities.Quantity.parse(text) >= quantities.Quantity.parse("0") and text[:1] not in "+-"
    except quantities.QuantityError:
        countable = False
    assert accepted == countable
