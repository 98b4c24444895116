"""The kubeconfig that a server writes: into a file of its own, or into one that has entries of other clusters.

In a file that exists, the server replaces its own cluster, user and context and makes that context the current one;
all other entries stay.  Before the first time, the file is copied to ``FILE.backup``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from holdfast.apiserver.auth.identity import write_private
from holdfast.cli.objects.printers import as_yaml
from holdfast.client import settings

_LISTS: Final = ("clusters", "users", "contexts")


def replace(path: Path, config: Mapping[str, Any]) -> None:
    """Write a kubeconfig to a file that has nothing else; one that is the same stays, even on a full disk."""
    content = as_yaml(config).encode()
    if not path.exists() or path.read_bytes() != content:
        write_private(path, content)


def merge(path: Path, config: Mapping[str, Any]) -> None:
    """Merge a kubeconfig into a file, which may not be there yet.

    Raises `KubeconfigError` if the file is not a kubeconfig, and `OSError`.
    """
    path = path.resolve()  # where it is a symbolic link, it stays one
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        before = b""
    there = _read(before, path)
    if before and not _has_own(there, config):
        write_private(path.with_name(f"{path.name}.backup"), before)
    replace(path, merged(there, config))


# --- a context of kubectl, for as long as a cluster runs

RECORD: Final = "context.json"
"""The file in the directory of a cluster that says which context was added to which kubeconfig."""


class Added(msgspec.Struct, frozen=True):
    """A context that was added to a kubeconfig, and what was the current one before."""

    path: str
    context: str
    before: str = ""


def default_path(environment: Mapping[str, str]) -> Path:
    """The kubeconfig that kubectl changes: the first file of ``KUBECONFIG``, or the one at home."""
    first = next((each for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each), "")
    return Path(first) if first else Path.home() / ".kube" / "config"


def add_context(path: Path, config: Mapping[str, Any], *, home: Path) -> Added:
    """Add the cluster, user and context of a kubeconfig to another one, and make that context the current one.

    Entries of other clusters stay: where one has the name already, the context gets a number.  What was added is
    recorded in `home`, the directory of the cluster.  Raises `KubeconfigError` and `OSError`.
    """
    remove_context(home)
    path = path.expanduser().absolute()
    there = _read(path.read_bytes(), path) if path.exists() else {}
    named = _renamed(config, _free_name(there, config))
    before = str(there.get("current-context") or "")
    added = Added(str(path), str(named["current-context"]), before)
    # Recorded first: what was recorded and not added is removed without harm.
    write_private(home / RECORD, msgspec.json.encode(added))
    merge(path, named)
    return added


def remove_context(home: Path) -> Added | None:
    """Remove what `add_context` added for a cluster, and make the former context the current one again."""
    try:
        added = msgspec.json.decode((home / RECORD).read_bytes(), type=Added)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        added = None
    if added is not None:
        path = Path(added.path)
        with contextlib.suppress(OSError, settings.KubeconfigError):  # it was removed, or is another file now
            there = _read(path.read_bytes(), path)
            replace(path.resolve(), without(there, added))
    (home / RECORD).unlink(missing_ok=True)
    return added


def without(there: Mapping[str, Any], added: Added) -> dict[str, Any]:
    """A kubeconfig without what was added to it."""
    names = {"clusters": added.context, "users": f"{added.context}-admin", "contexts": added.context}
    lists = {name: [each for each in there.get(name) or () if each["name"] != names[name]] for name in _LISTS}
    current = there.get("current-context") or ""
    known = {each["name"] for each in lists["contexts"]}
    if current == added.context:
        current = added.before if added.before in known else ""
    return {**there, **lists, "current-context": current}


def _free_name(there: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """A name that no entry of another cluster has."""
    own, taken = config["current-context"], {name for each in _LISTS for name in _names(there, each)}
    names = itertools.chain((own,), (f"{own}-{number}" for number in itertools.count(2)))
    return next(str(name) for name in names if name not in taken and f"{name}-admin" not in taken)


def _renamed(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The kubeconfig of one cluster with other names."""
    (cluster,), (user,) = config["clusters"], config["users"]
    context = {"cluster": name, "user": f"{name}-admin"}
    return {
        **config,
        "clusters": [{**cluster, "name": name}],
        "users": [{**user, "name": f"{name}-admin"}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def merged(there: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with the entries of two; where both have an entry of one name, that of `config` counts."""
    lists = {
        name: [*(each for each in there.get(name) or () if each["name"] not in _names(config, name)), *config[name]]
        for name in _LISTS
    }
    return {**there, **config, **lists}


def _read(text: bytes, path: Path) -> dict[str, Any]:
    try:
        written = text.decode()
    except UnicodeDecodeError:
        raise settings.KubeconfigError(f"{path}: this is not a kubeconfig, because it is not text in UTF-8") from None
    settings.parse(written, path)
    return yaml.safe_load(written) or {}


def _has_own(there: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    return any(_names(there, name) & _names(config, name) for name in _LISTS)


def _names(config: Mapping[str, Any], of: str) -> set[str]:
    return {each["name"] for each in config.get(of) or ()}
