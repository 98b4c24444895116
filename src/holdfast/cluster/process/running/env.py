"""The environment of a container: values, references to other objects and fields, and ``$(VAR)`` in texts.

Pure.  The rules are Kubernetes': ``envFrom`` comes before ``env``, a variable may
use those above it, and a reference to a variable that is not defined stays as it is
written.  This module must not know where files are, nor how a command is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, SECRETS, Resource
from holdfast.cluster.process.lifecycle.pods import (
    ConfigMap,
    Container,
    EnvFrom,
    EnvVar,
    FieldRef,
    KeyRef,
    NameRef,
    Pod,
    ResourceRef,
    Secret,
    ValueFrom,
)
from holdfast.meta.objects import Key
from holdfast.meta.quantities import Quantity

CONFIG_ERROR: Final = "CreateContainerConfigError"

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")

T = TypeVar("T")

Lookup = Callable[[Resource, Key], Object | None]
"""How the objects that a pod refers to are read."""


class Refused(Exception):
    """A container cannot be started as things are: a reason for machines, and what to change for people."""

    def __init__(self, message: str, *, reason: str = CONFIG_ERROR) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a pod can ask about where it runs.

    ip        the address of the pod
    host_ip   the address of its node
    capacity  what the node has, which is the limit of a container that has none
    """

    ip: str
    host_ip: str
    capacity: Mapping[str, Quantity]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with ``$(NAME)`` replaced where NAME is defined; ``$$`` stands for one dollar."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(value, text)


def variables(
    pod: Pod,
    container: Container,
    *,
    lookup: Lookup,
    around: Surroundings,
    given: Mapping[str, str],
    placed: Callable[[str], str] = str,
) -> dict[str, str]:
    """The variables of a container, with those that the runtime gives to all beneath them.

    `placed` turns the paths of mounts in a text into where they are on this machine.  Secrets are left as they
    are: what looks like a path in one is more likely a coincidence.
    """
    found = dict(given)
    for source in container.env_from:
        found |= _all_of(pod, source, lookup=lookup, placed=placed)
    for variable in container.env:
        value = _value(pod, container, variable, lookup=lookup, around=around, found=found, placed=placed)
        if value is not None:
            found[variable.name] = value
    return found


