"""Containers as processes: their arguments and environment, supervision, checks and logs."""
