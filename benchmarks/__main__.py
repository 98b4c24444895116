"""Measure, and print what was measured beside its bar; nothing here fails, it reports.

``python -m benchmarks [--tiny] [SECTION ...]``: without sections, all of them.
"""

from __future__ import annotations

import argparse
import os
from importlib import import_module

from benchmarks.sizes import VARIABLE

SECTIONS = ("kernel", "profiler", "apiserver", "runtime", "rollouts", "gangs", "kubernetes")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--tiny", action="store_true", help="in a tiny size, which shows only that it runs")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if arguments.tiny:
        os.environ[VARIABLE] = "tiny"
    for section in arguments.sections or SECTIONS:
        # Imported only now: the sizes are read then.
        import_module(f"benchmarks.{section}").report()
        print()


if __name__ == "__main__":
    main()
