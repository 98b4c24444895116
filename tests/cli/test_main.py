"""The command line's frame: what is imported when, and how every ending looks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import holdfast
from holdfast.cli import main
from holdfast.cli.main import COMMANDS, Entry


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make ``holdfast fail`` a command that raises something."""

    def arrange(error: BaseException) -> None:
        def callback() -> None:
            raise error

        command = click.Command("fail", callback=callback)
        monkeypatch.setattr(sys.modules[__name__], "fail", command, raising=False)
        monkeypatch.setitem(COMMANDS, "fail", Entry(f"{__name__}:fail", "Fail."))

    return arrange


def test_python_m_holdfast_prints_the_version() -> None:
    assert run("--version").stdout == f"holdfast {holdfast.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_none_of_what_the_commands_need(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from holdfast.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "heavy = ('rich', 'yaml', 'msgspec', 'holdfast.kinds', 'holdfast.kernel', 'holdfast.views')\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_every_command_with_its_purpose() -> None:
    shown = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert all(f"{name} {entry.help}" in shown for name, entry in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_in_the_table_is_what_the_command_says_of_itself(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMANDS[name].help


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(main, ["paln"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no command 'paln'; did you mean plan?\n")
    assert result.stdout == ""


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage:")


def test_an_unexpected_failure_is_one_line_and_exit_code_70(failing: Callable[[BaseException], None]) -> None:
    failing(RuntimeError("first line\nsecond line"))
    result = CliRunner().invoke(main, ["fail"])
    assert result.exit_code == 70
    assert result.stderr == (
        "internal error: RuntimeError: first line second line (set HOLDFAST_TRACEBACK=1 to see it)\n"
    )


def test_the_traceback_of_a_failure_is_shown_when_asked_for(failing: Callable[[BaseException], None]) -> None:
    failing(RuntimeError("broken"))
    result = CliRunner().invoke(main, ["fail"], env={"HOLDFAST_TRACEBACK": "1"})
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("RuntimeError: broken\n")


def test_an_interrupt_exits_with_130_and_says_nothing(failing: Callable[[BaseException], None]) -> None:
    failing(KeyboardInterrupt())
    result = CliRunner().invoke(main, ["fail"])
    assert result.exit_code == 130
    assert result.output.strip() == ""


def test_ctrl_c_in_a_terminal_is_clean() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SAY_READY_THEN_READ_STDIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors.strip()) == (130, "")


_SAY_READY_THEN_READ_STDIN = """
import sys
from holdfast.cli import main
from holdfast.cli.manifests import documents

class Slow:
    class buffer:
        @staticmethod
        def read(size):
            print("reading", flush=True)
            return stdin.buffer.read(size)

stdin, sys.stdin = sys.stdin, Slow
main(["plan", "-f", "-"])
"""


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m holdfast crds | head -n 1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("---\n141\n", "")


@pytest.mark.parametrize("command", [["plan", "--replicas", "3"], ["crds", "--list"], ["--help"]])
def test_what_is_piped_has_no_colours(command: list[str]) -> None:
    assert "\x1b" not in run(*command, FORCE_COLOR="1").stdout


def test_a_terminal_that_cannot_show_a_character_gets_a_question_mark() -> None:
    done = run("plan", "--replicas", "8", "--current", "3", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 ? 8 replicas" in done.stdout


def test_a_command_whose_output_was_closed_works_all_the_same() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m holdfast plan --replicas 3 --max-surge 1 --min-available 3 >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("ignored", "code"), [(False, 130), (True, 0)])
def test_ctrl_c_while_modules_are_imported_is_clean_and_ignored_in_the_background(
    tmp_path: Path, ignored: bool, code: int
) -> None:
    """The first module that the command line imports sends the signal to its own process."""
    library = Path(click.__file__).parent
    (tmp_path / "click").mkdir()
    (tmp_path / "click" / "__init__.py").write_text(
        "import os, signal\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        f"__path__ = [{str(library)!r}]\n"
        f"exec(open({str(library / '__init__.py')!r}).read())\n"
    )
    before = "trap '' INT; " if ignored else ""
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = f"{before}exec {sys.executable} -m holdfast --version"
    ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, "")


def helps(command: click.Command, context: click.Context) -> Iterator[str]:
    """The help of a command, and of all commands in it."""
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from helps(inner, click.Context(inner, parent=context, info_name=name))


def test_no_line_of_any_help_is_wider_than_80_columns() -> None:
    settings = main.context_settings | {"max_content_width": 80}
    lines = [
        line
        for text in helps(main, click.Context(main, info_name="holdfast", terminal_width=80, **settings))
        for line in text.splitlines()
    ]
    assert [line for line in lines if len(line) > 80] == []
