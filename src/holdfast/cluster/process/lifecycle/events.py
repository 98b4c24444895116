"""The Events of a pod that runs here, as ``kubectl describe`` shows them.

Pure.  Each function takes one thing that happened and returns its notices, if any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.cluster.process.lifecycle.facts import Exited, Hook, Hooked, News, Probed, Started, Unstartable
from holdfast.cluster.process.lifecycle.state import Action, Terminate
from holdfast.runtime.decisions import Notice

START_ERROR = "StartError"


def of_news(news: News) -> Iterator[Notice]:
    match news:
        case Started(name, pid):
            yield Notice(reason="Started", message=f"Started container {name} as process {pid}")
        case Unstartable(name, refused):
            yield _warning("Failed", f"Container {name} cannot be started: {refused.message}")
        case Exited(name, ended) if ended.reason == START_ERROR:
            yield _warning("Failed", f"Container {name} could not be started: {ended.message}")
        case Probed(_, _, kind, answer) if not answer.good:
            yield _warning("Unhealthy", f"{kind} probe failed: {answer.message}")
        case Hooked(name, _, hook, _, failure) if failure:
            reason = "FailedPostStartHook" if hook is Hook.POST_START else "FailedPreStopHook"
            yield _warning(reason, f"The {hook} hook of container {name} failed: {failure}")


def of_action(action: Action) -> Iterator[Notice]:
    if isinstance(action, Terminate):
        yield Notice(reason="Killing", message=f"Stopping container {action.container}: {action.because}")


def of_status(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Notice]:
    """What is new about the waiting of containers."""
    before = _backing_off(old or {})
    for name, message in _backing_off(new).items():
        if name not in before:
            yield _warning("BackOff", message)


def _backing_off(status: Mapping[str, Any]) -> dict[str, str]:
    containers = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    waiting = {each["name"]: each["state"].get("waiting", {}) for each in containers}
    return {name: each["message"] for name, each in waiting.items() if each.get("reason") == "CrashLoopBackOff"}


def _warning(reason: str, message: str) -> Notice:
    return Notice(type="Warning", reason=reason, message=message)
