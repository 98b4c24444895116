"""YAML bodies: which scalars, keys and documents are read, and which are refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.servers import CONFIGMAPS, Api

from holdfast.apiserver.http.negotiation import YAML, Form, respond
from holdfast.apiserver.http.yaml_subset import MAX_BYTES, read
from holdfast.meta.exchange import encode


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("y", True),
        ("~", None),
        ("", None),
        ("0644", 420),
        ("0x1f", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("-7", -7),
        ("18446744073709551615", 2**64 - 1),
        ("99999999999999999999", 1e20),
        ("9" * 400, "9" * 400),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1:30:00", "1:30:00"),
        ("2030-01-01", "2030-01-01"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("v1.2", "v1.2"),
        ("-", [None]),
        ("_", "_"),
        ("0x", "0x"),
        ("[a, {b: c}]", ["a", {"b": "c"}]),
    ],
)
def test_scalars_are_read_as_kubernetes_reads_them(text: str, value: Any) -> None:
    found = read(text.encode())
    assert (found, type(found)) == (value, type(value))


def test_keys_become_text() -> None:
    found = read(b"1: a\ntrue: b\n1.5: c\n2030-01-01: d\n'<<': e\n1e3: f\n")
    assert found == {"1": "a", "true": "b", "1.5": "c", "2030-01-01": "d", "<<": "e", "1000": "f"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x {b: c}\nd: {<<: *x}", "merge keys"),
        ("? [a]\n: b", "unsupported map key: a list"),
        ("null: a", "unsupported map key: null"),
        ("%TAG ! x\n---\na", "%TAG"),
        ("a: .inf", "JSON has no such number"),
        ("a: !!binary aGk=", "tag 'tag:yaml.org,2002:binary' is not supported"),
        ("a: !!python/object:x {}", "is not supported"),
        ("a: !!int x", "cannot read 'x' as int"),
        ("--- 1\n--- 2\n", "single document"),
        ("a: *b", "aliases must follow their anchor"),
        ("a: b: c", "mapping values are not allowed"),
        ("# " + "x" * MAX_BYTES, "send it as JSON"),
        ("[" * 300, "exceeded max depth"),
    ],
)
def test_what_is_not_read_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(text.encode())


def test_aliases_share_nothing() -> None:
    found = read(b"a: &x [1]\nb: *x\n")
    found["a"].append(2)
    assert found["b"] == [1]


def test_nesting_by_aliases_is_bounded() -> None:
    lines = ["a0: &a0 " + "[" * 150 + "]" * 150]
    lines += [f"a{n}: &a{n} " + "[" * 100 + f"*a{n - 1}" + "]" * 100 for n in range(1, 5)]
    with pytest.raises(ValueError, match="depth"):
        read("\n".join(lines).encode())


numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(alphabet=st.characters(max_codepoint=0xD7FF))
"""YAML has no pairs of escapes for one character."""
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_json_is_yaml(value: Any) -> None:
    assert read(json.dumps(value).encode()) == value


@given(st.binary(max_size=60) | st.text(alphabet="a:- \n[]{},&*!%|>'\"<1.0", max_size=60).map(str.encode))
def test_any_bytes_are_read_into_json_or_refused(body: bytes) -> None:
    try:
        value = read(body)
    except ValueError:
        return
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


@given(st.dictionaries(texts, values, min_size=1))
def test_what_the_server_writes_in_yaml_it_reads(value: dict[str, Any]) -> None:
    assert read(respond(Form(YAML), encode(value)).body) == value


def test_a_yaml_body_with_keys_that_are_not_text_is_stored(api: Api) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: x, labels: {1: a}}\ndata: {true: b, 2: c}\n"
    answer = api.post(CONFIGMAPS, body, headers={"content-type": "application/yaml"})
    assert answer.ok["data"] == {"true": "b", "2": "c"}
    assert answer.ok["metadata"]["labels"] == {"1": "a"}
    for refused in (b"{[a]: b}", b"{null: a}", b"metadata: {? {a: b} : c}"):
        answer = api.post(CONFIGMAPS, refused, headers={"content-type": "application/yaml"})
        assert answer.refusal == (400, "BadRequest")
