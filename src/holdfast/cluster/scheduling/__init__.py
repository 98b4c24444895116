"""The scheduler: where pods go, one by one or in gangs."""

from __future__ import annotations
