"""Options that several commands have, and options that a command gets as one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def together(*options: Decorator) -> Decorator:
    """Give a command these options; its help shows them in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def bundled(name: str, type: Any, *options: Decorator) -> Decorator:
    """Give a command these options, as one argument of that name.

    type  a data class; it has a field for each option, and for others that the command itself adds to them
    """
    gathered = [each.name for each in fields(type)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def called(*arguments: Any, **given: Any) -> Any:
            value = type(**{each: given.pop(each) for each in gathered})
            return command(*arguments, **{name: value}, **given)

        return together(*options)(called)

    return decorate
