"""What commands import: those that answer at once must not pay for what they do not use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SERVERS = ("aiohttp", "holdfast.apiserver.server", "sqlite3")
HEAVY = ("cryptography", "grpc", "google.protobuf", "numpy", "uvloop", "holdfast.cluster", "holdfast.profiler.search")
ENGINES = ("asyncio", "msgspec", "yaml", "holdfast.kinds", "holdfast.kernel", "holdfast.client")


def imported(*arguments: str) -> set[str]:
    """The modules that a command line has imported when it ends."""
    script = (
        "import json, sys\n"
        "from holdfast.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("completion", "bash")], ids=" ".join)
def test_help_and_completion_import_no_engine(arguments: tuple[str, ...]) -> None:
    assert not {*SERVERS, *HEAVY, *ENGINES} & imported(*arguments)


def test_an_operator_imports_no_server_and_no_library_that_only_some_kinds_need() -> None:
    # The command with its help has imported all operators, as the process that works does.
    names = imported("operator", "list")
    assert not {"holdfast.apiserver.server", "holdfast.apiserver.http.listener", "sqlite3", *HEAVY} & names
    assert "holdfast.operators.workload" in names
