"""Directories, volumes and tokens of pods on the disk."""
