"""Where the process runtime keeps things, and how the paths of a container become paths of this machine.

There is no mount namespace: a process sees the machine's own files.  Every volume
is a directory beneath the node's, and the path at which a container wants it is
replaced in its command, its arguments and its variables by that directory.  Pure
arithmetic of paths; this module must not know what is in a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# What may stand before a path or after it if it is to be one of its own, and not the middle of another.
_BEFORE: Final = r"(?<![\w./~)}\]*?-])"
_AFTER: Final = r"(?![\w.~-])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """The directories of a node.

    root        everything is kept beneath it
    host_paths  whether pods may reach existing directories of the machine by ``hostPath``
    """

    root: Path
    host_paths: bool = False

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    def pod(self, uid: str) -> Path:
        """The directory that is removed with the pod."""
        return self.pods / uid

    def volume(self, uid: str, name: str) -> Path:
        return self.pod(uid) / "volumes" / name

    def work(self, uid: str, container: str) -> Path:
        """Where a container's command is started, unless it says otherwise; also its home."""
        return self.pod(uid) / "containers" / container / "work"

    def scratch(self, uid: str, container: str) -> Path:
        """For temporary files."""
        return self.pod(uid) / "containers" / container / "tmp"

    def message(self, uid: str, container: str) -> Path:
        """Where a container says why it ends."""
        return self.pod(uid) / "containers" / container / "termination-log"

    def log(self, uid: str, container: str, run: int) -> Path:
        return self.pod(uid) / "logs" / container / f"{run}.log"

    def claim(self, namespace: str, uid: str) -> Path:
        """The directory of a claim, which outlives its pods."""
        return self.root / "claims" / namespace / uid


@dataclass(frozen=True, slots=True)
class Mounted:
    """A path of a container, and where that is on this machine."""

    path: str
    real: Path


def rewriting(mounts: Iterable[Mounted]) -> Callable[[str], str]:
    """How to rewrite a text: wherever a path of `mounts` stands in it by itself or begins a longer one.

    >>> rewriting([Mounted("/data", Path("/srv/v1"))])("cp /data/a /database --to=/data")
    'cp /srv/v1/a /database --to=/srv/v1'
    """
    real = {mount.path.rstrip("/"): str(mount.real) for mount in mounts}
    if not real:
        return str
    # The longest first, for one volume may be mounted beneath another.
    paths = "|".join(re.escape(path) for path in sorted(real, key=len, reverse=True))
    pattern = re.compile(f"{_BEFORE}(?:{paths}){_AFTER}")
    return lambda text: pattern.sub(lambda match: real[match[0]], text)
