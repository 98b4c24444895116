"""The Providers that a cluster of `holdfast up` has from the start: one for each hypervisor that can run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client.resources import Resource
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import PROVIDERS
from holdfast.operators.virtualmachine.settings import local_types


def offered() -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
    """The Providers, whose processes start when a machine refers to them."""
    return tuple((PROVIDERS, _provider(type)) for type in sorted(local_types()))


def _provider(type: str) -> dict[str, Any]:
    return {
        "apiVersion": PROVIDERS.api_version,
        "kind": PROVIDERS.kind,
        "metadata": {"name": type, "namespace": "default", "annotations": {names.ON_DEMAND: "true"}},
        "spec": {
            "type": type,
            "endpoint": "http://localhost" if type == "simulated" else "qemu:///system",
            "runtime": {"image": "holdfast"},
        },
    }
