"""What is done for a VirtualMachine next: one step, the status that shows it, and the calls to the provider.

A step is found by a ladder of facts: the first rung that applies decides.  What the spec refers to must exist, the
provider must answer, a task that is under way is waited for, and then the machine is created, reverted, stopped,
changed, started and rebooted, in this order.  `act` makes the calls; a call that is done at once leads to the next
step in the same pass, and a task is recorded in the status before anything else is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Again, Done, Outcome, Retry, soonest, until
from holdfast.kinds.virtrigaud.guests import LifecycleHandler
from holdfast.kinds.virtrigaud.machines import Operation, OperationType, PowerState, VirtualMachinePhase
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines import hardware, references, render
from holdfast.operators.virtualmachine.machines.facts import (
    CPU,
    DISK,
    HOLD,
    LOOK,
    MEMORY,
    REQUEST,
    SNAPSHOT,
    Facts,
    pace,
)
from holdfast.operators.virtualmachine.machines.guest_data import MissingKey
from holdfast.operators.virtualmachine.machines.observe import World, is_true
from holdfast.operators.virtualmachine.machines.validate import problems, unreadable
from holdfast.operators.virtualmachine.machines.windows import may_restart, next_opening
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.waiting import awaited
from holdfast.operators.virtualmachine.reasons import CORRECTED_BY_USER, OF_CODE, MachineReason
from holdfast.providers.contract import Change, Machine
from holdfast.runtime.decisions import Decision, Notice

BACKOFF: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=5), jitter=0)
"""The wait after an operation failed so many times in a row."""

_ADDRESSES: Final = timedelta(hours=1)
"""How long the addresses of a guest are waited for."""

_HOOK_TRIES: Final = 5
"""How often a hook after the start is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the provider, and what it brings about."""

    type: OperationType
    machine: Machine | None = None
    change: Change | None = None
    snapshot: str = ""
    handler: LifecycleHandler | None = None
    graceful_seconds: int = 60
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done next, and how it is shown.

    phase      the phase of the machine meanwhile
    settled    the machine is as its spec asks for
    operation  what the status records as being done, or as failed
    pending    changes that wait, in sentences
    drift      what was changed by other means
    finalized  of a deletion: the provider has confirmed it
    """

    phase: VirtualMachinePhase
    reason: MachineReason
    message: str
    call: Call | None = None
    outcome: Outcome = field(default_factory=Done)
    settled: bool = False
    operation: Operation | None = None
    pending: tuple[str, ...] = ()
    drift: str = ""
    finalized: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDecision(Decision):
    """What one pass writes, and the call to the provider that comes before the status."""

    call: Call | None = None
    facts: Facts | None = None


Rung = Callable[[Facts], Step | None]


def next_step(facts: Facts) -> Step:
    """The step of the first rung that applies."""
    rungs = _DELETION if facts.world.object.deleting else _LADDER
    step = next(step for rung in rungs if (step := rung(facts)) is not None)
    drift = facts.drift
    return replace(step, drift=step.drift or drift) if drift and not facts.world.object.deleting else step


# --- what must be right, and what must be there


