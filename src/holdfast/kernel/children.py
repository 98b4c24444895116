"""Children: from the objects an owner wants and the objects there are, to the steps between them.

`diff` decides; something else writes.  Three rules keep it safe:

- An object is a child only if its controller reference has the UID of the
  owner.  An object of the same name with another owner is reported as a
  conflict and not touched.
- While an object is being deleted, the plan waits.  Its successor is created
  when it is gone, also if the plan itself deleted it to replace it.
- An object is applied when the desired manifest differs from what was last
  applied (by hash), or when the object no longer contains the manifest (by
  comparison).  Fields that the server or other writers added are kept, except
  in the ports and the selector, where they change where traffic goes.

The module must not know the API, field managers, or any operator's children.

    plan = diff(
        [Desired(render_service(world)), Desired(render_job(world), immutable=True, wave=1)],
        map(Observed.of, world.children),
        owner=world.owner,
    )
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, TypeAlias

from holdfast.kernel.reasons import Reason
from holdfast.meta import hashing
from holdfast.meta.objects import GVK, Key, Ref, controller_of, owner_reference
from holdfast.meta.quantities import Quantity, QuantityError

APPLIED_HASH: Final = "holdfast.dev/applied-hash"
"""The annotation that holds the hash of what was last applied."""

PRUNE: Final = "holdfast.dev/prune"
"""The annotation that protects a child that is no longer wanted: ``never``."""


class ChildReason(Reason):
    """ChildReason a child is touched, or left alone."""

    MISSING = "Missing", "The object is wanted and does not exist."
    CHANGED = "Changed", "What is wanted differs from what was last applied."
    DRIFTED = "Drifted", "Another writer changed or removed fields that were applied."
    REPLACED = "Replaced", "The object cannot be changed in place, so it is deleted and created again."
    NOT_WANTED = "NotWanted", "The object is a child of the owner and no longer desired."
    UP_TO_DATE = "UpToDate", "The object is as it was applied."
    PROTECTED = "Protected", "The object is no longer wanted, but protected from being pruned."
    BEING_DELETED = "BeingDeleted", "The object is being deleted and must be gone first."
    PREVIOUS_OWNER = "PreviousOwner", "The object belonged to an earlier owner of the same name and will be collected."
    FOREIGN = "Foreign", "An object of this name exists and has another owner, or none."


@dataclass(frozen=True, slots=True)
class Desired:
    """A child as it should be, with everything but owner and bookkeeping rendered.

    immutable  a change deletes it and creates it anew (a Job); repairs are still applied
    prune      whether it is deleted once it is no longer wanted
    wave       children of a lower wave are written first
    """

    manifest: Mapping[str, Any]
    immutable: bool = field(default=False, kw_only=True)
    prune: bool = field(default=True, kw_only=True)
    wave: int = field(default=0, kw_only=True)
    ref: Ref = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ref", Ref.of(self.manifest))
        if self.ref.gvk.group_kind == "Secret" and "stringData" in self.manifest:
            raise ValueError(
                f"{self.ref}: stringData can be written but never read back, so it would look drifted for ever; "
                "render base64 under data"
            )


@dataclass(frozen=True, slots=True)
class Observed:
    """An object as the API returned it.  Items of a list may lack their kind, so the reference stands beside it."""

    ref: Ref
    wire: Mapping[str, Any]

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Observed:
        return cls(Ref.of(wire), wire)

    @property
    def uid(self) -> str:
        return str(self._metadata.get("uid", ""))

    @property
    def deleting(self) -> bool:
        return bool(self._metadata.get("deletionTimestamp"))

    @property
    def annotations(self) -> Mapping[str, str]:
        return self._metadata.get("annotations") or {}

    @property
    def unchanged(self) -> tuple[dict[str, Any], ...]:
        """The operations of a JSON patch by which it fails if the object has changed since."""
        return tuple(
            {"op": "test", "path": f"/metadata/{name}", "value": self._metadata.get(name, "")}
            for name in ("uid", "resourceVersion")
        )

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return self.wire.get("metadata") or {}


# --- the steps of a plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    ref: Ref
    reason: ChildReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(_Step):
    """Create the manifest; it is an error if the object exists by now."""

    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(_Step):
    """Apply the manifest to the object with this UID.

    replace  the operations of a JSON patch that come first: an apply adds to these fields and takes nothing away
    """

    manifest: dict[str, Any]
    uid: str
    replace: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(_Step):
    """Delete the object, on condition that it still has this UID."""

    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(_Step):
    """Nothing can be done until the object is gone; its deletion will be an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(_Step):
    """The object must not be touched; the message says what the user can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep(_Step):
    """Nothing needs to be done."""


Step: TypeAlias = Create | Apply | Delete | Wait | Conflict | Keep

_RANK: Final[Mapping[type[Step], int]] = {
    kind: rank for rank, kind in enumerate((Create, Apply, Delete, Wait, Conflict, Keep))
}


# --- the decision


def diff(desired: Iterable[Desired], observed: Iterable[Observed], *, owner: Mapping[str, Any]) -> tuple[Step, ...]:
    """One step for every desired child and for every surplus one; objects of other owners are ignored otherwise.

    Wanted children come by wave, then creates before applies before deletes,
    then by name; surplus ones are last.  Equal inputs give equal plans.
    """
    reference, parent = owner_reference(owner), Ref.of(owner)
    seen = {_identity(child.ref): child for child in observed}
    wanted: dict[_Identity, Desired] = {}
    for child in desired:
        _check_place(child.ref, owner=parent)
        if wanted.setdefault(_identity(child.ref), child) is not child:
            raise ValueError(f"{child.ref} is wanted twice; render it once, or give the two different names")
    steps = [
        (child.wave, _settle(child, seen.get(identity), reference=reference)) for identity, child in wanted.items()
    ]
    steps.sort(key=lambda placed: (placed[0], _RANK[type(placed[1])], placed[1].ref))
    surplus = [
        _clear(child)
        for identity, child in seen.items()
        if identity not in wanted and _controlled_by(child, reference["uid"])
    ]
    return (*(step for _, step in steps), *sorted(surplus, key=lambda step: (_RANK[type(step)], step.ref)))


_Identity: TypeAlias = tuple[str, Key]


def _identity(ref: Ref) -> _Identity:
    # Without the version: apps/v1 and apps/v1beta1 name the same Deployment.
    return ref.gvk.group_kind, ref.key


def _check_place(child: Ref, *, owner: Ref) -> None:
    if owner.key.namespace and child.key.namespace != owner.key.namespace:
        place = f"in namespace {child.key.namespace}" if child.key.namespace else "in no namespace"
        raise ValueError(
            f"{child} is {place} and its owner {owner} in {owner.key.namespace}: the garbage collector "
            f"deletes children whose owner is not beside them; render it with namespace {owner.key.namespace}"
        )


def _settle(want: Desired, have: Observed | None, *, reference: Mapping[str, Any]) -> Step:
    """The step for one wanted child."""
    ref = want.ref
    wanted = _owned(want, reference)
    if have is None:
        message = f"{ref} does not exist yet."
        return Create(ref=ref, reason=ChildReason.MISSING, message=message, manifest=_hashed(wanted))
    if have.deleting:
        message = f"{ref} is being deleted; it is created again once it is gone."
        return Wait(ref=ref, reason=ChildReason.BEING_DELETED, message=message)
    if not _controlled_by(have, reference["uid"]):
        return _respect(have, reference=reference)
    return _update(want, have, wanted=wanted)


def _update(want: Desired, have: Observed, *, wanted: dict[str, Any]) -> Step:
    """The step for a wanted child that exists and is ours."""
    ref = want.ref
    recorded = _matches_record(wanted, have)
    content = {name: value for name, value in wanted.items() if name not in _NOT_COMPARED}
    extended = {} if want.immutable else dict(surplus(have.wire, content))
    drift = _some(chain(differences(have.wire, content), extended))
    # Without a record of ours only the comparison is left to say whether the content is another.
    changed = bool(drift) if recorded is None else not recorded
    if changed and want.immutable:
        where = f" in {drift}" if drift else ""
        message = f"{ref} is to change{where} and cannot be changed in place; it is deleted, then created anew."
        return Delete(ref=ref, reason=ChildReason.REPLACED, message=message, uid=have.uid)
    if changed:
        reason = ChildReason.CHANGED
        message = f"{ref} is to change in {drift}." if drift else f"{ref} is to lose fields that were applied before."
    elif drift or recorded is None:
        reason = ChildReason.DRIFTED
        message = f"{ref} was changed by another writer in {drift or APPLIED_HASH}; it is applied again."
    else:
        return Keep(ref=ref, reason=ChildReason.UP_TO_DATE, message=f"{ref} is as it was applied.")
    replace = (*have.unchanged, *extended.values()) if extended else ()
    return Apply(ref=ref, reason=reason, message=message, manifest=_hashed(wanted), uid=have.uid, replace=replace)


def _clear(have: Observed) -> Step:
    """The step for a child of ours that is not wanted."""
    ref = have.ref
    if have.deleting:
        return Wait(ref=ref, reason=ChildReason.BEING_DELETED, message=f"{ref} is being deleted and not gone yet.")
    if have.annotations.get(PRUNE) == "never":
        message = f"{ref} is no longer wanted and kept, because its annotation {PRUNE} says never."
        return Keep(ref=ref, reason=ChildReason.PROTECTED, message=message)
    return Delete(ref=ref, reason=ChildReason.NOT_WANTED, message=f"{ref} is no longer wanted.", uid=have.uid)


def _respect(have: Observed, *, reference: Mapping[str, Any]) -> Step:
    """The step for a desired child whose name an object of another owner has."""
    ref, controller = have.ref, controller_of(have.wire)
    if controller is None:
        message = (
            f"{ref} exists and no controller owns it, so it is left alone. "
            f"Delete it, or name it differently, and {reference['kind']} {reference['name']} creates its own."
        )
        return Conflict(ref=ref, reason=ChildReason.FOREIGN, message=message)
    holder = f"{controller.get('kind')} {controller.get('name')}"
    if _group_kind_name(controller) == _group_kind_name(reference):
        message = (
            f"{ref} belongs to an earlier {holder} (UID {controller.get('uid')}); it is created once that is gone."
        )
        return Wait(ref=ref, reason=ChildReason.PREVIOUS_OWNER, message=message)
    message = f"{ref} exists and belongs to {holder}, so it is left alone. Give one of the two another name."
    return Conflict(ref=ref, reason=ChildReason.FOREIGN, message=message)


def _controlled_by(child: Observed, uid: str) -> bool:
    controller = controller_of(child.wire)
    return controller is not None and controller.get("uid") == uid


def _group_kind_name(reference: Mapping[str, Any]) -> tuple[str, str]:
    return GVK.parse(reference["apiVersion"], reference["kind"]).group_kind, reference["name"]


# --- what is sent, and what was sent last


def _owned(want: Desired, reference: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the owner and the protection that are ours to add."""
    metadata = dict(want.manifest["metadata"])
    others = [other for other in metadata.get("ownerReferences") or () if other.get("uid") != reference["uid"]]
    metadata["ownerReferences"] = [*others, dict(reference)]
    if not want.prune:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), PRUNE: "never"}
    return {**want.manifest, "metadata": metadata}


