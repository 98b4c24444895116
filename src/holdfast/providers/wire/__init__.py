"""The contract over gRPC: `provider.v1.Provider`, spoken with our own providers and with VirtRigaud's.

`Remote` is a hypervisor behind an address, `Server` serves any hypervisor.  gRPC is imported with them, not before.
"""

from __future__ import annotations

import os

# Before gRPC is imported: failed calls are reported in conditions and logs of our own, and not in lines of its library.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
