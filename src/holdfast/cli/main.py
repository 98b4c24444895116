"""The command line: which commands there are, and what becomes of their failures.

A command's module is imported when the command is run, so that ``--help`` and
shell completion start at once.  All failures end here, in one supervisor: bad
input is one message, a defect is one line, and neither is a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NoReturn

import click

import holdfast
from holdfast import operators
from holdfast.cli.errors import ExitCode, InputError, for_terminal, usage_message
from holdfast.cli.groups import Group


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is, and what it is for."""

    target: str
    """``module:attribute`` of the `click.Command`."""
    help: str


COMMANDS: Final = {
    "up": Entry(
        "holdfast.cli.local.cluster.up:command",
        "Start a cluster in one process: the API, controllers, nodes and operators.",
    ),
    "down": Entry("holdfast.cli.local.cluster.down:command", "Stop the cluster that `up` started."),
    "backup": Entry("holdfast.cli.local.data.backups:backup", "Write all objects and keys of a cluster to one file."),
    "restore": Entry("holdfast.cli.local.data.backups:restore", "Make the data directory of a cluster from a backup."),
    "check": Entry("holdfast.cli.local.data.check:command", "Check the data of a cluster for damage."),
    "dashboard": Entry("holdfast.cli.dashboard.command:command", "Serve a web page of all objects and their rollouts."),
    "demo": Entry(
        "holdfast.cli.local.demo.command:command", "Show rollouts that keep their floors, on a cluster of their own."
    ),
    "examples": Entry("holdfast.cli.manifests.examples:command", "List the example manifests, or copy them."),
    "plan": Entry("holdfast.cli.plan.command:command", "Show what a rollout will do, step by step, before it starts."),
    "simulate": Entry(
        "holdfast.cli.plan.simulate:command",
        "Simulate a rollout in virtual time, with crashes and slow starts.",
    ),
    "profile": Entry(
        "holdfast.cli.profile.commands:command", "Find the configuration of a model that meets a service level."
    ),
    "crds": Entry("holdfast.cli.manifests.crds:command", "Print the CustomResourceDefinitions of all kinds."),
    "convert": Entry("holdfast.cli.manifests.convert:command", "Print manifests of Cloudless as Workloads."),
    "apiserver": Entry("holdfast.cli.local.apiserver.command:command", "Run a Kubernetes API server in one process."),
    "operator": Entry("holdfast.cli.operator.commands:command", "Run the operators on any Kubernetes."),
    "provider": Entry("holdfast.cli.provider.commands:command", "Serve a hypervisor to operators over gRPC."),
    "get": Entry("holdfast.cli.objects.get:command", "Show objects: as a table, or as JSON, YAML, names or fields."),
    "describe": Entry("holdfast.cli.objects.describe:command", "Show objects in detail: what they wait for, and why."),
    "wait": Entry("holdfast.cli.objects.wait:command", "Wait until objects meet a condition."),
    "apply": Entry("holdfast.cli.objects.apply:command", "Create or change objects as manifests declare."),
    "rollout": Entry(
        "holdfast.cli.rollout.commands:command", "Watch, pause, promote, abort, undo or restart rollouts."
    ),
    "logs": Entry("holdfast.cli.objects.logs:command", "Show what pods have written."),
    "exec": Entry("holdfast.cli.objects.exec:command", "Run a command in a container."),
    "events": Entry("holdfast.cli.objects.events:command", "Show the Events of an object and of everything it owns."),
    "diff": Entry("holdfast.cli.objects.diff:command", "Show what apply would change."),
    "scale": Entry("holdfast.cli.objects.scale:command", "Set the number of replicas of an object."),
    "delete": Entry("holdfast.cli.objects.delete:command", "Delete objects, and wait until they are deleted."),
    "tui": Entry("holdfast.cli.tui.command:command", "Show all objects on one screen, live, and steer them by keys."),
    "kubectl": Entry(
        "holdfast.cli.objects.kubectl:command", "Run kubectl with the kubeconfig that the other commands use."
    ),
    "mocker": Entry("holdfast.cli.mocker.commands:command", "Serve a model without a GPU, with the timing of one."),
    "load": Entry(
        "holdfast.cli.load:command", "Send requests to an inference server, and measure TTFT, ITL and throughput."
    ),
    "chaos": Entry(
        "holdfast.cli.local.cluster.chaos:command", "Inject faults: pods crash, hang or are slow, nodes fail or vanish."
    ),
    "version": Entry("holdfast.cli.version:command", "Show the versions of this program, the server, and its kinds."),
    "completion": Entry("holdfast.cli.completion:command", "Print what completes commands in bash, zsh or fish."),
    **{name: Entry(f"holdfast.cli.objects.contributed:{name}", help) for name, (_, help) in operators.COMMANDS.items()},
}
"""Every command, in the order in which they are listed."""

TRACEBACK: Final = "HOLDFAST_TRACEBACK"
"""The variable that shows where an internal error comes from."""


class Commands(Group):
    """A group that knows its commands by name and imports only the one that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()
            raise click.exceptions.Exit(ExitCode.BROKEN_PIPE) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; standing alone, exit with its code whatever happens."""
        run = super().main
        keywords = {
            "args": args,
            "prog_name": prog_name,
            "complete_var": complete_var,
            "windows_expand_args": windows_expand_args,
            **extra,
        }
        if not standalone_mode:
            return run(standalone_mode=False, **keywords)
        return _supervise(lambda: run(standalone_mode=False, **keywords))


def _supervise(run: Callable[[], Any]) -> NoReturn:
    _occupy_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = run()
    except InputError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(ExitCode.OK)
    except click.UsageError as error:
        click.echo(for_terminal(usage_message(error)), err=True)
        sys.exit(ExitCode.BAD_INPUT)
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        sys.exit(ExitCode.BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        _report(error)
        sys.exit(ExitCode.INTERNAL)
    sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _occupy_standard_streams() -> None:
    """Where a standard stream was closed, open nothing in its place: else a socket gets its number, and the output."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the one that is missing.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _report(error: Exception) -> None:
    if os.environ.get(TRACEBACK):
        import traceback  # only a defect that is looked into pays for it

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        return
    what = " ".join(f"{type(error).__name__}: {error}".split())
    click.echo(for_terminal(f"internal error: {what} (set {TRACEBACK}=1 to see it)"), err=True)


def _discard_output() -> None:
    """Send the rest of the output nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(holdfast.__version__, prog_name="holdfast", message="%(prog)s %(version)s")
def main() -> None:
    """Roll out and operate stateful fleets: the floor holds, and the status is true."""
