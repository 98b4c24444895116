"""The kubeconfig that a server writes: into a file of its own, or into one that has entries of other clusters.

In a file that exists, the server replaces its own cluster, user and context and makes that context the current one;
all other entries stay.  Before the first time, the file is copied to ``FILE.backup``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

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
