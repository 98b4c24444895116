"""A hypervisor that exists in memory: deterministic, on any clock, with faults as they are asked for.

`World` says which hosts and datastores there are, `Latencies` how long things take, `Fault` what goes wrong.
"""

from __future__ import annotations

from holdfast.providers.simulated.hypervisor import Simulated
from holdfast.providers.simulated.stores import MemoryStore, Store
from holdfast.providers.simulated.tasks import CAPABILITIES
from holdfast.providers.simulated.world import INSTANT, Fault, Latencies, World

__all__ = ["CAPABILITIES", "INSTANT", "Fault", "Latencies", "MemoryStore", "Simulated", "Store", "World"]
