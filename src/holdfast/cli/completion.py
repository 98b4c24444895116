"""``holdfast completion``, and Holdfast as a plugin of kubectl: ``kubectl holdfast …``, with its completion.

kubectl runs ``kubectl-holdfast`` for ``kubectl holdfast``, and ``kubectl_complete-holdfast`` for what may follow on
the command line.  Commands and options come from the command line itself; nothing is listed here a second time.
"""

from __future__ import annotations

import sys
from typing import Final, Literal

import click
from click.shell_completion import ShellComplete, get_completion_class

from holdfast.cli.main import main

SHELLS: Final = ("bash", "zsh", "fish")

PLUGIN: Final = "kubectl holdfast"
"""How the plugin is called."""

_VARIABLE: Final = "_HOLDFAST_COMPLETE"
"""The variable by which a shell asks for completions; click derives it from the name of the program."""

_NO_FILES: Final = ":4"
"""The last line of a plugin's answer to kubectl: complete no names of files."""

_FILES: Final = ":0"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print what completes commands in bash, zsh or fish.

    \b
    bash:   holdfast completion bash \\
              > ~/.local/share/bash-completion/completions/holdfast
    zsh:    holdfast completion zsh > "${fpath[1]}/_holdfast"
    fish:   holdfast completion fish > ~/.config/fish/completions/holdfast.fish

    As a plugin of kubectl (kubectl holdfast), kubectl's own completion asks Holdfast; nothing is to be installed.
    """
    completion = get_completion_class(shell)
    assert completion is not None, "click knows the shells that are offered"
    # Fish, like the others, is given the script alone: no version of the shell is asked for here.
    click.echo(completion(main, {}, "holdfast", _VARIABLE).source())


def plugin() -> None:
    """The program ``kubectl-holdfast``."""
    main(prog_name=PLUGIN)


def plugin_completion() -> None:
    """The program ``kubectl_complete-holdfast``: its arguments are those typed so far, the last one unfinished."""
    *args, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, PLUGIN, _VARIABLE).get_completions(args, incomplete)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else str(item.value))
    click.echo(_FILES if any(item.type == "file" for item in found) else _NO_FILES)
