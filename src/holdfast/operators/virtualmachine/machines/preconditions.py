"""What a VirtualMachine needs: a valid spec, what that refers to, and a provider that answers.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from holdfast.kernel.outcomes import Again, Retry
from holdfast.operators.virtualmachine.machines import references
from holdfast.operators.virtualmachine.machines.facts import Facts
from holdfast.operators.virtualmachine.machines.observe import is_true
from holdfast.operators.virtualmachine.machines.steps import Step, fails, refuses, waits
from holdfast.operators.virtualmachine.machines.validate import problems, unreadable
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason


def invalid(facts: Facts) -> Step | None:
    """A spec that an API server without the webhook of the operator has stored.

    The network cards of a machine that exists are not changed, so what is wrong with them does not hold it up.
    """
    machine = facts.world.machine
    if facts.world.id:
        found = unreadable("spec", machine.spec)
        return refuses(facts, "; ".join(map(str, found))) if found else None
    found = problems(machine)
    return fails(facts, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def missing_references(facts: Facts) -> Step | None:
    world, spec = facts.world, facts.world.machine.spec
    missing = [] if world.provider is not None else [f"Provider {spec.provider_ref.name}"]
    missing += references.missing(world, image=True)
    if spec.placement_ref is not None and world.policy is None and not facts.exists:
        missing.append(f"VMPlacementPolicy {spec.placement_ref.name}")
    if missing:
        are = "does not exist" if len(missing) == 1 else "do not exist"
        return waits(facts, MachineReason.WAITING, f"{' and '.join(missing)} {are}")
    assert world.vm_class is not None, "nothing is missing"
    seen = world.vm_class[1].status and world.vm_class[1].status.observed_generation
    if seen != world.vm_class[0].meta.generation and not facts.exists:
        return waits(facts, MachineReason.WAITING, f"VMClass {spec.class_ref.name} has not been validated yet")
    if not facts.exists and not is_true(world.vm_class[0], "Validated"):
        return waits(facts, MachineReason.WAITING, f"VMClass {spec.class_ref.name} is not valid; see its conditions")
    return None


def provider(facts: Facts) -> Step | None:
    world = facts.world
    assert world.provider is not None, "a rule before this one checks it"
    obj, _ = world.provider
    bound = world.before.bound_provider
    if bound is not None and bound.uid and bound.uid != obj.uid:
        message = f"the Provider {obj.key.name} is not the one that created the machine {world.id}"
        return fails(facts, MachineReason.PROVIDER_CHANGED, message)
    if world.target is None or not is_true(obj, "Ready"):
        return waits(facts, MachineReason.WAITING, f"Provider {obj.key.name} is not ready")
    return None


def unanswered(facts: Facts) -> Step | None:
    error = facts.world.found.error
    if error is None:
        return None
    reason, message = OF_CODE[error.code], f"the provider was asked about the machine: {error.message}"
    if error.transient:
        raise Retry(reason, message)
    step = waits(facts, reason, message)
    return replace(step, outcome=Again(timedelta(minutes=1), "the provider is asked again"))
