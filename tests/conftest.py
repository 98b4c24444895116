"""Settings that hold for every test: reproducible examples, and what the proof has seen."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "holdfast", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("holdfast")


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
