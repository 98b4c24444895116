"""When a provider that does not answer is left alone, and when it is tried again.  Time is an argument."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class State(IntEnum):
    """Of a circuit breaker; the numbers are those of the metric."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    failures: int = 5
    """After how many failures in a row no calls are made."""
    open_seconds: float = 10.0
    longest_seconds: float = 120.0
    """The pause doubles each time that the trial call fails, up to this."""


class Breaker:
    """Counts failures of the connection in a row; errors that a provider answers with are none."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.trips = 0
        self._failures = 0
        self._since: float | None = None
        self._pause = self.settings.open_seconds
        self._trying = False

    def state(self, now: float) -> State:
        if self._since is None:
            return State.CLOSED
        return State.OPEN if now < self._since + self._pause else State.HALF_OPEN

    def remaining(self, now: float) -> float:
        """How many seconds until a call may be tried; zero if one may."""
        return max(0.0, self._since + self._pause - now) if self._since is not None else 0.0

    def allows(self, now: float) -> bool:
        """Whether a call may be made; in the half-open state, one at a time."""
        match self.state(now):
            case State.CLOSED:
                return True
            case State.HALF_OPEN if not self._trying:
                self._trying = True
                return True
            case _:
                return False

    def succeeded(self) -> None:
        self._failures, self._since, self._trying = 0, None, False
        self._pause = self.settings.open_seconds

    def abandoned(self) -> None:
        """A call ended without saying anything about the provider: it was cancelled."""
        self._trying = False

    def failed(self, now: float) -> None:
        self._trying = False
        self._failures += 1
        if self._since is not None:
            if now < self._since + self._pause:
                return  # a call that began before
            self._pause = min(2 * self._pause, self.settings.longest_seconds)
            self._since = now
            self.trips += 1
        elif self._failures >= self.settings.failures:
            self._since = now
            self.trips += 1
