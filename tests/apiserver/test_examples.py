"""Holdfast's own definitions install, and every example is accepted, read back and shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from tests.places import ROOT

from holdfast import kinds
from holdfast.apiserver.resources import ResourceType
from holdfast.apiserver.server import Server
from holdfast.cli.manifests.documents import read
from holdfast.kinds.crds import crd_of
from holdfast.meta.exchange import Request, Response

EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in EXAMPLES:
        for document in read(str(path)):
            yield f"{path.parent.name}/{path.name}", document.translated().value


async def ask(
    server: Server, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: str
) -> Response:
    headers = {
        "authorization": f"Bearer {server.identity.admin_token}",
        "content-type": media,
        "accept": TABLE if method == "GET" else "application/json",
    }
    content = b"" if body is None else json.dumps(body).encode()
    return await server.handle(
        Request(method, path, {name: (value,) for name, value in query.items()}, headers, content)
    )


def served(server: Server, document: dict[str, Any]) -> ResourceType:
    return next(
        each for each in server.registry if each.api_version == document["apiVersion"] and each.kind == document["kind"]
    )


def collection(server: Server, document: dict[str, Any], namespace: str) -> str:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = served(server, document)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


async def install(server: Server) -> None:
    for kind in kinds.ALL:
        response = await ask(
            server, "POST", DEFINITIONS, crd_of(kind, conversion={"strategy": "None"}), fieldValidation="Strict"
        )
        assert response.status == 201, response.body


async def apply(server: Server, name: str, document: dict[str, Any]) -> None:
    namespace = document["metadata"].get("namespace", "default")
    if server.store.get("/namespaces", "", namespace) is None:
        await ask(server, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    path = collection(server, document, namespace)
    response = await ask(
        server,
        "PATCH",
        f"{path}/{document['metadata']['name']}",
        document,
        media="application/apply-patch+yaml",
        fieldManager="test",
        fieldValidation="Strict",
    )
    assert response.status in (200, 201), (name, response.body)
    deprecation = served(server, document).deprecation
    assert response.warnings == ((deprecation,) if deprecation else ()), name
    table = json.loads((await ask(server, "GET", path)).body)
    assert document["metadata"]["name"] in [row["cells"][0] for row in table["rows"]]


def test_every_example_applies_strictly_and_is_shown() -> None:
    async def run() -> None:
        server = await Server.open(conversions=kinds.conversion)
        try:
            await install(server)
            for name, document in documents():
                await apply(server, name, document)
        finally:
            await server.close()

    asyncio.run(run())
