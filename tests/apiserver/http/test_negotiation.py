"""Content negotiation: the best form that client and server have in common, or a refusal that says what there is."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.http import negotiation
from holdfast.apiserver.http.negotiation import YAML, Form, form_of, respond
from holdfast.meta.errors import NotAcceptable
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.objects import GVK

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def asking(accept: str | None = None, *, agent: str = "", **query: str) -> Request:
    headers = {} if accept is None else {"accept": accept}
    return Request("GET", "/", {name: (value,) for name, value in query.items()}, headers | {"user-agent": agent})


@pytest.mark.parametrize(
    ("accept", "media_type", "kind"),
    [
        (None, JSON, ""),
        ("", JSON, ""),
        ("*/*", JSON, ""),
        ("application/*", JSON, ""),
        ("application/json", JSON, ""),
        ("Application/JSON; charset=utf-8", JSON, ""),
        ("application/yaml", YAML, ""),
        ("application/json;stream=watch", JSON, ""),
        ("application/yaml;stream=watch, */*;q=0.1", JSON, ""),
        (TABLE, JSON, "Table"),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", JSON, "Table"),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", JSON, ""),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", JSON, "PartialObjectMetadata"),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", JSON, "PartialObjectMetadata"),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", YAML, "Table"),
        (f"{PROTOBUF},application/json", JSON, ""),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}", JSON, "Table"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON, ""),
        ("application/json;q=0.5,application/yaml", YAML, ""),
        ("application/json;q=0.5,application/yaml;q=0.4", JSON, ""),
        ("*/*,application/yaml", YAML, ""),
        ("application/json;q=0,application/yaml;q=0.1", YAML, ""),
        ("application/json;q=high", JSON, ""),
        (" , ,application/json", JSON, ""),
    ],
)
def test_the_best_form_that_both_know_is_taken(accept: str | None, media_type: str, kind: str) -> None:
    assert form_of(asking(accept)) == Form(media_type, kind)


KUBERNETES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
OFFERED = "406: Not Acceptable\n\nAvailable representations: "
UNCONVERTED = f"only the following media types are accepted: {KUBERNETES}"


@pytest.mark.parametrize(
    ("accept", "many", "message"),
    [
        ("text/plain", False, OFFERED + KUBERNETES),
        ("text/plain", True, f"{OFFERED}{KUBERNETES}, {STREAMS}"),
        (PROTOBUF, True, f"{OFFERED}application/json, application/yaml, application/json;stream=watch"),
        ("application/json;as=Cake;v=v1;g=meta.k8s.io", False, UNCONVERTED),
        ("application/json;as=Table", False, UNCONVERTED),
        ("application/yaml;stream=watch", False, UNCONVERTED),
    ],
)
def test_what_cannot_be_served_is_refused_with_what_can(accept: str, many: bool, message: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        form_of(asking(accept), many=many)
    assert refused.value.message == message
    assert refused.value.code == 406


def test_alternatives_come_best_first_with_what_they_ask_to_be_made() -> None:
    accept = "*/*;q=0.8,application/json;q=0.9;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/yaml"
    found = negotiation.clauses(accept)
    assert [clause.media_type for clause in found] == ["application/yaml", "application/json", "*/*"]
    assert found[1].target == GVK("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
    assert found[0].target is None


def test_watches_are_written_in_json_alone() -> None:
    assert form_of(asking(TABLE)).stream_content_type == JSON
    with pytest.raises(NotAcceptable, match="application/json;stream=watch"):
        _ = form_of(asking("application/yaml")).stream_content_type


@pytest.mark.parametrize(
    ("request_", "pretty"),
    [
        (asking(), False),
        (asking(pretty="true"), True),
        (asking(pretty="1"), True),
        (asking(agent="curl/8.0"), True),
        (asking(agent="curl/8.0", pretty="false"), False),
        (asking(agent="kubectl/v1.30"), False),
        (asking("application/json;pretty=1"), True),
    ],
)
def test_people_get_their_answers_indented(request_: Request, pretty: bool) -> None:
    assert form_of(request_).pretty is pretty


def test_answers_are_written_in_the_form_agreed() -> None:
    body = encode({"kind": "Thing", "metadata": {"name": "a"}})
    assert respond(Form(), body).body == body
    assert respond(Form(pretty=True), body).body == (
        b'{\n  "kind": "Thing",\n  "metadata": {\n    "name": "a"\n  }\n}\n'
    )
    answer = respond(Form(YAML), body)
    assert (answer.status, answer.content_type) == (200, YAML)
    assert answer.body == b"kind: Thing\nmetadata:\n  name: a\n"


@pytest.mark.parametrize(
    "text", ["y", "N", "yes", "on", "true", "null", "~", "1", "1e3", "-1.5E-2", "0x1", "2025-01-15", "", "a: b"]
)
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    body = respond(Form(YAML), encode({"a": text})).body.decode()
    assert body.startswith(("a: '", 'a: "'))
    assert yaml.safe_load(body) == {"a": text}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=3))
def test_every_answer_says_the_same_in_json_and_yaml(value: dict[str, Any]) -> None:
    body = encode(value)
    assert yaml.safe_load(respond(Form(YAML), body).body) == value
    assert json.loads(respond(Form(pretty=True), body).body) == value


@given(st.text(alphabet="aj/*;=,q. 01", max_size=30))
def test_no_header_is_more_than_a_refusal(accept: str) -> None:
    with contextlib.suppress(NotAcceptable):
        form_of(asking(accept))
