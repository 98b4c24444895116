"""Commands that an operator adds to the command line for objects of one of its kinds.

A command is a pure function from an object, and perhaps one argument, to what is shown or changed.  The command line
finds the object, carries the answer out and prints it; it knows no operator by name.  This module must not know how.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.operators.rollouts import Answer


@dataclass(frozen=True, slots=True)
class Shown:
    """Something to print, and nothing else."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCommand:
    """One command.

    answer    from the object and the argument to what is shown or changed
    argument  what the argument is called; empty where there is none
    choices   the values that it may have
    """

    name: str
    summary: str
    answer: Callable[[Object, str], Shown | Answer]
    argument: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGroup:
    """The commands for objects of one resource."""

    resource: Resource
    commands: tuple[ObjectCommand, ...]
