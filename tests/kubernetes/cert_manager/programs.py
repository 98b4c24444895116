"""cert-manager on this machine: built from its published Go module, and run beside a cluster.

    python -m tests.kubernetes.cert_manager.programs    compile what the cache lacks, and print the directory

The module has the controllers, the injectors and the webhook of cert-manager, but not its commands, which are modules
of their own and not published.  The small programs beside this file start them.  Binaries and the definitions of the
same version are cached in ``$XDG_CACHE_HOME/holdfast-cert-manager``; ``HOLDFAST_CERT_MANAGER_BIN`` names another
directory that has them.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tests.cli.operator.test_webhooks import free_port
from tests.kubernetes.control_plane import Problem, Unavailable, compile_programs, run, say

from holdfast.apiserver.auth.certificates import LOOPBACK, new_authority, new_serving
from holdfast.apiserver.auth.identity import write_private
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.client.resources import Resource

CERT_MANAGER = "1.21.2"
MODULE = "github.com/cert-manager/cert-manager"
PROGRAMS = ("controller", "cainjector", "webhook")
SOURCES = Path(__file__).parent
Wire = dict[str, Any]


# --- binaries


def binaries(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of the binaries, which need not be there yet."""
    if given := environment.get("HOLDFAST_CERT_MANAGER_BIN"):
        return Path(given).expanduser()
    cache = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "holdfast-cert-manager" / CERT_MANAGER


def missing(directory: Path) -> list[str]:
    lacking = [name for name in PROGRAMS if not os.access(directory / name, os.X_OK)]
    return lacking if any(directory.glob("crds/*.yaml")) else [*lacking, "crds"]


def build(directory: Path) -> None:
    """Compile the programs and copy the definitions, unless the directory has them."""
    if not (lacking := missing(directory)):
        return
    go = shutil.which("go")
    if go is None:
        raise Unavailable(
            f"{directory} lacks {', '.join(lacking)}, and there is no Go to build them; install Go 1.26 or newer, or "
            "name a directory that has them with HOLDFAST_CERT_MANAGER_BIN"
        )
    say(f"building cert-manager {CERT_MANAGER}")
    found = json.loads(run([go, "mod", "download", "-json", f"{MODULE}@v{CERT_MANAGER}"], cwd=None))
    published = json.loads(run([go, "mod", "edit", "-json", found["GoMod"]], cwd=None))
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="holdfast-cert-manager-", ignore_cleanup_errors=True) as place:
        for name in PROGRAMS:
            shutil.copytree(SOURCES / name, Path(place) / name)
        # Only a module below cert-manager's may import its internal packages, and the webhook is one.
        module = (f"module {MODULE}/holdfast", f"go {published['Go']}", f"require {MODULE} v{CERT_MANAGER}")
        (Path(place) / "go.mod").write_text("\n\n".join(module) + "\n")
        compile_programs(go, Path(place), ["-o", f"{directory}/", *(f"./{name}" for name in PROGRAMS)])
    (directory / "crds").mkdir(exist_ok=True)
    for definition in Path(found["Dir"]).glob("deploy/crds/*.yaml"):
        shutil.copyfile(definition, directory / "crds" / definition.name)


def definitions(directory: Path) -> list[Wire]:
    return [yaml.safe_load(each.read_text()) for each in sorted((directory / "crds").glob("*.yaml"))]


# --- processes


def registrations(port: int, authority: bytes) -> dict[Resource, Wire]:
    """The configurations by which the API server asks cert-manager's webhook, as cert-manager's chart has them."""
    rule = {"apiGroups": ["cert-manager.io"], "apiVersions": ["v1"], "resources": ["*/*"]}
    bundle = base64.b64encode(authority).decode()
    return {
        resource: {
            "metadata": {"name": "cert-manager-webhook"},
            "webhooks": [
                {
                    "name": "webhook.cert-manager.io",
                    "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": bundle},
                }
            ],
        }
        for resource, path in ((MUTATING, "mutate"), (VALIDATING, "validate"))
    }


@contextmanager
def running(directory: Path, kubeconfig: Path, home: Path, *, merges: bool = True) -> Iterator[dict[Resource, Wire]]:
    """Run cert-manager on a cluster that has its definitions; the configurations of its webhook.

    home    the directory of its logs and of the certificate of its webhook
    merges  whether it writes an authority beside those before it; versions before 1.19 replaced them
    """
    now, port = datetime.now(UTC), free_port()
    authority = new_authority(now)
    serving = new_serving(authority, LOOPBACK, now=now)
    write_private(home / "webhook.crt", serving.certificate_pem)
    write_private(home / "webhook.key", serving.key_pem)
    options = {
        "cainjector": (f"--feature-gates=CAInjectorMerging={str(merges).lower()}",),
        "webhook": (f"--port={port}", f"--certificate={home / 'webhook.crt'}", f"--key={home / 'webhook.key'}"),
    }
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in PROGRAMS:
            with (home / f"{name}.log").open("wb") as log:
                command = [str(directory / name), f"--kubeconfig={kubeconfig}", *options.get(name, ())]
                processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        yield registrations(port, authority.certificate_pem)
    finally:
        ended = [name for name, process in processes.items() if process.poll() is not None]
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(30)
        for name in ended:
            raise Problem(f"{name} ended; its log says:\n{(home / f'{name}.log').read_text()[-2000:]}")


def main() -> int:
    try:
        build(binaries())
        print(binaries())
    except Unavailable as problem:
        say(f"skipped: {problem}")
    except Problem as problem:
        say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
