"""The fence: a process that may have lost its lease writes nothing.

Losing a lease cancels the work, but work that is cancelled takes its time, and a
process that stalled does not know yet that it lost.  So every write asks first, at
the transport: there every single request passes, also those that a client sends again
by itself after it was turned away.  Nothing here knows how a lease is held.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.client.protocols import Transport
from holdfast.client.retries import READS
from holdfast.kernel.outcomes import Retry
from holdfast.meta.exchange import Request, Response

Held = Callable[[], bool]
"""Whether it is certain, at this moment, that no other process leads."""


class LeaseLost(Retry):
    """A write was not sent.  A `Retry`: nothing is wrong with the object, and the next leader reconciles it."""

    def __init__(self) -> None:
        super().__init__("LeaseLost", "this process does not lead any more and must not write; another one takes over")


class FencedTransport:
    """A `Transport` that asks before every request that writes, also before those that a client sends again."""

    def __init__(self, transport: Transport, held: Held) -> None:
        self._transport = transport
        self._held = held

    async def send(self, request: Request) -> Response:
        if request.method not in READS and not self._held():
            raise LeaseLost
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()
