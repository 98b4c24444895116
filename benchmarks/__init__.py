"""Measurements of what `docs/benchmarks.md` promises; run by ``make bench``."""
