"""Why a server refuses a manifest, with the forms of answers that other servers give."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.connecting import Session
from holdfast.cli.manifests import explaining, sources
from holdfast.client.api import ApiClient
from holdfast.meta.errors import Conflict, Forbidden, NotFound, StatusError
from holdfast.meta.exchange import Request, Response

THING = {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "port": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "amount": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "inner": {"$ref": "#/components/schemas/Spec"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


class Server:
    """Publishes schemas, or answers with an error."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def send(self, request: Request) -> Response:
        assert request.path == "/openapi/v3/apis/example.com/v1"
        if isinstance(self._answer, Exception):
            raise self._answer
        return Response(200, json.dumps(self._answer).encode())

    async def close(self) -> None:
        pass


PUBLISHED = {"components": {"schemas": {"Thing": THING, "Spec": SPEC}}}


def explained(folder: Path, spec: str, error: StatusError, *, answer: Any = PUBLISHED) -> list[str]:
    file = folder / "thing.yaml"
    file.write_text(f"apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: t}}\nspec: {spec}\n")
    (manifest,) = sources.read((str(file),))
    session = Session(ApiClient(Server(answer)), "default")
    found = asyncio.run(explaining.complaints(session, manifest, error))
    return [f"{each.path}: {each.message}" for each in found]


def test_a_refusal_without_a_reason_is_explained_by_the_schema_that_the_server_publishes(tmp_path: Path) -> None:
    error = StatusError("failed to create typed patch object", code=500)
    found = explained(tmp_path, "{replcas: 3, replicas: many, inner: {replicas: x}, labels: {a: 1}}", error)
    assert found == [
        "spec.replcas: unknown field",
        "spec.replicas: must be an integer, not a string",
        "spec.labels.a: must be a string, not an integer",
    ]


def test_what_the_schema_accepts_is_not_complained_about(tmp_path: Path) -> None:
    spec = "{replicas: 3, port: http, amount: 1.5, inner: {anything: below}, labels: {a: b}}"
    assert explained(tmp_path, spec, StatusError("no", code=500)) == []


def test_fields_that_only_the_message_names_are_found(tmp_path: Path) -> None:
    error = StatusError('strict decoding error: unknown field "spec.odd", duplicate field "kind"', code=400)
    found = explained(tmp_path, "{odd: 1}", error, answer=NotFound.of_path())
    assert found == ["spec.odd: unknown field", "kind: duplicate field"]


@pytest.mark.parametrize("answer", [{}, {"components": 5}, {"components": {"schemas": {}}}, []])
def test_a_server_that_publishes_nothing_useful_explains_nothing(tmp_path: Path, answer: Any) -> None:
    assert explained(tmp_path, "{odd: 1}", StatusError("no", code=500), answer=answer) == []


@pytest.mark.parametrize("error", [Forbidden("no"), Conflict("no"), StatusError("no", code=503)])
def test_refusals_that_are_not_about_the_content_are_left_to_the_server(tmp_path: Path, error: StatusError) -> None:
    assert explained(tmp_path, "{odd: 1}", error) == []
