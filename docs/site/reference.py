"""The pages of the reference, written from the code when the site is built, so that none of them can be outdated.

Every function returns Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import click
from prometheus_client import CollectorRegistry, generate_latest

from holdfast import kinds
from holdfast.cli.main import COMMANDS, TRACEBACK, main
from holdfast.cli.manifests import examples
from holdfast.cli.operator import selection
from holdfast.cli.profile.commands import Profile
from holdfast.kernel.floors import FloorReason
from holdfast.kernel.pod_problems import PodReason
from holdfast.kernel.reasons import Code, Reason
from holdfast.kinds.crds import crd_of
from holdfast.kinds.model import Kind
from holdfast.operators.metrics import RolloutMetrics
from holdfast.providers.wire.metrics import CallMetrics, ServedMetrics
from holdfast.runtime.controllers import View
from holdfast.runtime.metrics import Metrics

TOP: Final = click.Context(main, **main.context_settings)
"""The context of all commands: a command keeps the help option of the first context that it is asked in."""

Pages = dict[str, str]
"""Markdown by the path of its page."""


def pages() -> Pages:
    """Every page that is written from code."""
    made = {f"reference/kinds/{kind.plural}.md": of_kind(kind) for kind in kinds.ALL}
    made |= {f"examples/{folder.name}.md": of_examples(folder) for folder in folders()}
    return made | {
        "reference/reasons.md": reasons(),
        "reference/commands.md": commands(),
        "reference/metrics.md": metrics(),
        "reference/settings.md": settings(),
        "reference/environment.md": environment(),
    }


# --- fields


def of_kind(kind: Kind) -> str:
    """The fields of a kind."""
    crd = crd_of(kind)["spec"]
    names = crd["names"]
    stored = next(each for each in crd["versions"] if each["name"] == kind.version)
    schema = stored["schema"]["openAPIV3Schema"]
    facts = {
        "apiVersion": f"`{kind.group}/{kind.version}`",
        "Other versions": ", ".join(f"`{each['name']}`" for each in crd["versions"] if each is not stored) or "—",
        "Names in commands": ", ".join(f"`{each}`" for each in (names["plural"], *names.get("shortNames", ()))),
        "Scope": crd["scope"],
    }
    lines = [f"# {kind.name}", "", str(schema.get("description", "")), "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    for part in ("spec", "status"):
        if part in schema.get("properties", {}):
            lines += ["", f"## {part}", "", "| Field | Type | Meaning |", "|---|---|---|"]
            lines += _rows(schema["properties"][part], "")
    return "\n".join(lines) + "\n"


def _rows(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        at = f"{path}{name}"
        yield f"| `{at}` | {_type(field)} | {_meaning(field, required=name in required)} |"
        inner, below = (field["items"], f"{at}[].") if field.get("type") == "array" else (field, f"{at}.")
        if not _is_of_kubernetes(inner):
            yield from _rows(inner, below)


def _is_of_kubernetes(schema: Mapping[str, Any]) -> bool:
    """Whether the object is a type of Kubernetes, which is documented there: a pod, or what is inside one."""
    known = schema.get("properties", {})
    return (
        "containers" in known or "containers" in known.get("spec", {}).get("properties", {}) or not _described(schema)
    )


def _described(schema: Mapping[str, Any]) -> bool:
    return any("description" in each for each in schema.get("properties", {}).values())


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), Mapping):
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def _meaning(field: Mapping[str, Any], *, required: bool) -> str:
    said = [str(field.get("description", ""))]
    if required:
        said.append("Required.")
    values = field.get("enum") or (field.get("items") or {}).get("enum")
    if values:
        said.append("One of " + ", ".join(f"`{value}`" for value in values) + ".")
    if "default" in field:
        said.append(f"Default: `{field['default']}`.")
    if "minimum" in field:
        said.append(f"At least {field['minimum']}.")
    if "maximum" in field:
        said.append(f"At most {field['maximum']}.")
    return _cell(" ".join(filter(None, said)))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


# --- reasons


def reasons() -> str:
    """Every reason of every condition and Event."""
    lines = ["# Reasons", "", "A reason is the code of a condition or an Event; the message beside it has the details."]
    families: dict[str, list[type[Reason]]] = {"Every operator": [Code, FloorReason, PodReason]}
    families |= {f"Operator {each.name}": list(each.reasons) for each in selection.operators()}
    for title, types in families.items():
        lines += ["", f"## {title}", "", "| Reason | Meaning |", "|---|---|"]
        meanings = {reason.value: reason.meaning for family in types for reason in family}
        lines += [f"| `{code}` | {_cell(meaning)} |" for code, meaning in sorted(meanings.items())]
    return "\n".join(lines) + "\n"


# --- commands


def commands() -> str:
    """Every command with its options and arguments."""
    lines = ["# Commands", "", "The same as `holdfast COMMAND --help`; [how they behave](../cli.md) has examples."]
    for name in COMMANDS:
        command = main.get_command(TOP, name)
        assert command is not None
        lines += _command(f"holdfast {name}", command, 2)
    return "\n".join(lines) + "\n"


def _command(called: str, command: click.Command, level: int) -> Iterator[str]:
    with click.Context(command, info_name=called, parent=TOP) as context:
        usage = " ".join([called, *command.collect_usage_pieces(context)])
        yield from ("", f"{'#' * level} {called}", "", _first(command.help or ""), "", "```text", usage, "```")
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if options:
            yield from ("", "| Option | Meaning |", "|---|---|")
            for each in options:
                spelled = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
                yield f"| {spelled} | {_cell(each.help or '')} |"
        if isinstance(command, click.Group):
            for name, inner in _inner(command, context):
                yield from _command(f"{called} {name}", inner, 3)


def _inner(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group, also the one that is meant where none is named."""
    names = [*(("model",) if isinstance(group, Profile) else ()), *group.list_commands(context)]
    for name in names:
        found = group.get_command(context, name)
        assert found is not None
        yield name, found


