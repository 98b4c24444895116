"""Everything that an operator can complain about is found by its message, and everything documented exists."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.docs.pages import PAGES, name
from tests.places import ROOT

from holdfast.cli.main import main
from holdfast.cli.operator.alerts import ALERTS, PANELS

OPERATIONS = (ROOT / "docs/operations.md").read_text()
SOURCE = ROOT / "src/holdfast"
LEVELS = ("warning", "error", "exception")


def section(title: str) -> str:
    return OPERATIONS.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


# --- messages and alerts


def logged(path: Path) -> Iterator[str]:
    """The messages that a module logs as problems."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            message = node.args[1] if node.func.attr == "log" and len(node.args) > 1 else node.args[0]
            named = ast.unparse(node.func.value) == "_log"
            if named and node.func.attr in (*LEVELS, "log") and isinstance(message, ast.Constant):
                yield str(message.value)


MODULES = [path for room in ("runtime", "cli/operator") for path in (SOURCE / room).glob("*.py")]
MESSAGES = sorted({message for path in MODULES for message in logged(path)})


@pytest.mark.parametrize("message", MESSAGES)
def test_every_problem_in_the_log_of_an_operator_is_explained(message: str) -> None:
    assert f"`{message}`" in section("Messages in the log")


def test_every_message_that_is_explained_exists() -> None:
    sources = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    rows = [line.split("|")[1] for line in section("Messages in the log").splitlines() if line.startswith("| `")]
    for message in re.findall(r"`([^`]+)`", "".join(rows)):
        assert f'"{message}"' in sources


def test_every_alert_is_explained_and_every_explained_alert_exists() -> None:
    assert set(re.findall(r"^\| `(\w+)`", section("Alerts"), re.MULTILINE)) == {alert.name for alert in ALERTS}


# --- what Prometheus is asked: a grammar that is enough for our expressions

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[a-z_]+)|(?P<string>\"[^\"]*\")|(?P<range>\[\d+[smhd]\])"
    r"|(?P<sign>=~|!~|==|!=|<=|>=|[-+*/<>=(){},]))"
)
AGGREGATIONS = ("sum", "min", "max", "avg", "count")
FUNCTIONS = {"absent": 1, "rate": 1, "increase": 1, "histogram_quantile": 2}
OF_OBJECTS = {"kind", "namespace", "name", "part", "state", "phase", "reason", "result"}
LABELS = {*OF_OBJECTS, "controller", "verb", "code", "le", "job"}


class Expression:
    """Reads an expression, and fails where it is not one."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            found = TOKEN.match(text, position)
            assert found is not None, text[position:]
            self.tokens.append(found[0].strip())
            position = found.end()
        self.at = 0
        self.binary()
        assert self.at == len(self.tokens), self.tokens[self.at :]

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        taken = self.next
        assert taken, "the expression ends too early"
        assert not expected or taken in expected, (taken, expected)
        self.at += 1
        return taken

    def binary(self) -> None:
        self.unary()
        while self.next in ("<", ">", "<=", ">=", "==", "!=", "-", "+", "*", "/"):
            self.take()
            self.unary()

    def unary(self) -> None:
        if self.next == "(":
            self.take("(")
            self.binary()
            self.take(")")
        elif self.next[:1].isdigit():
            self.take()
        else:
            self.named(self.take())

    def named(self, called: str) -> None:
        if called in AGGREGATIONS:
            if self.next == "by":
                self.take("by")
                self.labels()
            self.take("(")
            self.binary()
            self.take(")")
        elif called in FUNCTIONS:
            self.take("(")
            for number in range(FUNCTIONS[called]):
                if number:
                    self.take(",")
                self.binary()
            self.take(")")
        else:
            assert called == "up" or called.startswith("holdfast_"), called
            self.selector()

    def labels(self) -> None:
        self.take("(")
        while self.next != ")":
            assert self.take() in LABELS
            if self.next == ",":
                self.take(",")
        self.take(")")

    def selector(self) -> None:
        if self.next == "{":
            self.take("{")
            while self.next != "}":
                assert self.take() in LABELS
                self.take("=", "!=", "=~", "!~")
                assert self.take().startswith('"')
                if self.next == ",":
                    self.take(",")
            self.take("}")
        if self.next.startswith("["):
            self.take()


@pytest.mark.parametrize("text", [alert.expression for alert in ALERTS] + [expression for _, expression in PANELS])
def test_every_expression_can_be_read(text: str) -> None:
    Expression(text)


@pytest.mark.parametrize("text", ["sum(", "rate(holdfast_x[5m)", "sum by (pod) (up)", "holdfast_x >", "up{job=1}"])
def test_what_is_no_expression_is_not_read(text: str) -> None:
    with pytest.raises(AssertionError):
        Expression(text)


# --- commands, options and variables


LINE = re.compile(r"(?:^|`|\$ |\| )(?:kubectl )?holdfast ([a-z][^`\n|&>#]*)", re.MULTILINE)
"""A command line of Holdfast, in a block or in a sentence."""


@pytest.mark.parametrize("page", [path for path in PAGES if LINE.search(path.read_text())], ids=name)
def test_every_command_in_the_documentation_has_the_options_that_it_is_shown_with(page: Path) -> None:
    for line in dict.fromkeys(LINE.findall(page.read_text())):
        check(line.replace("\\", " "))


def check(line: str) -> None:
    """Whether there is such a command, with such options; what is written in capitals is chosen by the user."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    command: click.Command = main
    options: set[str] = set()
    for index, word in enumerate(words):
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(click.Context(main), word)
            if found is None:
                assert index or word.isupper() or set("….") & set(word), f"there is no command {word!r}"
                return
            command = found
        elif word == "--":
            break
        elif word.startswith("--"):
            options.add(word.partition("=")[0])
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert options <= known | {"--help"}, line


VARIABLE = re.compile(r"\b(?:HOLDFAST|TENANT|VIRTUALMACHINE|OPERATOR)_[A-Z][A-Z_]*[A-Z]\b")


def variables(paths: list[Path]) -> set[str]:
    return {found for path in paths for found in VARIABLE.findall(path.read_text())}


def test_every_variable_in_the_documentation_is_read_somewhere() -> None:
    documented = variables(list(PAGES))
    places = [path for room in ("src", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py")]
    read = variables([*places, ROOT / "Makefile"])
    made = {"HOLDFAST_VOLUME_MY_DATA"}  # an example of a family of variables
    assert documented - read - made == set()


def test_every_variable_that_the_program_reads_is_documented() -> None:
    found = re.compile(r"environ(?:\.get\(|\[)\"(HOLDFAST_[A-Z_]+)\"")
    read = {each for path in SOURCE.rglob("*.py") for each in found.findall(path.read_text())}
    assert read <= variables(list(PAGES))
