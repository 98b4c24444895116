"""VMImages: what root disks are made from, on each provider."""
