"""A server for all commands that need one; `api_runs` says how they are run on it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.cli.api_runs import Cli, served

_numbers = count(1)


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server."""
    with served(tmp_path_factory.mktemp("served")) as path:
        yield path


@pytest.fixture
def cli(kubeconfig: Path, tmp_path: Path) -> Cli:
    """holdfast in a namespace that nobody else uses."""
    cli = Cli(kubeconfig, tmp_path, f"team-{next(_numbers)}")
    cli.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cli.namespace}})
    return cli
