"""The health of a manager, served as long as a command runs.

What ``holdfast operator run`` and ``holdfast up`` have in common.  It must not know what the manager manages.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator

from holdfast.cli.errors import Complaint
from holdfast.cli.process.binding import CannotStart
from holdfast.runtime.health import Health
from holdfast.runtime.manager import Manager


@contextlib.asynccontextmanager
async def served(manager: Manager, bind: str, *, port: int) -> AsyncIterator[str]:
    """Answer ``/healthz``, ``/readyz`` and ``/metrics`` until the end of the block; gives the address."""
    health = Health(alive=manager.alive, ready=manager.ready, notes=manager.notes, metrics=manager.metrics.render)
    try:
        host, bound = await health.serve(bind, port)
    except OSError as error:
        # What the loop adds to the system's words says the same once more; names that mean nothing have no such words.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        message = f"health cannot be served at {bind}, port {port}: {why}"
        hint = "leave --health-port out for any free one; --health-bind must be an address of this machine"
        raise CannotStart(Complaint(message=message, hint=hint)) from None
    try:
        yield f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"
    finally:
        await health.close()
