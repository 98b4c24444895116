"""Problems of a VMClass that its schema does not find.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMClass
from holdfast.meta.quantities import Quantity, QuantityError

_SMALLEST: Final = 64 << 20
_CORRECT: Final = "write a smaller reservation, or a larger limit"


def problems(vm_class: VMClass) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return tuple(_problems(vm_class))


def _problems(vm_class: VMClass) -> Iterator[Problem]:
    spec = vm_class.spec
    try:
        if Quantity.parse(spec.memory).to_int() < _SMALLEST:
            yield Problem("spec.memory", f"{spec.memory} is less than 64Mi", "write a quantity such as 2Gi")
    except QuantityError as error:
        yield Problem("spec.memory", str(error))
    security = spec.security_profile
    if security and security.secure_boot and spec.firmware not in ("UEFI", "EFI"):
        yield Problem("spec.securityProfile.secureBoot", "secure boot needs spec.firmware UEFI")
    limits = spec.resource_limits
    if limits and limits.cpu_limit and limits.cpu_reservation and limits.cpu_reservation > limits.cpu_limit:
        message = f"{limits.cpu_reservation} MHz is more than cpuLimit, {limits.cpu_limit} MHz"
        yield Problem("spec.resourceLimits.cpuReservation", message, _CORRECT)
    least, most = (limits.memory_reservation, limits.memory_limit) if limits else (None, None)
    if least and most and _bytes(least) > _bytes(most):
        message = f"{least} is more than memoryLimit, {most}"
        yield Problem(
            "spec.resourceLimits.memoryReservation", message, "write a smaller reservation, or a larger limit"
        )


def _bytes(text: str | float) -> int:
    try:
        return Quantity.parse(text).to_int()
    except QuantityError:
        return 0
