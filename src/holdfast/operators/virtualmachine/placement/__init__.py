"""VMPlacementPolicies: where machines are placed, and what becomes of each policy."""
