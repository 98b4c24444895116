"""The operator of virtual machines: machines, the providers that run them, and what they are made from."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.floors import FloorReason
from holdfast.kinds import virtrigaud
from holdfast.operators.operator import Operator
from holdfast.operators.virtualmachine.classes import validate as classes
from holdfast.operators.virtualmachine.clones import validate as clones
from holdfast.operators.virtualmachine.controller import CONTROLLERS, configure
from holdfast.operators.virtualmachine.images import validate as images
from holdfast.operators.virtualmachine.machines import validate as machines
from holdfast.operators.virtualmachine.migrations import validate as migrations
from holdfast.operators.virtualmachine.migrations.reasons import MigrationReason
from holdfast.operators.virtualmachine.migrations.verbs import ROLLOUT as MIGRATIONS
from holdfast.operators.virtualmachine.networks import validate as networks
from holdfast.operators.virtualmachine.offers import offered
from holdfast.operators.virtualmachine.placement import validate as placement
from holdfast.operators.virtualmachine.providers import validate as providers
from holdfast.operators.virtualmachine.reasons import (
    ClassReason,
    CloneReason,
    ImageReason,
    MachineReason,
    NetworkReason,
    PolicyReason,
    ProviderReason,
    SnapshotReason,
)
from holdfast.operators.virtualmachine.sets import validate as sets
from holdfast.operators.virtualmachine.sets.reasons import SetReason
from holdfast.operators.virtualmachine.sets.verbs import ROLLOUT as SETS
from holdfast.operators.virtualmachine.settings import IMAGES_FOLDER, PROCESSES, RUNTIME, STORAGE_FOLDER
from holdfast.operators.virtualmachine.shown import SHOWN
from holdfast.operators.virtualmachine.snapshots import validate as snapshots
from holdfast.operators.virtualmachine.verbs import ROLLOUT

OPERATOR: Final = Operator(
    name="virtualmachine",
    summary="Virtual machines on hypervisors (infra.virtrigaud.io VirtualMachine, VMSet, Provider, VMImage, VMClass).",
    controllers=CONTROLLERS,
    rollouts=(ROLLOUT, SETS, MIGRATIONS),
    shown=SHOWN,
    reasons=(
        MachineReason,
        ProviderReason,
        ImageReason,
        ClassReason,
        NetworkReason,
        SnapshotReason,
        CloneReason,
        MigrationReason,
        PolicyReason,
        SetReason,
        FloorReason,
    ),
    reviews={
        virtrigaud.machines.KIND: machines.problems,
        virtrigaud.sets.KIND: sets.problems,
        virtrigaud.snapshots.KIND: snapshots.problems,
        virtrigaud.clones.KIND: clones.problems,
        virtrigaud.providers.KIND: providers.problems,
        virtrigaud.classes.KIND: classes.problems,
        virtrigaud.images.KIND: images.problems,
        virtrigaud.networks.KIND: networks.problems,
        virtrigaud.migrations.KIND: migrations.problems,
        virtrigaud.placement.KIND: placement.problems,
    },
    settings=(RUNTIME, IMAGES_FOLDER, STORAGE_FOLDER),
    configure=configure,
    embedded={RUNTIME.name: PROCESSES},
    defaults=offered,
)
