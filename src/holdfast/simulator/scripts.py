"""Scripts: what users do while a simulated rollout runs, as lines of text.

    at 30s pause
    at 1m resume
    at 90s scale 8

A command is a moment, a verb and the argument of the verb.  The module only
reads commands; `simulation` carries them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

import msgspec

from holdfast.meta import durations


class Verb(StrEnum):
    """What a user does to a rollout, or what happens to its replicas."""

    PAUSE = "pause"
    RESUME = "resume"
    PROMOTE = "promote"
    ABORT = "abort"
    UNDO = "undo"
    SCALE = "scale"
    REVISION = "revision"
    DRAIN = "drain"
    DELETE = "delete"
    CRASH = "crash"
    KILL = "kill"
    QUOTA = "quota"

    def __str__(self) -> str:
        return self.value


class Command(msgspec.Struct, frozen=True):
    """A verb at a moment; `number` or `name` is its argument."""

    at: timedelta
    verb: Verb
    number: int | None = None
    name: str = ""

    def __str__(self) -> str:
        about = self.name or ("" if self.number is None else str(self.number))
        return f"{self.verb} {about}".rstrip()


class ScriptError(ValueError):
    """A line is not a command; the message says what to write instead."""


USAGE = {
    Verb.PAUSE: "pause",
    Verb.RESUME: "resume",
    Verb.PROMOTE: "promote",
    Verb.ABORT: "abort",
    Verb.UNDO: "undo",
    Verb.SCALE: "scale REPLICAS",
    Verb.REVISION: "revision NAME",
    Verb.DRAIN: "drain NODE",
    Verb.DELETE: "delete REPLICAS",
    Verb.CRASH: "crash REPLICAS",
    Verb.KILL: "kill REPLICAS",
    Verb.QUOTA: "quota REPLICAS",
}
"""How each command is written after ``at 30s``."""

_LARGEST = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,19}")


def parse(line: str) -> Command:
    """Read ``at 30s scale 8``."""
    match line.split():
        case ["at", moment, verb, *rest] if verb in Verb.__members__.values():
            return _command(line, Verb(verb), moment=moment, rest=rest)
        case _:
            raise ScriptError(f"{line!r} is not a command; write 'at 30s ...' and one of: {', '.join(USAGE.values())}")


def parse_all(lines: Iterable[str]) -> tuple[Command, ...]:
    """Read commands, one a line or several on one line with ``;`` between; in the order of their moments."""
    parts = (part.strip() for line in lines for part in line.replace("\n", ";").split(";"))
    return tuple(sorted((parse(part) for part in parts if part), key=lambda command: command.at))


def _command(line: str, verb: Verb, *, moment: str, rest: list[str]) -> Command:
    try:
        at = durations.parse(moment)
    except durations.DurationError as error:
        raise ScriptError(f"{line!r}: {error}") from error
    if at < timedelta():
        raise ScriptError(f"{line!r}: a rollout begins at 0s; write a moment after it")
    usage = f"{line!r}: write 'at {moment} {USAGE[verb]}'"
    if len(rest) != len(USAGE[verb].split()) - 1:
        raise ScriptError(usage)
    if not rest:
        return Command(at, verb)
    if verb is Verb.REVISION:
        if not _NAME.fullmatch(rest[0]):
            raise ScriptError(f"{usage} with a name of at most 20 letters, digits, dots and dashes")
        return Command(at, verb, name=rest[0])
    text = rest[0].removeprefix("node-") if verb is Verb.DRAIN else rest[0]
    if not (text.isascii() and text.isdigit() and int(text) <= _LARGEST):
        raise ScriptError(f"{usage} with a whole number of at most {_LARGEST:,}")
    return Command(at, verb, number=int(text), name=f"node-{text}" if verb is Verb.DRAIN else "")
