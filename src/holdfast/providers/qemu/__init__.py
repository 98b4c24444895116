"""Real virtual machines: QEMU processes, which go on when their provider ends, and which it finds again."""

from __future__ import annotations

from holdfast.providers.qemu import launch
from holdfast.providers.qemu.hypervisor import Qemu

__all__ = ["Qemu", "launch"]
