"""The controller of Tenants: what it watches, writes and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import BUDGETS, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES, STATEFUL_SETS
from holdfast.meta.names import dns_subdomain
from holdfast.meta.objects import Key
from holdfast.operators.operator import Setting
from holdfast.operators.tenant import admin
from holdfast.operators.tenant.admin import Connect
from holdfast.operators.tenant.decide import act, decide, explain, survey
from holdfast.operators.tenant.observe import REFERENCES, TENANTS, observe, tenant_of
from holdfast.operators.tenant.render import DEFAULTS, Settings
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.disruption import PODS_BY_NODE, in_namespace_of_budget, on_changed_node
from holdfast.runtime.status import Invalid

OWNED: Final = (SERVICE_ACCOUNTS, SERVICES, STATEFUL_SETS)


def _by_label(obj: Object, view: View) -> Iterable[Key]:
    """The Tenant of a server or of a budget."""
    found = tenant_of(obj)
    return () if found is None else (found,)


def controllers(settings: Settings = DEFAULTS, *, connect: Connect = admin.connect) -> tuple[Controller[Any], ...]:
    """The controllers, with the settings of an installation and the way to reach its stores."""
    return (
        Controller(
            name="tenant",
            resource=TENANTS,
            owns=OWNED,
            watches=(
                Watch(resource=PODS, keys=_by_label),
                Watch(resource=BUDGETS, keys=_by_label),
                *REFERENCES.watches(SECRETS, *OWNED),
                on_changed_node(TENANTS, owner=tenant_of, cordoned_only=False),
                in_namespace_of_budget(TENANTS),
            ),
            writes=(PODS, BUDGETS),
            indexes=(REFERENCES.index, PODS_BY_NODE),
            observe=observe,
            decide=partial(decide, settings=settings),
            survey=partial(survey, settings=settings, connect=connect),
            act=partial(act, settings=settings, connect=connect),
            explain=partial(explain, settings=settings),
            invalid=Invalid(
                conditions={"Ready": False, "Reconciling": False, "Degraded": True, "SpecValid": False},
                fields={"currentState": "Blocked"},
            ),
        ),
    )


CONTROLLERS: Final = controllers()


# --- settings


def _image_problem(text: str) -> str | None:
    return None if text and not any(each.isspace() for each in text) else "it is not the name of an image"


def _domain_problem(text: str) -> str | None:
    return next(iter(dns_subdomain(text)), None)


IMAGE: Final = Setting(
    name="tenant.image",
    variable="TENANT_RUSTFS_IMAGE",
    default=DEFAULTS.image,
    meaning="The image of servers whose Tenant names none; another one replaces those servers.",
    problem=_image_problem,
)
CLUSTER_DOMAIN: Final = Setting(
    name="tenant.cluster-domain",
    variable="OPERATOR_CLUSTER_DOMAIN",
    default=DEFAULTS.cluster_domain,
    meaning="The DNS domain of the cluster, in the addresses of servers and stores; another one replaces all servers.",
    problem=_domain_problem,
)


def configure(values: Mapping[str, str]) -> tuple[Controller[Any], ...]:
    """The controllers with the settings of an installation."""
    image, domain = (values.get(each.name, each.default) for each in (IMAGE, CLUSTER_DOMAIN))
    return controllers(Settings(image=image, cluster_domain=domain))
