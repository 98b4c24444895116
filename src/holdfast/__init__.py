"""Holdfast: rollouts that keep their floor, and status that is true."""

__version__ = "0.1.0.dev0"
