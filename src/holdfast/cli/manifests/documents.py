"""Manifests: documents in YAML or JSON, read from files or standard input, with the place of every value.

They are read as kubectl reads them: numbers in the forms of Go, times as text, duplicate
keys refused, keys always strings.  There is one difference.  kubectl takes a bare ``On``,
``yes`` or ``n`` for a boolean, which the author of ``powerState: On`` does not mean; here it
is text, and `Document.cautions` names the places where quotes are missing.

No tag constructs an object, and size, depth and the growth by aliases are bounded.
Documents of another API are translated (`Document.translated`) by `kinds.translate`; this
module must not know any kind.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from holdfast import kinds
from holdfast.cli.arguments import EMPTY
from holdfast.cli.errors import Complaint, InputError, Place
from holdfast.cli.manifests.scalars import LEGACY_BOOLEANS, NotAScalar, scalar
from holdfast.meta.fieldpaths import child

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_ALIASED: Final = 100_000
"""The most values that all aliases of a document may repeat."""

STDIN: Final = "-"

_LOADER: Final[Any] = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_TAG: Final = "tag:yaml.org,2002:"
_PAIR: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Source:
    """A text that was read, and the name that messages use for it."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def place(self, line: int, column: int) -> Place:
        """The place at a line and a column, both counted from 0 as in YAML marks."""
        return Place(self.name, line + 1, column + 1, self.lines[line] if line < len(self.lines) else None)


