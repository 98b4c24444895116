"""The controllers of virtual machines: what they watch, write and run, and how they reach providers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, Protocol

from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, CONTROLLER_REVISIONS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, SERVICES
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Failure
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.kinds.virtrigaud.migrations import VMMigration, VMMigrationStatus
from holdfast.meta.objects import Key
from holdfast.operators.operator import Setting
from holdfast.operators.virtualmachine import names, outside
from holdfast.operators.virtualmachine.classes import decide as classes
from holdfast.operators.virtualmachine.classes import observe as class_worlds
from holdfast.operators.virtualmachine.clones import calls as clones
from holdfast.operators.virtualmachine.clones import observe as clone_worlds
from holdfast.operators.virtualmachine.connections import Connect, Connections
from holdfast.operators.virtualmachine.images import decide as images
from holdfast.operators.virtualmachine.images import observe as image_worlds
from holdfast.operators.virtualmachine.machines import calls
from holdfast.operators.virtualmachine.machines import observe as worlds
from holdfast.operators.virtualmachine.machines.calls import Fetch
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF, key_of
from holdfast.operators.virtualmachine.machines.status import INVALID
from holdfast.operators.virtualmachine.migrations import calls as migrations
from holdfast.operators.virtualmachine.migrations import observe as migration_worlds
from holdfast.operators.virtualmachine.migrations import status as migration_status
from holdfast.operators.virtualmachine.networks import decide as networks
from holdfast.operators.virtualmachine.networks import observe as network_worlds
from holdfast.operators.virtualmachine.placement import choices as placing_choices
from holdfast.operators.virtualmachine.placement import decide as placing
from holdfast.operators.virtualmachine.placement import observe as placing_worlds
from holdfast.operators.virtualmachine.policies import decide as policies
from holdfast.operators.virtualmachine.policies import observe as policy_worlds
from holdfast.operators.virtualmachine.providers import decide as providers
from holdfast.operators.virtualmachine.providers import observe as provider_worlds
from holdfast.operators.virtualmachine.providers import status as provider_status
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    IMAGES,
    MACHINES,
    MIGRATIONS,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SETS,
    SNAPSHOTS,
)
from holdfast.operators.virtualmachine.sets import decide as sets
from holdfast.operators.virtualmachine.sets import observe as set_worlds
from holdfast.operators.virtualmachine.sets import status as set_status
from holdfast.operators.virtualmachine.settings import DEFAULTS, Settings
from holdfast.operators.virtualmachine.snapshots import calls as snapshots
from holdfast.operators.virtualmachine.snapshots import observe as snapshot_worlds
from holdfast.runtime.controllers import Controller, Signals, View, Watch
from holdfast.runtime.decisions import Decision
from holdfast.runtime.status import Invalid

_SOON: Final = timedelta(seconds=1)
"""How long an image waits for more machines that need it; they wait for it."""

_LATER: Final = timedelta(seconds=5)
"""How long a class or a network waits for more machines before it counts them."""


def _of_pod(obj: Object, view: View) -> Iterable[Key]:
    """The Provider whose process a pod is."""
    labels = obj.meta.labels
    if labels.get(provider_worlds.NAME) != provider_worlds.APP or provider_worlds.INSTANCE not in labels:
        return ()
    return (Key(obj.meta.namespace, labels[provider_worlds.INSTANCE]),)


def _first_or_last_machine(obj: Object, view: View) -> Iterable[Key]:
    """The Provider of a machine, if it waits for its first machine, or for its last one to be gone."""
    key = key_of(obj.decode(VirtualMachine).spec.provider_ref, obj.key)
    provider = view.get(PROVIDERS, key)
    waits = provider is not None and (provider.deleting or names.ON_DEMAND in provider.meta.annotations)
    return (key,) if waits else ()


def _mounts_claim(obj: Object, view: View) -> Iterable[Key]:
    """The Providers that mount a claim for migrations."""
    if obj.meta.labels.get(names.STORAGE) != names.STORAGE_VALUE and obj.key.name != names.SHARED_STORAGE:
        return ()
    return (each.key for each in view.list(PROVIDERS, namespace=obj.meta.namespace))


def _claim_matters(old: Object, new: Object) -> bool:
    return (old.uid, old.deleting, old.meta.labels) != (new.uid, new.deleting, new.meta.labels)


def _migration_matters(old: Object, new: Object) -> bool:
    return _migration_facts(old) != _migration_facts(new)


def _migration_facts(obj: Object) -> tuple[object, ...]:
    status = obj.decode(VMMigration).status or VMMigrationStatus()
    return obj.meta.generation, obj.deleting, status.completion_time, status.artifacts


def _class_of(obj: Object, view: View) -> Iterable[Key]:
    return (key_of(obj.decode(VirtualMachine).spec.class_ref, obj.key),)


def _image_of(obj: Object, view: View) -> Iterable[Key]:
    reference = obj.decode(VirtualMachine).spec.image_ref
    return () if reference is None else (key_of(reference, obj.key),)


def _networks_of(obj: Object, view: View) -> Iterable[Key]:
    cards = obj.decode(VirtualMachine).spec.networks
    return {key_of(card.network_ref, obj.key) for card in cards if card.network_ref is not None}


def _used_by(resource_keys: Callable[[Object, View], Iterable[Key]], within: timedelta) -> Watch:
    """Look at what machines refer to when they come, go, or refer to another object; many at once cost one look."""
    return Watch(resource=MACHINES, keys=resource_keys, matters=_refers_to_others, within=within)


def _refers_to_others(old: Object, new: Object) -> bool:
    return not worlds.same_references(old, new)


def _mentioned_by(resource_keys: Callable[[Object, View], Iterable[Key]]) -> Callable[[Object, View], Iterable[Key]]:
    """The keys that the machines of a Provider bring."""

    def keys(provider: Object, view: View) -> Iterable[Key]:
        return {key for machine in REFERENCES.of(view, provider) for key in resource_keys(machine, view)}

    return keys


def _users_of(resource_keys: Callable[[Object, View], Iterable[Key]]) -> Watch:
    """Look at what machines refer to when their Provider becomes able to do other things."""
    return Watch(resource=PROVIDERS, keys=_mentioned_by(resource_keys), matters=worlds.provider_matters)


SET_CONTROLLER: Final[Controller[Any]] = Controller(
    name="vmset",
    resource=SETS,
    owns=(MACHINES, CONTROLLER_REVISIONS),
    watches=(Watch(resource=MACHINES, keys=set_worlds.named_like),),
    observe=set_worlds.observe,
    decide=sets.decide,
    explain=sets.explain,
    invalid=set_status.INVALID,
)
"""The controller of VMSets, which writes VirtualMachines and never talks to providers."""


class _Worlds(Protocol):
    """The functions that find the world of an object: those of the modules `observe`."""

    def observe(self, view: View, key: Key, /) -> Any: ...

    async def survey(self, world: Any, /, *, connections: Connections) -> Any: ...


class _Calls(Protocol):
    """The functions that decide about a world and call providers: those of the modules `calls`."""

    def decide(self, world: Any, now: datetime, /) -> Decision: ...

    def explain(self, world: Any, failure: Failure, now: datetime, /) -> Mapping[str, Any] | None: ...

    async def act(self, world: Any, decided: Decision, /, *, connections: Connections) -> Decision: ...


def _passes(worlds: _Worlds, calls: _Calls, connections: Connections) -> dict[str, Any]:
    """The functions of a controller that does one step with providers in each pass, also while it deletes."""
    return {
        "observe": worlds.observe,
        "survey": partial(worlds.survey, connections=connections),
        "decide": calls.decide,
        "cleanup": calls.decide,
        "act": partial(calls.act, connections=connections),
        "explain": calls.explain,
        "backoff": Backoff(),
    }


def controllers(
    settings: Settings = DEFAULTS,
    *,
    connect: Connect = outside.connect,
    fetch: Fetch = outside.fetch,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[Controller[Any], ...]:
    """The controllers, with the settings of an installation and the way to reach providers and guests."""
    connections, signals = Connections(connect), Signals()
    return (
        Controller(
            name="provider",
            resource=PROVIDERS,
            owns=(DEPLOYMENTS, SERVICES, SECRETS, CLAIMS),
            watches=(
                Watch(resource=PODS, keys=_of_pod),
                Watch(resource=CLAIMS, keys=_mounts_claim, matters=_claim_matters),
                Watch(resource=MIGRATIONS, keys=migration_worlds.providers_of, matters=_migration_matters),
                Watch(resource=MACHINES, keys=_first_or_last_machine, matters=_refers_to_others),
                *provider_worlds.PROVIDERS_OF.watches(SECRETS),
            ),
            reads=(CLASSES,),
            writes=(MACHINES, CLASSES),
            indexes=(REFERENCES.index, migration_worlds.MIGRATIONS_OF.index, provider_worlds.PROVIDERS_OF.index),
            observe=provider_worlds.observe,
            survey=partial(provider_worlds.survey, connections=connections, clock=clock),
            decide=partial(providers.decide, settings=settings),
            cleanup=partial(providers.cleanup, settings=settings),
            finalizer=providers.FINALIZER,
            act=partial(providers.act, signals=signals),
            explain=partial(providers.explain, settings=settings),
            invalid=provider_status.INVALID,
        ),
        Controller(
            name="virtualmachine",
            resource=MACHINES,
            watches=(
                *REFERENCES.watches(PROVIDERS, matters=worlds.provider_matters),
                *REFERENCES.watches(CLASSES, matters=worlds.class_matters),
                *REFERENCES.watches(IMAGES, matters=worlds.image_matters),
                *REFERENCES.watches(NETWORKS, matters=worlds.network_matters),
                *REFERENCES.watches(POLICIES, matters=worlds.policy_matters),
                *REFERENCES.watches(SECRETS),
                *REFERENCES.watches(SNAPSHOTS, matters=worlds.snapshot_matters),
                Watch(resource=SNAPSHOTS, keys=worlds.of_snapshot, matters=worlds.snapshot_matters),
            ),
            signals=signals,
            indexes=(REFERENCES.index, SNAPSHOTS_OF.index),
            observe=worlds.observe,
            survey=partial(worlds.survey, connections=connections),
            decide=calls.decide,
            cleanup=calls.cleanup,
            finalizer=names.FINALIZER,
            act=partial(calls.act, connections=connections, fetch=fetch),
            explain=calls.explain,
            invalid=INVALID,
            backoff=Backoff(),
        ),
        Controller(
            name="vmplacement",
            resource=PROVIDERS,
            matters=worlds.provider_matters,
            watches=(
                Watch(resource=MACHINES, keys=placing_worlds.of_machine, matters=placing_worlds.machine_matters),
                Watch(resource=CLONES, keys=placing_worlds.of_clone, matters=placing_worlds.clone_matters),
                Watch(resource=POLICIES, keys=placing_worlds.of_reference, matters=placing_worlds.spec_matters),
                Watch(resource=CLASSES, keys=placing_worlds.of_reference, matters=placing_worlds.spec_matters),
                Watch(resource=SNAPSHOTS, keys=placing_worlds.of_reference, matters=placing_worlds.spec_matters),
                Watch(resource=NAMESPACES, keys=placing_worlds.of_namespace, matters=placing_worlds.labels_matter),
            ),
            reads=(SECRETS, IMAGES, NETWORKS),
            writes=(MACHINES, CLONES),
            indexes=(
                REFERENCES.index,
                SNAPSHOTS_OF.index,
                clone_worlds.CLONES_OF.index,
                placing_worlds.UNPLACED,
                placing_worlds.OPEN_CLONES,
            ),
            observe=placing_worlds.observe,
            survey=partial(placing_choices.survey, connections=connections),
            decide=placing.decide,
            timeout=timedelta(minutes=5),
            invalid=provider_status.INVALID,
            backoff=Backoff(),
        ),
        Controller(
            name="vmsnapshot",
            resource=SNAPSHOTS,
            watches=(
                *SNAPSHOTS_OF.watches(MACHINES, matters=snapshot_worlds.machine_matters),
                Watch(resource=PROVIDERS, keys=snapshot_worlds.of_provider, matters=worlds.provider_matters),
                Watch(resource=SNAPSHOTS, keys=snapshot_worlds.siblings_of, matters=snapshot_worlds.sibling_matters),
            ),
            reads=(SECRETS,),
            indexes=(REFERENCES.index, SNAPSHOTS_OF.index),
            finalizer=names.SNAPSHOT_FINALIZER,
            invalid=snapshots.INVALID,
            **_passes(snapshot_worlds, snapshots, connections),
        ),
        Controller(
            name="vmclone",
            resource=CLONES,
            watches=(
                Watch(resource=MACHINES, keys=clone_worlds.of_machine, matters=clone_worlds.machine_matters),
                *clone_worlds.CLONES_OF.watches(SNAPSHOTS, matters=worlds.snapshot_matters),
                *clone_worlds.CLONES_OF.watches(POLICIES, matters=worlds.policy_matters),
                Watch(resource=PROVIDERS, keys=clone_worlds.of_reference, matters=worlds.provider_matters),
                Watch(resource=CLASSES, keys=clone_worlds.of_reference, matters=worlds.class_matters),
                Watch(resource=NETWORKS, keys=clone_worlds.of_reference, matters=worlds.network_matters),
                Watch(resource=SECRETS, keys=clone_worlds.of_reference),
            ),
            reads=(IMAGES,),
            writes=(MACHINES,),
            indexes=(REFERENCES.index, SNAPSHOTS_OF.index, clone_worlds.CLONES_OF.index),
            finalizer=names.CLONE_FINALIZER,
            invalid=clones.INVALID,
            **_passes(clone_worlds, clones, connections),
        ),
        Controller(
            name="vmmigration",
            resource=MIGRATIONS,
            watches=(
                *migration_worlds.MIGRATIONS_OF.watches(MACHINES, matters=migration_worlds.machine_matters),
                *migration_worlds.MIGRATIONS_OF.watches(SNAPSHOTS, matters=worlds.snapshot_matters),
                *migration_worlds.MIGRATIONS_OF.watches(CLAIMS),
                Watch(
                    resource=PROVIDERS,
                    keys=migration_worlds.of_reference,
                    matters=migration_worlds.provider_matters,
                ),
                Watch(resource=CLASSES, keys=migration_worlds.of_reference, matters=worlds.class_matters),
                Watch(resource=NETWORKS, keys=migration_worlds.of_reference, matters=worlds.network_matters),
                Watch(resource=SECRETS, keys=migration_worlds.of_reference),
            ),
            reads=(IMAGES, POLICIES),
            writes=(MACHINES, CLAIMS),
            indexes=(REFERENCES.index, SNAPSHOTS_OF.index, migration_worlds.MIGRATIONS_OF.index),
            finalizer=names.MIGRATION_FINALIZER,
            invalid=migration_status.INVALID,
            **_passes(migration_worlds, migrations, connections),
        ),
        Controller(
            name="vmimage",
            resource=IMAGES,
            watches=(_used_by(_image_of, _SOON), _users_of(_image_of)),
            reads=(SECRETS,),
            indexes=(REFERENCES.index,),
            observe=image_worlds.observe,
            survey=partial(image_worlds.survey, connections=connections),
            decide=images.decide,
            act=partial(images.act, connections=connections),
            invalid=Invalid(conditions={"Ready": False, "Validated": False}, fields={"phase": "Failed"}),
        ),
        Controller(
            name="vmclass",
            resource=CLASSES,
            watches=(_used_by(_class_of, _LATER), _users_of(_class_of)),
            indexes=(REFERENCES.index,),
            observe=class_worlds.observe,
            decide=classes.decide,
            invalid=Invalid(conditions={"Ready": False, "Validated": False}),
        ),
        Controller(
            name="vmnetworkattachment",
            resource=NETWORKS,
            watches=(_used_by(_networks_of, _LATER), _users_of(_networks_of)),
            indexes=(REFERENCES.index,),
            observe=network_worlds.observe,
            decide=networks.decide,
            invalid=Invalid(conditions={"Ready": False, "Validated": False}, fields={"phase": "Failed"}),
        ),
        Controller(
            name="vmplacementpolicy",
            resource=POLICIES,
            # Its own status brings no pass: one while machines come and go would count them again at once.
            matters=worlds.policy_matters,
            watches=(
                Watch(
                    resource=MACHINES,
                    keys=policy_worlds.of_machine,
                    matters=policy_worlds.machine_matters,
                    within=_LATER,
                ),
                Watch(
                    resource=MACHINES,
                    keys=policy_worlds.others_of_machine,
                    matters=policy_worlds.member_matters,
                    within=_LATER,
                ),
                Watch(
                    resource=PROVIDERS,
                    keys=_mentioned_by(policy_worlds.of_machine),
                    matters=policy_worlds.provider_matters,
                ),
                Watch(resource=POLICIES, keys=policy_worlds.siblings_of, matters=worlds.policy_matters, within=_SOON),
                Watch(resource=NAMESPACES, keys=policy_worlds.of_namespace, matters=placing_worlds.labels_matter),
            ),
            indexes=(REFERENCES.index,),
            observe=policy_worlds.observe,
            decide=policies.decide,
            invalid=Invalid(conditions={"Ready": False, "Validated": False}),
        ),
        SET_CONTROLLER,
    )


CONTROLLERS: Final = controllers()


# --- settings

CONTAINERS: Final = "containers"
PROCESSES: Final = "processes"


def _runtime_problem(text: str) -> str | None:
    return None if text in (CONTAINERS, PROCESSES) else f"it is neither {CONTAINERS} nor {PROCESSES}"


RUNTIME: Final = Setting(
    name="virtualmachine.runtime",
    variable="VIRTUALMACHINE_RUNTIME",
    default=CONTAINERS,
    meaning="How the processes of Providers run: containers, or processes of the node that `holdfast up` runs on.",
    problem=_runtime_problem,
)


def _images_problem(text: str) -> str | None:
    return None if text == NO_FOLDER or text.startswith("/") else "it is not an absolute path"


NO_FOLDER: Final = "none"


IMAGES_FOLDER: Final = Setting(
    name="virtualmachine.images",
    variable="VIRTUALMACHINE_IMAGES",
    default=NO_FOLDER,
    meaning="The folder with images that machines of QEMU may be made from, where Providers run as processes.",
    problem=_images_problem,
)


STORAGE_FOLDER: Final = Setting(
    name="virtualmachine.storage",
    variable="VIRTUALMACHINE_STORAGE",
    default=NO_FOLDER,
    meaning="The folder with nfs/SERVER, in which NFS is mounted for migrations, where Providers run as processes.",
    problem=_images_problem,
)


def configure(values: Mapping[str, str]) -> tuple[Controller[Any], ...]:
    """The controllers with the settings of an installation."""
    if values.get(RUNTIME.name, RUNTIME.default) != PROCESSES:
        return CONTROLLERS
    path = os.environ.get("PYTHONPATH")
    return controllers(
        Settings(
            processes=True,
            command=(sys.executable, "-m", "holdfast"),
            env={"PYTHONPATH": path} if path else {},
            images=values.get(IMAGES_FOLDER.name, NO_FOLDER).removeprefix(NO_FOLDER),
            storage=values.get(STORAGE_FOLDER.name, NO_FOLDER).removeprefix(NO_FOLDER),
            local=local_types(),
        )
    )


def local_types() -> frozenset[str]:
    """The types of hypervisor that can run on this machine."""
    found = {"simulated"}
    if shutil.which("qemu-img") and any(shutil.which(f"qemu-system-{each}") for each in ("x86_64", "aarch64")):
        found.add("qemu")
    if find_spec("libvirt") is not None:
        found.add("libvirt")
    return frozenset(found)
