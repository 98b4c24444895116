"""A Kubernetes control plane on this machine: built from the published Go modules, started and stopped.

    python -m tests.kubernetes.control_plane build              compile what the cache lacks; ten minutes or more, once
    python -m tests.kubernetes.control_plane start DIRECTORY    start it with its state there; prints its kubeconfig
    python -m tests.kubernetes.control_plane stop DIRECTORY     stop it; its state is kept

It is etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback ports, without kubelets: nodes are
simulated by the tests.  Binaries are cached in ``$XDG_CACHE_HOME/holdfast-kubernetes``; ``HOLDFAST_KUBERNETES_BIN``
names another directory that has them.  Without Go and without binaries, `start` says so and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from holdfast.apiserver.auth.identity import Identity, write_private

KUBERNETES = "1.34.1"
ETCD = "3.5.21"
COMMANDS = {
    "kube-apiserver": "APIServer",
    "kube-controller-manager": "ControllerManager",
    "kube-scheduler": "Scheduler",
}
BINARIES = ("etcd", *COMMANDS)
PATIENCE = 120.0
_PUBLIC_KEY = "service-account.pub"

NO_KUBELETS = ("node-lifecycle-controller", "taint-eviction-controller", "node-ipam-controller")
"""The controllers that act on nodes, whose kubelets would have to answer them."""


class Problem(Exception):
    """Why there is no control plane, and what to do."""


class Unavailable(Problem):
    """This machine cannot have one."""


# --- binaries


def binaries(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the binaries, which need not be there yet."""
    if given := environment.get("HOLDFAST_KUBERNETES_BIN"):
        return Path(given).expanduser()
    cache = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "holdfast-kubernetes" / f"{KUBERNETES}-etcd-{ETCD}"


def missing(directory: Path) -> list[str]:
    return [name for name in BINARIES if not os.access(directory / name, os.X_OK)]


def build(directory: Path, *, dry_run: bool = False) -> None:
    """Compile the binaries that a directory lacks; a dry run resolves the modules and compiles nothing."""
    lacking = list(BINARIES) if dry_run else missing(directory)
    if not lacking:
        return
    go = shutil.which("go")
    if go is None:
        raise Unavailable(
            f"{directory} lacks {', '.join(lacking)}, and there is no Go to build them; install Go 1.24 or newer, or "
            "name a directory that has them with HOLDFAST_KUBERNETES_BIN"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="holdfast-kubernetes-", ignore_cleanup_errors=True) as place:
        if "etcd" in lacking:
            _build_etcd(go, Path(place) / "etcd", directory, dry_run=dry_run)
        if commands := [name for name in lacking if name in COMMANDS]:
            _build_kubernetes(go, Path(place) / "kubernetes", directory, commands, dry_run=dry_run)


def _build_etcd(go: str, source: Path, directory: Path, *, dry_run: bool) -> None:
    say(f"building etcd {ETCD}")
    module = f"go.etcd.io/etcd/server/v3 v{ETCD}"
    _write_module(source, f"module etcd\n\ngo 1.24\n\nrequire {module}\n")
    _write_main(source, "go.etcd.io/etcd/server/v3/etcdmain", "etcdmain.Main(os.Args)")
    compile_programs(go, source, ["-o", str(directory / "etcd"), "."], dry_run=dry_run)


def _build_kubernetes(go: str, source: Path, directory: Path, commands: Sequence[str], *, dry_run: bool) -> None:
    say(f"building {', '.join(commands)} {KUBERNETES}")
    _write_module(source, module_of_kubernetes(_published_module(go, f"k8s.io/kubernetes@v{KUBERNETES}")))
    for name in commands:
        main = f"os.Exit(cli.Run(app.New{COMMANDS[name]}Command()))"
        _write_main(source / name, f"k8s.io/kubernetes/cmd/{name}/app", main, "k8s.io/component-base/cli")
    version = f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    compile_programs(
        go, source, ["-ldflags", version, "-o", f"{directory}/", *(f"./{n}" for n in commands)], dry_run=dry_run
    )


