"""Measure, and print what was measured beside its bar; nothing here fails, it reports."""

from __future__ import annotations

from benchmarks import apiserver, kernel

if __name__ == "__main__":
    kernel.report()
    print()
    apiserver.report()
