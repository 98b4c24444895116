"""Tasks of providers that were just begun."""

from __future__ import annotations

from holdfast.providers.contract import Code, Hypervisor, ProviderError, Task, TaskState


async def begun(hypervisor: Hypervisor, task: Task | None) -> TaskState:
    """How far the task of a call is; without a task, the call is done.  Raises the error that the task ended with.

    A task that the provider has lost counts as under way: the next pass finds it lost, and repeats the call.
    """
    state = TaskState(done=True) if task is None else await hypervisor.task(task)
    if state.lost:
        return TaskState()
    if state.error:
        raise ProviderError(state.code or Code.INTERNAL, state.error)
    return state