def _first(text: str) -> str:
    """The text without its blocks of examples."""
    parts = re.split(r"\n\s*\n", text.replace("\f", ""))
    return "\n\n".join(" ".join(part.split()) for part in parts if not part.strip().startswith("\b"))


# --- metrics, settings, variables


class _Nothing:
    """A view of a cluster without objects."""

    def list(self, *_: object, **__: object) -> tuple[()]:
        return ()


def metrics() -> str:
    """Every metric, from collectors that have counted nothing yet."""
    own, providers = Metrics(), CollectorRegistry()
    own.ask(leader=lambda: True)
    rollouts = [kind for each in selection.operators() for kind in each.rollouts]
    own.extend(RolloutMetrics(rollouts, cast("View", _Nothing()), lambda: datetime(2000, 1, 1, tzinfo=UTC)))
    CallMetrics(providers), ServedMetrics(providers)
    shown = {"Operators": own.render(), "Providers of machines": generate_latest(providers)}
    lines = ["# Metrics", "", "Served at `/metrics` beside `/healthz`, in the format of Prometheus;"]
    lines.append("[operating](../operations.md) has alerts.")
    for title, text in shown.items():
        lines += ["", f"## {title}", "", "| Metric | Type | Meaning |", "|---|---|---|"]
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text.decode(), re.MULTILINE))
        found = re.findall(r"^# HELP (holdfast_\S+) (.*)$", text.decode(), re.MULTILINE)
        lines += [
            f"| `{name}` | {types[name]} | {_cell(meaning)} |"
            for name, meaning in sorted(found)
            if not name.endswith("_created")
        ]
    return "\n".join(lines) + "\n"


def settings() -> str:
    """The settings of all operators."""
    lines = ["# Settings", "", "What an installation sets for an operator and all its objects, with `--set NAME=VALUE`"]
    lines += ["of `holdfast up` and `holdfast operator run`, or by the environment variable.", ""]
    lines += ["| Setting | Variable | Default | Meaning |", "|---|---|---|---|"]
    for each in selection.operators():
        for one in each.settings:
            lines.append(f"| `{one.name}` | `{one.variable}` | `{one.default}` | {_cell(one.meaning)} |")
    return "\n".join(lines) + "\n"


def environment() -> str:
    """The environment variables that commands read."""
    found = {
        "KUBECONFIG": "The kubeconfig, for all commands that talk to a cluster; `.holdfast/kubeconfig` is used before "
        "`~/.kube/config` where `holdfast up` runs in the same directory.",
        "NO_COLOR": "Any value switches colours off.",
        TRACEBACK: "Any value shows where an internal error comes from.",
    }
    for called, option in _options():
        names = [option.envvar] if isinstance(option.envvar, str) else [*(option.envvar or ())]
        for name in names:
            found[name] = f"The option `{option.opts[-1]}` of `{called}`: {option.help or ''}"
    for each in selection.operators():
        found |= {one.variable: f"The setting `{one.name}`: {one.meaning}" for one in each.settings}
    lines = ["# Environment variables", "", "| Variable | Meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in sorted(found.items())]
    return "\n".join(lines) + "\n"


def _options() -> Iterator[tuple[str, click.Option]]:
    """All options of all commands, and what each command is called."""

    def below(called: str, command: click.Command) -> Iterator[tuple[str, click.Option]]:
        yield from ((called, each) for each in command.params if isinstance(each, click.Option))
        if isinstance(command, click.Group):
            with click.Context(command, parent=TOP) as context:
                for name, inner in _inner(command, context):
                    yield from below(f"{called} {name}", inner)

    yield from below("holdfast", main)


# --- examples


def folders() -> list[Path]:
    """The folders of examples."""
    return sorted({path.parent for path in examples.paths()})


def of_examples(folder: Path) -> str:
    """The examples of a folder, as they are."""
    lines = [
        f"# {folder.name}",
        "",
        "Each runs on a cluster of `holdfast up` as it is; its comment says what to type.",
        "",
    ]
    for path in sorted(folder.glob("*.yaml")):
        lines += [f"## {path.name}", "", "```yaml", path.read_text().rstrip(), "```", ""]
    return "\n".join(lines)