@dataclass(frozen=True, slots=True)
class Marked:
    """A value, with its place and the places of the values in it.

    ``inner`` has the same keys or indices as ``value``.  The place of a member
    is that of its key, which is where one looks for it.
    """

    value: Any
    line: int
    column: int
    inner: Mapping[str, Marked] | tuple[Marked, ...] = ()
    size: int = 1
    height: int = 0

    def members(self, path: str) -> Iterator[tuple[str, Marked]]:
        """The members with their paths, in the form that `kinds` uses."""
        if isinstance(self.inner, tuple):
            yield from ((f"{path}[{index}]", item) for index, item in enumerate(self.inner))
        else:
            yield from ((child(path, key), item) for key, item in self.inner.items())


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest.

    cautions     places that kubectl reads differently, and what a translation left out
    translation  the object that is meant, where the manifest is of another API
    """

    source: Source
    root: Marked
    cautions: tuple[Complaint, ...] = ()
    translation: kinds.Translation | None = None

    @property
    def value(self) -> Any:
        return self.root.value if self.translation is None else self.translation.document

    @property
    def place(self) -> Place:
        return self.source.place(self.root.line, self.root.column)

    def place_of(self, path: str) -> Place:
        """The place of the field ``path``, or of its nearest parent that the document has."""
        return self._place(path if self.translation is None else self.translation.origin(path))

    def translated(self) -> Document:
        """The document as an object of a kind, where it is of another API; raises `InputError` if it cannot be."""
        try:
            translation = kinds.translate(self.value)
        except kinds.DocumentError as error:
            raise InputError(*(self._complaint(problem) for problem in error.problems)) from None
        if translation is None:
            return self
        notes = tuple(self._complaint(note) for note in translation.notes)
        return replace(self, translation=translation, cautions=(*self.cautions, *notes))

    def _complaint(self, problem: kinds.Problem) -> Complaint:
        place = self._place(problem.path)
        return Complaint(message=problem.message, hint=problem.hint, path=problem.path, place=place)

    def _place(self, path: str) -> Place:
        at, node = "", self.root
        while True:
            for inner_path, inner in node.members(at):
                if path == inner_path or path.startswith((f"{inner_path}.", f"{inner_path}[")):
                    at, node = inner_path, inner
                    break
            else:
                return self.source.place(node.line, node.column)


def read(name: str) -> tuple[Document, ...]:
    """The objects in the file ``name``, or in standard input for ``-``; a List gives its items."""
    return parse(Source("<stdin>" if name == STDIN else name, _text(name)))


def parse(source: Source) -> tuple[Document, ...]:
    """The objects in a text; raises `InputError` if it is neither YAML nor JSON, or holds none."""
    found = tuple(document for whole in _documents(source) for document in _flattened(whole))
    if not found:
        hint = "write an object that begins with apiVersion:"
        raise InputError(Complaint(message="there is no object in it", hint=hint, place=Place(source.name)))
    return found


def _flattened(document: Document) -> Iterator[Document]:
    """The items of a List, each as if it were a document of its own."""
    value = document.value
    is_list = isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value
    items = document.root.inner["items"].inner if is_list and isinstance(document.root.inner, Mapping) else None
    if not isinstance(items, tuple):
        yield document
        return
    for item in items:
        yield from _flattened(replace(document, root=item))


# --- text --------------------------------------------------------------------


def _text(name: str) -> str:
    where = Place("<stdin>" if name == STDIN else name)
    if not name:
        raise InputError(Complaint(message=f"the name of a file {EMPTY}", hint=_NAME_A_FILE))
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(Complaint(message="there is no such file", hint=_neighbour(name), place=where)) from None
    except IsADirectoryError:
        raise InputError(Complaint(message="is a directory", hint="name a file in it", place=where)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "check the name and its permissions"
        raise InputError(Complaint(message=f"cannot be read: {reason}", hint=hint, place=where)) from None
    if len(content) > MAX_BYTES:
        message = f"is larger than {MAX_BYTES // 1024 // 1024} MiB, which no manifest is"
        raise InputError(Complaint(message=message, hint="split it into several files", place=where))
    if b"\0" in content:
        raise InputError(Complaint(message="is not a text file", hint="name a YAML or JSON file", place=where))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].rpartition(b"\n")
        line = before[0].count(b"\n") + (2 if before[1] else 1)
        message = f"the byte {content[error.start]:#04x} is not UTF-8"
        hint = "save the file as UTF-8"
        raise InputError(Complaint(message=message, hint=hint, place=replace(where, line=line))) from None


def _neighbour(name: str) -> str:
    """A hint with the name of a similar file."""
    import difflib  # only a mistyped name pays for it

    path = Path(name)
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"there is no directory {path.parent} either"
    close = difflib.get_close_matches(path.name, names, n=1)
    if close:
        return f"did you mean {path.with_name(close[0])}?"
    return _NAME_A_FILE


_NAME_A_FILE: Final = "write the path of a YAML or JSON file, or - for standard input"


# --- YAML --------------------------------------------------------------------


def _documents(source: Source) -> Iterator[Document]:
    text = source.text
    if text.lstrip()[:1] == "{":
        # JSON writes characters beyond 16 bits as two escapes, YAML as one.
        text = _PAIR.sub(_joined, text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.DocumentStartEvent():
                    builder = _Builder(source)
                case yaml.DocumentEndEvent():
                    if builder.root is not None and builder.root.value is not None:
                        yield Document(source, builder.root, tuple(builder.cautions))
                case yaml.StreamStartEvent() | yaml.StreamEndEvent():
                    pass
                case _:
                    builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise InputError(_syntax(source, error)) from None
    except yaml.reader.ReaderError as error:
        raise InputError(_character(source, error)) from None


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _character(source: Source, error: yaml.reader.ReaderError) -> Complaint:
    # libyaml counts bytes.
    before = source.text.encode()[: error.position].decode(errors="ignore")
    lines = before.split("\n")
    culprit = source.text[len(before) : len(before) + 1]
    place = source.place(len(lines) - 1, len(lines[-1]))
    return Complaint(message=f"the character {culprit!r} cannot stand in YAML", hint="remove it", place=place)


def _syntax(source: Source, error: yaml.MarkedYAMLError) -> Complaint:
    mark = error.problem_mark or error.context_mark
    place = Place(source.name) if mark is None else source.place(mark.line, mark.column)
    culprit = "" if place.text is None or place.column is None else place.text[place.column - 1 : place.column]
    message, hint = _EXPLAINED.get(culprit, (str(error.problem), _UNEXPLAINED))
    if error.context and error.context_mark is not None and error.context_mark.line != (mark and mark.line):
        message = f"{message} ({error.context} that begins in line {error.context_mark.line + 1})"
    return Complaint(message=f"not valid YAML: {message}", hint=hint, place=place)


_UNEXPLAINED: Final = "see whether indentation, quotes, colons and brackets are right here and in the line above"
_EXPLAINED: Final = {
    "\t": ("a tab stands where only spaces may", "indent with spaces"),
    "@": ("a plain text cannot begin with @", "put the text in quotes"),
    "`": ("a plain text cannot begin with `", "put the text in quotes"),
    "%": ("a plain text cannot begin with %", "put the text in quotes"),
}
"""What is wrong and what to do, by the character at which the parser stopped."""


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read."""

    start: yaml.NodeEvent
    items: list[Marked] = field(default_factory=list)
    members: dict[str, Marked] = field(default_factory=dict)
    merged: list[Marked] = field(default_factory=list)
    key: yaml.ScalarEvent | None = None
    size: int = 1
    height: int = 0


