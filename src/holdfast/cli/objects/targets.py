"""Targets: the objects that a command line names.

``TYPE``, ``TYPE NAME…``, ``TYPE/NAME…``, ``TYPE,TYPE``, categories such as
``all``, or the objects in files; narrowed by selectors; read as kubectl reads
them.  From words and what a server has to values; nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import click

from holdfast.cli.arguments import EMPTY
from holdfast.cli.bundling import bundled
from holdfast.cli.connecting import Session
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.manifests import sources
from holdfast.cli.manifests.sources import Manifest
from holdfast.cli.objects import completing
from holdfast.client.discovery import Discovery, Served
from holdfast.client.protocols import Scope
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments and options that select objects."""

    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    recursive: bool = False
    labels: str = ""
    fields: str = ""
    everywhere: bool = False

    @property
    def narrowed(self) -> bool:
        return bool(self.labels or self.fields)


options: Final = bundled(
    "asked",
    Asked,
    click.argument("words", nargs=-1, metavar="TYPE [NAME...] | TYPE/NAME...", shell_complete=completing.objects),
    sources.files,
    sources.recursive,
    click.option(
        "-l",
        "--selector",
        "labels",
        default="",
        metavar="LABELS",
        help="Only those with such labels: app=web,tier!=db.",
    ),
    click.option(
        "--field-selector",
        "fields",
        default="",
        metavar="FIELDS",
        help="Only those with such fields: status.phase=Running.",
    ),
    click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces."),
)
"""Give a command the arguments and options that select objects, as one argument `asked`."""


@dataclass(frozen=True, slots=True)
class Target:
    """One object, or all objects of a resource in a scope."""

    served: Served
    scope: Scope
    name: str = ""

    @property
    def resource(self) -> Resource:
        return self.served.resource

    @property
    def key(self) -> Key:
        return Key(self.scope.namespace, self.name)

    @property
    def type(self) -> str:
        """``deployment.apps``, or ``pod``: as messages call it."""
        return self.resource.gvk.group_kind.lower()

    @property
    def path(self) -> str:
        return self.resource.path(self.scope.namespace, self.name)

    @property
    def watched(self) -> Scope:
        """The scope of a watch: one object is watched as the only one of its name."""
        return replace(self.scope, fields=f"metadata.name={self.name}") if self.name else self.scope

    def of(self, name: str, namespace: str) -> Target:
        """One of the objects."""
        return Target(self.served, Scope(namespace=namespace if self.resource.namespaced else ""), name)


async def targets(asked: Asked, session: Session, *, discovery: Discovery | None = None) -> tuple[Target, ...]:
    """The targets on the server of a session; raises `InputError`, or `UnknownResource`."""
    pairs = _pairs(asked)
    read = sources.read(asked.files, recursive=asked.recursive)
    known = discovery or await session.discovery()
    named = _by_words(pairs, asked, known, session)
    return (*named, *(_by_manifest(each, known, session) for each in read))


async def one(session: Session, words: Sequence[str], *, discovery: Discovery | None = None) -> Target:
    """The one object that the arguments name; raises `InputError`."""
    found = await targets(Asked(words=tuple(words)), session, discovery=discovery)
    if len(found) != 1 or not found[0].name:
        raise _wrong("name one object", "write TYPE/NAME, such as workload/shop")
    return found[0]


def check_named(found: Iterable[Target], asked: Asked, *, every: bool) -> None:
    """Refuse a change of all objects of a type without --all or a selector."""
    if not every and not asked.narrowed and any(not target.name for target in found):
        raise _wrong("resource(s) were provided, but no name was specified", "write a name, -l LABELS, or --all")


def nothing(found: Iterable[Target], asked: Asked, session: Session) -> str:
    """The message where no object was found."""
    inside = not asked.everywhere and all(target.resource.namespaced for target in found)
    return f"No resources found{f' in {session.namespace} namespace.' if inside else ''}"


def one_resource(found: Iterable[Target]) -> bool:
    return len({target.resource for target in found}) == 1


# Words.


def _pairs(asked: Asked) -> list[tuple[str, str]]:
    """Types and names; the name is empty for all objects of the type."""
    if asked.files and (asked.words or asked.narrowed):
        raise _wrong("-f names the objects already", "leave out -f, or types, names and selectors")
    if not asked.words and not asked.files:
        raise _wrong("no type is named", "write a type, such as pods or deployment/web, or -f FILE")
    pairs = list(_read(asked.words))
    if asked.narrowed and any(name for _, name in pairs):
        raise _wrong("a name and a selector are given", "leave one of them out")
    return pairs


def _read(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not all(word.strip(",") for word in words):
        raise _wrong(f"a type or a name {EMPTY}", "write such as deployment/web, or pods for all of a type")
    slashed = [word for word in words if "/" in word]
    if not slashed:
        types = words[0].split(",") if words else []
        yield from ((type, name) for type in types if type for name in words[1:] or ("",))
        return
    plain = next((word for word in words if "/" not in word), None)
    if plain is not None:
        hint = f"write TYPE/{plain} instead of {plain}, or the type once: {slashed[0].replace('/', ' ', 1)}"
        raise _wrong(f"{plain!r} stands beside {slashed[0]!r}, which has its type in it", hint)
    for word in slashed:
        type, _, name = word.partition("/")
        if not type or not name or "/" in name or "," in type:
            raise _wrong(f"{word!r} is not TYPE/NAME", "write such as deployment/web")
        yield type, name


def _by_words(pairs: Iterable[tuple[str, str]], asked: Asked, known: Discovery, session: Session) -> Iterator[Target]:
    for type, name in pairs:
        for served in known.in_category(type) or (known.find(type),):
            if name and asked.everywhere and served.resource.namespaced:
                hint = "leave out -A and write -n NAMESPACE"
                raise _wrong("a resource cannot be retrieved by name across all namespaces", hint)
            namespace = session.namespace if served.resource.namespaced and not asked.everywhere else ""
            yield Target(served, Scope(namespace=namespace, labels=asked.labels, fields=asked.fields), name)


def _by_manifest(manifest: Manifest, known: Discovery, session: Session) -> Target:
    served = known.kind(manifest.gvk)
    key = manifest.key(served, session.namespace, strict=session.strict)
    return Target(served, Scope(namespace=key.namespace), key.name)


def _wrong(message: str, hint: str) -> InputError:
    return InputError(Complaint(message=message, hint=hint))