def _hashed(wanted: dict[str, Any]) -> dict[str, Any]:
    """The manifest as it is sent: with the hash of all the rest."""
    metadata = wanted["metadata"]
    annotations = {**(metadata.get("annotations") or {}), APPLIED_HASH: hashing.canonical_hash(wanted)}
    return {**wanted, "metadata": {**metadata, "annotations": annotations}}


def _matches_record(wanted: dict[str, Any], have: Observed) -> bool | None:
    """Whether the recorded hash is the hash of what is wanted; None if there is no record of ours."""
    recorded = have.annotations.get(APPLIED_HASH)
    if recorded is None:
        return None
    try:
        return hashing.verify(wanted, recorded)
    except hashing.MalformedHash:
        return None
    except hashing.UnknownHashVersion:
        return True  # a newer release wrote it; what it cannot compare, an older one must not roll


# --- whether an object still contains what was applied

_NOT_COMPARED: Final = frozenset({"apiVersion", "kind", "status"})
_PATHS_SHOWN: Final = 3

_LIST_KEYS: Final = ("uid", "name", "containerPort", "port", "mountPath", "devicePath", "topologyKey", "ip", "type")
"""Fields by which Kubernetes tells items of a list apart, in the order they are tried."""

_OPEN_LISTS: Final = frozenset({"finalizers", "tolerations"})
"""Lists without a key to which the server and other writers add items."""


