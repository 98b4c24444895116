"""Rollouts in virtual time: the real engine among simulated replicas; `holdfast simulate` runs it."""
