"""Commands run against a real server on a loopback socket, each test in a namespace of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from click.testing import CliRunner, Result

from holdfast.apiserver.http import listener as serve
from holdfast.apiserver.server import Server
from holdfast.apiserver.verbs.subresources import LogSource
from holdfast.cli import main
from holdfast.client.kubeconfig import connect
from holdfast.client.protocols import Client

T = TypeVar("T")


@contextmanager
def served(directory: Path, *, log_source: LogSource | None = None) -> Iterator[Path]:
    """A server in a thread of its own until the block ends; the path of its kubeconfig, in `directory`."""
    ready = threading.Event()
    held: dict[str, Any] = {}
    kubeconfig = directory / "kubeconfig"

    async def serving() -> None:
        held["loop"], held["stop"] = asyncio.get_running_loop(), asyncio.Event()
        server = await Server.open(None, log_source=log_source)
        listener = await serve.listen(server.handle, "127.0.0.1", tls=server.identity.tls())
        host, port = listener.address
        kubeconfig.write_text(json.dumps(server.identity.kubeconfig(f"https://{host}:{port}")))
        ready.set()
        await held["stop"].wait()
        await listener.drain(1)
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serving()), name="served")
    thread.start()
    assert ready.wait(30), "the server did not start"
    try:
        yield kubeconfig
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join(30)


@dataclass(frozen=True)
class Cli:
    """holdfast on one server, in one namespace."""

    kubeconfig: Path
    directory: Path
    namespace: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.directory), **self.settings}

    def run(self, *arguments: str, given: Any = None) -> Result:
        """A command and how it ended; `given` comes in by standard input, as JSON where it is no text."""
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        verb, *rest = arguments
        words = [verb, "-n", self.namespace, *rest]
        return CliRunner().invoke(main, words, input=text, env=self.environment, prog_name="holdfast")

    def __call__(self, *arguments: str, given: Any = None) -> str:
        """What a command prints; it must succeed, and say nothing else."""
        result = self.run(*arguments, given=given)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def refused(self, *arguments: str, given: Any = None, code: int = 1) -> str:
        """What a command complains of; it must fail."""
        result = self.run(*arguments, given=given)
        assert result.exit_code == code, result.output
        return result.stderr

    def apply(self, *objects: dict[str, Any]) -> str:
        return self("apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": list(objects)})

    def object(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))

    def asked(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """What comes of work that no command does."""

        async def worked() -> T:
            connection = connect(self.kubeconfig)
            try:
                return await work(connection.client)
            finally:
                await connection.client.close()

        return asyncio.run(worked())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command in a process of its own, which goes on meanwhile."""
        verb, *rest = arguments
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", verb, "-n", self.namespace, *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
        )


def configmap(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def deployment(name: str, *, replicas: int = 2, **metadata: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int = 3) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}
