"""The settings of operators, from the option ``--set`` and from environment variables.

This module must not know any operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import click

from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.operator import selection
from holdfast.meta.suggestions import nearest
from holdfast.operators.operator import Setting

OPTION: Final = click.option(
    "--set",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of an operator, such as tenant.image; may be repeated.",
)


def values(given: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that are set, by name; an option outranks the environment variable of the same setting."""
    known = {each.name: each for operator in selection.operators() for each in operator.settings}
    found = {name: text for name, each in known.items() if (text := environment.get(each.variable))}
    for name, text in found.items():
        _check(known[name], text, path=known[name].variable)
    for each in given:
        name, _, text = each.partition("=")
        if name not in known:
            suggestion = nearest(name, list(known))
            hint = f"the settings are {', '.join(known)}" if suggestion is None else f"did you mean {suggestion}?"
            raise InputError(Complaint(message=f"there is no setting {name!r}", hint=hint, path="--set"))
        _check(known[name], text, path="--set")
        found[name] = text
    return found


def _check(setting: Setting, text: str, *, path: str) -> None:
    wrong = setting.problem(text)
    if wrong is not None:
        message = f"{setting.name} cannot be {text!r}: {wrong}"
        raise InputError(Complaint(message=message, hint=f"the default is {setting.default}", path=path))
