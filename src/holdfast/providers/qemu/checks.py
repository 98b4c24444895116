"""What the provider refuses before it makes anything: names and formats."""

from __future__ import annotations

import re
from typing import Final

from holdfast.providers.contract import (
    Code,
    Machine,
    ProviderError,
)

FORMATS: Final = ("qcow2", "raw", "vmdk")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def check_name(name: str, what: str) -> None:
    if not NAME.fullmatch(name):
        raise ProviderError(Code.INVALID, f"{what}: {name!r} is not a name of letters, digits, dots and dashes")


def check_names(machine: Machine) -> None:
    if not machine.name or len(machine.name) > 253 or any(not letter.isprintable() for letter in machine.name):
        raise ProviderError(Code.INVALID, "the machine has no usable name")
    for disk in machine.disks:
        check_name(disk.name, f"disk of machine {machine.name}")
        if disk.name != "root" and not disk.size_gib:
            raise ProviderError(Code.INVALID, f"disk {disk.name} of machine {machine.name} has no size")


def check_format(format: str) -> None:
    if format and format not in FORMATS:
        raise ProviderError(Code.UNSUPPORTED, f"format {format} is not one of {', '.join(FORMATS)}")
