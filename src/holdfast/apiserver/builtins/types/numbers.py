"""The notation of the numbers that fields have in protocol buffers.

One entry per message; a line that is indented goes on with the entry above::

    Pod metadata 1 spec 2 status 3
    Volume name 1
    Volume/2 hostPath 1 emptyDir 2
    JSONSchemaPropsOrBool = allows 1 schema 2

    Type field number …   the fields by the names that they have in JSON
    Type/2 …              the message in field 2 of the type, whose fields are the type's own in JSON
    Type/2/3 …            the message in field 3 of that one
    Type = …              in JSON this message is the value of its last field that is there, in the order written

What the fields hold is said in the types (`notation`).  This module knows no particular type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.apiserver.builtins.types.notation import NotationError, without_comments


@dataclass(frozen=True, slots=True)
class Numbers:
    """The fields of one message."""

    fields: Mapping[int, str]
    inlined: Mapping[int, Numbers] = field(default_factory=dict)
    """By number, the messages whose fields belong to this one."""
    stands_for_field: bool = False

    def __iter__(self) -> Iterator[str]:
        """The names of all fields, those of inlined messages too."""
        yield from self.fields.values()
        for inner in self.inlined.values():
            yield from inner


def read(*texts: str) -> dict[str, Numbers]:
    """The messages of some texts, by name."""
    known: dict[str, Numbers] = {}
    for entry in (entry for text in texts for entry in re.split(r"\n(?=\S)", without_comments(text))):
        head, *rest = entry.split()
        name, *path = head.split("/")
        stands = rest[:1] == ["="]
        fields = _pairs(head, rest[1:] if stands else rest)
        if not path:
            if name in known:
                raise NotationError(f"{name} has numbers already")
            known[name] = Numbers(fields, stands_for_field=stands)
        else:
            known[name] = _with_inlined(known[name], [int(each) for each in path], fields)
    return known


def _pairs(head: str, words: list[str]) -> dict[int, str]:
    numbers = [int(word) for word in words[1::2]]
    names = words[::2]
    if len(set(numbers)) != len(names) or len(set(names)) != len(names):
        raise NotationError(f"{head}: each field has one number of its own; write 'field 1 other 2'")
    return dict(zip(numbers, names, strict=True))


def _with_inlined(message: Numbers, path: list[int], fields: dict[int, str]) -> Numbers:
    """The message with another one inlined at a path of numbers."""
    number, *rest = path
    if rest:
        inner = _with_inlined(message.inlined[number], rest, fields)
    elif number in message.fields or number in message.inlined:
        raise NotationError(f"{number} is the number of another field already")
    else:
        inner = Numbers(fields)
    return Numbers(message.fields, {**message.inlined, number: inner}, message.stands_for_field)
