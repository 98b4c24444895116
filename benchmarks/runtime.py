"""The runtime: against kopf, what it keeps, how fast it reacts, many pods, and nothing to do.

Less than 90 seconds, of which kopf takes about 15.
"""

from __future__ import annotations

from benchmarks import crowds, operators, replacements, stores


def report() -> None:
    operators.report()
    print()
    stores.report()
    print()
    replacements.report()
    print()
    crowds.report()