def differences(observed: Any, wanted: Any, *, at: str = "", whole_lists: bool = False) -> Iterator[str]:
    """The paths at which `observed` does not contain `wanted`; what else it contains does not count.

    With `whole_lists`, lists have exactly the wanted items: for fields that no other client adds to.
    A null wants nothing.  An absent field contains the zero value of its type,
    because the API leaves zero values out.  Two spellings of one quantity are
    the same, because the API rewrites them.

    >>> list(differences({"spec": {"replicas": 2, "paused": False}}, {"spec": {"replicas": 3}}))
    ['spec.replicas']
    """
    if isinstance(wanted, Mapping):
        fields = observed if isinstance(observed, Mapping) else {}
        for name, value in wanted.items():
            path = f"{at}.{name}" if at else name
            yield from differences(fields.get(name), value, at=path, whole_lists=whole_lists)
    elif isinstance(wanted, list | tuple):
        items = observed if isinstance(observed, list | tuple) else ()
        if whole_lists and len(items) > len(wanted):
            yield at
        else:
            yield from _list_differences(items, wanted, at=at, whole_lists=whole_lists)
    elif not _same(observed, wanted):
        yield at


def _list_differences(observed: Sequence[Any], wanted: Sequence[Any], *, at: str, whole_lists: bool) -> Iterator[str]:
    if at.rpartition(".")[2] in _OPEN_LISTS:
        if not all(any(not _differs(item, value) for item in observed) for value in wanted):
            yield at
    elif (key := _list_key(observed, wanted)) is not None:
        items = {item[key]: item for item in observed}
        for value in wanted:
            path = f"{at}[{key}={value[key]}]"
            if value[key] in items:
                yield from differences(items[value[key]], value, at=path, whole_lists=whole_lists)
            else:
                yield path
    elif len(observed) != len(wanted):
        yield at
    else:
        for position, (item, value) in enumerate(zip(observed, wanted, strict=True)):
            yield from differences(item, value, at=f"{at}[{position}]", whole_lists=whole_lists)


