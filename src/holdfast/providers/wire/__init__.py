"""The contract over gRPC: `provider.v1.Provider`, spoken with our own providers and with VirtRigaud's.

`Remote` is a hypervisor behind an address, `Server` serves any hypervisor.  gRPC is imported with them, not before.
"""