def _invalid(facts: Facts) -> Step | None:
    """A spec that an API server without the webhook of the operator has stored.

    The network cards of a machine that exists are not changed, so what is wrong with them does not hold it up.
    """
    machine = facts.world.machine
    if facts.world.id:
        found = unreadable("spec", machine.spec)
        return _refuses(facts, "; ".join(map(str, found))) if found else None
    found = problems(machine)
    return _fails(facts, MachineReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def _references(facts: Facts) -> Step | None:
    world, spec = facts.world, facts.world.machine.spec
    missing = [] if world.provider is not None else [f"Provider {spec.provider_ref.name}"]
    missing += references.missing(world, image=True)
    if spec.placement_ref is not None and world.policy is None and not facts.exists:
        missing.append(f"VMPlacementPolicy {spec.placement_ref.name}")
    if missing:
        are = "does not exist" if len(missing) == 1 else "do not exist"
        return _waits(facts, MachineReason.WAITING, f"{' and '.join(missing)} {are}")
    assert world.vm_class is not None, "nothing is missing"
    seen = world.vm_class[1].status and world.vm_class[1].status.observed_generation
    if seen != world.vm_class[0].meta.generation and not facts.exists:
        return _waits(facts, MachineReason.WAITING, f"VMClass {spec.class_ref.name} has not been validated yet")
    if not facts.exists and not is_true(world.vm_class[0], "Validated"):
        return _waits(facts, MachineReason.WAITING, f"VMClass {spec.class_ref.name} is not valid; see its conditions")
    return None


def _provider(facts: Facts) -> Step | None:
    world = facts.world
    assert world.provider is not None, "a rung before this one checks it"
    obj, _ = world.provider
    bound = world.before.bound_provider
    if bound is not None and bound.uid and bound.uid != obj.uid:
        message = f"the Provider {obj.key.name} is not the one that created the machine {world.id}"
        return _fails(facts, MachineReason.PROVIDER_CHANGED, message)
    if world.target is None or not is_true(obj, "Ready"):
        return _waits(facts, MachineReason.WAITING, f"Provider {obj.key.name} is not ready")
    return None


def _error(facts: Facts) -> Step | None:
    error = facts.world.found.error
    if error is None:
        return None
    reason, message = OF_CODE[error.code], f"the provider was asked about the machine: {error.message}"
    if error.transient:
        raise Retry(reason, message)
    step = _waits(facts, reason, message)
    return replace(step, outcome=Again(timedelta(minutes=1), "the provider is asked again"))


# --- what is under way


def _running(facts: Facts) -> Step | None:
    if facts.running is None:
        return None
    operation, state = facts.running
    # When the provider says, but in a long task also on the way, to record its progress.
    after = timedelta(seconds=max(state.again_after or LOOK.total_seconds(), 0.1))
    if state.percentage is not None:
        after = min(after, pace(operation, facts.now))
    return replace(
        _works(facts, operation.type), operation=operation, outcome=Again(after, f"task {operation.task_ref} is due")
    )


def _failing(facts: Facts) -> Step | None:
    """An operation that failed is tried again after a while, or at once when the spec was changed."""
    failed = facts.failed
    if failed is None or not facts.is_observed:
        return None
    by_user, failures = failed.reason in CORRECTED_BY_USER, failed.failures or 1
    last = times.read(failed.last_failure_time) or facts.now
    due = last + BACKOFF.cap if by_user else _due(facts, failed)
    if demand.needs_place(facts.world.object, facts.world.machine) or demand.is_elsewhere(facts.world.machine, failed):
        return None
    if due <= facts.now or (failed.type in _IN_THEIR_TURN and facts.exists):
        return None
    message = f"{_WORDS[failed.type]} failed {failures} times: {failed.message}"
    reason = next((each for each in MachineReason if each == failed.reason), MachineReason.FAILED)
    step = _fails(facts, reason, message) if by_user else _waits(facts, reason, message)
    return replace(step, operation=failed, outcome=until(due, now=facts.now, because="it is tried again"))


_PASSING: Final = frozenset({MachineReason.UNAVAILABLE, MachineReason.FAILED})
"""Failures that pass by themselves."""

_IN_THEIR_TURN: Final = frozenset({OperationType.RECONFIGURE, OperationType.POST_START})
"""What may fail without keeping a machine from anything else."""

_WORDS: Final = {
    OperationType.CREATE: "creating the machine",
    OperationType.DELETE: "deleting the machine",
    OperationType.POWER_ON: "starting the machine",
    OperationType.POWER_OFF: "stopping the machine",
    OperationType.SHUTDOWN: "shutting down the machine",
    OperationType.REBOOT: "rebooting the machine",
    OperationType.RECONFIGURE: "changing the hardware of the machine",
    OperationType.REVERT: "reverting the machine",
    OperationType.PRE_STOP: "the hook before the stop",
    OperationType.POST_START: "the hook after the start",
}


# --- a machine that does not exist


def _absent(facts: Facts) -> Step | None:
    world = facts.world
    if facts.exists:
        return None
    if not world.id and world.object.meta.labels.get(names.ADOPTED) == "true":
        return _waits(facts, MachineReason.WAITING_FOR_ADOPTION, "the machine to adopt is not known yet")
    drift = facts.drift
    if drift and world.machine.spec.drift_policy == "Report":
        return _fails(facts, MachineReason.DRIFTED, drift)
    waiting = _image(facts) or _place(facts)
    if waiting is not None:
        return waiting
    try:
        machine = render.machine(world)
    except MissingKey as error:
        return _fails(facts, MachineReason.NO_CLOUD_INIT_KEY, str(error))
    details = {f"{DISK}{disk.name}": str(disk.size_gib) for disk in machine.disks if disk.name != render.ROOT}
    details |= {CPU: str(machine.cpus), MEMORY: str(machine.memory_mib)}
    request = world.object.meta.annotations.get(names.REBOOT)
    if request:
        # A machine that is new need not be rebooted.
        details[REQUEST] = request
    return _calls(facts, Call(type=OperationType.CREATE, machine=machine, details=details))


def _image(facts: Facts) -> Step | None:
    """What a machine waits for until its image is on the provider."""
    world = facts.world
    if world.image is None or world.provider is None:
        return None
    obj, image = world.image
    name, kind = world.provider[0].key.name, world.provider[1].spec.type
    source = render.source_of(image.spec, kind)
    if source is None:
        path = f"VMImage {obj.key.name} has no source for a provider of type {kind.value}"
        return _fails(facts, MachineReason.INVALID_SPEC, f"spec.imageRef: {path}")
    if not render.needs_import(source) or world.capabilities.supports_image_import is False:
        return None
    found = world.image_on_provider
    if found is not None and found.available:
        return None
    missing = image.spec.prepare.on_missing if image.spec.prepare else None
    said = f": {found.message}" if found is not None and found.message else ""
    message = f"VMImage {obj.key.name} is not on provider {name}{said}"
    if missing == "Fail":
        return _fails(facts, MachineReason.IMAGE_MISSING, message)
    return _waits(facts, MachineReason.WAITING_FOR_IMAGE, message)


def _place(facts: Facts) -> Step | None:
    """What a machine waits for until its VMPlacementPolicy has chosen a host."""
    world = facts.world
    if world.policy is None or not demand.needs_place(world.object, world.machine):
        return None
    return _waits(facts, *awaited(world.policy[1], world.policy[0].key.name, world.before.placement))


# --- a machine that exists


def _held(facts: Facts) -> Step | None:
    """Keep a machine off that is being migrated, or was.

    It is stopped once for each migration, also if it is off: a start may still be under way on the provider, where the
    requests for one machine are carried out in their order.
    """
    hold = facts.hold
    if not hold:
        return None
    if facts.held_for != hold or facts.power is not PowerState.OFF:
        return _stopped(facts, graceful=True, details={HOLD: hold})
    by = f"VMMigration {hold.partition('/')[0]} keeps it off; the annotation {names.MIGRATION_HOLD} says so"
    return replace(_settled(facts), message=f"the machine is off: {by}")


def _revert(facts: Facts) -> Step | None:
    world, spec = facts.world, facts.world.machine.spec.snapshot
    if spec is None or spec.revert_to_ref is None:
        return None
    name = spec.revert_to_ref.name
    if world.snapshot is None:
        return _waits(facts, MachineReason.WAITING_FOR_SNAPSHOT, f"VMSnapshot {name} does not exist")
    obj, snapshot = world.snapshot
    if facts.reverted_to == obj.uid:
        return None
    status = snapshot.status
    if status is None or status.phase is not SnapshotPhase.READY or not status.snapshot_id:
        return _waits(facts, MachineReason.WAITING_FOR_SNAPSHOT, f"VMSnapshot {name} is not ready")
    if snapshot.spec.vm_ref.name != world.object.key.name:
        message = f"spec.snapshot.revertToRef: VMSnapshot {name} is of the machine {snapshot.spec.vm_ref.name}"
        return _fails(facts, MachineReason.INVALID_SPEC, message)
    return _calls(facts, Call(type=OperationType.REVERT, snapshot=status.snapshot_id, details={SNAPSHOT: obj.uid}))


def _report_drift(facts: Facts) -> Step | None:
    drift = facts.drift
    if not drift or facts.world.machine.spec.drift_policy != "Report":
        return None
    return replace(_waits(facts, MachineReason.DRIFTED, drift), drift=drift)


def _stop(facts: Facts) -> Step | None:
    if facts.power is not PowerState.ON or facts.wanted_power is PowerState.ON:
        return None
    return _stopped(facts)


def _stopped(facts: Facts, *, graceful: bool = False, details: dict[str, str] | None = None) -> Step:
    """Stop a machine that runs: with its hook first, and gracefully where the spec says so."""
    spec = facts.world.machine.spec
    lifecycle = spec.lifecycle
    hook = lifecycle.pre_stop if lifecycle and facts.power is not PowerState.OFF else None
    if hook is not None and not _is_done(facts, OperationType.PRE_STOP):
        return _calls(facts, Call(type=OperationType.PRE_STOP, handler=hook))
    graceful = graceful or spec.power_state is PowerState.OFF_GRACEFUL
    seconds = graceful_seconds(facts.world)
    return _calls(
        facts,
        Call(
            type=OperationType.SHUTDOWN if graceful else OperationType.POWER_OFF,
            graceful_seconds=seconds,
            details=details or {},
        ),
    )


def graceful_seconds(world: World) -> int:
    lifecycle = world.machine.spec.lifecycle
    given = lifecycle.graceful_shutdown_timeout if lifecycle else None
    return max(int(durations.parse(given or "60s").total_seconds()), 1)


def _hardware(facts: Facts) -> Step | None:
    """Change the hardware where that is possible now; what waits for a restart is kept for the end of the ladder."""
    seen = facts.world.vm_class and facts.world.vm_class[1].status
    generation = facts.world.vm_class and facts.world.vm_class[0].meta.generation
    if seen is None or seen.observed_generation != generation:
        # The VMClass says first what a change of it will do.
        return None
    found = hardware.difference(facts)
    if found.refused:
        return _refuses(facts, "; ".join(found.refused))
    change = found.online
    if change is None and found.offline is not None and may_restart(facts.world.machine.spec.reconfigure, facts.now):
        change = found.offline
    if change is None:
        return None
    if facts.failed is not None and _tried_lately(facts, OperationType.RECONFIGURE):
        if facts.power is PowerState.ON or facts.failed.reason not in _PASSING:
            return None
        # A machine that is off is not started before its change was tried again: some can be made only now.
        message = f"{_WORDS[facts.failed.type]} failed {facts.failed.failures} times: {facts.failed.message}"
        outcome = until(_due(facts, facts.failed), now=facts.now, because="the change is tried again")
        return replace(_waits(facts, MachineReason.UPDATING, message), outcome=outcome)
    return _calls(facts, Call(type=OperationType.RECONFIGURE, change=change, details=hardware.details(change)))


def _tried_lately(facts: Facts, type: OperationType) -> bool:
    failed = facts.failed
    if failed is None or failed.type is not type or not facts.is_observed:
        return False
    return facts.now < _due(facts, failed)


def _due(facts: Facts, failed: Operation) -> datetime:
    """When an operation that failed is tried again."""
    return (times.read(failed.last_failure_time) or facts.now) + BACKOFF.delay(failed.failures or 1)


def _start(facts: Facts) -> Step | None:
    if facts.power is PowerState.ON or facts.wanted_power is not PowerState.ON:
        return None
    return _calls(facts, Call(type=OperationType.POWER_ON))


def _reboot(facts: Facts) -> Step | None:
    request = facts.world.object.meta.annotations.get(names.REBOOT)
    if not request or request == facts.rebooted_for or facts.power is not PowerState.ON:
        return None
    return _calls(facts, Call(type=OperationType.REBOOT, details={REQUEST: request}))


def _post_start(facts: Facts) -> Step | None:
    """The hook after a start, once the guest has an address; it is given up after some failures."""
    lifecycle = facts.world.machine.spec.lifecycle
    hook = lifecycle.post_start if lifecycle else None
    if hook is None or facts.power is not PowerState.ON:
        return None
    asked = _is_done(facts, OperationType.POWER_ON) or _is_recorded(facts, OperationType.POST_START)
    if not asked or _is_done(facts, OperationType.POST_START):
        return None
    failures = facts.failed.failures or 0 if facts.failed else 0
    assert facts.description is not None, "the machine exists"
    if not facts.description.ips and hook.snapshot is None and failures < _HOOK_TRIES:
        waits = Operation(type=OperationType.POST_START, start_time=_began(facts, OperationType.POST_START))
        step = _settled(facts)
        outcome = step.outcome if isinstance(step.outcome, Again) else Again(LOOK, "the guest has no address yet")
        return replace(step, operation=waits, outcome=outcome)
    if facts.failed is not None and _tried_lately(facts, OperationType.POST_START):
        outcome = until(_due(facts, facts.failed), now=facts.now, because="the hook is tried again")
        return replace(_settled(facts), operation=facts.failed, outcome=outcome)
    if failures >= _HOOK_TRIES:
        said = facts.failed.message if facts.failed else ""
        notice = Notice(
            type="Warning", reason=MachineReason.HOOK_FAILED.value, message=f"spec.lifecycle.postStart: {said}"
        )
        return replace(_settled(facts), notices=(notice,))
    return _calls(facts, Call(type=OperationType.POST_START, handler=hook))


def _is_done(facts: Facts, type: OperationType) -> bool:
    return any(each.type is type for each in facts.done)


def _is_recorded(facts: Facts, type: OperationType) -> bool:
    return facts.world.operation is not None and facts.world.operation.type is type


def _settled(facts: Facts) -> Step:
    """The machine is as its spec asks for, but for what waits for a restart."""
    running = facts.power is not PowerState.OFF
    found = hardware.difference(facts)
    pending, outcome = (*found.restart, *found.kept), _addresses(facts)
    reason, message = MachineReason.SUCCEEDED, "the machine runs" if running else "the machine is off"
    if found.restart:
        opening = next_opening(facts.world.machine.spec.reconfigure, facts.now)
        when = "" if opening is None else f" at {times.format(opening)}"
        message += f"; changes wait for a restart{when}: {', '.join(found.restart)}"
        if opening is not None:
            outcome = until(opening, now=facts.now, because="a maintenance window opens")
    failed = facts.failed if facts.failed and facts.failed.type is OperationType.RECONFIGURE else None
    if failed is not None and (found.online or found.offline):
        due = _due(facts, failed)
        message = f"{message}; {_WORDS[failed.type]} failed {failed.failures} times: {failed.message}"
        if found.online or may_restart(facts.world.machine.spec.reconfigure, facts.now):
            outcome = soonest((outcome, until(due, now=facts.now, because="the change is tried again")))
    else:
        failed = None
    return Step(
        phase=VirtualMachinePhase.RUNNING if running else VirtualMachinePhase.STOPPED,
        reason=reason,
        message=message,
        settled=True,
        pending=pending,
        outcome=outcome,
        operation=failed,
    )


def _addresses(facts: Facts) -> Outcome:
    """When to look for the addresses of a guest: when the provider says, or after twice the time, for a while."""
    found = facts.description
    assert found is not None, "the machine exists"
    if facts.power is not PowerState.ON:
        return Done()
    if found.again_after is not None:
        return Again(timedelta(seconds=max(found.again_after, 0.1)), "the guest starts")
    if found.ips:
        return Done()
    since = _ready_since(facts)
    waited = facts.now - since
    if waited > _ADDRESSES:
        return Done()
    return Again(max(waited, LOOK), "the guest has no address yet")


def _ready_since(facts: Facts) -> datetime:
    found = next((each for each in facts.world.before.conditions if each.type == "Ready"), None)
    if found is None or found.status != "True":
        return facts.now
    return times.read(found.last_transition_time) or facts.now


def _found(facts: Facts) -> Step | None:
    return _settled(facts)


# --- deletion


def _gone(facts: Facts) -> Step | None:
    """The provider has confirmed that there is no machine, or there never was one."""
    world = facts.world
    unknown = not world.id and (world.target is None or world.found.error is None)
    absent = facts.description is not None and not facts.description.exists
    if unknown or absent:
        return _deletes(facts, "the machine is deleted", finalized=True)
    return None


def _forced(facts: Facts) -> Step | None:
    """The annotation that has it removed counts once the provider could not delete the machine."""
    world = facts.world
    if world.object.meta.annotations.get(names.FORCE_DELETE) != "true":
        return None
    stuck = world.provider is None or world.target is None or world.found.error is not None or facts.failed is not None
    if not stuck:
        return None
    message = f"the provider has not confirmed that the machine {world.id} is deleted; it may still exist there"
    notice = Notice(type="Warning", reason=MachineReason.FORCED.value, message=message)
    return replace(_deletes(facts, message, finalized=True), notices=(notice,))


def _unreachable(facts: Facts) -> Step | None:
    world = facts.world
    hint = f"the annotation {names.FORCE_DELETE}=true removes the VirtualMachine without the machine being deleted"
    if world.provider is None or world.target is None:
        name = world.machine.spec.provider_ref.name
        what = "does not exist" if world.provider is None else "has no process"
        return _deletes(facts, f"Provider {name} {what}, so the machine {world.id} cannot be deleted; {hint}")
    error = world.found.error
    if error is None:
        return None
    step = _deletes(facts, f"the provider was asked about the machine: {error.message}; {hint}")
    return replace(step, outcome=Again(timedelta(seconds=15), "the provider is asked again"))


def _deletion_runs(facts: Facts) -> Step | None:
    return _running(facts) if facts.running and facts.running[0].type is OperationType.DELETE else None


def _deletion_failed(facts: Facts) -> Step | None:
    failed = facts.failed
    if failed is None or failed.type is not OperationType.DELETE:
        return None
    due = _due(facts, failed)
    if due <= facts.now:
        return None
    message = f"deleting the machine failed {failed.failures} times: {failed.message}"
    return replace(
        _deletes(facts, message), operation=failed, outcome=until(due, now=facts.now, because="it is tried again")
    )


def _delete(facts: Facts) -> Step | None:
    lifecycle = facts.world.machine.spec.lifecycle
    hook = lifecycle.pre_stop if lifecycle else None
    if hook is not None and facts.power is PowerState.ON and not _is_done(facts, OperationType.PRE_STOP):
        return _calls(facts, Call(type=OperationType.PRE_STOP, handler=hook))
    return _calls(facts, Call(type=OperationType.DELETE))


_LADDER: Final[tuple[Rung, ...]] = (
    _invalid,
    _references,
    _provider,
    _error,
    _running,
    _failing,
    _absent,
    _held,
    _revert,
    _report_drift,
    _stop,
    _hardware,
    _start,
    _reboot,
    _post_start,
    _found,
)

_DELETION: Final[tuple[Rung, ...]] = (
    _gone,
    _forced,
    _unreachable,
    _deletion_runs,
    _deletion_failed,
    _delete,
)


# --- steps


def _phase(facts: Facts) -> VirtualMachinePhase:
    """The phase of a machine that waits: as it is, or Pending until it exists."""
    match facts.power:
        case PowerState.ON:
            return VirtualMachinePhase.PROVISIONING if facts.first else VirtualMachinePhase.RUNNING
        case PowerState.OFF:
            return VirtualMachinePhase.PROVISIONING if facts.first else VirtualMachinePhase.STOPPED
        case _:
            before = facts.world.before
            known = before.phase if before.id else None
            return known or VirtualMachinePhase.PENDING


def _waits(facts: Facts, reason: MachineReason, message: str) -> Step:
    return Step(phase=_phase(facts), reason=reason, message=message, operation=facts.failed)


def _fails(facts: Facts, reason: MachineReason, message: str) -> Step:
    return Step(phase=VirtualMachinePhase.FAILED, reason=reason, message=message, operation=facts.failed)


def _refuses(facts: Facts, message: str) -> Step:
    """The spec asks a machine that runs for something impossible: it runs on as it is."""
    return Step(phase=_phase(facts), reason=MachineReason.INVALID_SPEC, message=message)


def _deletes(facts: Facts, message: str, *, finalized: bool = False) -> Step:
    return Step(
        phase=VirtualMachinePhase.DELETING,
        reason=MachineReason.DELETING,
        message=message,
        finalized=finalized,
        operation=facts.failed,
    )


_REASONS: Final = {
    OperationType.CREATE: MachineReason.CREATING,
    OperationType.DELETE: MachineReason.DELETING,
    OperationType.POWER_ON: MachineReason.STARTING,
    OperationType.POWER_OFF: MachineReason.STOPPING,
    OperationType.SHUTDOWN: MachineReason.STOPPING,
    OperationType.REBOOT: MachineReason.REBOOTING,
    OperationType.RECONFIGURE: MachineReason.UPDATING,
    OperationType.REVERT: MachineReason.REVERTING,
    OperationType.PRE_STOP: MachineReason.RUNNING_HOOK,
    OperationType.POST_START: MachineReason.RUNNING_HOOK,
}

_DOING: Final = {
    OperationType.CREATE: "the provider creates the machine",
    OperationType.DELETE: "the provider deletes the machine",
    OperationType.POWER_ON: "the machine is being started",
    OperationType.POWER_OFF: "the machine is being stopped",
    OperationType.SHUTDOWN: "the guest is shutting down",
    OperationType.REBOOT: "the machine is being rebooted",
    OperationType.RECONFIGURE: "the provider changes the hardware of the machine",
    OperationType.REVERT: "the machine goes back to a snapshot",
    OperationType.PRE_STOP: "the hook before the stop runs",
    OperationType.POST_START: "the hook after the start runs",
}


def _works(facts: Facts, type: OperationType) -> Step:
    """An operation that is under way."""
    if facts.world.object.deleting:
        phase = VirtualMachinePhase.DELETING
    elif type is OperationType.CREATE or facts.first:
        phase = VirtualMachinePhase.PROVISIONING
    else:
        phase = VirtualMachinePhase.RECONFIGURING
    return Step(phase=phase, reason=_REASONS[type], message=_DOING[type])


def _calls(facts: Facts, call: Call) -> Step:
    return replace(_works(facts, call.type), call=call)


def started(facts: Facts, call: Call, task: str) -> Operation:
    """The operation of a call whose task has begun."""
    failed = facts.failed
    same = failed is not None and failed.type is call.type
    return Operation(
        type=call.type,
        task_ref=task or None,
        start_time=_began(facts, call.type),
        details=call.details,
        failures=failed.failures if failed is not None and same else None,
    )


def _began(facts: Facts, type: OperationType) -> str:
    recorded = facts.world.operation
    same = recorded is not None and recorded.type is type
    return (recorded.start_time if recorded is not None and same else None) or times.format(facts.now)
