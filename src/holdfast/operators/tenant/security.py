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
        profile = self.container.get("seccompProfile") or self.pod.get("seccompProfile")
        return str(profile.get("type", "")) if isinstance(profile, Mapping) else ""


def contexts(tenant: Tenant, pool: Pool) -> Contexts:
    """The security contexts of the servers of a pool."""
    made = Contexts(_POD, _CONTAINER)
    asked = Contexts({}, {})
    for scope in (tenant.spec, pool):
        pod = None if scope.security_context is None else msgspec.to_builtins(scope.security_context)
        container = scope.container_security_context
        if pod == {} and container == {}:
            made = asked = Contexts({}, {})
        made, asked = (
            Contexts({**each.pod, **(pod or {})}, {**each.container, **(container or {})}) for each in (made, asked)
        )
    if "runAsNonRoot" in asked.pod or "runAsNonRoot" in asked.container:
        return made
    # A spec that asks for root must not be contradicted by a default.
    return Contexts(
        {**made.pod, **({"runAsNonRoot": False} if asked.pod.get("runAsUser") == 0 else {})},
        {**made.container, **({"runAsNonRoot": False} if asked.container.get("runAsUser") == 0 else {})},
    )


def problems(contexts: Contexts) -> Iterator[str]:
    """What no node would run: fields that contradict each other, and profiles that there cannot be."""
    user = contexts.container.get("runAsUser", contexts.pod.get("runAsUser"))
    if user == 0 and contexts.container.get("runAsNonRoot", contexts.pod.get("runAsNonRoot")):
        yield "runAsUser 0 is root, which runAsNonRoot forbids"
    for field, context in (("securityContext", contexts.pod), ("containerSecurityContext", contexts.container)):
        for name in ("seccompProfile", "appArmorProfile"):
            wrong = _profile_problem(name, context[name]) if context.get(name) is not None else None
            if wrong is not None:
                yield f"{field}.{name}{wrong}"


_PROFILES: Final = ("RuntimeDefault", "Localhost", "Unconfined")
_PROFILE_NAME_MAX: Final = 4095


def _profile_problem(name: str, profile: object) -> str | None:
    """What is wrong with a seccomp or AppArmor profile, by the rules of the API server."""
    if not isinstance(profile, Mapping):
        return " is not an object; write {type: RuntimeDefault}"
    type, local = profile.get("type"), profile.get("localhostProfile")
    if type not in _PROFILES:
        return f".type is {type!r}; write {', '.join(_PROFILES[:-1])} or {_PROFILES[-1]}"
    if type != "Localhost":
        return None if local is None else f".localhostProfile is for type Localhost; remove it, the type is {type}"
    if not isinstance(local, str) or not local.strip():
        return ".localhostProfile is missing; with type Localhost it names the profile on the nodes"
    if name == "appArmorProfile":
        if local != local.strip() or len(local.encode()) > _PROFILE_NAME_MAX:
            return f".localhostProfile has spaces around it, or more than {_PROFILE_NAME_MAX:,} bytes"
    elif local.startswith("/") or ".." in local.split("/"):
        return f".localhostProfile is {local!r}; write a path below the seccomp directory of the kubelet, without '..'"
    return None


# --- images

_OFFICIAL: Final = re.compile(r"(?:(?:(?:index|registry-1)\.)?docker\.io/|ghcr\.io/|quay\.io/)?rustfs/rustfs")
_TAG: Final = re.compile(r"v?(\d{1,6})\.\d{1,6}\.\d{1,6}(?:-(alpha|beta|rc)\.(\d{1,6}))?(-.+)?", re.ASCII)
_VARIANTS: Final = (None, "-glibc")
_FIRST_GOOD_BETA: Final = 9


def image_problem(image: str, contexts: Contexts, *, acknowledged: str = "") -> str | None:
    """Why an image must not be run under the default seccomp profile, which forbids io_uring.

    An acknowledgement holds for an image of which nothing is known, not for a release that is known to need io_uring.
    """
    if contexts.seccomp not in ("", "RuntimeDefault"):
        return None
    reference, _, digest = image.partition("@")
    name, _, tag = reference.rpartition(":")
    official = _OFFICIAL.fullmatch(name)
    # Images with a digest are pulled by it, so their tag says nothing of them.
    release = _TAG.fullmatch(tag) if official and not digest else None
    if release is not None:
        major, stage, number, variant = release.groups()
        if stage == "alpha" or (stage == "beta" and int(number) < _FIRST_GOOD_BETA):
            return f"image {image} needs io_uring, which the default seccomp profile forbids, also with an annotation"
        if int(major) >= 1 and variant in _VARIANTS:
            return None
    if acknowledged == image:
        return None
    return (
        f"image {image} is not known to run under the default seccomp profile; "
        f"if it does, annotate the Tenant with {ACKNOWLEDGED}: {image}"
    )
