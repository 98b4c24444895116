"""A PodCliqueSet, typed: its cliques and scaling groups by name, with the defaults of the API.

An object may have been stored without the defaults of an API server, so they are applied
here as well.  This module must not know the objects that are rendered from a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object, Undecodable, decoder
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.kinds.grove.sets import (
    CliqueStartupType,
    PodCliqueSet,
    PodCliqueSetSpec,
    PodCliqueSetTemplate,
    UpdateStrategy,
    UpdateStrategyType,
)
from holdfast.kinds.grove.templates import CliqueTemplate, ScalingGroupTemplate
from holdfast.meta import durations
from holdfast.operators.podcliqueset import hashes

TERMINATION_DELAY: Final = "4h"


class Layout:
    """The spec of a PodCliqueSet."""

    def __init__(self, pod_clique_set: PodCliqueSet, *, minimums: Mapping[str, int] | None = None) -> None:
        status = pod_clique_set.status
        self.set = pod_clique_set
        self.minimums = minimums if minimums is not None else {} if status is None else status.min_available
        self.name = pod_clique_set.metadata.name or ""
        self.namespace = pod_clique_set.metadata.namespace or ""

    @property
    def spec(self) -> PodCliqueSetSpec:
        return self.set.spec

    @property
    def template(self) -> PodCliqueSetTemplate:
        return self.set.spec.template

    @property
    def replicas(self) -> int:
        return self.spec.replicas or 0

    # --- cliques and groups

    @property
    def cliques(self) -> tuple[CliqueTemplate, ...]:
        return self.template.cliques

    @property
    def groups(self) -> tuple[ScalingGroupTemplate, ...]:
        return self.template.pod_clique_scaling_groups

    @cached_property
    def by_name(self) -> dict[str, CliqueTemplate]:
        return {clique.name: clique for clique in self.cliques}

    @cached_property
    def group_of(self) -> dict[str, ScalingGroupTemplate]:
        """The scaling group of each clique that is in one."""
        return {name: group for group in self.groups for name in group.clique_names}

    @cached_property
    def standalone(self) -> tuple[CliqueTemplate, ...]:
        """The cliques that are in no group, in the order of the template."""
        return tuple(clique for clique in self.cliques if clique.name not in self.group_of)

    def members(self, group: ScalingGroupTemplate) -> tuple[CliqueTemplate, ...]:
        """The cliques of a group, in the order that it names them."""
        return tuple(self.by_name[name] for name in group.clique_names if name in self.by_name)

    def group(self, name: str) -> ScalingGroupTemplate | None:
        return next((group for group in self.groups if group.name == name), None)

    def minimum(self, part: CliqueTemplate | ScalingGroupTemplate) -> int:
        """minAvailable of a part: by default all pods of a clique, and one replica of a scaling group.

        That of a clique is fixed when the set is created (`minimums`): a later change of replicas does not change it.
        """
        if isinstance(part, ScalingGroupTemplate):
            return part.min_available or 1
        return self.minimums.get(part.name) or part.spec.min_available or replicas(part)

    # --- hashes

    @cached_property
    def pod_templates(self) -> dict[str, dict[str, Any]]:
        """The pod template of each clique."""
        priority = self.template.priority_class_name
        return {clique.name: hashes.template_of(clique, priority_class=priority) for clique in self.cliques}

    @cached_property
    def generation_hash(self) -> str:
        status = self.set.status
        recorded = None if status is None else status.current_generation_hash
        return hashes.generation_hash(self.pod_templates, recorded=recorded)

    # --- operation

    @property
    def startup(self) -> CliqueStartupType:
        return self.template.clique_startup_type or CliqueStartupType.ANY_ORDER

    @property
    def strategy(self) -> UpdateStrategy:
        return self.spec.update_strategy or UpdateStrategy()

    @property
    def on_delete(self) -> bool:
        return self.strategy.type is UpdateStrategyType.ON_DELETE

    def rolling_update(self, part: CliqueTemplate | ScalingGroupTemplate) -> RollingUpdate | None:
        """The bounds of an update of a part, where the user set any."""
        return part.rolling_update or self.strategy.rolling_update

    @property
    def manages_budgets(self) -> bool:
        """Whether the operator keeps a PodDisruptionBudget for each PodClique."""
        return self.strategy.disruption_budget != "Unmanaged"

    @property
    def termination_delay(self) -> timedelta:
        return durations.parse(self.template.termination_delay or TERMINATION_DELAY)

    @property
    def publishes_not_ready(self) -> bool:
        config = self.template.headless_service_config
        return config is None or config.publish_not_ready_addresses is not False


def read(obj: Object) -> Layout:
    """The layout of a set; cached, because every part of the set reads it.  Raises `Undecodable`."""
    try:
        return _read(obj.raw)
    except msgspec.ValidationError as error:
        raise Undecodable(obj.ref, str(error)) from None


@lru_cache(maxsize=256)
def _read(raw: bytes) -> Layout:
    return Layout(decoder(PodCliqueSet).decode(raw))


def replicas(part: CliqueTemplate | ScalingGroupTemplate) -> int:
    """How many pods or replicas a part is created with."""
    asked = part.spec.replicas if isinstance(part, CliqueTemplate) else part.replicas
    return 1 if asked is None else asked
