"""What is counted, and that clients cannot make the metrics grow without bound."""

from __future__ import annotations

import pytest
from tests.apiserver.servers import Api


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/api/v1/namespaces/default/pods/p/madeup"),
        ("GET", "/api/v1/namespaces/default/madeup/p"),
        ("GET", "/apis/madeup/v1/pods"),
        ("GET", "/madeup"),
        ("MADEUP", "/version"),
        ("MADEUP", "/api/v1/pods"),
    ],
)
def test_names_that_clients_make_up_do_not_become_labels(api: Api, method: str, target: str) -> None:
    api.ask(method, target)
    assert "madeup" not in api.get("/metrics").raw.decode().lower()


@pytest.mark.parametrize("part", ["", "status", "log", "eviction", "binding"])
def test_requests_are_counted_by_their_subresource(api: Api, part: str) -> None:
    api.get(f"/api/v1/namespaces/default/pods/p/{part}".rstrip("/"))
    text = api.get("/metrics").raw.decode()
    assert f'group="",resource="pods",subresource="{part}",verb="GET",version="v1"}} 1.0' in text
