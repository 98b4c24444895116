"""Tools for testing rollouts: an exhaustive walk, a simulator in virtual time.

Public: what proves Holdfast's own engine can prove what others build on it.
"""
