"""The protocol of the lease: every edge in a table, and races in which everything goes wrong."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest

from holdfast.runtime.leadership.leases import (
    Accepted,
    Action,
    Contender,
    Failed,
    Following,
    Found,
    Happening,
    Leading,
    Look,
    Put,
    Record,
    Refused,
    Seen,
    Spec,
    State,
    Terms,
    Wait,
    Waited,
    released,
    step,
)

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
WRITTEN = "2030-01-01T12:00:00.000000Z"
ME = Contender(identity="me")
AT = 100.0

RETRY = Wait(2)


def lease(
    holder: str, *, version: str = "7", renewed: str = "earlier", seconds: int = 15, transitions: int = 3
) -> Record:
    return Record(Spec(holder, seconds, "once", renewed, transitions), version)


OTHERS = lease("other")
MINE = lease("me")
FREE = lease("", seconds=1)
GONE = replace(OTHERS, version="")

FIRST = Spec("me", 15, WRITTEN, WRITTEN, 0)
TAKEN = Spec("me", 15, WRITTEN, WRITTEN, 4)
RENEWED = Spec("me", 15, "once", WRITTEN, 3)

LEADING = Leading(MINE, AT + 5)
LATE = Leading(MINE, AT)

EDGES: dict[str, tuple[State, Happening, State, Action]] = {
    # Following: look, and take a lease without a holder, ours, or over.
    "a wait over, one looks": (Following(), Waited(), Following(), Look()),
    "a lease that never was is created": (Following(), Found(None), Following(), Put(FIRST, "")),
    "a released lease is taken at once": (Following(), Found(FREE), Following(Seen(FREE, AT)), Put(TAKEN, "7")),
    "our own lease, whose answer was lost, is taken up again": (
        Following(),
        Found(MINE),
        Following(Seen(MINE, AT)),
        Put(RENEWED, "7"),
    ),
    "another's lease is left alone when first seen, however old it says it is": (
        Following(),
        Found(OTHERS),
        Following(Seen(OTHERS, AT)),
        RETRY,
    ),
    "another's lease is left alone while it is young": (
        Following(Seen(OTHERS, AT - 10)),
        Found(OTHERS),
        Following(Seen(OTHERS, AT - 10)),
        RETRY,
    ),
    "who waits for its end does not wait longer": (
        Following(Seen(OTHERS, AT - 14)),
        Found(OTHERS),
        Following(Seen(OTHERS, AT - 14)),
        Wait(1),
    ),
    "a lease that stood still for its duration is taken": (
        Following(Seen(OTHERS, AT - 15)),
        Found(OTHERS),
        Following(Seen(OTHERS, AT - 15)),
        Put(TAKEN, "7"),
    ),
    "a renewal begins the count anew": (
        Following(Seen(OTHERS, AT - 15)),
        Found(lease("other", renewed="later")),
        Following(Seen(lease("other", renewed="later"), AT)),
        RETRY,
    ),
    "a label on the lease is no renewal": (
        Following(Seen(OTHERS, AT - 15)),
        Found(lease("other", version="8")),
        Following(Seen(lease("other", version="8"), AT - 15)),
        Put(TAKEN, "8"),
    ),
    "a holder who asked for longer has longer": (
        Following(Seen(lease("other", seconds=60), AT - 59.5)),
        Found(lease("other", seconds=60)),
        Following(Seen(lease("other", seconds=60), AT - 59.5)),
        Wait(0.5),
    ),
    "a holder who asked for less is given as much as we would want": (
        Following(Seen(lease("other", seconds=1), AT - 2)),
        Found(lease("other", seconds=1)),
        Following(Seen(lease("other", seconds=1), AT - 2)),
        RETRY,
    ),
    "a lease that vanished is honoured from when it was missed": (
        Following(Seen(OTHERS, AT - 15)),
        Found(None),
        Following(Seen(GONE, AT)),
        RETRY,
    ),
    "even our own, that another one may have taken since": (
        Following(Seen(MINE, AT - 15)),
        Found(None),
        Following(Seen(replace(MINE, version=""), AT)),
        RETRY,
    ),
    "a lease that stays away is created when its time is over": (
        Following(Seen(GONE, AT - 15)),
        Found(None),
        Following(Seen(GONE, AT - 15)),
        Put(TAKEN, ""),
    ),
    "a lease that was restored as it was need not be honoured twice": (
        Following(Seen(GONE, AT - 15)),
        Found(OTHERS),
        Following(Seen(OTHERS, AT - 15)),
        Put(TAKEN, "7"),
    ),
    "a write that is accepted begins to lead, from when it was sent": (
        Following(Seen(FREE, AT)),
        Accepted(MINE, AT - 1),
        Leading(MINE, AT + 9),
        RETRY,
    ),
    "a write that is accepted too late does not": (
        Following(Seen(FREE, AT - 20)),
        Accepted(MINE, AT - 10),
        Following(Seen(MINE, AT)),
        RETRY,
    ),
    "who was beaten waits": (Following(Seen(FREE, AT)), Refused(), Following(Seen(FREE, AT)), RETRY),
    "who is not answered waits": (Following(), Failed(), Following(), RETRY),
    # Leading: renew what we wrote, and stop at the first doubt.
    "a lease is renewed without being read": (LEADING, Waited(), LEADING, Put(RENEWED, "7")),
    "a renewal counts from when it was sent": (
        LEADING,
        Accepted(lease("me", version="8"), AT - 0.5),
        Leading(lease("me", version="8"), AT + 9.5),
        RETRY,
    ),
    "a renewal of a stalled process that is answered too late does not count": (
        LATE,
        Accepted(lease("me", version="8"), AT - 10),
        Following(Seen(lease("me", version="8"), AT)),
        RETRY,
    ),
    "a conflict is looked into": (LEADING, Refused(), LEADING, Look()),
    "a lease that others touched and left ours is renewed at its new version": (
        LEADING,
        Found(lease("me", version="8")),
        Leading(lease("me", version="8"), AT + 5),
        RETRY,
    ),
    "a lease with another's name is lost": (LEADING, Found(OTHERS), Following(Seen(OTHERS, AT)), RETRY),
    "a lease without a holder is lost": (LEADING, Found(FREE), Following(Seen(FREE, AT)), RETRY),
    "a lease that is gone is to be written anew": (
        LEADING,
        Found(None),
        Leading(replace(MINE, version=""), AT + 5),
        RETRY,
    ),
    "and is created": (
        Leading(replace(MINE, version=""), AT + 5),
        Waited(),
        Leading(replace(MINE, version=""), AT + 5),
        Put(RENEWED, ""),
    ),
    "a failure is tried again": (LEADING, Failed(), LEADING, RETRY),
    "failures until the deadline lose": (LATE, Failed(), Following(Seen(MINE, AT)), RETRY),
    "a sleep past the deadline loses": (LATE, Waited(), Following(Seen(MINE, AT)), RETRY),
    "a conflict past the deadline loses": (LATE, Refused(), Following(Seen(MINE, AT)), RETRY),
    "a look past the deadline loses": (LATE, Found(MINE), Following(Seen(MINE, AT)), RETRY),
}


@pytest.mark.parametrize("case", EDGES)
def test_the_protocol(case: str) -> None:
    state, happened, then, action = EDGES[case]
    assert step(state, happened, me=ME, at=AT, now=NOW) == (then, action)


def test_releasing_empties_the_name_and_keeps_the_count() -> None:
    assert released(MINE, NOW) == Put(Spec("", 1, "once", WRITTEN, 3), "7")


@pytest.mark.parametrize(
    ("duration", "deadline", "retry"), [(10, 10, 2), (15, 20, 2), (15, 2, 2), (15, 2.3, 2), (15, 10, 0), (15, -1, -2)]
)
def test_terms_that_cannot_be_kept_safely_are_refused(duration: int, deadline: float, retry: float) -> None:
    with pytest.raises(ValueError, match="cannot be kept safely"):
        Terms(duration=duration, deadline=deadline, retry=retry)


def test_a_contender_needs_an_identity() -> None:
    with pytest.raises(ValueError, match="needs an identity"):
        Contender(identity="")


def test_a_holder_is_written_as_a_lease_of_the_api() -> None:
    spec = msgspec.json.decode(b'{"holderIdentity":"me","renewTime":"x","strategy":"unknown"}', type=Spec)
    assert Record(spec, "1").holder == "me"
    assert Record(msgspec.json.decode(b'{"holderIdentity":null}', type=Spec), "1").holder == ""


# --- races


@dataclass
class Racer:
    """A contender with clocks of its own, whose process stalls now and then."""

    me: Contender
    ahead: timedelta
    epoch: float
    state: State = field(default_factory=Following)
    wakes: float = 0.0

    def holds(self, time: float) -> bool:
        return isinstance(self.state, Leading) and self.state.holds(time + self.epoch)


class Race:
    """Contenders, a lease, and a network that loses, delays and reorders; no clock is right.

    A stalled contender does nothing, but its clock goes on, and what it sent before still arrives.
    """

    def __init__(self, seed: int, *, racers: int, terms: Terms) -> None:
        self.chance = random.Random(seed)
        self.racers = [
            Racer(
                Contender(identity=f"c{number}", terms=terms),
                timedelta(seconds=self.chance.uniform(-3600, 3600)),
                self.chance.uniform(0, 1e6),
            )
            for number in range(racers)
        ]
        self.time = 0.0
        self.calm = False
        self.lease: Record | None = None
        self.versions = 0
        self.leaders: list[str] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        for racer in self.racers:
            self._later(self.chance.uniform(0, 3), partial(self._do, racer, Look()))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.time, _, act = heapq.heappop(self._agenda)
            act()
            holders = [racer.me.identity for racer in self.racers if racer.holds(self.time)]
            assert len(holders) <= 1, f"{holders} hold the lease together at {self.time}"
            if holders and holders[0] not in self.leaders[-1:]:
                self.leaders += holders
        self.time = until

    def stall(self, racer: Racer, seconds: float) -> None:
        racer.wakes = self.time + seconds

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.time + seconds, self.chance.getrandbits(32), act))

    def _happen(self, racer: Racer, happened: Happening) -> None:
        if self.time < racer.wakes:
            self._later(racer.wakes - self.time, lambda: self._happen(racer, happened))
            return
        at, now = self.time + racer.epoch, NOW + timedelta(seconds=self.time) + racer.ahead
        racer.state, action = step(racer.state, happened, me=racer.me, at=at, now=now)
        if not self.calm and self.chance.random() < 0.03:
            # Between a decision and its deed, where it hurts most.
            self.stall(racer, self.chance.uniform(1, 40))
        self._do(racer, action)

    def _do(self, racer: Racer, action: Action) -> None:
        if self.time < racer.wakes:
            self._later(racer.wakes - self.time, lambda: self._do(racer, action))
            return
        match action:
            case Wait(seconds):
                self._later(seconds * self.chance.uniform(1, 1.2), lambda: self._happen(racer, Waited()))
            case Look():
                self._send(racer, lambda: Found(self.lease))
            case Put(spec, version):
                sent = self.time + racer.epoch
                self._send(racer, lambda: self._write(spec, version, sent))

    def _write(self, spec: Spec, version: str, sent: float) -> Happening:
        if version != (self.lease.version if self.lease else ""):
            return Refused()
        self.versions += 1
        self.lease = Record(spec, str(self.versions))
        return Accepted(self.lease, sent)

    def _send(self, racer: Racer, ask: Callable[[], Happening]) -> None:
        """A request on its way: it may be lost, before or after it did its work, or arrive too late."""
        there, back = self._delay(), self._delay()
        loses_request, loses_answer = (not self.calm and self.chance.random() < 0.1 for _ in range(2))
        patience = racer.me.terms.patience
        in_time = there + back <= patience and not loses_request and not loses_answer

        def arrive() -> None:
            answer = ask()
            if in_time:
                self._later(back, lambda: self._happen(racer, answer))

        if not loses_request:
            self._later(there, arrive)
        if not in_time:
            self._later(patience, lambda: self._happen(racer, Failed()))

    def _delay(self) -> float:
        if not self.calm and self.chance.random() < 0.1:
            return self.chance.uniform(0, 30)
        return self.chance.uniform(0, 0.2)


def raced(seed: int, *, racers: int = 3, terms: Terms | None = None) -> Race:
    race = Race(seed, racers=racers, terms=terms or Terms())
    for _ in range(20):
        race.run(race.time + race.chance.uniform(5, 40))
        if race.chance.random() < 0.5:
            race.stall(race.chance.choice(race.racers), race.chance.uniform(5, 60))
    race.calm = True
    race.run(race.time + 120)
    return race


@pytest.mark.parametrize("racers", [2, 3])
def test_whatever_goes_wrong_two_never_hold_the_lease_and_in_the_end_one_does(racers: int) -> None:
    changes = 0
    for seed in range(150):
        race = raced(seed, racers=racers)
        assert [racer.me.identity for racer in race.racers if racer.holds(race.time)] == race.leaders[-1:]
        changes += len(race.leaders) - 1
    assert changes > 300, "the races were too quiet to show anything"


def test_a_lease_that_is_deleted_stays_with_its_holder() -> None:
    for seed in range(50):
        race = Race(seed, racers=3, terms=Terms())
        race.calm = True
        for _ in range(20):
            race.run(race.time + 20 + race.chance.uniform(0, 5))
            race.lease = None
        assert len(race.leaders) == 1


def test_the_races_find_terms_under_which_two_would_hold_the_lease() -> None:
    unsafe = Terms()
    object.__setattr__(unsafe, "deadline", 20)  # as no terms can be made
    with pytest.raises(AssertionError, match="hold the lease together"):
        raced(3, terms=unsafe)
