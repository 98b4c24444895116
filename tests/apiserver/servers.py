"""Servers to test against: one in this process on virtual time, and one on a loopback socket with TLS.

`Api` calls the server's handler without a socket, one request after another or together, on an event loop whose
clock jumps to the next timer as soon as everybody waits: a watch that ends after an hour is read to its end at once.
`loopback` runs a server in a thread of its own, for clients that speak HTTP.
"""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.certificates import certificate_request

from holdfast.apiserver.http.gate import close
from holdfast.apiserver.http.listener import listen
from holdfast.apiserver.resources import ResourceType
from holdfast.apiserver.server import Server
from holdfast.meta.exchange import Request, Response
from holdfast.testing.loops import VirtualLoop

T = TypeVar("T")
Object = dict[str, Any]

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
"""When every virtual clock begins."""

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
NAMESPACES = "/api/v1/namespaces"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Answer:
    """What a request was answered."""

    status: int
    raw: bytes
    warnings: tuple[str, ...] = ()
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def ok(self) -> Any:
        """The body of a success; a refusal fails the test with its message."""
        self.done()
        return self.body

    def done(self) -> None:
        """Fail the test, if it was not."""
        assert self.status < 300, f"{self.status}: {self.raw.decode()}"

    @property
    def refusal(self) -> tuple[int, str]:
        """Code and reason of a refusal, which is a whole Status."""
        status = self.body
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure"), status
        assert status["code"] == self.status
        return self.status, status.get("reason", "")

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Field and reason of each cause."""
        return [(cause.get("field", ""), cause["reason"]) for cause in self.body["details"].get("causes", ())]

    @property
    def version(self) -> str:
        return str(self.ok["metadata"]["resourceVersion"])


class Api:
    """A server in this process, and a client of it who is its admin unless a token says otherwise."""

    def __init__(self, data_dir: Path | None = None, **options: Any) -> None:
        self._options = options
        self._data_dir = data_dir
        self._loop = VirtualLoop()
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        self.server = self.run(self._open())

    async def _open(self) -> Server:
        return await Server.open(self._data_dir, now=self.now, **self._options)

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(doing)

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time())

    def advance(self, seconds: float) -> None:
        self._loop.advance(seconds)

    def restart(self) -> None:
        """Stop, and go on from what was kept."""
        self.run(self.server.close())
        self.server = self.run(self._open())

    def close(self) -> None:
        self.run(self.server.close())
        self._runner.close()

    # Requests.

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Response:
        """Ask, and get the response as the server gave it; an empty token means none."""
        token = self.server.identity.admin_token if token is None else token
        parts = urlsplit(target)
        query = {name: tuple(values) for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        every = {"authorization": f"Bearer {token}"} if token else {}
        every |= {name.lower(): value for name, value in (headers or {}).items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            every.setdefault("content-type", "application/json")
        return await self.server.handle(Request(method, unquote(parts.path), query, every, body or b""))

    async def answer(self, method: str, target: str, body: Any = None, **options: Any) -> Answer:
        response = await self.send(method, target, body, **options)
        raw = response.body
        if response.stream is not None:
            raw = b"".join([chunk async for chunk in response.stream])
            await close(response.stream)
        return Answer(response.status, raw, response.warnings, response.content_type, response.headers)

    def ask(self, method: str, target: str, body: Any = None, **options: Any) -> Answer:
        return self.run(self.answer(method, target, body, **options))

    def together(self, *asked: tuple[Any, ...], **options: Any) -> list[Answer]:
        """Ask everything at the same time: each is a method, a target and perhaps a body."""

        async def every() -> list[Answer]:
            return await asyncio.gather(*(self.answer(*each, **options) for each in asked))

        return self.run(every())

    def get(self, target: str, **options: Any) -> Answer:
        return self.ask("GET", target, **options)

    def post(self, target: str, body: Any, **options: Any) -> Answer:
        return self.ask("POST", target, body, **options)

    def put(self, target: str, body: Any, **options: Any) -> Answer:
        return self.ask("PUT", target, body, **options)

    def patch(self, target: str, body: Any, kind: str = "merge", **options: Any) -> Answer:
        headers = {"content-type": PATCHES[kind]} | dict(options.pop("headers", {}))
        return self.ask("PATCH", target, body, headers=headers, **options)

    def apply(self, target: str, body: Any, manager: str = "one", **options: Any) -> Answer:
        joint = "&" if "?" in target else "?"
        return self.patch(f"{target}{joint}fieldManager={manager}", body, "apply", **options)

    def delete(self, target: str, body: Any = None, **options: Any) -> Answer:
        return self.ask("DELETE", target, body, **options)

    def watch(self, target: str, **options: Any) -> Watching:
        joint = "&" if "?" in target else "?"
        response = self.run(self.send("GET", f"{target}{joint}watch=1", **options))
        assert response.stream is not None, response.body
        return Watching(self, response)

    def names(self, target: str) -> list[str]:
        """The names of the objects in a list."""
        return [each["metadata"]["name"] for each in self.get(target).ok["items"]]

    def until(self, holds: Callable[[], bool]) -> None:
        """Let the server work until something holds."""

        deadline = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < deadline, "it never came to hold"
            self.run(asyncio.sleep(0))


class Watching:
    """A watch that is being read."""

    def __init__(self, api: Api, response: Response) -> None:
        self.api = api
        self.content_type = response.content_type
        self._stream = response.stream
        self._events: list[Object] = []

    def next(self) -> Object:
        """The next event, as soon as there is one."""
        while not self._events:
            self._events = [json.loads(line) for line in self.api.run(self.chunk()).splitlines()]
        return self._events.pop(0)

    async def chunk(self) -> bytes:
        """What is sent next."""
        assert self._stream is not None
        return await anext(self._stream)

    def rest(self) -> list[Object]:
        """Every event until the server ends the watch."""
        found = []
        try:
            while True:
                found.append(self.next())
        except StopAsyncIteration:
            return found

    def close(self) -> None:
        assert self._stream is not None
        self.api.run(close(self._stream))


def seen(events: list[Object]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


# Objects.


def configmap(name: str, **rest: Any) -> Object:
    meta = {"name": name} | rest.pop("metadata", {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **rest}


def pod(name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "nginx:1"}]
    meta = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def deployment(name: str, replicas: int = 3, **metadata: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, **metadata}, "spec": spec}


TEMPLATE: Object = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
}
WORKLOAD: Object = {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}
JOB: Object = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
WEBHOOK: Object = {
    "name": "hook.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "rules": [
        {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["none"], "operations": ["CREATE"]}
    ],
}
METRIC: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
}
TARGET: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
ROLE_REF: Object = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
SIGNING_REQUEST = b64encode(certificate_request("jane")).decode()

VALID: dict[str, Object] = {
    "v1 Namespace": {},
    "v1 Node": {},
    "v1 Pod": {"spec": TEMPLATE["spec"]},
    "v1 PodTemplate": {"template": TEMPLATE},
    "v1 Service": {"spec": {"ports": [{"port": 80}], "selector": {"app": "x"}}},
    "v1 Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "v1 ConfigMap": {"data": {"k": "v"}},
    "v1 Secret": {"data": {"k": "dg=="}},
    "v1 ServiceAccount": {},
    "v1 PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    "v1 PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "v1 Event": {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "message": "m"},
    "v1 LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    "v1 ResourceQuota": {"spec": {"hard": {"pods": "5"}}},
    "v1 ReplicationController": {"spec": {"selector": {"app": "x"}, "template": TEMPLATE}},
    "apps/v1 Deployment": {"spec": WORKLOAD},
    "apps/v1 ReplicaSet": {"spec": WORKLOAD},
    "apps/v1 StatefulSet": {"spec": {**WORKLOAD, "serviceName": "x"}},
    "apps/v1 DaemonSet": {"spec": WORKLOAD},
    "apps/v1 ControllerRevision": {"revision": 1, "data": {"k": "v"}},
    "batch/v1 Job": {"spec": JOB},
    "batch/v1 CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}},
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [METRIC]}
    },
    "autoscaling/v1 HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}},
    "policy/v1 PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
    "discovery.k8s.io/v1 EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    "events.k8s.io/v1 Event": {
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    },
    "networking.k8s.io/v1 Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "networking.k8s.io/v1 IngressClass": {"spec": {"controller": "example.com/c"}},
    "networking.k8s.io/v1 NetworkPolicy": {"spec": {"podSelector": {}}},
    "storage.k8s.io/v1 StorageClass": {"provisioner": "example.com/p"},
    "networking.k8s.io/v1 ServiceCIDR": {"spec": {"cidrs": ["10.97.0.0/24", "fd00::/112"]}},
    "networking.k8s.io/v1 IPAddress": {
        "metadata": {"name": "10.97.0.7"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}},
    },
    "storage.k8s.io/v1 VolumeAttributesClass": {"driverName": "d.example.com", "parameters": {"iops": "1"}},
    "storage.k8s.io/v1 CSIStorageCapacity": {"storageClassName": "fast", "capacity": "1Gi"},
    "storage.k8s.io/v1 CSIDriver": {"spec": {}},
    "storage.k8s.io/v1 CSINode": {"spec": {"drivers": []}},
    "storage.k8s.io/v1 VolumeAttachment": {
        "spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "scheduling.k8s.io/v1 PriorityClass": {"value": 5},
    "node.k8s.io/v1 RuntimeClass": {"handler": "h"},
    "resource.k8s.io/v1 DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    "resource.k8s.io/v1 ResourceSlice": {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "x"}}}],
        }
    },
    "resource.k8s.io/v1 ResourceClaim": {"spec": DEVICES},
    "resource.k8s.io/v1 ResourceClaimTemplate": {"spec": {"spec": DEVICES}},
    "certificates.k8s.io/v1 CertificateSigningRequest": {
        "spec": {"request": SIGNING_REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}
    },
    "coordination.k8s.io/v1 Lease": {"spec": {"holderIdentity": "me"}},
    "rbac.authorization.k8s.io/v1 Role": {"rules": []},
    "rbac.authorization.k8s.io/v1 RoleBinding": {"roleRef": ROLE_REF, "subjects": []},
    "rbac.authorization.k8s.io/v1 ClusterRole": {"rules": []},
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": {"roleRef": ROLE_REF, "subjects": []},
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": {"webhooks": [WEBHOOK]},
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": {"webhooks": [WEBHOOK]},
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": {"resourceRules": [{**WEBHOOK["rules"][0], "resourceNames": ["none"]}]},
            "validations": [{"expression": "true"}],
        }
    },
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": {
        "spec": {"policyName": "none", "validationActions": ["Deny"]}
    },
    "apiregistration.k8s.io/v1 APIService": {
        "metadata": {"name": "v1.none.example.com"},
        "spec": {"group": "none.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
    },
}
"""What an object of each kind needs at least; its name is the tester's to give, where none is given."""


