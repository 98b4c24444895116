"""Settings that hold for every test: reproducible examples, bytecode of child processes, what the proof has seen."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "holdfast", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("holdfast")

os.environ.setdefault("HOLDFAST_READY_AFTER", "100ms..1s")
"""The simulated pods of clusters that tests start; for users they are slower, so that something can be seen."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the bytecode of child processes for the session where the environment keeps none; workers inherit it.

    Otherwise each of hundreds of processes would compile everything that it imports.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and "PYTHONPYCACHEPREFIX" not in os.environ:
        directory = TemporaryDirectory(prefix="holdfast-tests-bytecode-", ignore_cleanup_errors=True)
        os.environ["PYTHONPYCACHEPREFIX"] = directory.name
        config.add_cleanup(directory.cleanup)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many states the walks visited; the properties cross process borders with the reports."""
    states = sum(
        int(str(value))
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", [])
        if name == "states"
    )
    if states:
        terminalreporter.write_line(f"proof: {states:,} states of the rollout engine visited, every promise kept")
