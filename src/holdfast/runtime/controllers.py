"""Controllers as values: what to watch, how to see it, and how to decide.

A `Controller` is a frozen value with pure functions; one driver runs any of them.
Nothing is registered by being imported, and nothing is subclassed.

    CONTROLLERS = (
        Controller(
            name="workload",
            resource=WORKLOADS,
            owns=(PODS, CONTROLLER_REVISIONS, SERVICES),
            watches=(Watch(BUDGETS, keys=workloads_of_budget),),
            observe=observe,
            decide=decide,
        ),
    )

`observe` reads the stores, which are in memory, so it does not wait, and what it
sees is one consistent moment.  It returns None where nothing is to be done.
`decide` is pure: world and time in, decision out.

`survey` reads what is outside the API (a hypervisor, a storage server), and `act` writes
there; only these two may wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import Resource
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Failure
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.decisions import Decision
from holdfast.runtime.passes.sightings import Sight
from holdfast.runtime.status import Invalid

W = TypeVar("W")

PAUSED = "holdfast.dev/paused"
"""The annotation that makes controllers leave an object alone while it is ``true``."""


def is_paused(obj: Object) -> bool:
    """Whether an annotation keeps all controllers from reconciling an object."""
    return obj.meta.annotations.get(PAUSED) == "true"


BACKOFF: Final = Backoff(base=timedelta(milliseconds=50), cap=timedelta(minutes=5))
"""The usual wait after failures: most are a conflict, over at once; a server that is away is not asked often."""


class View(Protocol):
    """What is known of the API now: read-only, in memory, one consistent moment.

    Only resources that a controller names (its own, `owns`, `watches`, `reads`) can be asked for.
    """

    def get(self, resource: Resource, key: Key) -> Object | None: ...

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        """Objects by namespace (all of them, if none is given) and labels, in the order of their keys."""
        ...

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        """Objects that name the owner with `uid`, as their controller or not, in the order of their keys."""
        ...

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        """Objects for which an `Index` of that name gives `value`, in the order of their keys."""
        ...


Urgent = Callable[[Object | None, Object | None, View], bool]
"""Whether a change from one object to another (None: there is none) must be looked at at once, beside the others."""

SOON: Final = timedelta(milliseconds=100)
"""How long a pass may wait for a change that nothing is decided by, but that the status shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Another resource whose changes bring keys of ours.

    `keys` says whose: it is asked for the object as it was and for the object as it is, so a changed
    reference reaches both.  `matters` says whether a change from one object to another is worth a pass: many objects
    refer to one whose status changes often.  `within` is how long the pass may wait, so that many changes cost one;
    a change that is `urgent` brings a pass at once all the same.
    """

    resource: Resource
    keys: Callable[[Object, View], Iterable[Key]]
    matters: Callable[[Object, Object], bool] | None = None
    within: timedelta = timedelta()
    urgent: Urgent | None = None


class Signals:
    """Keys that something outside the API brings: a controller that learns of a change there has others look at it.

    A signal that is lost with the process must be given again by what gave it.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[Key], None]] = []

    def subscribe(self, listener: Callable[[Key], None]) -> Callable[[], None]:
        """Call `listener` with each key; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def send(self, key: Key) -> None:
        for listener in tuple(self._listeners):
            listener(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A look-up of objects by something that they say: `values` of one object, for `View.indexed`."""

    resource: Resource
    name: str
    values: Callable[[Object], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A right that is given to others: verbs on a resource, or on a part of it such as ``status``."""

    resource: Resource
    verbs: tuple[str, ...]
    part: str = ""

    @property
    def name(self) -> str:
        """As a role names the resource."""
        return f"{self.resource.plural}/{self.part}" if self.part else self.resource.plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[W]):
    """One controller.

    resource    what it reconciles, one key at a time
    matters     (old, new) -> whether a change of its own object is worth a pass; without it, every change is, and to
                resume one that was paused always is
    owns        resources whose controller reference points at ours: their changes bring the owner's key, and
                they are what `Decision.children` is compared with and pruned among
    urgent      of the changes of owned objects, those that bring a pass at once; the others do `SOON`, in one pass with
                what comes meanwhile.  Without it, all are urgent
    watches     other resources, with whose keys they concern
    reads       resources that `observe` looks into, whose changes need no pass of their own
    writes      resources that decisions write besides its own and those it owns; permissions are derived from it
    signals     brings keys whose objects changed outside the API
    grants      what decisions allow others to do, which only those can who may do it themselves
    indexes     look-ups that `observe` needs
    observe     (view, key) -> the world of one key; None where nothing is to be done
    sight       (world, sight) -> the world with the times of its events by our clock (`sightings`)
    decide      (world, now) -> what to do
    cleanup     the same for an object that is being deleted and has our finalizer
    finalizer   the finalizer that is kept on objects while `cleanup` has work to do
    survey      asks the world outside; returns a fuller world, or raises `Failure`
    act         does what the decision wants outside; returns the decision with what came of it, or raises
    explain     (world, failure, now) -> the status of a pass that failed; without it the decision's is written
    invalid     what the status says of an object that cannot be read; it is not tried again until it changes
    workers     how many keys are worked on at a time
    timeout     how long one pass may take
    backoff     waits after failures in a row
    """

    name: str
    resource: Resource
    observe: Callable[[View, Key], W | None]
    decide: Callable[[W, datetime], Decision]
    matters: Callable[[Object, Object], bool] | None = None
    sight: Callable[[W, Sight], W] | None = None
    owns: tuple[Resource, ...] = ()
    urgent: Urgent | None = None
    watches: tuple[Watch, ...] = ()
    reads: tuple[Resource, ...] = ()
    writes: tuple[Resource, ...] = ()
    signals: Signals | None = None
    grants: tuple[Grant, ...] = ()
    indexes: tuple[Index, ...] = ()
    cleanup: Callable[[W, datetime], Decision] | None = None
    finalizer: str = ""
    survey: Callable[[W], Awaitable[W]] | None = None
    act: Callable[[W, Decision], Awaitable[Decision]] | None = None
    explain: Callable[[W, Failure, datetime], Mapping[str, Any] | None] | None = None
    invalid: Invalid = field(default_factory=Invalid)
    workers: int = 32
    timeout: timedelta = timedelta(seconds=60)
    backoff: Backoff = BACKOFF

    def __post_init__(self) -> None:
        if bool(self.finalizer) != (self.cleanup is not None):
            raise ValueError(f"controller {self.name}: give finalizer and cleanup both, or neither")

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that is watched for it, each once."""
        watched = (watch.resource for watch in self.watches)
        return tuple(dict.fromkeys((self.resource, *self.owns, *watched, *self.reads)))


Change = Callable[[Object | None, Object | None], None]
"""Called with one object: as it was (None if new) and as it is (None if deleted)."""


class Stores(View, Protocol):
    """The stores of a process, for components: a view, and the changes of it."""

    def subscribe(self, resource: Resource, change: Change, *, metadata_only: bool = False) -> Callable[[], None]:
        """Call `change` for every change, beginning with the objects there are; returns a function that ends this.

        `metadata_only` is content with objects that have nothing but metadata.
        """
        ...

    def when_seen(self, resource: Resource, key: Key, *, version: str, callback: Callable[[], None]) -> None:
        """Call back, once, as soon as an object is known as it was at a version, or later; at once if it is."""
        ...

    def when_gone(self, resource: Resource, key: Key, *, uid: str, callback: Callable[[], None]) -> None:
        """Call back, once, as soon as the object with this UID is known to be gone or on its way out."""
        ...

    async def live(self, resource: Resource, *, namespace: str) -> Callable[[], bool]:
        """List what the server has now; returns a function that says whether all of that has been seen by now."""
        ...

    async def synced(self, *resources: Resource) -> None:
        """Returns when what was listed first is in the stores; of all resources, if none is named."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a component is given to run with."""

    stores: Stores
    client: Client
    now: Callable[[], datetime]


class Component(Protocol):
    """What is not a controller of keys: a scheduler, a garbage collector, a node.  It runs until it is cancelled."""

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> tuple[Resource, ...]:
        """The resources that are watched for it from the start."""
        ...

    async def run(self, environment: Environment) -> None: ...
