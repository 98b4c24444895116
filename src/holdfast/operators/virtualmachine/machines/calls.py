"""The calls to the provider of one pass, and what becomes of them.

A call that is done at once leads to the next step in the same pass, unless only its record says that it was made.  One
that becomes a task is recorded in the status, which is written before anything else is done for the machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from holdfast.kernel.outcomes import Again, Failure
from holdfast.kinds.virtrigaud.guests import HTTPGetAction, LifecycleHandler
from holdfast.kinds.virtrigaud.machines import Operation, OperationType
from holdfast.operators.virtualmachine import pacing
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines import status
from holdfast.operators.virtualmachine.machines.decide import next_step
from holdfast.operators.virtualmachine.machines.facts import Facts, facts_of, failed, progressed
from holdfast.operators.virtualmachine.machines.observe import Found, World, described
from holdfast.operators.virtualmachine.machines.steps import Call, Step, started
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.operators.virtualmachine.tasks import begun
from holdfast.providers.contract import Code, GuestCommands, Hypervisor, Machine, Made, ProviderError, Task
from holdfast.runtime.decisions import Decision, Notice

Fetch: TypeAlias = Callable[[str, float], Awaitable[int]]
"""Sends a GET request to a URL within so many seconds; returns the status, or raises OSError."""

_MOST: Final = 8
"""Calls of one pass at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDecision(Decision):
    """What one pass writes, and the call to the provider that comes before the status."""

    call: Call | None
    facts: Facts


def decide(world: World, now: datetime) -> MachineDecision:
    """The next step, the status that shows it, and the call that comes before the status is written."""
    return _decision(facts_of(world, now))


cleanup = decide


def explain(world: World, failure: Failure, now: datetime) -> None:
    """A pass that failed leaves the status as it is: what lasts is reported by the Provider."""
    return


def _decision(facts: Facts, notices: tuple[Notice, ...] = (), step: Step | None = None) -> MachineDecision:
    step = step or next_step(facts)
    if step.call is not None and any(map(_is_known_by_record, facts.done)):
        step = replace(step, call=None, outcome=Again(pacing.SOON, "what was done is recorded first"))
    said, turned = status.report(facts, step)
    return MachineDecision(
        status=said,
        notices=(*notices, *turned),
        outcome=step.outcome,
        finalized=step.finalized,
        call=step.call,
        facts=facts,
    )


def _is_known_by_record(operation: Operation) -> bool:
    """Whether the machine does not show that an operation was made, such as the growth of a disk, or a revert.

    If the status could not be written after the next call, it would be made again, on a machine that runs by then.
    """
    return bool(operation.details) and operation.type is not OperationType.CREATE


async def act(world: World, decision: Decision, *, connections: Connections, fetch: Fetch) -> Decision:
    """Make the call of a decision, and those that follow from it."""
    for _ in range(_MOST):
        if not isinstance(decision, MachineDecision) or decision.call is None:
            return decision
        assert decision.facts.world.target is not None, "a call has a provider"
        hypervisor = connections.to(decision.facts.world.target)
        decision = await _called(decision.facts, decision.call, hypervisor, decision.notices, fetch)
    return decision


async def _called(
    facts: Facts, call: Call, hypervisor: Hypervisor, notices: tuple[Notice, ...], fetch: Fetch
) -> MachineDecision:
    notices = tuple(each for each in notices if each.type == "Warning")
    operation = started(facts, call, "")
    try:
        made = await _perform(facts.world, call, hypervisor, fetch)
        id, task = made.id or facts.world.id, made.task
        # Whatever comes next, the identifier is not lost.
        facts = replace(facts, world=replace(facts.world, found=replace(facts.world.found, id=id)))
        state = await begun(hypervisor, task)
        if task is not None and not state.done:
            running = (progressed(started(facts, call, task.id), state, facts.now), state)
            return _decision(replace(facts, running=running, failed=None), notices)
        found = Found(id=id, description=await described(id, hypervisor.describe))
    except ProviderError as error:
        if call.type is OperationType.PRE_STOP:
            # A hook that fails does not keep a machine running.
            text = f"spec.lifecycle.preStop: {error.message}"
            warning = Notice(type="Warning", reason=MachineReason.HOOK_FAILED.value, message=text)
            return _decision(replace(facts, done=(*facts.done, operation)), (*notices, warning))
        return _failed(facts, failed(operation, error, facts.now), notices)
    world = replace(facts.world, found=found)
    return _decision(facts_of(world, facts.now, (*facts.done, operation)), notices)


