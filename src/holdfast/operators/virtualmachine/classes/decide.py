"""What is said of a VMClass: whether it is valid, which providers can run it, and what a change of it will do.

Machines take a change of their class only after the status is of its generation: what will happen is said before it
happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from holdfast.client.objects import Object
from holdfast.kernel.conditions import Verdict
from holdfast.kinds.virtrigaud import Provider, VirtualMachine
from holdfast.kinds.virtrigaud.machines import PowerState
from holdfast.meta import times
from holdfast.operators.virtualmachine.classes import validate
from holdfast.operators.virtualmachine.classes.observe import World
from holdfast.operators.virtualmachine.machines.observe import key_of, provider_label
from holdfast.operators.virtualmachine.machines.render import mib
from holdfast.operators.virtualmachine.machines.windows import may_restart
from holdfast.operators.virtualmachine.reasons import ClassReason, advised
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision, Notice


def decide(world: World, now: datetime) -> Decision:
    problems = tuple(map(str, validate.problems(world.vm_class)))
    results = {label: _supports(world, provider) for label, (_, provider) in world.providers.items()}
    unsupported = {label: problem for label, (problem, _) in results.items() if problem}
    effect = "" if problems else _effect(world, now)
    verdicts = _verdicts(problems, unsupported)
    fields = {
        "usedByVMs": len(world.machines),
        "lastChange": effect or world.before.last_change,
        "supportedProviders": sorted(results.keys() - unsupported.keys()) or None,
        "validationResults": {
            label: _result(world, label, problem, warnings, now) for label, (problem, warnings) in results.items()
        }
        or None,
    }
    said, turned = status.report(
        world.object, verdicts, now=now, fields=fields, announced={("Ready", "False"): "Warning"}
    )
    notices = (Notice(reason=ClassReason.CHANGED.value, message=effect),) if effect else ()
    return Decision(status=said, notices=(*notices, *turned))


def _verdicts(problems: tuple[str, ...], unsupported: Mapping[str, str]) -> dict[str, Verdict]:
    if problems:
        text = advised(ClassReason.INVALID, "; ".join(problems))
        validated = Verdict.false(ClassReason.INVALID, text)
    else:
        validated = Verdict.true(ClassReason.VALID, "the class is valid")
    if unsupported:
        text = "; ".join(f"{label}: {problem}" for label, problem in sorted(unsupported.items()))
        supported = Verdict.false(ClassReason.UNSUPPORTED, advised(ClassReason.UNSUPPORTED, text))
    else:
        supported = Verdict.true(ClassReason.VALID, "every provider whose machines use the class can run it")
    bad = next((each for each in (validated, supported) if each.status.value != "True"), None)
    ready = bad or Verdict.true(ClassReason.VALID, "machines can use the class")
    return {"Ready": ready, "Validated": validated, "Supported": supported}


def _supports(world: World, provider: Provider) -> tuple[str, tuple[str, ...]]:
    """Why a provider cannot run the class, if it cannot, and what to know beforehand."""
    spec = world.vm_class.spec
    reported = provider.status.reported_capabilities if provider.status else None
    if reported is None:
        return "", ("the provider has not said yet what it can do",)
    disks, kind = reported.supported_disk_types, spec.disk_defaults and spec.disk_defaults.type
    if disks and kind and kind.value not in disks:
        return f"it has no disks of type {kind.value}, only {', '.join(disks)}", ()
    performance, warnings = spec.performance_profile, []
    hot = performance and (performance.cpu_hot_add_enabled or performance.memory_hot_add_enabled)
    if hot and not reported.supports_reconfigure_online:
        warnings.append("it changes only machines that are off, so processors and memory are not added while they run")
    return "", tuple(warnings)


def _result(world: World, label: str, problem: str, warnings: tuple[str, ...], now: datetime) -> dict[str, Any]:
    result = {"valid": not problem, "message": problem or "the provider can run the class"}
    if warnings:
        result["warnings"] = list(warnings)
    before = world.before.validation_results.get(label)
    same = before is not None and (before.valid, before.message or "") == (not problem, result["message"])
    same = same and before is not None and before.warnings == warnings
    at = before.last_validated if before is not None and same else None
    return {**result, "lastValidated": at or times.format(now)}


# --- what a change will do


def _effect(world: World, now: datetime) -> str:
    """What a change of the class does to its machines; empty where it was not changed or has none."""
    seen = world.before.observed_generation
    if seen is None or seen == world.object.meta.generation or not world.machines:
        return ""
    found = Counter(_effects(world, now))
    if not found:
        return f"the class was changed; none of its {len(world.machines)} machines is changed by that"
    parts = ", ".join(f"{number} {what}" for what, number in found.items())
    spec = world.vm_class.spec
    return f"machines get {spec.cpu} CPUs and {mib(spec.memory)} MiB: {parts}"


def _effects(world: World, now: datetime) -> Iterator[str]:
    spec = world.vm_class.spec
    for obj in world.machines:
        machine = obj.decode(VirtualMachine)
        own, current = machine.spec.resources, machine.status.current_resources if machine.status else None
        if current is None:
            continue
        cpus = own.cpu if own and own.cpu else spec.cpu
        memory = own.memory_mib if own and own.memory_mib else mib(spec.memory)
        if (cpus, memory) == (current.cpu, current.memory_mib):
            continue
        grows = cpus >= (current.cpu or 0) and memory >= (current.memory_mib or 0)
        if machine.status is not None and machine.status.power_state is PowerState.OFF:
            yield "while they are off"
        elif grows and _is_online(world, obj, machine):
            yield "while they run"
        elif may_restart(machine.spec.reconfigure, now):
            yield "with a restart"
        else:
            yield "wait for a restart that their spec does not allow now"


def _is_online(world: World, obj: Object, machine: VirtualMachine) -> bool:
    label = provider_label(world.object.key.namespace, key_of(machine.spec.provider_ref, obj.key))
    found = world.providers.get(label)
    reported = found and found[1].status and found[1].status.reported_capabilities
    performance = world.vm_class.spec.performance_profile
    hot = performance and performance.cpu_hot_add_enabled and performance.memory_hot_add_enabled
    return bool(reported and reported.supports_reconfigure_online and hot)
