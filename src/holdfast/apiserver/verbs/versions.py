"""Versions: conversion between the version in which an object is stored and the one that a resource type serves.

Each kind is stored in one version.  Most versions differ only in their apiVersion; a type that differs in more has
conversion functions.
"""

from __future__ import annotations

from holdfast.apiserver.http.bodies import read_json
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Entry
from holdfast.meta.exchange import encode


def shown(entry: Entry, kind: ResourceType) -> Object:
    """A stored object in the version of `kind`; the caller owns it."""
    obj: Object = read_json(entry.value)
    if kind.from_stored is not None:
        obj = kind.from_stored(obj)
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return obj


def kept(obj: Object, kind: ResourceType) -> Object:
    """An object of `kind` in its stored version: kind, apiVersion, metadata first, so that all bytes begin alike."""
    if kind.to_stored is not None:
        obj = kind.to_stored(obj)
    head = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]}
    return head | {name: value for name, value in obj.items() if name not in head}


def wire(entry: Entry, kind: ResourceType) -> bytes:
    """The object's bytes in the version of `kind`; the stored bytes if that is the same."""
    return entry.value if entry.value.startswith(head(kind)) else encode(shown(entry, kind))


def head(kind: ResourceType) -> bytes:
    """How the bytes of every object of `kind` begin."""
    return f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
