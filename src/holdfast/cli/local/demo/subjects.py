"""The objects of the demo: their floors, whether their rollouts are complete, and how they are changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.cli.operator.selection import rollout_kinds
from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import NOT_REPORTED, Demo, Observed, RolloutKind, Wire
from holdfast.runtime.controllers import View
from holdfast.views.trees import Tree


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the demo."""

    manifest: dict[str, Any]
    resource: Resource
    kind: RolloutKind
    demo: Demo

    @property
    def key(self) -> Key:
        return Key(self.manifest["metadata"]["namespace"], self.manifest["metadata"]["name"])

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key.name}"

    @property
    def breakable(self) -> bool:
        return self.demo.recovered is not None

    @property
    def counted(self) -> Resource:
        return self.demo.counted

    @property
    def joins(self) -> bool:
        return self.demo.joins

    def group(self, pod: Object) -> str | None:
        return self.demo.group(self.key.name, pod.meta.labels)

    def floors(self, view: View) -> dict[str, int]:
        wire = self._wire(view)
        return {} if wire is None else {name: floor for name, (floor, _) in self.demo.floors(wire, view).items()}

    def tree(self, view: View, now: datetime) -> Tree | None:
        """Everything that is known of its rollout; None before there is an object."""
        obj = view.get(self.resource, self.key)
        return None if obj is None else self.kind.tree(Observed(obj, view), now)

    def runs(self, view: View) -> bool:
        wire = self._wire(view)
        return wire is not None and self.kind.headline(wire).at_rest

    def recovered(self, view: View) -> bool:
        wire = self._wire(view)
        return wire is not None and self.demo.recovered is not None and self.demo.recovered(wire)

    def says(self, view: View) -> tuple[str, str]:
        wire = self._wire(view)
        if wire is None:
            return "New", NOT_REPORTED
        headline = self.kind.headline(wire)
        return headline.phase, headline.because

    def change(self, version: str) -> Wire:
        return self.demo.change(self.manifest, version)

    def _wire(self, view: View) -> Wire | None:
        obj = view.get(self.resource, self.key)
        return None if obj is None else obj.wire()


def subject_of(manifest: Mapping[str, Any]) -> Subject | None:
    """The subject that a manifest describes; None where the demo only applies it."""
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    for each in rollout_kinds():
        if (each.resource.api_version, each.resource.kind) == (api_version, kind) and each.demo is not None:
            metadata = {"namespace": "default", **manifest["metadata"]}
            return Subject({**manifest, "metadata": metadata}, each.resource, each, each.demo)
    return None


def known() -> str:
    """The kinds that the demo rolls out."""
    return ", ".join(each.resource.kind for each in rollout_kinds() if each.demo is not None)
