"""What a machine without a place waits for, in words."""

from __future__ import annotations

from holdfast.kinds.virtrigaud import VMPlacementPolicy
from holdfast.kinds.virtrigaud.machines import PlacementStatus
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.schedule import Refusal, grouped
from holdfast.operators.virtualmachine.placement.validate import problems
from holdfast.operators.virtualmachine.reasons import MachineReason


def awaited(policy: VMPlacementPolicy, name: str, before: PlacementStatus | None) -> tuple[MachineReason, str]:
    """The reason and the message of a machine whose policy has not chosen a host, by what its status says."""
    wrong = "; ".join(f"{each.path}: {each.message}" for each in problems(policy))
    if wrong:
        return MachineReason.WAITING, f"VMPlacementPolicy {name} is not valid: {wrong}"
    if before is None or before.phase != demand.UNPLACEABLE:
        return MachineReason.WAITING_FOR_PLACE, f"VMPlacementPolicy {name} has not chosen a host yet"
    why = grouped(tuple(Refusal(each.host, each.reason) for each in before.refused))
    said = before.reason or f"VMPlacementPolicy {name}: no host is possible"
    return MachineReason.UNPLACEABLE, f"{said}: {why}" if why else said