_PORT_KEYS: Final = ("port", "containerPort")
"""Fields by which server-side apply tells the items of a list of ports apart, beside the protocol."""


_WHOLE_MAPS: Final = frozenset({"selector", "matchLabels", "updateStrategy"})
"""Maps in which a key of another writer changes what is meant, or contradicts it."""


def surplus(observed: Any, wanted: Any, *, at: str = "", pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The ports, selectors and update strategies in `observed` with entries that are not in `wanted`.

    Each is a path, and the operation of a JSON patch that sets it to what is wanted.  An apply cannot: it tells
    ports apart by their number, so it adds a second port of the same name, and it leaves the keys of others in a map.

    >>> dict(surplus({"selector": {"app": "a", "x": "y"}}, {"selector": {"app": "a"}}))
    {'selector': {'op': 'add', 'path': '/selector', 'value': {'app': 'a'}}}
    """
    if isinstance(wanted, Mapping) and isinstance(observed, Mapping):
        for name, value in wanted.items():
            path, target = f"{at}.{name}" if at else name, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if _has_more(name, observed.get(name), value):
                yield path, {"op": "add", "path": target, "value": value}
            else:
                yield from surplus(observed.get(name), value, at=path, pointer=target)
    elif isinstance(wanted, list | tuple) and isinstance(observed, list | tuple):
        key = _list_key(observed, wanted)
        if key is not None:
            places = {item[key]: place for place, item in enumerate(observed)}
            for value in wanted:
                place = places.get(value[key])
                if place is not None:
                    path = f"{at}[{key}={value[key]}]"
                    yield from surplus(observed[place], value, at=path, pointer=f"{pointer}/{place}")


def _has_more(name: str, observed: Any, wanted: Any) -> bool:
    """Whether a list of ports, a selector or an update strategy has entries that are not wanted."""
    if name in _WHOLE_MAPS:
        both = isinstance(observed, Mapping) and isinstance(wanted, Mapping)
        return both and not observed.keys() <= wanted.keys()
    if name == "ports" and isinstance(observed, list | tuple) and isinstance(wanted, list | tuple):
        return not _port_keys(observed) <= _port_keys(wanted)
    return False


def _port_keys(ports: Sequence[Any]) -> frozenset[tuple[Any, ...]]:
    items = [port for port in ports if isinstance(port, Mapping)]
    return frozenset(
        (*(str(port.get(key)) for key in _PORT_KEYS), str(port.get("protocol") or "TCP")) for port in items
    )


def _list_key(*lists: Sequence[Any]) -> str | None:
    """The field that tells the items of every one of the lists apart, if there is one."""
    if not all(isinstance(item, Mapping) for items in lists for item in items):
        return None
    for key in _LIST_KEYS:
        if all(_tells_apart(key, items) for items in lists):
            return key
    return None


def _tells_apart(key: str, items: Sequence[Mapping[str, Any]]) -> bool:
    values = [item.get(key) for item in items]
    return all(isinstance(value, str | int) for value in values) and len(set(values)) == len(values)


def _same(observed: Any, wanted: Any) -> bool:
    if observed is None or wanted is None:
        return not wanted
    if isinstance(observed, bool) or isinstance(wanted, bool):
        return observed is wanted
    return bool(observed == wanted) or _same_quantity(observed, wanted)


def _same_quantity(observed: Any, wanted: Any) -> bool:
    try:
        return Quantity.parse(observed) == Quantity.parse(wanted)
    except QuantityError:
        return False


def _differs(observed: Any, wanted: Any) -> bool:
    return next(differences(observed, wanted), None) is not None


def _some(paths: Iterator[str]) -> str:
    """The first few paths, in words; empty if there are none."""
    shown = list(islice(paths, _PATHS_SHOWN + 1))
    return ", ".join(shown[:_PATHS_SHOWN]) + (" and more" if len(shown) > _PATHS_SHOWN else "")
