"""The canonical hash: what it ignores, what it sees, and that its values never move."""

from __future__ import annotations

import random
import re
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.hashing import (
    HashError,
    MalformedHash,
    NotJSON,
    UnknownHashVersion,
    canonical_hash,
    short_hash,
    verify,
)

POD_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", "tier": "front"}},
    "spec": {
        "initContainers": [{"name": "fetch", "image": "busybox:1"}, {"name": "chown", "image": "busybox:1"}],
        "containers": [
            {
                "name": "web",
                "image": "nginx:1.27",
                "env": [{"name": "MODE", "value": "prod"}, {"name": "LEVEL", "value": "3"}],
                "ports": [{"name": "http", "containerPort": 80}, {"name": "tls", "containerPort": 443}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            },
            {"name": "proxy", "image": "envoy:1", "args": ["-c", "/etc/envoy.yaml"]},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "web"}}],
        "terminationGracePeriodSeconds": 30,
        "hostNetwork": False,
    },
}

# Frozen for ever: a changed value here is a fleet that restarts because a library was upgraded.
GOLDEN = [
    (None, "v1-6bfb9a89e7917438ddb17fb73d74243d", "bb4bqtr9kz"),
    ({"a": 0, "b": False, "c": [1, 2.5, "x", None]}, "v1-d235aca9f7873a1b4f2fbc47ea3d1d72", "brl2twdwpz"),
    ({"é": "ünïcode", "control": '\x00\t"\\/\u2028'}, "v1-a051c6f6c30fa841a6fb77ff2ba2290c", "b2j2qb9cbl"),
    ([1e300, 1e-07, -3.25, 2**63, True], "v1-8e16a43bc621b0c9fa5cfe4d392eae44", "bnvzs5bmjh"),
    (POD_TEMPLATE, "v1-eeb817dc024c472c036c45fc91cc8228", "bs8xd5vvbv"),
]


def json_values() -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    names = st.sampled_from(["name", "a", "b", "env", "containers", "é"])
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
    )


@pytest.mark.parametrize(("value", "long", "short"), GOLDEN)
def test_hashes_of_version_1_are_frozen(value: Any, long: str, short: str) -> None:
    assert canonical_hash(value) == long
    assert short_hash(value) == short
    assert verify(value, long)
    assert verify(value, short)


def test_version_1_is_the_blake2b_of_compact_json_with_sorted_keys() -> None:
    written = b'{"a":0,"b":[1.5,true],"c":[{"name":"x"},{"name":"y"}]}'
    value = {"c": [{"name": "y"}, {"name": "x", "z": ""}], "b": [1.5, True], "a": 0.0, "d": None}
    assert canonical_hash(value, length=60) == "v1-" + blake2b(written, digest_size=32).hexdigest()[:60]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": 1}, {"a": 1, "b": ""}),
        ({"a": 1}, {"a": 1, "b": []}),
        ({"a": 1}, {"a": 1, "b": {}}),
        ({"a": 1}, {"a": 1, "b": {"c": {"d": None}}}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": []}]}),
        ({}, None),
        ({"a": {}}, []),
        ("", {}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": 0}, {"n": 0.0}),
        ({"n": 0}, {"n": -0.0}),
        ({"n": 2**70}, {"n": 2.0**70}),
        ([{"name": "a", "v": 1}, {"name": "b"}], [{"name": "b"}, {"name": "a", "v": 1}]),
        ({"env": [{"name": "A", "value": "1"}, {"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A", "value": "1"}]}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
    ],
)
def test_values_that_mean_the_same_hash_alike(left: Any, right: Any) -> None:
    assert canonical_hash(left) == canonical_hash(right)
    assert short_hash(left) == short_hash(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": False}, {}),
        ({"a": 0}, {}),
        ({"a": 0.0}, {}),
        ({"a": True}, {"a": 1}),
        ({"a": False}, {"a": 0}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1.5}, {"a": "1.5"}),
        ({"a": 1.5}, {"a": 1.25}),
        (0, None),
        (False, None),
        (["a", "b"], ["b", "a"]),
        (["", "a"], ["a"]),
        ([None], []),
        ([{}], []),
        ([{"key": "a"}, {"key": "b"}], [{"key": "b"}, {"key": "a"}]),
        # Names that are missing, empty, shared or no strings do not key a list.
        ([{"name": "a"}, {"x": 1}], [{"x": 1}, {"name": "a"}]),
        ([{"name": "a"}, {"name": ""}], [{"name": ""}, {"name": "a"}]),
        ([{"name": "a", "x": 1}, {"name": "a"}], [{"name": "a"}, {"name": "a", "x": 1}]),
        ([{"name": 1}, {"name": 2}], [{"name": 2}, {"name": 1}]),
        ([{"name": {"x": 1}}, {"name": {"x": 2}}], [{"name": {"x": 2}}, {"name": {"x": 1}}]),
        ([{"name": "a"}, "b"], ["b", {"name": "a"}]),
    ],
)
def test_values_that_differ_in_meaning_hash_apart(left: Any, right: Any) -> None:
    assert canonical_hash(left) != canonical_hash(right)
    assert short_hash(left) != short_hash(right)


def test_init_containers_keep_their_order_because_they_run_in_it() -> None:
    first, second = {"name": "a"}, {"name": "b"}
    assert canonical_hash({"initContainers": [first, second]}) != canonical_hash({"initContainers": [second, first]})
    assert canonical_hash({"containers": [first, second]}) == canonical_hash({"containers": [second, first]})


