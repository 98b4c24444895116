"""Structural schemas: reading them, and pruning, defaulting and validating values by them."""