def collection(kind: ResourceType, namespace: str = "default") -> str:
    """The path of a kind's objects."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def valid(kind: ResourceType, name: str) -> Object:
    """An object of a built-in kind that the server accepts."""
    made = copy.deepcopy(VALID[f"{kind.api_version} {kind.kind}"])
    made.setdefault("metadata", {}).setdefault("name", name)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **made}


# A socket.


@dataclass(frozen=True)
class Loopback:
    """A server on a socket of this machine, and what its clients need."""

    url: str
    token: str
    authority: Path
    kubeconfig: Path


@contextmanager
def loopback(directory: Path, **options: Any) -> Iterator[Loopback]:
    """Serve from a thread of its own until the block ends; `directory` gets the files that clients read."""
    ready: threading.Event = threading.Event()
    held: dict[str, Any] = {}

    async def main() -> None:
        held["loop"], held["stop"] = asyncio.get_running_loop(), asyncio.Event()
        server = await Server.open(None, **options)
        listener = await listen(server.handle, "127.0.0.1", tls=server.identity.tls())
        host, port = listener.address
        held["server"], held["url"] = server, f"https://{host}:{port}"
        ready.set()
        await held["stop"].wait()
        await listener.drain(1)
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="loopback")
    thread.start()
    assert ready.wait(30), "the server did not start"
    identity = held["server"].identity
    served = Loopback(held["url"], identity.admin_token, directory / "ca.crt", directory / "kubeconfig")
    served.authority.write_bytes(identity.authority.certificate_pem)
    served.kubeconfig.write_text(json.dumps(identity.kubeconfig(served.url)))
    try:
        yield served
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join(30)
