"""Versions: conversion between the version in which an object is stored and the one that a resource type serves.

Each kind is stored in one version.  Most versions differ only in their apiVersion; a built-in type that differs in more
has conversion functions.  Objects of a custom kind may be converted by a webhook, which takes time: `prepared` converts
entries before they are shown, and `stored` an object before it is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.apiserver.http.bodies import read_json
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Entry
from holdfast.meta.exchange import encode


async def prepared(entries: Iterable[Entry], kind: ResourceType) -> None:
    """Convert entries to the version of `kind`, all of them at once, so that they can be shown."""
    if kind.convert is None:
        return
    begin = kind.head
    others = [each for each in entries if not each.value.startswith(begin) and kind.api_version not in each.converted]
    if others:
        made = await kind.convert([read_json(each.value) for each in others], kind.api_version)
        for each, obj in zip(others, made, strict=True):
            each.converted[kind.api_version] = encode(obj)


async def stored(obj: Object, kind: ResourceType) -> Object:
    """An object of `kind` in the version in which it is stored."""
    if kind.convert is None or kind.version == kind.storage_version:
        return obj
    (made,) = await kind.convert([obj], f"{kind.group}/{kind.storage_version}")
    return made


async def converted(obj: Object, source: ResourceType, target: ResourceType) -> Object:
    """An object of one resource type as another one of the same kind has it."""
    if source.convert is not None:
        (made,) = await source.convert([obj], target.api_version)
        return made
    obj = source.to_stored(obj) if source.to_stored is not None else obj
    obj = target.from_stored(obj) if target.from_stored is not None else obj
    return {**obj, "kind": target.kind, "apiVersion": target.api_version}


def shown(entry: Entry, kind: ResourceType) -> Object:
    """A stored object in the version of `kind`; the caller owns it, and has `prepared` it."""
    if kind.convert is not None and not entry.value.startswith(kind.head):
        made: Object = read_json(entry.converted[kind.api_version])
        return made
    obj: Object = read_json(entry.value)
    if kind.from_stored is not None:
        obj = kind.from_stored(obj)
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return obj


def kept(obj: Object, kind: ResourceType) -> Object:
    """An object as it is `stored`: kind, apiVersion, metadata first, so that all bytes begin alike."""
    if kind.to_stored is not None:
        obj = kind.to_stored(obj)
    rest = dict(obj)
    return {name: rest.pop(name) for name in ("kind", "apiVersion", "metadata")} | rest


def wire(entry: Entry, kind: ResourceType) -> bytes:
    """The object's bytes in the version of `kind`; the stored bytes if that is the same."""
    return entry.value if entry.value.startswith(kind.head) else encode(shown(entry, kind))
