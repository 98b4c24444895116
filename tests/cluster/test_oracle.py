"""What a real kube-controller-manager did when pod statuses were scripted, held against our controllers.

The conversations were recorded from a real cluster.  They are replayed here in one
process on virtual time: where the recording waited, virtual time passes.
"""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.places import ROOT

from holdfast.client.inprocess import InProcess
from holdfast.cluster.controllers import budgets, deployments, jobs, replicasets, statefulsets
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.controllers.namespaces import NamespaceTerminator
from holdfast.meta.exchange import Request
from holdfast.testing.clusters import Cluster, play

ORACLE = ROOT.parent / "shared" / "oracle"
FAMILIES = ("controllers", "gc")
CONTROLLERS = [module.CONTROLLER for module in (budgets, deployments, jobs, replicasets, statefulsets)]
WORDING = re.compile(r"(\.|^)(message|warning)$|\.details\.causes\[\d+\]\.message$")

_POLL = 0.2
_PATIENCE = 15


def _scenarios() -> list[Any]:
    found = []
    for family in FAMILIES:
        path = ORACLE / "cases" / f"{family}.json"
        cases = json.loads(path.read_text()) if path.exists() else []
        found += [pytest.param(case, id=f"{family}: {case['name']}") for case in cases]
    return found


def _replay() -> ModuleType:
    """The tool that recorded the conversations knows what may differ between two answers."""
    spec = importlib.util.spec_from_file_location("replay", ORACLE / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (ORACLE / "replay.py").exists(), reason="the recorded conversations are not here")
@pytest.mark.parametrize("scenario", _scenarios())
def test_our_controllers_do_what_a_real_controller_manager_did(scenario: dict[str, Any]) -> None:
    replay = _replay()

    async def story(cluster: Cluster) -> list[str]:
        talk = _Talk(cluster, replay)
        await talk.ask("POST", "/api/v1/namespaces", {"metadata": {"name": talk.namespace}})
        return [line for step in scenario["steps"] for line in await talk.differences(step)]

    components = (GarbageCollector(), NamespaceTerminator())
    assert play(story, controllers=CONTROLLERS, components=components) == []


class _Talk:
    """One conversation with a cluster, in a namespace of its own."""

    namespace = "o-replayed"

    def __init__(self, cluster: Cluster, replay: ModuleType) -> None:
        self._cluster = cluster
        self._replay = replay
        self._transport = InProcess(cluster.server.handle, cluster.server.identity.admin_token)
        self._env: dict[str, Any] = {"ns": self.namespace}

    async def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """One request: the code of its answer and what it says."""
        target = urlsplit(path)
        query = {name: tuple(values) for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        given = {"content-type": "application/json", **{name.lower(): text for name, text in (headers or {}).items()}}
        request = Request(
            method=method,
            path=unquote(target.path),
            query=query,
            headers=given,
            body=b"" if body is None else json.dumps(body).encode(),
        )
        response = await self._transport.send(request)
        return {"code": response.status, "body": json.loads(response.body)}

    async def differences(self, step: dict[str, Any]) -> list[str]:
        """Where the answer to a step differs by more than wording."""
        answer = self._replay.comparable(step, await self._answer(step), self.namespace, self._env)
        found = self._replay.differences(step["answer"], answer)
        request = step["request"]
        return [
            f"{request['method']} {request['path']}: {path}: want {want!r}, got {got!r}"
            for path, want, got in found
            if not WORDING.search(path)
        ]

    async def _answer(self, step: dict[str, Any]) -> dict[str, Any]:
        request = self._replay.substitute(step["request"], self._env)
        deadline = self._cluster.loop.time() + step.get("within", _PATIENCE)
        while True:
            answer: dict[str, Any] = await self.ask(
                request["method"], request["path"], request.get("body"), request.get("headers")
            )
            if self._holds(step.get("until"), answer) or self._cluster.loop.time() > deadline:
                break
            await self._cluster.advance(_POLL)
        await self._cluster.advance(step.get("settle", 0))
        self._env |= {name: self._replay.lookup(answer["body"], path) for name, path in step.get("save", {}).items()}
        return answer

    def _holds(self, awaited: dict[str, Any] | None, answer: dict[str, Any]) -> bool:
        if awaited is None:
            return True
        body, wanted = answer["body"], dict(awaited.get("all", {}))
        if "path" in awaited:
            wanted[awaited["path"]] = awaited["equals"]
        return (
            awaited.get("code", answer["code"]) == answer["code"]
            and all(self._replay.lookup(body, path) == value for path, value in wanted.items())
            and ("count" not in awaited or len(body.get("items", ())) == awaited["count"])
        )
