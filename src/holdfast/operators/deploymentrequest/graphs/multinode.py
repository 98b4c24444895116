"""The command of a component on several nodes: the flags by which the engines of its pods form one group.

The flags follow the module of the engine (``dynamo.sglang``, ``dynamo.vllm``).  A worker's rank is its index and one,
which only a shell can compute, so the command of workers runs in one.  A command that sets such flags itself, or that
does not name the module, is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_PORT: Final = 29500
_LEADER: Final = "$(DYNAMO_LEADER_ADDRESS)"
_WORKER_RANK: Final = "$((GROVE_PCLQ_POD_INDEX + 1))"
_SHELLS: Final = re.compile(r"(.*/)?(ba|da|z)?sh")
_MODULE: Final = re.compile(r"dynamo\.(?:sglang|vllm)\b")
_OWN_FLAGS: Final = ("--nnodes", "--node-rank", "--dist-init-addr", "--master-addr")


def _flags(backend: str, *, nodes: int, worker: bool) -> list[str]:
    rank = _WORKER_RANK if worker else "0"
    if backend == "sglang":
        return ["--dist-init-addr", f"{_LEADER}:{_PORT}", "--nnodes", str(nodes), "--node-rank", rank]
    group = ["--nnodes", str(nodes), "--node-rank", rank, "--master-addr", _LEADER, "--master-port", str(_PORT)]
    return ["--distributed-executor-backend", "mp", *group, *(["--headless"] if worker else [])]


def joined(container: Mapping[str, Any], backend: str | None, *, nodes: int, worker: bool) -> dict[str, Any]:
    """A container `main` whose engine joins those of the other nodes."""
    command, args = _texts(container.get("command")), _texts(container.get("args"))
    words = [*command, *args]
    if backend not in ("sglang", "vllm") or not command or any(flag in word for word in words for flag in _OWN_FLAGS):
        return dict(container)
    flags = _flags(backend, nodes=nodes, worker=worker)
    if _SHELLS.fullmatch(command[0]):
        text = next((at for at, word in enumerate(words) if _MODULE.search(word)), None)
        if text is None:
            return dict(container)
        words[text] = _MODULE.sub(lambda found: f"{found[0]} {' '.join(flags)}", words[text], count=1)
        return {**container, "command": words[: len(command)], "args": words[len(command) :]}
    module = next((at for at, word in enumerate(words) if _MODULE.fullmatch(word)), None)
    if module is None:
        return dict(container)
    if not worker:
        return {**container, "command": words[: module + 1], "args": [*flags, *words[module + 1 :]]}
    # The shell computes the rank, and is replaced by the engine.
    script = f'exec "$@" {" ".join(flags)}'
    return {**container, "command": ["/bin/sh", "-c", script, "sh"], "args": words}


def _texts(value: Any) -> Sequence[str]:
    return [str(each) for each in value] if isinstance(value, list) else []
