"""Which machines of a hypervisor are adopted: an annotation of the Provider says it, as JSON.  Pure."""

from __future__ import annotations

import re

import msgspec

from holdfast.providers.contract import Listed


class Filter(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which machines are adopted."""

    name_pattern: str = ""
    power_state: str = ""
    min_cpu: int = msgspec.field(name="minCPU", default=0)
    max_cpu: int = msgspec.field(name="maxCPU", default=0)
    min_memory_mib: int = msgspec.field(name="minMemoryMiB", default=0)
    max_memory_mib: int = msgspec.field(name="maxMemoryMiB", default=0)

    def takes(self, machine: Listed) -> bool:
        return (
            (not self.name_pattern or re.search(self.name_pattern, machine.name) is not None)
            and (not self.power_state or machine.power.lower() == self.power_state.lower())
            and machine.cpus >= self.min_cpu
            and (not self.max_cpu or machine.cpus <= self.max_cpu)
            and machine.memory_mib >= self.min_memory_mib
            and (not self.max_memory_mib or machine.memory_mib <= self.max_memory_mib)
        )


def filter_of(text: str) -> Filter | str:
    """A filter, or what is wrong with it."""
    try:
        read = msgspec.json.decode(text or "{}", type=Filter)
        re.compile(read.name_pattern)
    except msgspec.DecodeError as error:
        return str(error)
    except re.error as error:
        return f"namePattern is not a regular expression: {error}"
    return read
