"""Hypervisors behind one contract.

`contract` is the contract in Python: what a hypervisor can be asked, and the errors it answers with.  It is
spoken over gRPC (`wire`), so that a provider is a process of its own and keeps its credentials to itself;
`simulated`, `qemu` and `libvirt` are the hypervisors.
"""
