"""What is wrong with a VMMigration, by its spec alone: for the admission and for the controller.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud.migrations import VMMigration
from holdfast.operators.virtualmachine.migrations import storage


def problems(migration: VMMigration) -> Iterator[Problem]:
    """What no cluster can make right."""
    spec = migration.spec
    source, target, options, store = spec.source, spec.target, spec.options, spec.storage
    namespace = migration.metadata.namespace
    if target.namespace is not None and target.namespace != namespace:
        message = "a machine is made in the namespace of its VMMigration"
        yield Problem("spec.target.namespace", message, "leave it out, and create the VMMigration in that namespace")
    if target.name == source.vm_ref.name:
        message = f"{target.name} is the machine that moves"
        yield Problem("spec.target.name", message, "choose another name: both exist until the target is validated")
    if source.provider_ref is not None and source.provider_ref == target.provider_ref:
        message = f"{target.provider_ref.name} is the provider of the source"
        yield Problem("spec.target.providerRef", message, "name another Provider, or use a VMClone")
    checks = options.validation_checks if options else None
    for field, asked in (
        ("checkBoot", checks and checks.check_boot),
        ("checkConnectivity", checks and checks.check_connectivity),
    ):
        if asked and not target.power_on:
            path = f"spec.options.validationChecks.{field}"
            yield Problem(path, "a machine that is not started cannot be checked so", "set spec.target.powerOn to true")
    if checks and checks.check_checksum and options and options.verify_checksums is False:
        path = "spec.options.validationChecks.checkChecksum"
        yield Problem(path, "no checksums are computed", "set spec.options.verifyChecksums to true")
    if store is not None and store.nfs is not None and store.nfs.read_only:
        yield Problem("spec.storage.nfs.readOnly", "the disk is written there", "leave it out")
    if store is not None and store.nfs is not None:
        for field, text in (("export", store.nfs.export), ("path", store.nfs.path or "")):
            if ".." in text.split("/"):
                yield Problem(f"spec.storage.nfs.{field}", f"{text} leaves the export", "write a path without ..")
    if store is not None and store.pvc is not None and store.pvc.access_mode == "ReadOnlyMany":
        yield Problem("spec.storage.pvc.accessMode", "the disk is written there", "write ReadWriteMany")
    if store is not None and store.s3 is not None:
        given = store.s3.credentials_secret_ref.namespace
        if given is not None and given != namespace:
            path = "spec.storage.s3.credentialsSecretRef.namespace"
            yield Problem(path, "the Secret is read in the namespace of the VMMigration", "leave it out")
        refused = storage.forbidden(store.s3.endpoint) if store.s3.endpoint else ""
        if refused:
            yield Problem("spec.storage.s3.endpoint", refused, "name a host that providers may reach")