def _failed(facts: Facts, operation: Operation, notices: tuple[Notice, ...]) -> MachineDecision:
    """A call that failed is recorded, and tried again later."""
    return _decision(replace(facts, failed=operation, tried=True), notices)


async def _perform(world: World, call: Call, hypervisor: Hypervisor, fetch: Fetch) -> Made:
    """One call; the answer has the identifier of the machine where it is new, and the task if there is one."""
    id = world.id
    task: Task | None = None
    match call.type:
        case OperationType.CREATE:
            assert call.machine is not None, "a machine is created as something"
            return await _created(call.machine, hypervisor)
        case OperationType.DELETE:
            task = await hypervisor.delete(id)
        case OperationType.POWER_ON:
            task = await hypervisor.power(id, "On")
        case OperationType.POWER_OFF:
            task = await hypervisor.power(id, "Off")
        case OperationType.SHUTDOWN:
            task = await hypervisor.power(id, "ShutdownGraceful", call.graceful_seconds)
        case OperationType.REBOOT:
            task = await hypervisor.power(id, "Reboot", call.graceful_seconds)
        case OperationType.RECONFIGURE:
            assert call.change is not None, "a machine is changed to something"
            task = await hypervisor.reconfigure(id, call.change)
        case OperationType.REVERT:
            task = await hypervisor.revert(id, call.snapshot)
        case OperationType.PRE_STOP | OperationType.POST_START:
            assert call.handler is not None, "a hook does something"
            task = await _hook(world, call, call.handler, hypervisor, fetch)
    return Made(id="", task=task)


async def _created(machine: Machine, hypervisor: Hypervisor) -> Made:
    """Create a machine; on a provider that refuses a second one of its name, find the one that was made before."""
    try:
        return await hypervisor.create(machine)
    except ProviderError as error:
        if error.code is not Code.CONFLICT:
            raise
        found = next((each.id for each in await hypervisor.machines() if each.name == machine.name), "")
        if not found:
            raise
        return Made(id=found)


# --- hooks


async def _hook(
    world: World, call: Call, handler: LifecycleHandler, hypervisor: Hypervisor, fetch: Fetch
) -> Task | None:
    if handler.exec is not None:
        if not isinstance(hypervisor, GuestCommands):
            raise ProviderError(Code.UNSUPPORTED, "the provider cannot run commands in guests")
        await hypervisor.execute(world.id, handler.exec.command, call.graceful_seconds)
        return None
    if handler.snapshot is not None:
        name = f"{world.name_on_provider}-{handler.snapshot.name}-{world.object.meta.generation}"
        made = await hypervisor.snapshot(
            world.id,
            name,
            memory=bool(handler.snapshot.include_memory),
            description=handler.snapshot.description or "",
        )
        return made.task
    assert handler.http_get is not None, "a hook is one of three"
    await _fetched(world, handler.http_get, call, fetch)
    return None


async def _fetched(world: World, action: HTTPGetAction, call: Call, fetch: Fetch) -> None:
    found = world.found.description
    ips = found.ips if found is not None else world.before.ips
    host = action.host or next(iter(ips), "")
    if not ips:
        raise ProviderError(Code.RETRYABLE, "the guest has no address yet")
    if host not in ips:
        # The operator can reach more than the user who wrote the spec.
        raise ProviderError(Code.INVALID, f"host {host} is not an address of the machine ({', '.join(ips)})")
    name = f"[{host}]" if ":" in host else host
    url = f"{(action.scheme or 'HTTP').lower()}://{name}:{action.port}/{(action.path or '').lstrip('/')}"
    try:
        code = await fetch(url, call.graceful_seconds)
    except OSError as error:
        raise ProviderError(Code.RETRYABLE, f"GET {url}: {type(error).__name__}") from error
    if code >= 400:
        raise ProviderError(Code.CONFLICT, f"GET {url} was answered with {code}")
