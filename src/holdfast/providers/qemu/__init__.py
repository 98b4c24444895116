"""Real virtual machines: QEMU processes that a provider starts, finds again after its own end, and never owns."""

from __future__ import annotations

from holdfast.providers.qemu import launch
from holdfast.providers.qemu.hypervisor import Qemu

__all__ = ["Qemu", "launch"]
