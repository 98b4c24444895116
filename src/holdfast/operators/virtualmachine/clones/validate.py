"""Problems of a VMClone that its schema does not find.  Pure.

`problems` are contradictions, which no API server of ours accepts; `limits` are what no provider does today, which the
controller reports.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMClone
from holdfast.kinds.virtrigaud.clones import CloneOptions, CloneType, VMCustomization
from holdfast.operators.virtualmachine.clones.render import prefix
from holdfast.operators.virtualmachine.machines.validate import cards, out_of_range


def problems(clone: VMClone) -> tuple[Problem, ...]:
    """The contradictions of a spec."""
    return (*_target(clone), *_options(clone), *_customization(clone))


def limits(clone: VMClone) -> tuple[Problem, ...]:
    """What a spec asks for and no provider does."""
    return tuple(_limits(clone))


def _target(clone: VMClone) -> Iterator[Problem]:
    spec, target = clone.spec, clone.spec.target
    if spec.source.image_ref is None and spec.source.template_ref is None:
        if spec.source.vm_ref is not None and spec.source.vm_ref.name == target.name:
            message = f"{target.name} is the name of the source"
            yield Problem("spec.target.name", message, "give the clone another name")
    elif target.provider_ref is None or target.class_ref is None:
        yield Problem("spec.target", "a clone of an image needs providerRef and classRef", "add them")
    yield from cards("spec.target.networks", target.networks)


def _options(clone: VMClone) -> Iterator[Problem]:
    source, options = clone.spec.source, clone.spec.options or CloneOptions()
    from_image = source.image_ref is not None or source.template_ref is not None
    if from_image and options.type not in (None, CloneType.FULL_CLONE):
        message = f"a clone of an image is a FullClone, and not a {options.type}"
        yield Problem("spec.options.type", message, "remove it")
    retry = options.retry_policy
    yield from out_of_range("spec.options.timeout", options.timeout)
    yield from out_of_range("spec.options.retryPolicy.retryDelay", retry.retry_delay if retry else None)


def _customization(clone: VMClone) -> Iterator[Problem]:
    custom, at = clone.spec.customization or VMCustomization(), "spec.customization"
    for n, card in enumerate(custom.networks):
        if card.subnet_mask and prefix(card.subnet_mask) is None:
            message = f"{card.subnet_mask} is not a mask"
            yield Problem(f"{at}.networks[{n}].subnetMask", message, "write one such as 255.255.255.0")
    if custom.guest_commands and not (clone.spec.options or CloneOptions()).power_on:
        message = "commands run in a guest that runs"
        yield Problem(f"{at}.guestCommands", message, "set spec.options.powerOn to true")
    for n, command in enumerate(custom.guest_commands):
        yield from out_of_range(f"{at}.guestCommands[{n}].timeout", command.timeout)


def _limits(clone: VMClone) -> Iterator[Problem]:
    spec, own, at = clone.spec, clone.metadata.namespace, "spec.customization"
    if spec.target.namespace is not None and own and spec.target.namespace != own:
        message = f"a clone is made in the namespace of its VMClone, {own}"
        yield Problem("spec.target.namespace", message, f"create the VMClone in {spec.target.namespace}")
    if spec.options is not None and spec.options.include_snapshots:
        yield Problem("spec.options.includeSnapshots", "providers do not clone snapshots", "remove it")
    custom = spec.customization or VMCustomization()
    if custom.sysprep is not None and custom.sysprep.enabled:
        yield Problem(f"{at}.sysprep", "providers do not run sysprep", "use userData")
    if custom.certificates:
        yield Problem(f"{at}.certificates", "providers do not install certificates", "use userData")
    if custom.time_zone:
        yield Problem(f"{at}.timeZone", "providers do not set the time zone", "use userData")
    for n, command in enumerate(custom.guest_commands):
        if command.working_directory or command.run_as_user:
            message = "workingDirectory and runAsUser have no effect"
            yield Problem(f"{at}.guestCommands[{n}]", message, "remove them, and use a shell")