def _all_of(pod: Pod, source: EnvFrom, *, lookup: Lookup, placed: Callable[[str], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if source.config_map_ref is not None:
        entries = config_map(pod, source.config_map_ref, lookup)
        found |= {key: placed(value) for key, value in (entries.data if entries else {}).items()}
    if source.secret_ref is not None:
        hidden = secret(pod, source.secret_ref, lookup)
        found |= {key: value.decode(errors="replace") for key, value in (hidden.data if hidden else {}).items()}
    # A key that cannot be a variable's name is passed over, as Kubernetes does.
    return {source.prefix + key: value for key, value in found.items() if key and "=" not in key}


def _value(
    pod: Pod,
    container: Container,
    variable: EnvVar,
    *,
    lookup: Lookup,
    around: Surroundings,
    found: Mapping[str, str],
    placed: Callable[[str], str],
) -> str | None:
    match variable.value_from:
        case None:
            return expand(placed(variable.value or ""), found)
        case _ if variable.value:
            return expand(placed(variable.value), found)
        case ValueFrom(field_ref=FieldRef() as ref):
            return field(pod, ref, around)
        case ValueFrom(resource_field_ref=ResourceRef() as ref):
            return amount(pod, ref, around, own=container)
        case ValueFrom(config_map_key_ref=KeyRef() as ref):
            entries = config_map(pod, ref, lookup)
            text = _key(pod, ref, "ConfigMap", entries.data if entries else None)
            return None if text is None else placed(text)
        case ValueFrom(secret_key_ref=KeyRef() as ref):
            hidden = secret(pod, ref, lookup)
            value = _key(pod, ref, "Secret", hidden.data if hidden else None)
            return None if value is None else value.decode(errors="replace")
    raise Refused(
        f"env {variable.name}: valueFrom names no source; write one of fieldRef, resourceFieldRef, "
        "configMapKeyRef and secretKeyRef"
    )


def _key(pod: Pod, ref: KeyRef, kind: str, data: Mapping[str, T] | None) -> T | None:
    value = (data or {}).get(ref.key)
    if value is None and not ref.optional:
        raise Refused(f"couldn't find key {ref.key} in {kind} {pod.metadata.namespace}/{ref.name}")
    return value


# --- other objects


def config_map(pod: Pod, ref: NameRef | KeyRef, lookup: Lookup) -> ConfigMap | None:
    """A ConfigMap of the pod's namespace; None if it may be absent and is."""
    found = _object(pod, ref, CONFIG_MAPS, lookup=lookup)
    return None if found is None else found.decode(ConfigMap)


def secret(pod: Pod, ref: NameRef | KeyRef, lookup: Lookup) -> Secret | None:
    """A Secret of the pod's namespace; None if it may be absent and is."""
    found = _object(pod, ref, SECRETS, lookup=lookup)
    return None if found is None else found.decode(Secret)


def _object(pod: Pod, ref: NameRef | KeyRef, resource: Resource, *, lookup: Lookup) -> Object | None:
    found = lookup(resource, Key(pod.metadata.namespace, ref.name))
    if found is None and not ref.optional:
        raise Refused(f'{resource.kind.lower()} "{ref.name}" not found')
    return found


# --- fields of the pod itself


def field(pod: Pod, ref: FieldRef, around: Surroundings) -> str:
    """A field of the pod as text; a label or annotation that it lacks is empty."""
    meta, path = pod.metadata, ref.field_path
    one = _SUBSCRIPT.fullmatch(path)
    if one is not None:
        marks = meta.labels if one[1] == "labels" else meta.annotations
        return marks.get(one[2], "")
    known: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: meta.name,
        "metadata.namespace": lambda: meta.namespace,
        "metadata.uid": lambda: meta.uid,
        "metadata.labels": lambda: _listed(meta.labels),
        "metadata.annotations": lambda: _listed(meta.annotations),
        "spec.nodeName": lambda: pod.spec.node_name,
        "spec.serviceAccountName": lambda: pod.spec.service_account_name or "default",
        "status.hostIP": lambda: around.host_ip,
        "status.hostIPs": lambda: around.host_ip,
        "status.podIP": lambda: around.ip,
        "status.podIPs": lambda: around.ip,
    }
    if path not in known:
        raise Refused(f"fieldRef {path!r} is not available to containers; use one of: {', '.join(known)}")
    return known[path]()


def _listed(marks: Mapping[str, str]) -> str:
    """Labels or annotations as a file shows them: a line each, by key, the values quoted."""
    return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(marks.items()))


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(letter, letter) for letter in text) + '"'


def amount(pod: Pod, ref: ResourceRef, around: Surroundings, *, own: Container | None) -> str:
    """What a container may use, in units of the divisor, rounded up; without a limit, what the node has."""
    names = {each.name: each for each in pod.containers}
    container = names.get(ref.container_name) if ref.container_name else own
    which, _, resource = ref.resource.partition(".")
    if container is None or which not in ("limits", "requests") or not resource:
        raise Refused(f"resourceFieldRef {ref.resource!r}: write limits.cpu or requests.memory of a container")
    limits, requests = container.resources.limits, container.resources.requests
    asked = limits.get(resource) if which == "limits" else requests.get(resource, limits.get(resource))
    if asked is None:
        found = around.capacity.get(resource, Quantity(0)) if which == "limits" else Quantity(0)
    else:
        found = Quantity.parse(asked)
    divisor = Quantity.parse(ref.divisor)
    # "0" is what the API writes for a divisor that was not given.
    unit = divisor.nanos or Quantity.parse(1).nanos
    return str(-(-found.nanos // unit))
