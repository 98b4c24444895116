"""Commands over the rest of the project; `main` is the console script."""

from __future__ import annotations

from holdfast.cli.main import main

__all__ = ["main"]
