"""Sessions: who a viewer is, and what shows it.

A viewer proves who they are once, with a link that the command prints or with a token of
their own, and gets a cookie that scripts cannot read.  Each session has a token against
forged requests that every change must carry.  Pure but for randomness; this module must not
know HTTP.
"""

from __future__ import annotations

import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

LIFETIME: Final = 12 * 3600.0
"""Seconds after its last use at which a session ends."""

LINK_LIFETIME: Final = 600.0
"""Seconds after which a link that a viewer made for another browser ends."""

MOST: Final = 1_000
"""How many sessions there are at once; then one of the user with the most sessions ends for another."""

MOST_EACH: Final = 50
"""How many sessions one user has at once; the one that was used least lately ends for another."""


@dataclass(slots=True)
class Session:
    """A viewer.

    token      the bearer token that the viewer gave; empty for the user of the kubeconfig
    namespace  the only namespace that is shown; empty: all that the server was started for
    csrf       the token against forged requests
    """

    id: str
    token: str
    user: str
    csrf: str
    used: float
    namespace: str = ""
    streams: int = 0

    @property
    def identity(self) -> str:
        """The user, whatever tokens they have; the token where the API server does not say who it is of."""
        return self.user or self.token


class Sessions:
    """The sessions of one server, and the links that begin one.

    ended  called with each session that ends before its time: signed out, or ended for another
    """

    def __init__(self, *, clock: Callable[[], float], ended: Callable[[Session], None] = lambda session: None) -> None:
        self._clock = clock
        self._ended = ended
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._links: OrderedDict[str, float] = OrderedDict()
        """Until when each link is valid."""

    def link(self, *, lifetime: float = inf) -> str:
        """A secret that begins one session for the user of the kubeconfig, within so many seconds."""
        made = secrets.token_urlsafe(24)
        self._links[made] = self._clock() + lifetime
        if len(self._links) > MOST:
            self._links.popitem(last=False)
        return made

    def is_valid(self, link: str) -> bool:
        """Whether a link could be redeemed now."""
        found = self._found(link)
        return found is not None and self._clock() <= self._links[found]

    def redeem(self, link: str) -> bool:
        """Whether a link is valid; it is not, from then on."""
        found = self._found(link)
        return found is not None and self._clock() <= self._links.pop(found)

    def _found(self, link: str) -> str | None:
        return next((each for each in self._links if secrets.compare_digest(each.encode(), link.encode())), None)

    def begin(self, *, token: str = "", user: str = "", namespace: str = "") -> Session:
        made = Session(
            id=secrets.token_urlsafe(32),
            token=token,
            user=user,
            csrf=secrets.token_urlsafe(32),
            used=self._clock(),
            namespace=namespace,
        )
        self._sessions[made.id] = made
        counts = Counter(each.identity for each in self._sessions.values())
        if counts[made.identity] > MOST_EACH:
            self._end_one(made.identity)
        elif len(self._sessions) > MOST:
            self._end_one(max(counts, key=counts.__getitem__))
        return made

    def _end_one(self, identity: str) -> None:
        """End the session of a user that was used least lately."""
        self.end(next(each for each in self._sessions.values() if each.identity == identity))

    def find(self, id: str) -> Session | None:
        """The session of a cookie, if it lasts."""
        found = self._sessions.get(id)
        if found is None:
            return None
        if self._clock() - found.used > LIFETIME and not found.streams:
            del self._sessions[id]
            return None
        found.used = self._clock()
        self._sessions.move_to_end(id)
        return found

    def end(self, session: Session) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self._ended(session)
