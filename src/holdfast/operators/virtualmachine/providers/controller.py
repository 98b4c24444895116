"""The controller of Providers, which runs their processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, DEPLOYMENTS, PODS, SECRETS, SERVICES
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.kinds.virtrigaud.migrations import VMMigration, VMMigrationStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, key_of
from holdfast.operators.virtualmachine.migrations import observe as migrations
from holdfast.operators.virtualmachine.providers import decide, observe, status
from holdfast.operators.virtualmachine.resources import CLASSES, MACHINES, MIGRATIONS, PROVIDERS
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.operators.virtualmachine.watches import refers_to_others
from holdfast.runtime.controllers import Controller, Signals, View, Watch


def controller(
    settings: Settings, connections: Connections, signals: Signals, clock: Callable[[], datetime]
) -> Controller[Any]:
    """The controller, which signals to that of machines what providers report."""
    return Controller(
        name="provider",
        resource=PROVIDERS,
        owns=(DEPLOYMENTS, SERVICES, SECRETS, CLAIMS),
        watches=(
            Watch(resource=PODS, keys=_of_pod),
            Watch(resource=CLAIMS, keys=_mounts_claim, matters=_claim_matters),
            Watch(resource=MIGRATIONS, keys=migrations.providers_of, matters=_migration_matters),
            Watch(resource=MACHINES, keys=_first_or_last_machine, matters=refers_to_others),
            *observe.PROVIDERS_OF.watches(SECRETS),
        ),
        reads=(CLASSES,),
        writes=(MACHINES, CLASSES),
        indexes=(REFERENCES.index, migrations.MIGRATIONS_OF.index, observe.PROVIDERS_OF.index),
        observe=observe.observe,
        survey=partial(observe.survey, connections=connections, clock=clock),
        decide=partial(decide.decide, settings=settings),
        cleanup=partial(decide.cleanup, settings=settings),
        finalizer=decide.FINALIZER,
        act=partial(decide.act, signals=signals),
        explain=partial(decide.explain, settings=settings),
        invalid=status.INVALID,
    )


def _of_pod(obj: Object, view: View) -> Iterable[Key]:
    """The Provider whose process a pod is."""
    labels = obj.meta.labels
    if labels.get(observe.NAME) != observe.APP or observe.INSTANCE not in labels:
        return ()
    return (Key(obj.meta.namespace, labels[observe.INSTANCE]),)


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
