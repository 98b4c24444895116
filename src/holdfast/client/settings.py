"""Kubeconfig files: read, merged as kubectl merges them, and a context of them chosen.

From texts to values; what is in the files is not used here.  Whatever is wrong is
said with its file and its place there, and with what to write instead.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
import yaml

LOCAL: Final = Path(".kube") / "config"
"""Where a kubeconfig is, from the home directory, if nothing else is said."""


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used; the message says where, and what to write instead."""


class Cluster(msgspec.Struct, rename="kebab", frozen=True):
    """Where a server is."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel", frozen=True):
    """A command that gives out credentials."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable", "Always"] | None = None


class AuthProvider(msgspec.Struct, frozen=True):
    name: str = ""


class User(msgspec.Struct, rename="kebab", frozen=True):
    """Who asks.  Not for printing: it holds secrets."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None


class Context(msgspec.Struct, frozen=True):
    """Which user on which server, and where unless they say otherwise."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: Context | None = None


class _File(msgspec.Struct, rename="kebab"):
    kind: str = "Config"
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """Something named in a file."""

    name: str
    value: T = field(repr=False)
    path: Path

    def read(self, data: str, file: str, *, what: str) -> bytes:
        """The content of a field pair such as ``client-key-data`` and ``client-key``: inline, or in a file."""
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error:
                raise self.wrong(f"{what}-data is not base64", f"encode it again, or name a file with {what}") from None
        if not file:
            return b""
        try:
            return self.beside(file).read_bytes()
        except OSError as error:
            raise self.wrong(f"{what} {file!r} cannot be read: {error.strerror}", "correct the path") from None

    def beside(self, file: str) -> Path:
        """A path as the file means it: from where it is itself."""
        return self.path.parent / file

    def wrong(self, what: str, remedy: str) -> KubeconfigError:
        return KubeconfigError(f"{self.path}: {type(self.value).__name__.lower()} {self.name!r}: {what}; {remedy}")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the files say together."""

    paths: tuple[Path, ...]
    current: str
    clusters: Mapping[str, Entry[Cluster]]
    users: Mapping[str, Entry[User]]
    contexts: Mapping[str, Entry[Context]]

    @property
    def source(self) -> str:
        return os.pathsep.join(str(path) for path in self.paths)

    def choose(self, context: str = "") -> Choice:
        """The named context, or the current one, with all that it refers to."""
        name = context or self.current
        if not self.contexts:
            raise KubeconfigError(f"{self.source}: it has no contexts, so it says nothing about any server")
        if not name:
            raise KubeconfigError(
                f"{self.source}: there is no current-context; write current-context: NAME into the file, or name one "
                f"of its contexts: {_listed(self.contexts)}"
            )
        chosen = self.contexts.get(name)
        if chosen is None:
            raise KubeconfigError(f"{self.source}: there is no context {name!r}; there are {_listed(self.contexts)}")
        cluster, user = self.clusters.get(chosen.value.cluster), self.users.get(chosen.value.user)
        if cluster is None:
            raise chosen.wrong(
                f"there is no cluster {chosen.value.cluster!r}", f"name one of {_listed(self.clusters)} as its cluster"
            )
        if user is None and chosen.value.user:
            raise chosen.wrong(
                f"there is no user {chosen.value.user!r}", f"name one of {_listed(self.users)} as its user"
            )
        return Choice(chosen, cluster, user or Entry("", User(), chosen.path))


@dataclass(frozen=True, slots=True)
class Choice:
    """A context and what it refers to."""

    context: Entry[Context]
    cluster: Entry[Cluster]
    user: Entry[User]


def paths(environment: Mapping[str, str], *, home: Path) -> tuple[Path, ...]:
    """The files that count, whether they exist or not: those that ``KUBECONFIG`` names, or the one at home."""
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return tuple(dict.fromkeys(Path(part) for part in named)) or (home / LOCAL,)


def load(files: Iterable[Path]) -> Settings:
    """The files that exist, merged: of things that two files name alike, the first one counts."""
    found: list[Path] = []
    current = ""
    clusters: dict[str, Entry[Cluster]] = {}
    users: dict[str, Entry[User]] = {}
    contexts: dict[str, Entry[Context]] = {}
    for path in files:
        try:
            text = path.read_text()
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise KubeconfigError(f"{path}: this is not a text file, so it is no kubeconfig") from None
        except OSError as error:
            raise KubeconfigError(f"{path}: it cannot be read: {error.strerror or error}") from None
        found.append(path)
        file = parse(text, path)
        current = current or file.current_context or ""
        _merge(clusters, path, "clusters", [(each.name, each.cluster or Cluster()) for each in file.clusters or ()])
        _merge(users, path, "users", [(each.name, each.user or User()) for each in file.users or ()])
        _merge(contexts, path, "contexts", [(each.name, each.context or Context()) for each in file.contexts or ()])
    return Settings(tuple(found), current, clusters, users, contexts)


def parse(text: str, path: Path) -> _File:
    """One file; errors name the place and never show what stands there, for it may be a secret."""
    try:
        read = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise KubeconfigError(f"{path}{where}: this is not YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise KubeconfigError(f"{path}: this is not YAML; it has characters that no text has") from None
    try:
        file = msgspec.convert({} if read is None else read, _File)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"{path}: this is not a kubeconfig: {error}") from None
    if file.kind != "Config":
        raise KubeconfigError(f"{path}: this is a {file.kind}, not a kubeconfig; its kind would be Config")
    return file


def _merge(into: dict[str, Entry[T]], path: Path, section: str, named: Iterable[tuple[str, T]]) -> None:
    own: dict[str, Entry[T]] = {}
    for name, value in named:
        if name in own:
            raise KubeconfigError(f"{path}: {section} has {name!r} twice; remove or rename one of them")
        own[name] = Entry(name, value, path)
    for name, entry in own.items():
        into.setdefault(name, entry)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
