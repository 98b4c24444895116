"""The security contexts of servers, and whether their image runs under them.

Fields of a pool override those of its Tenant, which override the defaults below.  An explicit pair of empty
contexts leaves everything to the platform.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kinds.rustfs.pools import Pool
from holdfast.kinds.rustfs.tenants import Tenant

ACKNOWLEDGED: Final = "operator.rustfs.com/runtime-default-image-ack"
"""The annotation that names an image, exactly, as one that runs under the default seccomp profile."""

_POD: Final[Mapping[str, Any]] = {
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "fsGroupChangePolicy": "OnRootMismatch",
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER: Final[Mapping[str, Any]] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True)
class Contexts:
    """The security contexts of a pool's pods and of their containers."""

    pod: Mapping[str, Any]
    container: Mapping[str, Any]

    @property
    def seccomp(self) -> str:
        """The type of the seccomp profile of the containers; empty where the platform decides."""
        profile = self.container.get("seccompProfile") or self.pod.get("seccompProfile") or {}
        return str(profile.get("type", ""))


def contexts(tenant: Tenant, pool: Pool) -> Contexts:
    """The security contexts of the servers of a pool."""
    made = Contexts(_POD, _CONTAINER)
    asked: dict[str, Any] = {}
    for scope in (tenant.spec, pool):
        pod = None if scope.security_context is None else msgspec.to_builtins(scope.security_context)
        container = scope.container_security_context
        if pod == {} and container == {}:
            made, asked = Contexts({}, {}), {}
        made = Contexts({**made.pod, **(pod or {})}, {**made.container, **(container or {})})
        asked |= pod or {}
    if asked.get("runAsUser") == 0 and "runAsNonRoot" not in asked:
        # A spec that asks for root must not be contradicted by a default.
        made = Contexts({**made.pod, "runAsNonRoot": False}, made.container)
    return made


def problems(contexts: Contexts) -> Iterator[str]:
    """Fields that contradict each other."""
    user = contexts.container.get("runAsUser", contexts.pod.get("runAsUser"))
    if user == 0 and contexts.container.get("runAsNonRoot", contexts.pod.get("runAsNonRoot")):
        yield "runAsUser 0 is root, which runAsNonRoot forbids"
    for context in (contexts.pod, contexts.container):
        profile = context.get("seccompProfile") or {}
        if (profile.get("type") == "Localhost") != bool(profile.get("localhostProfile")):
            yield "a seccompProfile has a localhostProfile if, and only if, its type is Localhost"


_OFFICIAL: Final = re.compile(r"(?:(?:index\.)?docker\.io/)?rustfs/rustfs")
_TAG: Final = re.compile(r"v?\d+\.\d+\.\d+(?:-(alpha|beta|rc)\.(\d+))?")
_FIRST_GOOD_BETA: Final = 9


def image_problem(image: str, contexts: Contexts, *, acknowledged: str = "") -> str | None:
    """Why an image must not be run under the default seccomp profile, which forbids io_uring."""
    if contexts.seccomp not in ("", "RuntimeDefault") or acknowledged == image:
        return None
    name, _, tag = image.partition("@")[0].rpartition(":")
    official = _OFFICIAL.fullmatch(name) if "@" not in image else None
    release = _TAG.fullmatch(tag) if official else None
    if release is None:
        return f"image {image} is not known to run under the default seccomp profile"
    stage, number = release[1], int(release[2] or 0)
    if stage == "alpha" or (stage == "beta" and number < _FIRST_GOOD_BETA):
        return f"image {image} needs io_uring, which the default seccomp profile forbids"
    return None
