"""``holdfast chaos``: faults for simulated nodes and for the pods on them.

A command writes a fault where the nodes look for it (`cluster.simulation.chaos`), and says
what it hits; the nodes do the rest.  So it works on any cluster with simulated
nodes that a kubeconfig leads to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from holdfast.cli import painting
from holdfast.cli.arguments import FloatRange
from holdfast.cli.bundling import bundled
from holdfast.cli.connecting import Refused, Session, Where, options, run
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.groups import Group
from holdfast.client.objects import Object
from holdfast.client.protocols import Client, Scope
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.agent import NODE_LABEL
from holdfast.cluster.simulation.chaos import Crash, Fault, Faults, Hang, NodeDown, NodeFault, NodeGone, PodFault, Slow
from holdfast.kernel.reasons import count
from holdfast.meta import durations
from holdfast.meta.durations import DurationError
from holdfast.meta.errors import AlreadyExists, NotFound
from holdfast.meta.selectors import LabelSelector, SelectorError
from holdfast.views.columns import aligned

_NO_NODES: Final = "no node of this cluster is simulated, so the fault has no effect"


# --- what can be written


def _duration(ctx: click.Context, parameter: click.Parameter, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        parsed = durations.parse(text)
    except DurationError as error:
        raise click.BadParameter(str(error)) from None
    if parsed <= timedelta(0):
        raise click.BadParameter(f"{text!r} is no time; write one such as '30s' or '5m'")
    return parsed


def _selector(ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        LabelSelector.parse(text)
    except SelectorError as error:
        raise click.BadParameter(str(error)) from None
    return text


_FOR: Final = click.option(
    "--for",
    "lasting",
    callback=_duration,
    metavar="TIME",
    help="How long it lasts: 30s, 5m.  [default: a crash comes once, all else lasts until it is stopped]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aim:
    """Which pods, and for how long."""

    selector: str
    all_namespaces: bool
    share: float
    seed: int
    lasting: timedelta | None

    def fault(self, kind: type[PodFault], session: Session, **more: Any) -> PodFault:
        since = _now()
        return kind(
            since=since,
            until=None if self.lasting is None else since + self.lasting,
            namespace="" if self.all_namespaces else session.namespace,
            selector=self.selector,
            share=self.share,
            seed=self.seed,
            **more,
        )


_aimed: Final = bundled(
    "aim",
    _Aim,
    click.option("-l", "--selector", default="", callback=_selector, help="Only pods with such labels: app=web."),
    click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces."),
    click.option(
        "--share",
        type=FloatRange(0, 1),
        default=1.0,
        help="Only so many of them, and of those that come later: 0.5.",
    ),
    click.option("--seed", type=int, default=0, help="Draw others."),
    _FOR,
    options,
)
"""Give a command the options that say which pods are meant, as one argument `aim`, and the server."""


# --- the commands


@click.group("chaos", cls=Group)
def command() -> None:
    """Inject faults: pods crash, hang or are slow, nodes fail or vanish.

    Only simulated nodes obey, as those of 'holdfast up' are.

    \b
    Half of the pods of an app crash:  holdfast chaos crash -l app=web --share 0.5
    They crash again and again:        holdfast chaos crash -l app=web --for 5m
    None gets ready for a while:       holdfast chaos hang -l app=web --for 30s
    A node is lost, and comes back:    holdfast chaos node-down node-2
                                       holdfast chaos node-up node-2
    What is active, and an end to it:  holdfast chaos list
                                       holdfast chaos stop --all
    """


@command.command("crash")
@_aimed
def crash(where: Where, aim: _Aim) -> None:
    """Make the containers of pods crash: once, or with --for again and again."""
    _order_pods(where, Crash, aim)


@command.command("hang")
@_aimed
def hang(where: Where, aim: _Aim) -> None:
    """Make pods unready although their containers run."""
    _order_pods(where, Hang, aim)


@command.command("slow")
@click.option(
    "--factor",
    type=FloatRange(0, 1_000_000, min_open=True),
    default=10.0,
    help="How many times as long it takes.",
)
@_aimed
def slow(where: Where, factor: float, aim: _Aim) -> None:
    """Make pods slow: to become ready, to run, to stop."""
    _order_pods(where, Slow, aim, factor=factor)


@command.command("node-down")
@click.argument("nodes", nargs=-1, required=True)
@_FOR
@options
def node_down(where: Where, nodes: tuple[str, ...], lasting: timedelta | None) -> None:
    """Make nodes fail: they send no heartbeats and do not run pods."""
    _order_nodes(where, NodeDown, nodes, lasting)


@command.command("node-remove")
@click.argument("nodes", nargs=-1, required=True)
@_FOR
@options
def node_remove(where: Where, nodes: tuple[str, ...], lasting: timedelta | None) -> None:
    """Remove nodes; 'node-up' brings them back as new ones."""
    _order_nodes(where, NodeGone, nodes, lasting)


@command.command("node-up")
@click.argument("nodes", nargs=-1, required=True)
@options
def node_up(where: Where, nodes: tuple[str, ...]) -> None:
    """Bring nodes back that are down or were removed."""

    async def work(session: Session) -> ExitCode | None:
        patch = chaos.up(await _faults(session.client), nodes)
        if not patch["data"]:
            raise Refused(f"error: nothing is wrong with {_joined(nodes)}; 'holdfast chaos list' shows what there is")
        await session.client.patch(CONFIG_MAPS, chaos.PLACE, patch)
        _say(f"{_joined(nodes)} up again")
        return None

    run(where, work)


@command.command("list")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print them.")
@options
def list_(where: Where, output: str) -> None:
    """List the faults that are active."""

    async def work(session: Session) -> ExitCode | None:
        faults, now = await _faults(session.client), _now()
        if output == "json":
            shown = {name: msgspec.to_builtins(fault) for name, fault in faults.entries}
            _say(json.dumps(shown, indent=2))
        elif not faults.entries:
            _say("no trouble")
        else:
            rows = [_HEADER, *(_row(name, fault, now) for name, fault in faults.entries)]
            _say("\n".join(aligned(rows, painting.width())))
        return None

    run(where, work)


@command.command("stop")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="End all of it.")
@options
def stop(where: Where, names: tuple[str, ...], everything: bool) -> None:
    """End faults, by the names that 'list' shows."""
    if bool(names) == everything:
        raise click.UsageError("name what is to end, as 'holdfast chaos list' shows it, or write --all")

    async def work(session: Session) -> ExitCode | None:
        there = dict((await _faults(session.client)).entries)
        unknown = [name for name in names if name not in there]
        if unknown:
            raise Refused(f"error: there is no {_joined(unknown)}; 'holdfast chaos list' shows what there is")
        ending = tuple(there) if everything else names
        if ending:
            await session.client.patch(CONFIG_MAPS, chaos.PLACE, chaos.ended(ending))
        _say(f"{_joined(ending)} stopped" if ending else "no trouble")
        return None

    run(where, work)


# --- what they do


def _order_pods(where: Where, kind: type[PodFault], aim: _Aim, **more: Any) -> None:
    async def work(session: Session) -> ExitCode | None:
        fault = aim.fault(kind, session, **more)
        nodes = await _simulated(session.client)
        listed = await session.client.list(PODS, Scope(namespace=fault.namespace, labels=fault.selector))
        pods = [pod.meta for pod in listed.objects if _node_of(pod) in nodes]
        fault = fault.fitted(pods)
        hit = sum(map(fault.hits, pods))
        name = await _order(session.client, fault)
        _say(f"{name} ordered: it hits {hit} of {count(len(pods), 'pod')}{_end(fault)}")
        if not nodes:
            _warn(_NO_NODES)
        elif not pods:
            _warn(f"no pod on simulated nodes in namespace {fault.namespace or 'any'} matches; see -l and -n")
        return None

    run(where, work)


def _order_nodes(where: Where, kind: type[NodeFault], nodes: tuple[str, ...], lasting: timedelta | None) -> None:
    async def work(session: Session) -> ExitCode | None:
        there = await _simulated(session.client)
        strange = [node for node in nodes if node not in there]
        if strange:
            raise Refused(
                f"error: {_joined(strange)}: no simulated node of that name; there {_are(sorted(there))}"
                if there
                else f"error: {_NO_NODES}"
            )
        since = _now()
        fault = kind(since=since, until=None if lasting is None else since + lasting, nodes=nodes)
        name = await _order(session.client, fault)
        _say(f"{name} ordered{_end(fault)}")
        return None

    run(where, work)


async def _order(client: Client, fault: Fault) -> str:
    """Write a fault, remove expired ones, and return its name."""
    name = chaos.name_of(fault)
    patch = chaos.ended(chaos.spent(await _faults(client), fault.since))
    patch["data"] |= chaos.added(name, fault)["data"]
    try:
        await client.patch(CONFIG_MAPS, chaos.PLACE, patch)
    except NotFound:
        metadata = {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **chaos.added(name, fault)}
        try:
            await client.create(CONFIG_MAPS, made)
        except AlreadyExists:
            await client.patch(CONFIG_MAPS, chaos.PLACE, patch)
    return name


async def _faults(client: Client) -> Faults:
    try:
        return chaos.faults_in(await client.get(CONFIG_MAPS, chaos.PLACE))
    except NotFound:
        return chaos.NONE


async def _simulated(client: Client) -> frozenset[str]:
    nodes = await client.list(NODES, Scope(labels=NODE_LABEL), metadata_only=True)
    return frozenset(node.meta.name for node in nodes.objects)


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _node_of(pod: Object) -> str:
    return pod.decode(_Placed).spec.node_name


def _now() -> datetime:
    return datetime.now(UTC)


# --- what is shown

_HEADER: Final = ("NAME", "WHAT", "WHOM", "SINCE", "LASTS")


def _row(name: str, fault: Fault, now: datetime) -> tuple[str, ...]:
    what = str(type(fault).__struct_config__.tag)
    if isinstance(fault, Slow):
        what = f"{what} x{fault.factor:g}"
    since = f"{durations.short(_whole(now - fault.since))} ago"
    if fault.until is None:
        lasts = "once" if isinstance(fault, Crash) else "until stopped"
    elif fault.until <= now:
        lasts = "over"
    else:
        lasts = f"{durations.short(_whole(fault.until - now))} more"
    return name, what, _whom(fault), since, lasts


def _whom(fault: Fault) -> str:
    if isinstance(fault, NodeFault):
        return _joined(fault.nodes)
    place = f"in {fault.namespace}" if fault.namespace else "everywhere"
    share = "" if fault.share == 1 else f"{fault.share:.0%} of "
    return f"{share}{fault.selector or 'all pods'} {place}"


def _end(fault: Fault) -> str:
    return "" if fault.until is None else f", for {durations.short(fault.until - fault.since)}"


def _whole(time: timedelta) -> timedelta:
    return timedelta(seconds=max(0, round(time.total_seconds())))


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)


def _are(names: Sequence[str]) -> str:
    return f"is {names[0]}" if len(names) == 1 else f"are {_joined(names)}"


def _say(line: str) -> None:
    click.echo(printable(line))


def _warn(line: str) -> None:
    click.echo(printable(f"note: {line}"), err=True)