def module_of_kubernetes(published: Mapping[str, Any]) -> str:
    """A go.mod that requires k8s.io/kubernetes.

    Its own go.mod replaces libraries by directories of its repository.  Those are published as well, one minor
    version 0.N for Kubernetes 1.N; a module that requires it must say so itself.
    """
    replaced = [entry["Old"]["Path"] for entry in published["Replace"] if entry["New"]["Path"].startswith("./")]
    version = f"v0.{KUBERNETES.partition('.')[2]}"
    lines = [f"replace {path} => {path} {version}" for path in replaced]
    return "\n".join(
        ["module kubernetes", "", f"go {published['Go']}", "", f"require k8s.io/kubernetes v{KUBERNETES}", "", *lines]
    )


def _published_module(go: str, module: str) -> Mapping[str, Any]:
    found = json.loads(run([go, "mod", "download", "-json", module], cwd=None))
    edited: Mapping[str, object] = json.loads(run([go, "mod", "edit", "-json", found["GoMod"]], cwd=None))
    return edited


def _write_module(source: Path, content: str) -> None:
    source.mkdir()
    (source / "go.mod").write_text(content + "\n")


def _write_main(source: Path, package: str, main: str, *others: str) -> None:
    source.mkdir(exist_ok=True)
    imports = "\n".join(f'\t"{each}"' for each in ("os", *others, package))
    (source / "main.go").write_text(f"package main\n\nimport (\n{imports}\n)\n\nfunc main() {{ {main} }}\n")


def compile_programs(go: str, source: Path, arguments: Sequence[str], *, dry_run: bool = False) -> None:
    """Compile what the arguments of ``go build`` name; a dry run resolves the modules only."""
    if dry_run:
        packages = [each for each in arguments if each.startswith(".")]
        run([go, "list", "-mod=mod", "-deps", *packages], cwd=source)
        return
    run([go, "build", "-mod=mod", "-buildvcs=false", *arguments], cwd=source)


def run(command: Sequence[str], *, cwd: Path | None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"{' '.join(command)} failed:\n{done.stderr.strip()[-4000:]}")
    return done.stdout


# --- processes


def start(directory: Path, found: Path) -> Path:
    """Start a control plane with its state in a directory; its kubeconfig."""
    kubeconfig = directory / "kubeconfig"
    if running := _running(directory):
        say(f"{', '.join(running)} run in {directory} already; stop them first for a new start")
        return kubeconfig
    _forget(directory)  # Processes of an earlier start that were killed are not those that end now.
    identity = Identity.kept(directory / "identity", "127.0.0.1", now=datetime.now(UTC))
    write_private(directory / "tokens.csv", f'{identity.admin_token},admin,admin,"system:masters"\n'.encode())
    public = identity.token_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_private(directory / _PUBLIC_KEY, public)
    clients, peers, port = _free_ports(3)
    url = f"https://127.0.0.1:{port}"
    write_private(kubeconfig, json.dumps(identity.kubeconfig(url)).encode())
    try:
        _launch(directory, found / "etcd", _etcd_options(directory, clients, peers))
        _launch(directory, found / "kube-apiserver", _server_options(directory, clients, port))
        _wait_until(directory, identity, f"{url}/readyz")
        _launch(directory, found / "kube-controller-manager", _controller_options(directory))
        _launch(directory, found / "kube-scheduler", _scheduler_options(directory))
        _wait_until(directory, identity, f"{url}/api/v1/namespaces/default/serviceaccounts/default")
    except BaseException:
        stop(directory)
        raise
    return kubeconfig


