"""How the kinds of virtual machines are shown: what is special about their rows, and which objects they refer to."""

from __future__ import annotations

from typing import Final

from holdfast.client.resources import Resource
from holdfast.kinds.virtrigaud import migrations
from holdfast.operators.shown import Reference, ShownKind
from holdfast.operators.virtualmachine.images import view as images
from holdfast.operators.virtualmachine.providers import view as providers
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    IMAGES,
    MACHINES,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)

_MIGRATIONS: Final = Resource.of(migrations.KIND)

SHOWN: Final = (
    ShownKind(resource=PROVIDERS, glance=providers.glance),
    ShownKind(resource=IMAGES, glance=images.glance),
    ShownKind(
        resource=MACHINES,
        references=(
            Reference(path="spec.providerRef", resource=PROVIDERS, relation="provider", back="machine"),
            Reference(path="spec.classRef", resource=CLASSES, relation="class", back="machine"),
            Reference(path="spec.imageRef", resource=IMAGES, relation="image", back="machine"),
            Reference(path="spec.placementRef", resource=POLICIES, relation="placement policy", back="machine"),
        ),
    ),
    ShownKind(
        resource=_MIGRATIONS,
        references=(
            Reference(path="spec.source.vmRef", resource=MACHINES, relation="source", back="migration from here"),
            Reference(path="status.targetVMRef", resource=MACHINES, relation="target", back="migration to here"),
            Reference(path="spec.target.providerRef", resource=PROVIDERS, relation="new provider", back="migration"),
        ),
    ),
    ShownKind(
        resource=SNAPSHOTS,
        references=(Reference(path="spec.vmRef", resource=MACHINES, relation="machine", back="snapshot"),),
    ),
    ShownKind(
        resource=CLONES,
        references=(
            Reference(path="spec.source.vmRef", resource=MACHINES, relation="source", back="clone"),
            Reference(path="status.targetRef", resource=MACHINES, relation="target", back="clone that made it"),
        ),
    ),
)