def test_an_env_with_references_keeps_its_order_because_they_look_upwards() -> None:
    host, url = {"name": "HOST", "value": "db"}, {"name": "URL", "value": "postgres://$(HOST)"}
    assert canonical_hash({"env": [host, url]}) != canonical_hash({"env": [url, host]})
    assert canonical_hash({"volumes": [host, url]}) == canonical_hash({"volumes": [url, host]})


@given(json_values(), st.randoms(use_true_random=False))
def test_neither_key_order_nor_empty_fields_change_a_hash(value: Any, rng: random.Random) -> None:
    assert canonical_hash(_rewritten(value, rng)) == canonical_hash(value)


def _rewritten(value: Any, rng: random.Random) -> Any:
    """Write the same value another way: keys in another order, and empty members more."""
    if isinstance(value, dict):
        members = [(key, _rewritten(member, rng)) for key, member in value.items()]
        members += [
            (f"empty-{n}", rng.choice([None, "", [], {}, {"x": [], "y": None}])) for n in range(rng.randint(0, 2))
        ]
        rng.shuffle(members)
        return dict(members)
    return [_rewritten(item, rng) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(min_size=1), json_values(), max_size=6), st.randoms(use_true_random=False))
def test_order_of_a_list_keyed_by_name_does_not_change_a_hash(items: dict[str, Any], rng: random.Random) -> None:
    keyed = [{"name": name, "value": value} for name, value in items.items()]
    shuffled = rng.sample(keyed, len(keyed))
    assert canonical_hash({"things": shuffled}) == canonical_hash({"things": keyed})


@given(json_values())
def test_a_hash_does_not_change_its_value_and_verifies(value: Any) -> None:
    before = repr(value)
    assert verify(value, canonical_hash(value))
    assert verify(value, short_hash(value))
    assert repr(value) == before


@pytest.mark.parametrize("length", [8, 16, 32, 60])
def test_long_hash_is_a_label_value_and_ends_a_dns_label(length: int) -> None:
    text = canonical_hash(POD_TEMPLATE, length=length)
    assert re.fullmatch(rf"v1-[0-9a-f]{{{length}}}", text)
    assert len(text) <= 63
    assert canonical_hash(POD_TEMPLATE, length=60).startswith(text)
    assert verify(POD_TEMPLATE, text)


@pytest.mark.parametrize("length", [6, 10, 24])
def test_short_hash_uses_the_safe_letters_and_starts_with_its_version(length: int) -> None:
    text = short_hash(POD_TEMPLATE, length=length)
    assert re.fullmatch(rf"b[bcdfghjklmnpqrstvwxz2456789]{{{length - 1}}}", text)
    assert verify(POD_TEMPLATE, text)


def test_one_changed_label_is_another_hash() -> None:
    changed = {**POD_TEMPLATE, "metadata": {"labels": {"app": "web", "tier": "back"}}}
    assert not verify(changed, canonical_hash(POD_TEMPLATE))
    assert not verify(changed, short_hash(POD_TEMPLATE))


@pytest.mark.parametrize(
    ("function", "length"), [(canonical_hash, 7), (canonical_hash, 61), (short_hash, 5), (short_hash, 25)]
)
def test_length_out_of_range_is_refused(function: Any, length: int) -> None:
    with pytest.raises(ValueError, match="length must be"):
        function({}, length=length)


@pytest.mark.parametrize("old", ["v3-0123456789abcdef", "dzzzzzzzzz"])
def test_hash_of_a_newer_release_is_not_compared(old: str) -> None:
    with pytest.raises(UnknownHashVersion, match="newer release"):
        verify({}, old)


@pytest.mark.parametrize(
    "old", ["", "v1-", "v1-abc", "1-0123456789abcdef", "abc-0123456789", "bcd", "aaaaaaaaaa", "vx-01234567"]
)
def test_text_that_is_no_hash_is_refused(old: str) -> None:
    with pytest.raises(MalformedHash):
        verify({}, old)


@pytest.mark.parametrize("value", [{1, 2}, {"a": object()}, [float("nan")], {"a": float("inf")}, {"a": b"x"}])
def test_value_outside_json_is_refused(value: Any) -> None:
    with pytest.raises(NotJSON):
        canonical_hash(value)
    assert issubclass(NotJSON, HashError)


@pytest.mark.parametrize("field", ["labels", "annotations", "nodeSelector", "matchLabels", "selector", "data"])
def test_an_empty_value_in_a_map_of_strings_is_no_absent_one(field: str) -> None:
    with_it, without = {"spec": {field: {"a": "b", "gpu": ""}}}, {"spec": {field: {"a": "b"}}}
    for made in (canonical_hash, short_hash):
        assert made(with_it) != made(without)
        assert verify(with_it, made(with_it))
        assert verify(without, made(without))
        assert not verify(with_it, made(without)), "the member was added"
        assert not verify(without, made(with_it)), "the member was removed"


def test_a_value_without_empty_members_keeps_the_hash_that_version_1_gave_it() -> None:
    template = {"labels": {"app": "web"}, "spec": {"containers": [{"name": "a", "args": [""], "workingDir": ""}]}}
    assert canonical_hash(template).startswith("v1-")
    assert short_hash(template)[0] == "b"
    pinned = {"labels": {"app": "web"}, "spec": {"nodeSelector": {"gpu": ""}}}
    assert canonical_hash(pinned) == "v2-ef5b00aec6e0a421b9fac2d2d6e388f9"
    assert canonical_hash(pinned) == canonical_hash({"spec": {"nodeSelector": {"gpu": ""}}, "labels": {"app": "web"}})
    assert short_hash(pinned) == "cwdb68whv4"
