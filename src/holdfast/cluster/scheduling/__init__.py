"""The scheduler: assigns pods to nodes, one by one or in gangs."""

from __future__ import annotations
