"""Finding the server and talking to it: what every command against an API shares.

The one way a command comes to a client: by ``--kubeconfig``, else ``KUBECONFIG``,
else what ``holdfast up`` wrote in this directory or one above, else the file at
home.  And the one place where failures of the conversation are put into words:
those of kubectl where it has some, for people know how to look them up.  Which
objects are meant, and how they are shown, is not known here.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.arguments import NamespaceType, PathType
from holdfast.cli.bundling import bundled
from holdfast.cli.errors import Complaint, ExitCode, InputError, for_terminal, printable
from holdfast.client.discovery import Discovery, UnknownResource, discover
from holdfast.client.kubeconfig import connect
from holdfast.client.protocols import Client, Unreachable, Untrusted
from holdfast.client.settings import KubeconfigError
from holdfast.meta.errors import Invalid, NotFound, StatusError, Unauthorized
from holdfast.meta.exchange import Request, Response

OWN: Final = Path(".holdfast") / "kubeconfig"
"""Where ``holdfast up`` writes a kubeconfig, from where it was started."""

_START: Final = "'holdfast up' starts a server; --kubeconfig names the kubeconfig of another one"

_JOINED: Final = re.compile(r"-[A-Za-z]=.*", re.DOTALL)
"""A short option with its value as kubectl's users also write it: ``-o=json``."""


class NoServer(InputError):
    """The server cannot be reached."""

    exit_code = ExitCode.BLOCKED


class Refused(InputError):
    """The server refused a request, or a wait failed; in the words of kubectl."""

    exit_code = ExitCode.BLOCKED

    def __init__(self, *sentences: str) -> None:
        super().__init__(*(Complaint(message=placed(sentence)) for sentence in sentences))

    def format_message(self) -> str:
        return printable("\n".join(complaint.message for complaint in self.complaints))


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The server and the namespace that the options select."""

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection to a server, with a namespace."""

    client: Client
    namespace: str
    """The namespace of objects that name none."""
    strict: bool = False
    """Whether the user named this namespace, so that a manifest with another one is an error."""

    async def discovery(self) -> Discovery:
        return await discover(self.client)

    async def ask(self, request: Request) -> Response:
        """The answer to a request, whose warnings are shown."""
        response = await self.client.raw(request)
        for warning in response.warnings:
            click.echo(printable(f"Warning: {warning}"), err=True)
        return response


options: Final = bundled(
    "where",
    Where,
    click.option(
        "-n",
        "--namespace",
        type=NamespaceType(),
        default="",
        metavar="NAME",
        help="The namespace.  [default: the context's]",
    ),
    click.option(
        "--kubeconfig",
        type=PathType(dir_okay=False),
        help="How to reach the server.  [default: $KUBECONFIG, what 'holdfast up' wrote here, or ~/.kube/config]",
    ),
    click.option(
        "--context", default="", metavar="NAME", help="The context of the kubeconfig.  [default: its current]"
    ),
)
"""Give a command the options that select the server, as one argument `where`."""


class Verb(click.Command):
    """A command that takes its options also as kubectl's users write them: ``-o=json``, ``--wait=false``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = args.index("--") if "--" in args else len(args)
        flags = [each for each in self.params if isinstance(each, click.Option) and each.is_flag]
        words = [word for given in args[:rest] if (word := _word(given, flags)) is not None]
        return super().parse_args(ctx, [*words, *args[rest:]])


def _word(given: str, flags: list[click.Option]) -> str | None:
    """An argument as click reads it; None for one that sets a default."""
    if _JOINED.fullmatch(given):
        return given[:2] + given[3:]
    name, equals, value = given.partition("=")
    flag = next((each for each in flags if equals and name in each.opts), None)
    if flag is None or value not in ("true", "false"):
        return given
    if value == "true":
        return name
    return flag.secondary_opts[0] if flag.secondary_opts else None


# Finding it.


def kubeconfig(given: Path | None, *, environment: Mapping[str, str], directory: Path) -> Path | None:
    """The kubeconfig to use; None: as the environment and the home directory have it."""
    if given is not None:
        return given
    if environment.get("KUBECONFIG"):
        return None
    return next((each / OWN for each in (directory, *directory.parents) if os.path.isfile(each / OWN)), None)


def run(where: Where, work: Callable[[Session], Coroutine[Any, Any, ExitCode | None]]) -> None:
    """Run `work` on the server that `where` selects, and exit with its code."""
    code = asyncio.run(_worked(where, work))
    if code:
        raise click.exceptions.Exit(code)


async def _worked(where: Where, work: Callable[[Session], Coroutine[Any, Any, ExitCode | None]]) -> ExitCode | None:
    _named.set(where.namespace)
    found = kubeconfig(where.kubeconfig, environment=os.environ, directory=Path.cwd())
    try:
        connection = connect(found, context=where.context)
    except KubeconfigError as error:
        raise NoServer(Complaint(message=str(error), hint=_START)) from None
    try:
        return await work(
            Session(connection.client, where.namespace or connection.namespace, strict=bool(where.namespace))
        )
    except Unreachable as error:
        raise _away(error) from None
    except NotFound as error:
        namespace = where.namespace or connection.namespace
        elsewhere = f"hint: it was looked for in namespace {namespace}; -n NAME names another one"
        raise Refused(words(error), *([] if where.namespace else [elsewhere])) from None
    except StatusError as error:
        raise Refused(words(error)) from None
    except UnknownResource as error:
        raise Refused(f"error: {error}") from None
    finally:
        await connection.client.close()


def _away(error: Unreachable) -> NoServer:
    return NoServer(Complaint(message=str(error), hint=None if isinstance(error, Untrusted) else _START))


# Saying what went wrong.


def words(error: StatusError, *, doing: str = "") -> str:
    """An error in the words of kubectl; `doing` names the action: ``error when applying "web.yaml"``."""
    if isinstance(error, Unauthorized):
        return f"error: You must be logged in to the server ({error.message})"
    if isinstance(error, Invalid):
        return _invalid(error)
    about = f"{doing}: " if doing else ""
    reason = f" ({error.reason})" if error.reason else ""
    return f"Error from server{reason}: {about}{error.message}"


def _invalid(error: Invalid) -> str:
    details = error.details
    if details is None or not (details.kind or details.name):
        return f"The request is invalid: {error.message}"
    causes = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in error.causes))
    title = f'The {details.kind} "{details.name}" is invalid'
    if len(causes) < 2:
        return ": ".join([title, *causes])
    return "\n".join([f"{title}: ", *(f"* {cause}" for cause in causes)])


_named: ContextVar[str] = ContextVar("namespace", default="")
"""The namespace that the user named with -n."""

_COMMANDS: Final = re.compile(
    r"'(holdfast (?:rollout|get|describe|logs|events|exec|scale|wait|delete|vm) [^']*)(?<! -A)'"
)
"""Commands for objects of a namespace, as hints quote them."""


def placed(text: str) -> str:
    """A text whose commands have the namespace that the user named, so that they can be typed as they are."""
    namespace = _named.get()
    if not namespace:
        return text
    return _COMMANDS.sub(lambda found: found[0] if " -n " in found[1] else f"'{found[1]} -n {namespace}'", text)


def addressed(called: str) -> str:
    """An object as a command names it: with -n where the user named the namespace."""
    return f"{called} -n {_named.get()}" if _named.get() else called


def report(sentences: list[str]) -> ExitCode | None:
    """Print the errors on standard error; returns the exit code."""
    for sentence in sentences:
        click.echo(for_terminal(printable(placed(sentence))), err=True)
    return ExitCode.BLOCKED if sentences else None
