"""Every command that a page names exists, with the options that it names, also where no test runs it.

Console blocks are run: by tests/cli/test_docs.py where no cluster is needed, by test_live.py
and tests/cli/test_newcomer.py beside one.  Other blocks and code within sentences are checked
here against the commands themselves: they wait for a user, need another cluster, or stand for
many (``NAME``, ``[--option]``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.docs.pages import PAGES, blocks, name
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.profile.commands import Profile

TOP = click.Context(main, **main.context_settings)
"""The context of all commands: a command keeps the help option of the first context that it is asked in."""

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
FLAG = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")
OTHERS = frozenset(
    ("kubectl", "sed", "curl", "export", "pip", "python3", "python", "docker", "helm", "git", "jq", "head", ".")
)
"""Programs of others, which nothing here can check."""


def commands(path: Path) -> Iterator[str]:
    """The command lines of a page, one for each program."""
    for block in blocks(path):
        text = block.text.replace("\\\n", " ")
        if block.language in ("sh", "shell", "bash"):
            lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        elif block.language in ("", "text", "shell-session", "console"):
            joined = re.sub(r"\n {6,}(?=[\[-])", " ", text)
            lines = re.findall(r"^(?:\$ )?((?:holdfast|make|kubectl) .+)$", joined, re.MULTILINE)
        else:
            continue
        for line in lines:
            yield from re.split(r" \| (?=[a-z])", re.sub(r"\s{2,}[^-\[\s].*$|\s# .*$", "", line.strip()))
    prose = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in re.findall(r"`((?:holdfast|make) [a-zA-Z][^`]*)`", prose):
        yield from re.split(r" \\?\| (?=[a-z])", line)


def known(command: click.Command, words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the words after it."""
    while isinstance(command, click.Group) and words and re.match(r"[a-z]", words[0]):
        with click.Context(command, parent=TOP) as context:
            for alternative in words[0].split("|"):
                found = command.get_command(context, alternative)
                assert found is not None, f"{command.name} has no command {alternative}"
        command, words = found, words[1:]
    return command, words


def check_holdfast(words: list[str]) -> None:
    command, rest = known(main, words)
    allowed = {"-h", "--help", *(("--version",) if command is main else ())}
    if isinstance(command, Profile):  # what is no command of it is a model
        command = command.get_command(click.Context(command, parent=TOP), "model") or command
    allowed |= {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    if command.context_settings.get("ignore_unknown_options"):
        return
    for word in rest[: rest.index("--")] if "--" in rest else rest:
        for flag in FLAG.findall(word.partition("=")[0]):
            short = not flag.startswith("--")
            assert flag in allowed or (short and flag[:2] in allowed), f"{command.name} has no option {flag}"


def check(line: str) -> None:
    words = [word.strip("[],…") for word in shlex.split(line.replace("…", "")) if word not in ("|", "...")]
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    match words:
        case ["holdfast", *rest]:
            check_holdfast([word for word in rest if word])
        case ["make", *rest]:
            assert {word for word in rest if re.match(r"[a-z]", word)} <= TARGETS
        case [program, *_]:
            assert program in OTHERS, f"nothing checks {program}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_command_of_a_page_exists(path: Path) -> None:
    for line in commands(path):
        try:
            check(line)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{line}: {error}") from None


@pytest.mark.parametrize(
    "line",
    [
        "holdfast rollot status",
        "holdfast rollout status --wach",
        "holdfast up [--nodez 4]",
        "make demmo",
        "hodlfast up",
        "holdfast rollout pause|remuse vmset/web",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        check(line)
