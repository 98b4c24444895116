"""VMPlacementPolicies: which machines use each, where those are, and what contradicts it."""
