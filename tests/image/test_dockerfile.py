"""The image: what its Dockerfile copies and runs exists, and it can be built and run without a daemon.

    HOLDFAST_BASE_IMAGE=docker.io/library/python:3.12-slim python -m pytest tests/image

builds it with buildah and runs it as its user.  ``HOLDFAST_BUILD_OPTIONS`` has further options of ``buildah bud``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from tests.cli.operator.test_commands import printed
from tests.places import ROOT

import holdfast
from holdfast.cli.main import main

TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
BASE = os.environ.get("HOLDFAST_BASE_IMAGE", "")
BUILDAH = shutil.which("buildah")


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in LINES if name == instruction]


def test_everything_that_is_copied_from_the_repository_is_there() -> None:
    for copied in arguments("COPY"):
        *sources, _ = shlex.split(copied)
        if not copied.startswith("--from="):
            assert all((ROOT / each).exists() for each in sources), copied


def test_the_build_copies_what_the_package_is_made_of() -> None:
    copied = {each for line in arguments("COPY") for each in shlex.split(line)[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "constraints.txt", "src", project["readme"], *project["license-files"]} <= copied
    (extras,) = (line for line in arguments("ARG") if line.startswith("EXTRAS"))
    assert extras == 'EXTRAS=""'
    # Every example of extras in the comments is one that there is.
    for named in re.findall(r'"\[([a-z,]+)\]"', (ROOT / "Dockerfile").read_text()):
        assert set(named.split(",")) <= set(project["optional-dependencies"])


def test_the_user_is_the_one_of_the_deployment_and_not_root() -> None:
    (user,) = arguments("USER")
    (deployment,) = (each for each in printed() if each["kind"] == "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsUser']}"
    assert context["runAsNonRoot"] is True


def test_the_command_that_the_image_runs_exists() -> None:
    (entry,), (command,) = arguments("ENTRYPOINT"), arguments("CMD")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert json.loads(entry) == ["holdfast"]
    assert "holdfast" in scripts
    assert CliRunner().invoke(main, [*json.loads(command), "--help"]).exit_code == 0


# --- built for real


def buildah(*options: str) -> str:
    done = subprocess.run([str(BUILDAH), *options], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    if not BASE or BUILDAH is None:
        pytest.skip("needs buildah, and HOLDFAST_BASE_IMAGE")
    more = shlex.split(os.environ.get("HOLDFAST_BUILD_OPTIONS", ""))
    image = "localhost/holdfast:test-of-the-dockerfile"
    buildah("bud", "--layers=false", f"--build-arg=PYTHON_IMAGE={BASE}", *more, "-t", image, ".")
    made = buildah("from", image)
    yield made
    buildah("rm", made)
    buildah("rmi", image)


def test_the_image_runs_as_its_user_without_pip_and_without_privileged_programs(container: str) -> None:
    run = ("run", "--user", arguments("USER")[0], container, "--")
    assert buildah(*run, "holdfast", "--version") == f"holdfast {holdfast.__version__}"
    assert buildah(*run, "sh", "-c", "id -u") == "65532"
    assert "--leader-elect" in buildah(*run, "holdfast", "operator", "run", "--help")
    assert buildah(*run, "sh", "-c", "command -v pip || echo none") == "none"
    assert buildah(*run, "sh", "-c", "find / -xdev -perm /6000 -type f 2>/dev/null | wc -l") == "0"
    # Everything is compiled, so nothing is compiled at every start.
    sources = "find /opt/holdfast/lib -path '*holdfast*' -name '*.py' | wc -l"
    compiled = "find /opt/holdfast/lib -path '*holdfast*' -name '*.pyc' | wc -l"
    assert buildah(*run, "sh", "-c", sources) == buildah(*run, "sh", "-c", compiled)
