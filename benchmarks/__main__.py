"""Measure, and print what was measured beside its bar; nothing here fails, it reports."""

from __future__ import annotations

from benchmarks import apiserver, gangs, kernel, rollouts, runtime

if __name__ == "__main__":
    for section in (kernel, apiserver, runtime, rollouts, gangs):
        section.report()
        print()
