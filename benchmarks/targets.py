"""What is measured: a server of ours in a process of its own, or the one that a kubeconfig leads to."""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp
import yaml

KUBECONFIG: Final = "HOLDFAST_BENCH_KUBECONFIG"
"""The variable that names the kubeconfig of a Kubernetes to compare with."""


@dataclass(frozen=True, slots=True)
class Target:
    """How to reach a server, and how long it took to be there if we started it."""

    url: str
    tls: ssl.SSLContext
    headers: dict[str, str]
    shared: bool = True
    """Whether it is there before and after, so that nothing may be left in it."""
    ready_seconds: float = 0.0
    pids: tuple[int, ...] = ()
    """Its processes on this machine, if they are known."""

    def session(self, connections: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, ssl=self.tls)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
        return aiohttp.ClientSession(
            self.url, connector=connector, headers=self.headers, timeout=timeout, auto_decompress=False
        )


def given() -> Path | None:
    """The kubeconfig of the Kubernetes to compare with, if one was named."""
    path = os.environ.get(KUBECONFIG)
    return Path(path).expanduser() if path else None


def other(kubeconfig: Path) -> Target:
    """The server of a Kubernetes; its processes are known if it was started with ``make kubernetes``."""
    pids = [pid_of(kubeconfig, name) for name in ("kube-apiserver", "etcd")]
    return replace(from_kubeconfig(kubeconfig), pids=tuple(pid for pid in pids if pid))


def pid_of(kubeconfig: Path, program: str) -> int:
    """The process of a control plane that was started with ``make kubernetes``; 0 if there is none."""
    file = kubeconfig.parent / f"{program}.pid"
    pid = int(file.read_text()) if file.exists() else 0
    return pid if Path("/proc", str(pid)).exists() else 0


def from_kubeconfig(path: Path) -> Target:
    """The server of a kubeconfig's current context; tokens and client certificates are understood."""
    config = yaml.safe_load(path.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    authority = _content(cluster, "certificate-authority", path.parent)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    certificate, key = (_content(user, name, path.parent) for name in ("client-certificate", "client-key"))
    if certificate and key:
        with TemporaryDirectory(prefix="holdfast-bench-") as directory:
            pem = Path(directory, "client.pem")
            pem.touch(mode=0o600)
            pem.write_bytes(certificate + b"\n" + key)
            tls.load_cert_chain(pem)
    token = user.get("token") or (Path(user["tokenFile"]).read_text().strip() if "tokenFile" in user else "")
    return Target(cluster["server"], tls, {"Authorization": f"Bearer {token}"} if token else {})


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _content(section: dict[str, Any], name: str, relative_to: Path) -> bytes:
    """What a kubeconfig holds inline or names as a file."""
    if inline := section.get(f"{name}-data"):
        return base64.b64decode(inline)
    return (relative_to / section[name]).read_bytes() if name in section else b""


@contextlib.asynccontextmanager
async def ours(home: Path, name: str) -> AsyncIterator[Target]:
    """A durable server in a process of its own, once it has answered a request; `name` is that of its data.

    Its bytecode is kept in `home`, whatever the environment says: the first start makes it, as an installation does.
    """
    begin = time.perf_counter()
    data = home / name
    command = (sys.executable, "-m", "holdfast", "apiserver", "--data-dir", str(data), "--port", "0")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline().startswith("ready:"):
                raise RuntimeError("the server did not start; its log above says why")
            target = from_kubeconfig(data / "kubeconfig")
            async with target.session(1) as session, session.get("/api/v1/namespaces/default") as answer:
                answer.raise_for_status()
            ready = time.perf_counter() - begin
            yield replace(target, shared=False, ready_seconds=ready, pids=(process.pid,))
        finally:
            process.terminate()
