"""Pods that run as processes of this machine: a node of the embedded cluster."""

from __future__ import annotations
