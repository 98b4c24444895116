"""How a VMImage is shown: one that no machine uses is on no provider, and lacks nothing."""

from __future__ import annotations

import msgspec

from holdfast.operators.virtualmachine.reasons import ImageReason
from holdfast.views import overview
from holdfast.views.overview import Glance, Health, Wire

UNUSED = "Unused"


def glance(wire: Wire) -> Glance:
    seen = overview.glance(wire)
    if seen.code != ImageReason.NOT_USED.value:
        return seen
    return msgspec.structs.replace(seen, phase=UNUSED, health=Health.GOOD)
