"""Machines of libvirt, through its own Python binding (the extra `libvirt`)."""
