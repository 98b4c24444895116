"""The kernel and the vocabulary know no I/O, clock, randomness or log.

Two proofs: what a fresh interpreter has loaded after importing all of them, and
what their source mentions.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.places import ROOT

SOURCE = ROOT / "src" / "holdfast"
PURE = ("kernel", "meta")

IMPURE = {
    "asyncio", "concurrent", "ctypes", "email", "fcntl", "ftplib", "getpass", "glob", "http", "logging", "mmap",
    "multiprocessing", "pathlib", "pickle", "platform", "random", "_random", "requests", "sched", "secrets", "select",
    "selectors", "shutil", "signal", "smtplib", "socket", "_socket", "sqlite3", "ssl", "subprocess", "syslog",
    "tempfile", "threading", "time", "urllib.request", "uuid", "yaml",
}  # fmt: skip
"""What a pure module must not import by itself."""

CLOCKS_AND_STREAMS = {"now", "utcnow", "today", "time_ns", "monotonic", "perf_counter", "open", "print", "input"}


def test_importing_the_pure_packages_loads_nothing_impure() -> None:
    names = [
        ".".join(("holdfast", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for package in PURE
        for path in sorted((SOURCE / package).rglob("*.py"))
    ]
    program = (
        "import sys, json\n"
        "import msgspec, msgspec.json, msgspec.structs\n"
        "before = set(sys.modules)\n"
        f"import {', '.join(names)}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert not loaded & IMPURE, sorted(loaded & IMPURE)
    assert {name.split(".")[1] for name in loaded if name.startswith("holdfast.")} == set(PURE)


@pytest.mark.parametrize(
    "path", [path for package in PURE for path in sorted((SOURCE / package).rglob("*.py"))], ids=lambda path: path.name
)
def test_the_source_mentions_no_clock_stream_or_chance(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names if alias.name.split(".")[0] in IMPURE]
            case ast.ImportFrom(module=str(module)):
                found += [module] if module.split(".")[0] in IMPURE else []
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                found += [name] if name in CLOCKS_AND_STREAMS else []
            case _:
                pass
    assert not found, found
