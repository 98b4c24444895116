"""How a Provider is shown: one whose process starts on demand is idle, and lacks nothing."""

from __future__ import annotations

import msgspec

from holdfast.operators.virtualmachine.reasons import ProviderReason
from holdfast.views import overview
from holdfast.views.overview import Glance, Health, Wire

IDLE = "Idle"


def glance(wire: Wire) -> Glance:
    seen = overview.glance(wire)
    if seen.code != ProviderReason.ON_DEMAND.value:
        return seen
    return msgspec.structs.replace(seen, phase=IDLE, health=Health.GOOD)
