"""Where manifests for a server come from: files, directories, standard input; and what each document names.

Everything that can be known before anything is sent is checked here, in all
files, and reported together.  The server validates what is inside an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.errors import Complaint, InputError, Place, printable
from holdfast.cli.manifests import documents
from holdfast.cli.manifests.documents import STDIN, Document
from holdfast.client.discovery import Served
from holdfast.meta.objects import GVK, Key, ObjectError

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""What is read of a directory."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

files = click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", help="Manifests; - reads standard input."
)
recursive = click.option("-R", "--recursive", is_flag=True, help="Also what is in the directories of a -f DIR.")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A document that names an object."""

    document: Document
    gvk: GVK
    name: str
    namespace: str
    """As it is written; empty where it is not."""

    @property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = self.document.value
        return value

    def complaint(self, message: str, *, path: str, hint: str | None = None) -> Complaint:
        return Complaint(message=message, hint=hint, path=path, place=self.document.place_of(path))

    def key(self, served: Served, namespace: str, *, strict: bool) -> Key:
        """The key of the object; raises `InputError` if its namespace is not the one the user named (`strict`)."""
        if not served.resource.namespaced:
            return Key("", self.name)
        if strict and self.namespace not in ("", namespace):
            message = f"the object is in namespace {self.namespace!r}, and --namespace says {namespace!r}"
            hint = f"write --namespace={self.namespace}, or leave one of the two out"
            raise InputError(self.complaint(message, path="metadata.namespace", hint=hint))
        return Key(self.namespace or namespace, self.name)


def read(names: Sequence[str], *, recursive: bool = False) -> tuple[Manifest, ...]:
    """Every object in the files; raises `InputError` with all that is wrong in any of them."""
    complaints: list[Complaint] = []
    found: list[Manifest] = []
    for name in _expanded(names, recursive=recursive):
        try:
            read = documents.read(name)
        except InputError as error:
            complaints += error.complaints
            continue
        for given in read:
            try:
                document = given.translated()
            except InputError as error:
                complaints += error.complaints
                continue
            for caution in document.cautions:
                click.echo(printable(f"note: {caution}"), err=True)
            wrong = list(_wrong(document))
            complaints += wrong
            if not wrong:
                found.append(_manifest(document))
    if complaints:
        raise InputError(*complaints)
    return tuple(found)


def _expanded(names: Iterable[str], *, recursive: bool) -> Iterator[str]:
    for name in dict.fromkeys(names):
        if _URL.match(name):
            hint = f"fetch it yourself, and look at it: curl -fsSL {name} | holdfast apply -f -"
            raise InputError(Complaint(message="manifests are not fetched from URLs", hint=hint, place=Place(name)))
        # An empty name, as of a variable that is not set, does not stand for all manifests of the directory.
        if name in ("", STDIN) or not Path(name).is_dir():
            yield name
        else:
            yield from _inside(Path(name), recursive=recursive)


def _inside(directory: Path, *, recursive: bool) -> list[str]:
    pattern = "**/*" if recursive else "*"
    inside = sorted(path for path in directory.glob(pattern) if path.suffix in SUFFIXES and path.is_file())
    if not inside:
        message = f"there is no {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file in it"
        hint = "name a file, or another directory" if recursive else "-R reads the directories in it, too"
        raise InputError(Complaint(message=message, hint=hint, place=Place(str(directory))))
    return [str(path) for path in inside]


def _wrong(document: Document) -> Iterator[Complaint]:
    """What keeps a document from naming an object."""
    value = document.value
    if not isinstance(value, dict):
        message = f"an object is a mapping, not {type(value).__name__}"
        yield Complaint(message=message, hint="begin with apiVersion:", place=document.place)
        return
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for path, found, example in (
        ("apiVersion", value.get("apiVersion"), "apiVersion: apps/v1"),
        ("kind", value.get("kind"), "kind: Deployment"),
        ("metadata.name", metadata.get("name"), "name: web, under metadata:"),
        ("metadata.namespace", metadata.get("namespace") or "default", "namespace: default, under metadata:"),
    ):
        if not isinstance(found, str) or not found:
            place = document.place_of(path)
            yield Complaint(message="must be a text", hint=f"write {example}", path=path, place=place)
    try:
        GVK.parse(str(value.get("apiVersion") or "v1"), "any")
    except ObjectError as error:
        yield Complaint(message=str(error), place=document.place_of("apiVersion"))


def _manifest(document: Document) -> Manifest:
    metadata = document.value["metadata"]
    return Manifest(document, GVK.of(document.value), metadata["name"], metadata.get("namespace") or "")