def stop(directory: Path) -> None:
    """Stop what runs in a directory, in the reverse order of its start."""
    for process in reversed(_running(directory).values()):
        os.kill(process, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while _command_of(process) and time.monotonic() < deadline:
            time.sleep(0.05)
    _forget(directory)


def _forget(directory: Path) -> None:
    for name in BINARIES:
        (directory / f"{name}.pid").unlink(missing_ok=True)


def _etcd_options(directory: Path, clients: int, peers: int) -> list[str]:
    address = f"http://127.0.0.1:{clients}"
    return [
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={address}",
        f"--advertise-client-urls={address}",
        f"--listen-peer-urls=http://127.0.0.1:{peers}",
    ]


def _server_options(directory: Path, clients: int, port: int) -> list[str]:
    identity = directory / "identity"
    return [
        f"--etcd-servers=http://127.0.0.1:{clients}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={identity / 'serving.crt'}",
        f"--tls-private-key-file={identity / 'serving.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={directory / _PUBLIC_KEY}",
        f"--service-account-signing-key-file={identity / 'service-account.key'}",
        f"--token-auth-file={directory / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        # Nothing routes addresses of Services here: their webhooks are called at their endpoints.
        "--enable-aggregator-routing=true",
    ]


def _controller_options(directory: Path) -> list[str]:
    identity = directory / "identity"
    return [
        f"--kubeconfig={directory / 'kubeconfig'}",
        "--leader-elect=false",
        f"--service-account-private-key-file={identity / 'service-account.key'}",
        f"--root-ca-file={identity / 'ca.crt'}",
        f"--controllers=*,{','.join(f'-{each}' for each in NO_KUBELETS)}",
        *_COMMON,
    ]


def _scheduler_options(directory: Path) -> list[str]:
    return [f"--kubeconfig={directory / 'kubeconfig'}", "--leader-elect=false", *_COMMON]


_COMMON = ("--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=4000")
"""No port for metrics, and no client limits, so that comparisons are fair."""


def _launch(directory: Path, binary: Path, options: Sequence[str]) -> None:
    with (directory / f"{binary.name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(binary), *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (directory / f"{binary.name}.pid").write_text(f"{process.pid}\n")


def _wait_until(directory: Path, identity: Identity, url: str) -> None:
    """Wait until a path of the server answers, and everything that was started still runs."""
    trusted = ssl.create_default_context(cadata=identity.authority.certificate_pem.decode())
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {identity.admin_token}"})
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for name in {each.stem for each in directory.glob("*.pid")} - _running(directory).keys():
            log = directory / f"{name}.log"
            raise Problem(f"{name} ended; the end of {log} says:\n{log.read_text(errors='replace')[-2000:]}")
        try:
            with urllib.request.urlopen(request, context=trusted, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # Not yet.
    raise Problem(f"{url} does not answer after {PATIENCE:g} s; see the logs in {directory}")


def _running(directory: Path) -> dict[str, int]:
    """The processes that were started in a directory and still run, by name."""
    found = {}
    for name in BINARIES:
        file = directory / f"{name}.pid"
        if file.exists() and name in _command_of(process := int(file.read_text())):
            found[name] = process
    return found


def _command_of(process: int) -> str:
    """The command line of a process; empty if it has ended."""
    asked = ["ps", "-o", "stat=,command=", "-p", str(process)]
    answer = subprocess.run(asked, capture_output=True, text=True).stdout
    return "" if answer.startswith("Z") else answer


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


# --- the command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="control_plane", description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build", help="compile what the cache lacks")
    building.add_argument("--dry-run", action="store_true", help="resolve the modules, compile nothing")
    for verb, what in (("start", "start it, and print its kubeconfig"), ("stop", "stop it; its state is kept")):
        verbs.add_parser(verb, help=what).add_argument("directory", type=Path)
    options = parser.parse_args(arguments)
    try:
        match options.verb:
            case "build":
                build(binaries(), dry_run=options.dry_run)
                print(binaries())
            case "start":
                build(binaries())
                print(start(options.directory.absolute(), binaries()))
            case "stop":
                stop(options.directory.absolute())
    except Unavailable as problem:
        say(f"skipped: {problem}")
    except Problem as problem:
        say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