class _Builder:
    """Builds one document from parser events, without recursion."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: Marked | None = None
        self.cautions: list[Complaint] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Marked] = {}
        self.aliased = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.ScalarEvent() if self._awaits_key():
                self._key(self.stack[-1], event)
            case _ if self._awaits_key():
                raise self._refused(event, "a key must be a text", "write a plain word before the colon")
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.ScalarEvent():
                self._add(event, self._scalar(event))

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].start, yaml.MappingStartEvent) and not self.stack[-1].key

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        wanted = f"{_TAG}map" if isinstance(event, yaml.MappingStartEvent) else f"{_TAG}seq"
        if event.tag not in (None, "!", wanted):
            raise self._refused(event, f"the tag {event.tag} is not known", "leave it out")
        if len(self.stack) >= MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels are nested"
            raise self._refused(event, message, "no manifest is that deep; see whether brackets are closed")
        self.stack.append(_Frame(event))

    def _close(self) -> None:
        frame = self.stack.pop()
        inner: Mapping[str, Marked] | tuple[Marked, ...]
        if isinstance(frame.start, yaml.MappingStartEvent):
            inner = dict(frame.members)
            for source in frame.merged:
                assert isinstance(source.inner, Mapping)
                for key, item in source.inner.items():
                    inner.setdefault(key, item)
            value: Any = {key: item.value for key, item in inner.items()}
        else:
            inner = tuple(frame.items)
            value = [item.value for item in inner]
        self._add(frame.start, Marked(value, *_start(frame.start), inner, frame.size, frame.height))

    def _alias(self, event: yaml.AliasEvent) -> None:
        target = self.anchors.get(event.anchor or "")
        if target is None:
            message = f"the alias *{event.anchor} has no anchor before it"
            raise self._refused(event, message, f"mark the value that is meant with &{event.anchor}")
        self.aliased += target.size
        if self.aliased > MAX_ALIASED or len(self.stack) + target.height > MAX_DEPTH:
            message = f"aliases repeat more than {MAX_ALIASED:,} values or {MAX_DEPTH} levels"
            raise self._refused(event, message, "write the values out")
        self._add(event, _moved(target, event))

    def _key(self, frame: _Frame, event: yaml.ScalarEvent) -> None:
        if event.value == "" and event.implicit[0]:
            raise self._refused(event, "a key is missing before the colon", 'write a word, or "" if it is meant')
        first = frame.members.get(event.value)
        if first is not None:
            message = f"the key {event.value!r} stands here again; it is already in line {first.line + 1}"
            raise self._refused(event, message, "remove one of the two")
        frame.key = event

    def _add(self, event: yaml.NodeEvent, node: Marked) -> None:
        anchor = None if isinstance(event, yaml.AliasEvent) else event.anchor
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        frame.size += node.size
        frame.height = max(frame.height, node.height + 1)
        if frame.key is None:
            frame.items.append(node)
            return
        key, frame.key = frame.key, None
        if key.value == "<<" and key.implicit[0]:
            frame.merged.extend(self._mappings(event, node))
        else:
            frame.members[key.value] = _moved(node, key)

    def _mappings(self, event: yaml.NodeEvent, node: Marked) -> tuple[Marked, ...]:
        """The mappings that a merge key merges: one, or several."""
        nodes = node.inner if isinstance(node.value, list) and isinstance(node.inner, tuple) else (node,)
        if not all(isinstance(one.value, dict) for one in nodes):
            raise self._refused(event, "only mappings can be merged", "write <<: *name, of a mapping marked with &name")
        return nodes

    def _scalar(self, event: yaml.ScalarEvent) -> Marked:
        tag = event.tag
        if tag is not None and tag != "!" and not tag.startswith(_TAG):
            raise self._refused(event, f"the tag {tag} is not known", "leave it out")
        plain = tag is None and event.implicit[0]
        if plain and event.value in LEGACY_BOOLEANS:
            message = f"kubectl reads a bare {event.value} as a boolean"
            hint = f'write "{event.value}", in quotes, or true or false'
            self.cautions.append(Complaint(message=message, hint=hint, place=self._place(event)))
        try:
            kind = "" if plain else "str" if tag in (None, "!") else tag.removeprefix(_TAG)
            return Marked(scalar(event.value, kind), *_start(event))
        except NotAScalar as error:
            raise self._refused(event, error.message, error.hint) from None

    def _place(self, event: yaml.Event) -> Place:
        return self.source.place(*_start(event))

    def _refused(self, event: yaml.Event, message: str, hint: str) -> InputError:
        return InputError(Complaint(message=message, hint=hint, place=self._place(event)))


def _start(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    assert mark is not None, "events that come from a text have marks"
    return mark.line, mark.column


def _moved(node: Marked, event: yaml.Event) -> Marked:
    line, column = _start(event)
    return replace(node, line=line, column=column)
