"""``holdfast version``: the versions of this program, of a server, and of the kinds that it serves."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

import click
import msgspec

import holdfast
from holdfast.cli import connecting
from holdfast.cli.connecting import NoServer, Session, Verb, Where
from holdfast.cli.errors import printable
from holdfast.meta.errors import StatusError
from holdfast.meta.exchange import JSON, Request


@click.command("version", cls=Verb)
@click.option("--client", "client_only", is_flag=True, help="Only the version of this program.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="JSON, for programs.")
@connecting.options
def command(*, where: Where, client_only: bool, output: str | None) -> None:
    """Show the versions of this program, the server, and its kinds.

    \b
    Everything:         holdfast version
    Without a server:   holdfast version --client
    For programs:       holdfast version -o json

    Exits with 0 also if no server can be reached; the output says so.
    """
    found: dict[str, Any] = {"client": {"version": holdfast.__version__, "python": platform.python_version()}}
    if not client_only:
        try:
            connecting.run(where, lambda session: _ask(session, found))
        except NoServer as error:
            found["server"] = {"error": error.complaints[0].message}
        except connecting.Refused as error:
            found["server"] = {"error": error.complaints[0].message.removeprefix("error: ")}
    if output:
        from holdfast.cli.objects import printers

        click.echo(printers.as_json(found), nl=False)
    else:
        click.echo(printable("\n".join(_lines(found))))


async def _ask(session: Session, found: dict[str, Any]) -> None:
    response = await session.ask(Request("GET", "/version", headers={"accept": JSON}))
    try:
        version = msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.DecodeError:
        version = {}
    found["server"] = {name: version.get(name, "") for name in ("gitVersion", "gitTreeState", "platform")}
    try:
        served = (await session.discovery()).served
    except StatusError as error:
        found["server"]["error"] = error.message
        return
    from holdfast import kinds  # hundreds of types that --client does not need

    by_name: dict[str, list[str]] = {}
    for each in served:
        by_name.setdefault(each.resource.group_resource, []).append(each.resource.version)
    found["kinds"] = [
        {"name": name, "kind": kind.name, "versions": by_name.get(name, [])}
        for name, kind in {kind.crd_name: kind for kind in kinds.ALL}.items()
    ]


def _lines(found: dict[str, Any]) -> Iterator[str]:
    client, server = found["client"], found.get("server")
    yield f"client:  holdfast {client['version']}, Python {client['python']}"
    if server is None:
        return
    if "gitVersion" not in server:
        yield f"server:  {server['error']}"
        return
    about = ", ".join(server[name] for name in ("gitVersion", "platform") if server[name])
    yield f"server:  {about}"
    if "kinds" not in found:
        yield f"kinds:   {server['error']}"
        return
    there = [each for each in found["kinds"] if each["versions"]]
    yield f"kinds:   {len(there)} of {len(found['kinds'])} are served"
    if not there:
        yield "hint:    'holdfast crds | holdfast apply -f -' installs the definitions"
        return
    width = max(len(each["name"]) for each in found["kinds"])
    for each in found["kinds"]:
        yield f"  {each['name']:<{width}}  {', '.join(each['versions']) or 'not served'}"
