"""What the controller reads for one VMSet: its machines, its revisions, and the names that others have taken.

`observe` only reads; `decide` draws the conclusions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import msgspec

from holdfast.client.objects import Object, Undecodable
from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.kinds.virtrigaud.machines import VirtualMachine, VirtualMachinePhase, VirtualMachineStatus
from holdfast.kinds.virtrigaud.sets import (
    RollingUpdateVMSetStrategy,
    VMSet,
    VMSetSpec,
    VMSetStatus,
    VMSetUpdateStrategy,
    VMSetUpdateStrategyType,
)
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.resources import MACHINES, SETS
from holdfast.operators.virtualmachine.sets.render import REVISION, Template, machine_name
from holdfast.runtime.controllers import View

_ORDINAL: Final = re.compile(r"-(0|[1-9][0-9]{0,6})")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the set: a VirtualMachine that it controls."""

    object: Object

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def revision(self) -> str:
        """Its revision; a machine without the label belongs to no revision and is replaced."""
        return self.object.meta.labels.get(REVISION, "")

    @property
    def status(self) -> VirtualMachineStatus:
        try:
            return self.object.decode(VirtualMachine).status or VirtualMachineStatus()
        except Undecodable as error:
            return VirtualMachineStatus(message=f"it cannot be read: {error.problem}")

    @property
    def created_at(self) -> datetime:
        return times.parse(self.object.meta.creation_timestamp or "")

    @property
    def ready_since(self) -> datetime | None:
        """Since when it is ready; None: it is not, or is kept off, or its status is of an earlier spec."""
        status = self.status
        if names.MIGRATION_HOLD in self.object.meta.annotations:
            # It is kept off, whatever the template asks for.
            return None
        reboot = self.object.meta.annotations.get(names.REBOOT)
        if status.observed_generation != self.object.meta.generation or (reboot and reboot != status.rebooted_for):
            return None
        ready = next((each for each in status.conditions if each.type == "Ready" and each.status == "True"), None)
        return None if ready is None else times.read(ready.last_transition_time) or self.created_at

    @property
    def failed(self) -> bool:
        """Whether it has failed, or what is done to it fails and is tried again."""
        operation = self.status.operation
        trying = operation is not None and bool(operation.failures)
        return self.ready_since is None and (trying or self.status.phase is VirtualMachinePhase.FAILED)


class Record(msgspec.Struct, frozen=True):
    """A ControllerRevision: a template, and a number that grows with each revision."""

    name: str
    uid: str
    number: int
    template: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object    the VMSet as the API server sent it
    set       the same, decoded
    machines  its machines by their ordinals, including those that are being deleted
    records   its ControllerRevisions, by revision
    taken     names of machines of the set that VirtualMachines of others have
    """

    object: Object
    set: VMSet
    machines: tuple[Machine, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()

    @property
    def spec(self) -> VMSetSpec:
        return self.set.spec

    @property
    def before(self) -> VMSetStatus:
        """The status as it was."""
        return self.set.status or VMSetStatus()

    @property
    def replicas(self) -> int:
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def strategy(self) -> VMSetUpdateStrategyType:
        return (self.spec.update_strategy or VMSetUpdateStrategy()).type or VMSetUpdateStrategyType.ROLLING_UPDATE

    @property
    def rolling(self) -> RollingUpdateVMSetStrategy:
        strategy = self.spec.update_strategy
        return (strategy.rolling_update if strategy is not None else None) or RollingUpdateVMSetStrategy()

    @property
    def start(self) -> int:
        """The ordinal of the first machine."""
        return (self.spec.ordinals.start or 0) if self.spec.ordinals is not None else 0

    @property
    def partition(self) -> int:
        """How many machines, from the first on, keep their revision."""
        rolls = self.strategy is VMSetUpdateStrategyType.ROLLING_UPDATE
        return max((self.rolling.partition or 0) - self.start, 0) if rolls else 0

    def index(self, machine: Machine) -> int | None:
        """The place of a machine, from 0 on; None: its name has no ordinal of the set."""
        found = _ORDINAL.fullmatch(machine.name.removeprefix(self.object.key.name))
        index = -1 if found is None else int(found[1]) - self.start
        return index if index >= 0 else None

    def named(self, index: int) -> str:
        """The name of the machine at a place."""
        return machine_name(self.object.key.name, self.start + index)


def observe(view: View, key: Key) -> World | None:
    """The world of a VMSet; None if it does not exist or is being deleted, when its machines are deleted too."""
    obj = view.get(SETS, key)
    if obj is None or obj.deleting:
        return None
    machines = tuple(Machine(each) for each in view.owned(MACHINES, obj.uid) if each.is_controlled_by(obj.uid))
    world = World(
        object=obj,
        set=obj.decode(VMSet),
        machines=machines,
        records={record.template.revision: record for record in _records(view, obj)},
    )
    ordered = sorted(machines, key=lambda each: (len(each.name), each.name))
    return replace(world, machines=tuple(ordered), taken=frozenset(_taken(view, world)))


class _Kept(msgspec.Struct, frozen=True):
    data: Template
    revision: int = 0


def _records(view: View, owner: Object) -> Iterator[Record]:
    for obj in view.owned(CONTROLLER_REVISIONS, owner.uid):
        if obj.is_controlled_by(owner.uid):
            kept = obj.decode(_Kept)
            yield Record(obj.key.name, obj.uid, kept.revision, kept.data)


def _taken(view: View, world: World) -> Iterator[str]:
    ours = {each.name for each in world.machines}
    for name in map(world.named, range(2 * world.replicas)):
        if name not in ours and view.get(MACHINES, Key(world.object.key.namespace, name)) is not None:
            yield name


def named_like(obj: Object, view: View) -> Iterable[Key]:
    """The VMSet whose machine has the name of a VirtualMachine that no VMSet controls."""
    if obj.controller is not None and obj.controller.kind == SETS.kind:
        return ()
    name, _, ordinal = obj.key.name.rpartition("-")
    key = Key(obj.key.namespace, name)
    return (key,) if ordinal.isdigit() and view.get(SETS, key) is not None else ()
