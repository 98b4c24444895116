"""Problems of a Provider that its schema does not find: durations, the endpoint, and which machines to adopt.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import Provider
from holdfast.kinds.virtrigaud.providers import ConnectionPooling, ProviderHealthCheck, ProviderType
from holdfast.meta import durations
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines.validate import out_of_range
from holdfast.operators.virtualmachine.providers.filters import filter_of

_NOT_OF_LIBVIRT: Final = (ProviderType.VSPHERE, ProviderType.PROXMOX)


def problems(provider: Provider) -> tuple[Problem, ...]:
    """All problems of an object."""
    return (*unreadable(provider), *_endpoint(provider), *_times(provider), *_pool(provider), *_adoption(provider))


def unreadable(provider: Provider) -> tuple[Problem, ...]:
    """The durations of a spec that are out of range."""
    return tuple(problem for path, text in _durations(provider) for problem in out_of_range(path, text))


def _durations(provider: Provider) -> Iterator[tuple[str, str | None]]:
    check = provider.spec.health_check or ProviderHealthCheck()
    pool = provider.spec.connection_pooling or ConnectionPooling()
    yield "spec.healthCheck.interval", check.interval
    yield "spec.healthCheck.timeout", check.timeout
    yield "spec.connectionPooling.connectionTimeout", pool.connection_timeout
    yield "spec.connectionPooling.idleTimeout", pool.idle_timeout


def _endpoint(provider: Provider) -> Iterator[Problem]:
    spec = provider.spec
    if spec.type in _NOT_OF_LIBVIRT and spec.endpoint.startswith("qemu"):
        message = f"{spec.endpoint} is an endpoint of libvirt, and spec.type is {spec.type}"
        yield Problem("spec.endpoint", message, "write the https URL of the hypervisor, or type: libvirt")


def _times(provider: Provider) -> Iterator[Problem]:
    for path, text in _durations(provider):
        if text is not None and not any(out_of_range(path, text)) and durations.parse(text) <= timedelta():
            yield Problem(path, f"{text} is not more than 0s", "write a duration such as 30s")


def _pool(provider: Provider) -> Iterator[Problem]:
    pool = provider.spec.connection_pooling or ConnectionPooling()
    if pool.max_connections and pool.max_idle_connections and pool.max_idle_connections > pool.max_connections:
        message = f"{pool.max_idle_connections} idle connections are more than maxConnections, {pool.max_connections}"
        yield Problem("spec.connectionPooling.maxIdleConnections", message, "write a smaller number")


def _adoption(provider: Provider) -> Iterator[Problem]:
    found = filter_of(provider.metadata.annotations.get(names.ADOPT_FILTER, ""))
    if isinstance(found, str):
        message = f"it does not say which machines to adopt: {found}"
        yield Problem(f"metadata.annotations[{names.ADOPT_FILTER}]", message, 'write JSON such as {"minCPU": 2}')
