"""VirtualMachines: each is one machine on one provider."""
